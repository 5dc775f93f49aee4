// SPDX-License-Identifier: MIT
// Concludes from libmicrohttpd's pointers what the head was.
#include "server/http/read_heads.h"

#include <microhttpd.h>
#include <stdint.h>
#include <string.h>

typedef struct walk {
    uintptr_t expected;   // where the next header begins; 0: unknown
    size_t n_headers;
    bool has_control;
    server_request_head head;
} walk;

static bool has_control(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < 32 && text[i] != '\t') || text[i] == 127) return true;
    return false;
}

static enum MHD_Result add_header(void *ctx, enum MHD_ValueKind kind, const char *name, size_t n_name,
                                  const char *value, size_t n_value)
{
    (void)kind;
    walk *w = ctx;
    const server_header header = {name, value ? value : "", n_name, value ? n_value : 0};
    server_request_head_add(&w->head, &header);
    w->n_headers++;
    w->has_control |= has_control(name, n_name) || has_control(header.value, header.n_value);
    w->expected = value && w->expected == (uintptr_t)name ? (uintptr_t)value + n_value + 2 : 0;   // CR LF
    return MHD_YES;
}

static bool refuse_head(server_problem *problem, const char *why)
{
    return server_refuse(problem, 400, "invalid_http", NULL, "the request is not HTTP/1.1: %s", why);
}

bool server_later_head_check(struct MHD_Connection *connection, const char *method, const char *url,
                             const char *version, server_problem *problem)
{
    const bool is_1_0 = strcmp(version, "HTTP/1.0") == 0;
    walk w = {.expected = (uintptr_t)version + strlen(version) + 2, .head.is_http_1_0 = is_1_0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, add_header, &w);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const size_t n_head = info ? info->header_size : 0;
    if (!is_1_0 && strcmp(version, "HTTP/1.1") != 0) {
        if (strncmp(version, "HTTP/", 5) != 0)
            return refuse_head(problem, "the first line is not METHOD PATH HTTP/1.1");
        return server_refuse(problem, 505, "invalid_http", NULL, "HTTP/1.1 and HTTP/1.0 are possible here");
    }
    if (n_head > SERVER_MAX_HEAD)
        return server_refuse(problem, 431, "headers_too_large", NULL, "the request's headers are larger than %d KiB",
                             SERVER_MAX_HEAD >> 10);
    if (w.n_headers > SERVER_MAX_HEADERS)
        return server_refuse(problem, 431, "headers_too_large", NULL, "the request has more than %d headers",
                             SERVER_MAX_HEADERS);
    if (w.has_control) return refuse_head(problem, "a header has a control character");
    const bool is_in_place = MHD_get_version()[0] == '0' && info;   // later versions refuse such heads themselves
    const bool is_whole =
        (uintptr_t)url == (uintptr_t)method + strlen(method) + 1 && w.expected + 2 == (uintptr_t)method + n_head;
    if (is_in_place && !is_whole) return refuse_head(problem, "a header line is broken");
    return server_request_head_check(&w.head, problem);
}

int server_later_head_strictness(void)
{
    return MHD_get_version()[0] == '0' ? 0 : 1;
}
