// SPDX-License-Identifier: MIT
// Requests whose replies fit into memory.
#include "hub/http.h"

#include "common/grow.h"
#include "hub/curl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct body {
    hub_reply *reply;
    const hub_request *request;
    size_t capacity;
    bool is_too_long, is_out_of_memory;
} body;

static size_t take_body(char *bytes, size_t size, size_t n, void *ctx)
{
    body *b = ctx;
    hub_reply *reply = b->reply;
    const size_t n_new = size * n;
    if (n_new > b->request->max_bytes - reply->n) {
        b->is_too_long = true;
        return 0;
    }
    b->is_out_of_memory = !APP_GROW(reply->body, b->capacity, reply->n + n_new + 1);
    if (b->is_out_of_memory) return 0;
    memcpy(reply->body + reply->n, bytes, n_new);
    reply->n += n_new;
    reply->body[reply->n] = 0;
    return n_new;
}

static int ask_to_stop(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const hub_watch *watch = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return watch->stops(watch->ctx);
}

// Runs one request. *is_lost: the connection was open and broke off, or sent no more data.
static hub_status ask_once(CURL *curl, const hub_request *request, const char *url, hub_reply *reply, bool *is_lost)
{
    body b = {.reply = reply, .request = request};
    struct curl_slist *headers = NULL;
    char detail[CURL_ERROR_SIZE] = "", accept[512];
    free(reply->body);
    *reply = (hub_reply){0};
    hub_head_reset(&reply->head);
    bool good = hub_curl_address(curl, url, request->token, request->url, &headers);
    if (good && request->accept) {
        snprintf(accept, sizeof accept, "Accept: %s", request->accept);
        good = curl_slist_append(headers, accept) != NULL;
    }
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (good) {
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_NOBODY, request->head_only ? 1L : 0L);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, &reply->head);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, &b);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_to_stop);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, (void *)request->watch);
        code = curl_easy_perform(curl);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
    if (b.is_too_long) return hub_fail(HUB_E_DATA, "%s: the answer has more than %zu bytes", url, request->max_bytes);
    if (b.is_out_of_memory) return hub_fail(HUB_E_MEMORY, "out of memory");
    *is_lost = code == CURLE_OPERATION_TIMEDOUT || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
               code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE;
    return code == CURLE_OK ? HUB_OK : hub_curl_failed(code, detail, url);
}

static hub_status ask(CURL *curl, const hub_request *request, const char *url, hub_reply *reply)
{
    enum { ATTEMPTS = 3 };
    hub_status status = HUB_OK;
    bool is_lost = true;
    for (int i = 0; i < ATTEMPTS && is_lost; i++) {
        is_lost = false;
        status = ask_once(curl, request, url, reply, &is_lost);
    }
    return status;
}

hub_status hub_http_get(const hub_request *request, hub_reply *reply)
{
    enum { MAX_REDIRECTS = 8 };
    hub_path url;
    *reply = (hub_reply){0};
    if (hub_curl_ready() != HUB_OK) return HUB_E_UNSUPPORTED;
    CURL *curl = hub_curl_new();
    if (!curl) return hub_fail(HUB_E_MEMORY, "out of memory");
    hub_status status = hub_path_set(&url, "%s", request->url);
    for (int i = 0; status == HUB_OK; i++) {
        hub_path next;
        status = ask(curl, request, url.text, reply);
        if (status != HUB_OK || reply->head.status < 301 || reply->head.status > 308 || reply->head.status == 304)
            break;
        if (i == MAX_REDIRECTS) {
            status = hub_fail(HUB_E_NETWORK, "%s: redirects more than %d times", request->url, MAX_REDIRECTS);
            break;
        }
        status = hub_curl_redirect(url.text, reply->head.location, &next);
        if (status == HUB_OK && request->follows_near && !hub_same_server(url.text, next.text)) break;
        if (status == HUB_OK) url = next;
    }
    curl_easy_cleanup(curl);
    if (status != HUB_OK) hub_reply_free(reply);
    return status;
}

void hub_reply_free(hub_reply *reply)
{
    free(reply->body);
    *reply = (hub_reply){0};
}

hub_status hub_http_refused(const hub_head *head, const char *url, const char *what, bool has_token)
{
    char host[256], wait[64] = "in some minutes";
    hub_host_of(url, host);
    switch (head->status) {
    case 401:
        return has_token ? hub_fail(HUB_E_DENIED,
                                    "%s: %s does not accept the token (401); is HF_TOKEN right, and may it "
                                    "read this?",
                                    what, host)
                         : hub_fail(HUB_E_DENIED,
                                    "%s: %s asks for a token (401); the name may be wrong, or what it "
                                    "names is private or has terms: set HF_TOKEN to a token that may read it",
                                    what, host);
    case 403:
        return hub_fail(HUB_E_DENIED, "%s: %s refuses it (403); its terms may have to be accepted on its page%s", what,
                        host,
                        has_token ? ", by the account of the token" : ", and HF_TOKEN set to a token of that account");
    case 404:
    case 410:
        return hub_fail(HUB_E_NOT_FOUND, "%s: %s has no such thing (%ld); is the name right, with its revision?", what,
                        host, head->status);
    case 429:
        if (head->retry_s >= 0) snprintf(wait, sizeof wait, "in %d s", head->retry_s);
        return hub_fail(HUB_E_NETWORK, "%s: %s has had too many requests (429); try again %s%s", what, host, wait,
                        has_token ? "" : "; with a token (HF_TOKEN) it allows more");
    default:
        return hub_fail(HUB_E_NETWORK, "%s: %s answers with status %ld%s", what, host, head->status,
                        head->status >= 500 ? "; it has a fault, try again later" : "");
    }
}
