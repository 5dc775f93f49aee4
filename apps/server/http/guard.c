// SPDX-License-Identifier: MIT
// Checks the host, the origin and the key of a request.
#include "server/http/guard.h"

#include <string.h>
#include <strings.h>

enum { SERVER_MAX_PASSWORD = 4096 };

// The name in "name:port" or "[::1]:port".
static size_t name_length(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

static bool is_name(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

static bool is_loopback_name(const char *host, const char *own)
{
    size_t n = name_length(host);
    bool is_address = n > 4 && strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == n;
    return is_address || is_name(host, n, "localhost") || is_name(host, n, "[::1]") || is_name(host, n, own);
}

// True if the origin is "http://HOST" with the host of the request.
static bool is_same_site(const char *origin, const char *host)
{
    const char *name = strncmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                             : NULL;
    return name && host && strcasecmp(name, host) == 0;
}

const char *server_guard_allowed_origin(const server_guard *guard, const char *origin)
{
    for (size_t i = 0; origin && i < guard->origins.n; i++) {
        if (strcmp(guard->origins.items[i], "*") == 0) return "*";
        if (strcasecmp(guard->origins.items[i], origin) == 0) return origin;
    }
    return NULL;
}

// True for an origin as browsers send it: a scheme, a host, maybe a port.
static bool is_origin(const char *text)
{
    const char *host = strstr(text, "://");
    if (strcmp(text, "*") == 0 || strcmp(text, "null") == 0) return true;
    return host && host > text && host[3] && !strpbrk(host + 3, "/ ?#@");
}

bool server_guard_check_origins(const server_guard *guard, server_problem *problem)
{
    for (size_t i = 0; i < guard->origins.n; i++)
        if (!is_origin(guard->origins.items[i]))
            return server_refuse(problem, 400, NULL, "cors",
                                 "--cors %.200s: expected * or an origin as browsers send it: https://chat.example",
                                 guard->origins.items[i]);
    return true;
}

static int base64_value(char c)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(alphabet, c) : NULL;
    return found ? (int)(found - alphabet) : -1;
}

// The password of "Basic base64(user:password)". NULL: no password, or one that does not fit.
static const char *read_password(const char *authorization, char out[SERVER_MAX_PASSWORD])
{
    if (!authorization || strncasecmp(authorization, "Basic ", 6) != 0) return NULL;
    const char *at = authorization + 6 + strspn(authorization + 6, " ");
    size_t n = 0;
    unsigned bits = 0;
    int n_bits = 0;
    for (; base64_value(*at) >= 0; at++) {
        bits = (bits << 6 | (unsigned)base64_value(*at)) & 0xffffff;
        n_bits += 6;
        if (n_bits < 8) continue;
        if (n + 1 == SERVER_MAX_PASSWORD) return NULL;
        n_bits -= 8;
        out[n++] = (char)(bits >> n_bits);
    }
    out[n] = 0;
    const char *colon = strlen(out) == n && at[strspn(at, "= ")] == 0 ? strchr(out, ':') : NULL;
    return colon ? colon + 1 : NULL;
}

// True if a document of another site sends the request. Following a link is allowed: it only reads.
static bool is_foreign(const server_caller *caller)
{
    if (caller->origin) return !is_same_site(caller->origin, caller->host);
    const char *site = caller->fetch_site;
    if (!site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0) return false;
    return !caller->fetch_mode || strcmp(caller->fetch_mode, "navigate") != 0 || strcmp(caller->method, "GET") != 0;
}

server_key *server_guard_key(const server_guard *guard, const server_caller *caller)
{
    const char *bearer = caller->authorization;
    if (bearer) bearer = strncasecmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 + strspn(bearer + 7, " ") : NULL;
    char decoded[SERVER_MAX_PASSWORD];
    if (!bearer && !is_foreign(caller)) bearer = read_password(caller->authorization, decoded);
    return bearer || caller->api_key ? server_keys_find(guard->keys, bearer, caller->api_key) : NULL;
}

bool server_guard_admits(const server_guard *guard, const server_caller *caller, const server_key *key, bool needs_key,
                         server_problem *problem)
{
    if (guard->loopback && caller->host && !is_loopback_name(caller->host, guard->host))
        return server_refuse(problem, 403, "host_not_allowed", NULL,
                             "this server listens on a loopback address and does not answer to the name '%.200s'",
                             caller->host);
    if (caller->origin && !is_same_site(caller->origin, caller->host) &&
        !server_guard_allowed_origin(guard, caller->origin))
        return server_refuse(problem, 403, "origin_not_allowed", NULL,
                             "requests from pages of '%.200s' are not allowed; --cors ORIGIN allows them",
                             caller->origin);
    const bool reads = strcmp(caller->method, "GET") == 0 || strcmp(caller->method, "HEAD") == 0;
    if (!caller->origin && !reads && is_foreign(caller))
        return server_refuse(problem, 403, "origin_not_allowed", NULL,
                             "requests from pages of other sites are not allowed without an Origin");
    if (caller->authorization && strncasecmp(caller->authorization, "Basic ", 6) == 0 && is_foreign(caller))
        return server_refuse(problem, 403, "origin_not_allowed", NULL,
                             "a page of another site may not use the password that the browser knows");
    if (!needs_key || key || server_keys_count(guard->keys) == 0) return true;
    bool given = caller->authorization || caller->api_key;
    return server_refuse(problem, 401, "invalid_api_key", NULL,
                         given ? "the API key is not one of this server's"
                               : "an API key is needed: send it as 'Authorization: Bearer KEY'");
}
