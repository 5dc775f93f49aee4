// SPDX-License-Identifier: MIT
// The files of the web UI and of the description of the API, their types, and headers that restrict what they may load.
#include "server/http/web_ui.h"

#include "server/api/answer.h"
#include "server/api/handlers.h"

#include "frit_tools.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// The web UI may load its own files and send requests to its own server, and nothing else: no script or style within
// HTML, no other host, no frame around it. Only the output of the sanitizer becomes HTML, and one script (render.js)
// runs as a worker.
#define POLICY                                                                                                 \
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; " \
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "                        \
    "require-trusted-types-for 'script'; trusted-types dompurify frit"

static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy", POLICY},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    {"Cache-Control", "no-cache"},   // browsers ask again, and get status 304
    {"Vary", "Accept-Encoding"},
};

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},     {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"}, {".svg", "image/svg+xml"},
    {".txt", "text/plain; charset=utf-8"},
};

// ---------------------------------------------------------------------------------------- files

const server_asset *server_asset_find(const char *name)
{
    for (size_t i = 0; i < server_n_assets; i++)
        if (strcmp(server_assets[i].name, name) == 0) return &server_assets[i];
    return NULL;
}

const char *server_asset_type(const server_asset *asset)
{
    const char *ending = strrchr(asset->name, '.');
    for (size_t i = 0; ending && i < COUNT(types); i++)
        if (strcmp(types[i].ending, ending) == 0) return types[i].type;
    return "application/octet-stream";
}

// True if `item` is in a list with commas. *rest points to its parameters, after a semicolon.
static bool list_has(const char *list, const char *item, const char **rest)
{
    const size_t n = strlen(item);
    for (const char *at = list; at && *at;) {
        at += strspn(at, ", \t");
        const size_t n_found = strcspn(at, ",; \t");
        *rest = at + n_found;
        if (n_found == n && strncasecmp(at, item, n) == 0) return true;
        at += strcspn(at, ",");
    }
    return false;
}

// True if a header as "Accept-Encoding: gzip, br;q=0" accepts the encoding.
static bool accepts_encoding(const char *accept, const char *encoding)
{
    const char *rest;
    if (!encoding) return true;
    if (!list_has(accept, encoding, &rest) && !list_has(accept, "*", &rest)) return false;
    rest += strspn(rest, " \t;");
    if (strncasecmp(rest, "q=", 2) != 0) return true;
    rest += 2 + strspn(rest + 2, "0.");
    return *rest >= '1' && *rest <= '9';   // "q=0.000" refuses
}

// Finds the tag also within W/"...", as a proxy that compresses makes it.
static bool has_tag(const char *if_none_match, const char *etag)
{
    const char *found = if_none_match ? strstr(if_none_match, etag) : NULL;
    return found || (if_none_match && strcmp(if_none_match, "*") == 0);
}

struct MHD_Response *server_asset_response(const server_asset *asset, const char *accept_encoding,
                                           const char *if_none_match, unsigned *status)
{
    static const char refusal[] = "This file is sent compressed with gzip; the request does not accept that.\n";
    const bool readable = accepts_encoding(accept_encoding, asset->encoding);
    const bool unchanged = readable && has_tag(if_none_match, asset->etag);
    *status = !readable ? 406 : unchanged ? 304 : 200;
    const void *bytes = readable ? (const void *)asset->bytes : refusal;
    const size_t n = unchanged ? 0 : readable ? asset->n_bytes : sizeof refusal - 1;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, (void *)bytes, MHD_RESPMEM_PERSISTENT);
    if (!response) return NULL;
    for (size_t i = 0; i < COUNT(headers); i++) MHD_add_response_header(response, headers[i].name, headers[i].value);
    if (!unchanged)
        MHD_add_response_header(response, "Content-Type",
                                readable ? server_asset_type(asset) : "text/plain; charset=utf-8");
    if (!readable) return response;
    MHD_add_response_header(response, "ETag", asset->etag);
    if (asset->encoding && !unchanged) MHD_add_response_header(response, "Content-Encoding", asset->encoding);
    return response;
}

// ---------------------------------------------------------------------------------------- handlers

static void show_file(server_exchange *exchange, const char *name)
{
    exchange->asset = exchange->site->no_web_ui ? NULL : server_asset_find(name);
    if (exchange->asset) return;
    server_refuse(
        &exchange->problem, 404, "not_found", NULL,
        exchange->site->no_web_ui ? "the web UI is turned off by --no-page" : "the web UI has no file '%.200s'", name);
}

void server_show_web_ui(server_exchange *exchange)
{
    show_file(exchange, "index.html");
}

void server_show_docs(server_exchange *exchange)
{
    show_file(exchange, "docs.html");
}

void server_show_asset(server_exchange *exchange)
{
    show_file(exchange, exchange->rest);
}

// ---------------------------------------------------------------------------------------- sampling options

static json_t *number_json(const frit_option *row, double value)
{
    return row->type == FRIT_OPTION_INT ? json_integer((json_int_t)value) : json_real(value);
}

void server_list_sampling(server_exchange *exchange)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    if (!server_check_loaded(exchange)) return;
    json_t *list = json_array(), *values = server_sampling_json(&exchange->model->sampling);
    for (size_t i = 0; i < n_rows; i++) {
        const frit_option *row = &rows[i];
        char name[64];
        if (!server_name_sampler(row, name)) continue;
        const char *field = strcmp(name, "temp") == 0 ? "temperature" : name;
        json_t *json = json_pack("{s:s, s:s, s:O, s:s}", "name", field, "type",
                                 row->type == FRIT_OPTION_INT ? "integer" : "number", "default",
                                 json_object_get(values, field), "help", row->help);
        if (row->min < row->max) json_object_set_new(json, "min", number_json(row, row->min));
        if (row->min < row->max) json_object_set_new(json, "max", number_json(row, row->max));
        json_array_append_new(list, json);
    }
    json_decref(values);
    server_reply(exchange, list);
}
