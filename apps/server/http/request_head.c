// SPDX-License-Identifier: MIT
// Checks heads: header by header, and as raw text.
#include "server/http/request_head.h"

#include <string.h>
#include <strings.h>

// ---------------------------------------------------------------------------------------- headers

static bool is_token_byte(char c)
{
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_token_byte(text[i])) return false;
    return n > 0;
}

static bool is_host(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_token_byte(text[i]) && !strchr("[]:()=;,", text[i])) return false;
    return true;
}

static bool is_named(const server_header *header, const char *name)
{
    return strlen(name) == header->n_name && strncasecmp(header->name, name, header->n_name) == 0;
}

void server_request_head_add(server_request_head *head, const server_header *header)
{
    const char *value = header->value ? header->value : "";
    if (!is_token(header->name, header->n_name)) head->bad_name = true;
    if (is_named(header, "Host")) {
        head->n_host++;
        head->bad_host |= !is_host(value, header->n_value);
    } else if (is_named(header, "Content-Length")) {
        head->n_length++;
        const size_t n_digits = strspn(value, "0123456789");
        head->bad_length |= n_digits == 0 || n_digits > 18 || n_digits < header->n_value;
    } else if (is_named(header, "Transfer-Encoding")) {
        head->n_coding++;
        head->bad_coding |= header->n_value != 7 || strncasecmp(value, "chunked", 7) != 0;
    }
}

bool server_request_head_check(const server_request_head *head, server_problem *problem)
{
    const char *why = NULL;
    if (head->bad_name)
        why = "a header's name is empty or has a character that is not possible there";
    else if (head->n_length > 1)
        why = "Content-Length is there more than once";
    else if (head->n_length > 0 && head->n_coding > 0)
        why = "Content-Length and Transfer-Encoding exclude each other";
    else if (head->bad_length)
        why = "Content-Length is not a number of bytes";
    else if (head->n_coding > 1 || head->bad_coding)
        why = "Transfer-Encoding: only 'chunked' is possible";
    else if (head->n_coding > 0 && head->is_http_1_0)
        why = "Transfer-Encoding is not possible in HTTP/1.0";
    else if (head->n_host > 1 || head->bad_host)
        why = "Host is there more than once, or is not a name";
    else if (head->n_host == 0 && !head->is_http_1_0)
        why = "Host is missing";
    return !why || server_refuse(problem, 400, "invalid_http", NULL, "%s", why);
}

// ---------------------------------------------------------------------------------------- raw heads

size_t server_request_head_length(const char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (text[i] != '\n') continue;
        if (text[i + 1] == '\n') return i + 2;
        if (i + 2 < n && text[i + 1] == '\r' && text[i + 2] == '\n') return i + 3;
    }
    return 0;
}

typedef struct line {
    const char *text;
    size_t n;
} line;

// Takes a line that ends with CR LF. False: it ends with LF alone, or has a control character.
static bool take_line(const char **at, const char *end, line *out)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop || stop == *at || stop[-1] != '\r') return false;
    *out = (line){*at, (size_t)(stop - 1 - *at)};
    *at = stop + 1;
    for (size_t i = 0; i < out->n; i++)
        if (((unsigned char)out->text[i] < 32 && out->text[i] != '\t') || out->text[i] == 127) return false;
    return true;
}

static bool refuse_line(server_problem *problem, const char *what)
{
    return server_refuse(problem, 400, "invalid_http", NULL, "the request is not HTTP/1.1: %s", what);
}

static bool is_path(const char *target, size_t n, const char *path)
{
    const size_t length = strlen(path);
    return n >= length && memcmp(target, path, length) == 0 && (n == length || target[length] == '?');
}

// Reads the first line: METHOD TARGET HTTP/1.x.
static bool read_first(line first, server_request_head *head, bool *is_health, server_problem *problem)
{
    const char *end = first.text + first.n, *space = memchr(first.text, ' ', first.n);
    const char *target = space ? space + 1 : end, *after = memchr(target, ' ', (size_t)(end - target));
    if (!space || !after || after == target || !is_token(first.text, (size_t)(space - first.text)))
        return refuse_line(problem, "the first line is not METHOD PATH HTTP/1.1");
    const line version = {after + 1, (size_t)(end - after - 1)};
    const bool is_1 = version.n == 8 && memcmp(version.text, "HTTP/1.", 7) == 0;
    if (version.n == 8 && memcmp(version.text, "HTTP/", 5) == 0 && !is_1)
        return server_refuse(problem, 505, "invalid_http", NULL, "HTTP/1.1 and HTTP/1.0 are possible here");
    if (!is_1 || (version.text[7] != '0' && version.text[7] != '1'))
        return refuse_line(problem, "the first line does not end with HTTP/1.1");
    int n_arguments = 0;
    for (const char *at = target; at < after; at++) n_arguments += *at == '&';
    if (n_arguments >= SERVER_MAX_ARGUMENTS)
        return server_refuse(problem, 414, "address_too_long", NULL, "the address has more than %d arguments",
                             SERVER_MAX_ARGUMENTS);
    head->is_http_1_0 = version.text[7] == '0';
    const size_t n_target = (size_t)(after - target), n_method = (size_t)(space - first.text);
    const bool reads =
        (n_method == 3 && memcmp(first.text, "GET", 3) == 0) || (n_method == 4 && memcmp(first.text, "HEAD", 4) == 0);
    static const char *const paths[] = {"/health", "/v1/health", "/livez", "/readyz"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        *is_health |= reads && is_path(target, n_target, paths[i]);
    return true;
}

bool server_request_head_read(const char *text, size_t n, bool *is_health, server_problem *problem)
{
    const char *at = text, *end = text + n;
    server_request_head head = {0};
    line next;
    *is_health = false;
    while (end - at >= 2 && at[0] == '\r' && at[1] == '\n') at += 2;   // empty lines before a request
    if (!take_line(&at, end, &next)) return refuse_line(problem, "the first line does not end with CR LF");
    if (!read_first(next, &head, is_health, problem)) return false;
    for (int i = 0;; i++) {
        if (!take_line(&at, end, &next)) return refuse_line(problem, "a header line is broken");
        if (i > SERVER_MAX_HEADERS)
            return server_refuse(problem, 431, "headers_too_large", NULL, "the request has more than %d headers",
                                 SERVER_MAX_HEADERS);
        if (next.n == 0) return server_request_head_check(&head, problem);
        const char *colon = memchr(next.text, ':', next.n);
        if (!colon) return refuse_line(problem, "a header line has no colon");
        const char *value = colon + 1, *stop = next.text + next.n;
        while (value < stop && (*value == ' ' || *value == '\t')) value++;
        while (stop > value && (stop[-1] == ' ' || stop[-1] == '\t')) stop--;
        const server_header header = {next.text, value, (size_t)(colon - next.text), (size_t)(stop - value)};
        server_request_head_add(&head, &header);
    }
}
