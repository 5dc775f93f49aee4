// SPDX-License-Identifier: MIT
// Functions of libcurl that requests and transfers share.
#include "hub/curl.h"

#include "hub/name.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

// The variables that the curl command reads for certificates; libcurl itself does not read them.
static const char *certificates(void)
{
    static const char *const names[] = {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return NULL;
}

CURL *hub_curl_new(void)
{
    pthread_once(&once, start_curl);
    CURL *curl = curl_easy_init();
    if (!curl) return NULL;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);   // a connection without data for this time is lost
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 30L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, hub_curl_header);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#ifdef CURLSSLOPT_REVOKE_BEST_EFFORT   // Windows' TLS: ignores that a revocation list is unavailable
    curl_easy_setopt(curl, CURLOPT_SSL_OPTIONS, (long)CURLSSLOPT_REVOKE_BEST_EFFORT);
#endif
    if (certificates()) curl_easy_setopt(curl, CURLOPT_CAINFO, certificates());
    return curl;
}

// ---------------------------------------------------------------------------------------- addresses

static char *part_of(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;
    return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

bool hub_same_server(const char *a, const char *b)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *one = curl_url(), *other = curl_url();
    bool same = one && other && curl_url_set(one, CURLUPART_URL, a, 0) == CURLUE_OK &&
                curl_url_set(other, CURLUPART_URL, b, 0) == CURLUE_OK;
    for (size_t i = 0; same && i < sizeof parts / sizeof parts[0]; i++) {
        char *x = part_of(one, parts[i], CURLU_DEFAULT_PORT), *y = part_of(other, parts[i], CURLU_DEFAULT_PORT);
        same = x && y && strcasecmp(x, y) == 0;
        curl_free(x);
        curl_free(y);
    }
    curl_url_cleanup(one);
    curl_url_cleanup(other);
    return same;
}

hub_status hub_curl_redirect(const char *from, const char *location, hub_path *out)
{
    CURLU *url = curl_url();
    char *text = NULL, host[256];
    hub_status status = HUB_OK;
    hub_host_of(from, host);
    if (!url) return hub_fail(HUB_E_MEMORY, "out of memory");
    if (!location[0] || curl_url_set(url, CURLUPART_URL, from, 0) != CURLUE_OK ||
        curl_url_set(url, CURLUPART_URL, location, 0) != CURLUE_OK || !(text = part_of(url, CURLUPART_URL, 0)))
        status = hub_fail(HUB_E_NETWORK, "%s: redirects to '%.100s', which is no address", host, location);
    else if (strncmp(text, "https://", 8) != 0 &&
             (strncmp(text, "http://", 7) != 0 || strncmp(from, "https://", 8) == 0))
        status =
            hub_fail(HUB_E_NETWORK, "%s: redirects to %.100s, which is not encrypted; it is not followed", host, text);
    else
        status = hub_path_set(out, "%s", text);
    curl_free(text);
    curl_url_cleanup(url);
    return status;
}

bool hub_curl_address(CURL *curl, const char *url, const char *token, const char *origin, struct curl_slist **headers)
{
    char line[640];
    snprintf(line, sizeof line, "User-Agent: frit/%s", frit_version());
    *headers = curl_slist_append(NULL, line);
    if (!*headers) return false;
    if (token && token[0] && hub_same_server(url, origin)) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", token);
        struct curl_slist *more = curl_slist_append(*headers, line);
        if (!more) return false;
        *headers = more;
    }
    return curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK;
}

// ---------------------------------------------------------------------------------------- replies

void hub_head_reset(hub_head *head)
{
    *head = (hub_head){
        .n_bytes = UINT64_MAX, .begin = UINT64_MAX, .total = UINT64_MAX, .linked_bytes = UINT64_MAX, .retry_s = -1};
}

// Copies a value; ignores one that is longer than its field.
static void take_text(char *out, size_t size, const char *value, size_t n)
{
    if (n >= size) return;
    memcpy(out, value, n);
    out[n] = 0;
}

static uint64_t read_number(const char *value)
{
    uint64_t n = 0;
    if (*value < '0' || *value > '9') return UINT64_MAX;
    for (; *value >= '0' && *value <= '9'; value++) {
        if (n > (UINT64_MAX - 9) / 10) return UINT64_MAX;
        n = 10 * n + (uint64_t)(*value - '0');
    }
    return n;
}

// Reads "bytes 0-99/200".
static void read_range(hub_head *head, const char *value)
{
    const char *slash = strchr(value, '/');
    if (strncasecmp(value, "bytes ", 6) != 0 || !slash) return;
    head->begin = read_number(value + 6);
    head->total = read_number(slash + 1);
}

static void take_header(hub_head *head, const char *name, const char *value, size_t n)
{
    const struct {
        const char *name;
        char *out;
        size_t size;
    } texts[] = {
        {"etag", head->etag, sizeof head->etag},
        {"x-linked-etag", head->linked_etag, sizeof head->linked_etag},
        {"last-modified", head->modified, sizeof head->modified},
        {"x-repo-commit", head->commit, sizeof head->commit},
        {"location", head->location, sizeof head->location},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcasecmp(name, texts[i].name) == 0) take_text(texts[i].out, texts[i].size, value, n);
    if (strcasecmp(name, "content-length") == 0) head->n_bytes = read_number(value);
    if (strcasecmp(name, "x-linked-size") == 0) head->linked_bytes = read_number(value);
    if (strcasecmp(name, "content-range") == 0) read_range(head, value);
    if (strcasecmp(name, "retry-after") == 0) {
        const uint64_t wait = read_number(value);
        head->retry_s = wait < 86400 ? (int)wait : -1;
    }
}

size_t hub_curl_header(char *line, size_t size, size_t n, void *ctx)
{
    hub_head *head = ctx;
    char text[HUB_PATH_BYTES + 64];
    const size_t n_line = size * n;
    if (n_line >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        const char *space = memchr(line, ' ', n_line);
        hub_head_reset(head);
        if (space && n_line - (size_t)(space - line) >= 4) head->status = (long)read_number(space + 1);
        return n_line;
    }
    size_t n_text = n_line;
    while (n_text > 0 && (unsigned char)line[n_text - 1] <= 32) n_text--;
    const char *colon = memchr(line, ':', n_text);
    if (!colon || n_text >= sizeof text || memchr(line, 0, n_text)) return n_line;
    memcpy(text, line, n_text);
    text[n_text] = 0;
    char *value = text + (colon - line);
    *value++ = 0;
    while (*value == ' ' || *value == '\t') value++;
    take_header(head, text, value, strlen(value));
    return n_line;
}

hub_status hub_curl_failed(CURLcode code, const char *detail, const char *url)
{
    char host[256];
    hub_host_of(url, host);
    if (code == CURLE_ABORTED_BY_CALLBACK) return hub_fail(HUB_E_CANCELLED, "stopped");
    if (code == CURLE_OUT_OF_MEMORY) return hub_fail(HUB_E_MEMORY, "out of memory");
    if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT)
        return hub_fail(HUB_E_NETWORK,
                        "%s cannot be reached (%s); is this machine connected, and is a proxy needed "
                        "(https_proxy)?",
                        host, detail && *detail ? detail : curl_easy_strerror(code));
    return hub_fail(HUB_E_NETWORK, "%s: %s", host, detail && *detail ? detail : curl_easy_strerror(code));
}
