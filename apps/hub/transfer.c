// SPDX-License-Identifier: MIT
// Transfers. One thread drives all connections: libcurl calls the functions below when bytes arrive. Between these
// calls, bytes that are present are added to the hash, so that little is left to read after the last byte has arrived.
#include "hub/transfer.h"

#include "hub/curl.h"
#include "hub/digest.h"
#include "hub/disk.h"
#include "hub/kind.h"
#include "hub/partial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLOTS = 16, MAX_REDIRECTS = 8, MAX_FAILURES = 6, MAX_RESTARTS = 3, HASH_BYTES = 1 << 20 };

typedef struct transfer transfer;

typedef struct slot {   // a connection, and its chunk
    transfer *t;
    CURL *curl;
    struct curl_slist *headers;
    hub_head head;
    hub_path url;
    bool is_active, is_checked, is_refused;
    size_t chunk;
    uint64_t at;   // position of the next byte
    int n_redirects;
    char detail[CURL_ERROR_SIZE];
} slot;

struct transfer {
    const hub_transfer *o;
    hub_partial partial;
    CURLM *multi;
    slot slots[MAX_SLOTS];
    int n_slots;
    hub_path direct;     // target of redirects; "": ask the server
    bool has_ranges;     // the server has sent a range
    bool is_stream;      // the server does not support ranges: one reply has the whole file
    bool is_changed;     // the server has another version of the file now
    hub_status status;   // status of a failure inside a call of libcurl
    int n_failures, n_restarts;
    double resume_s;     // time before which no request is sent
    bool is_known;       // the kind of the file has been checked
    double least_free;   // for a file of unknown size: free space to leave on the disk
    uint64_t n_looked;   // bytes present when the free space was checked last
    hub_digest sum;      // hash of the prefix so far
    uint64_t n_hashed;
    char *buffer;
};

static bool is_sized(const transfer *t)
{
    return t->partial.n_bytes != UINT64_MAX;
}

static uint64_t chunk_begin(const transfer *t, size_t chunk)
{
    return is_sized(t) ? chunk * t->partial.chunk_bytes : 0;
}

// ---------------------------------------------------------------------------------------- replies

// Returns the value for If-Range: an etag that is not weak, or a date.
static const char *validator_of(const hub_head *head)
{
    if (head->etag[0] == '"') return head->etag;
    return head->modified;
}

static hub_status check_validator(transfer *t, const hub_head *head)
{
    const char *validator = validator_of(head);
    if (!t->partial.validator[0]) return validator[0] ? hub_partial_set_validator(&t->partial, validator) : HUB_OK;
    if (validator[0] == '"' && t->partial.validator[0] == '"')
        t->is_changed = strcmp(validator, t->partial.validator) != 0;
    return HUB_OK;
}

static hub_status fail_size(const transfer *t, uint64_t n_bytes)
{
    return hub_fail(HUB_E_DATA, "%s: the server has %llu bytes now, expected %llu; the same command begins anew",
                    t->o->what, (unsigned long long)n_bytes, (unsigned long long)t->partial.n_bytes);
}

static hub_status check_whole(slot *s)
{
    transfer *t = s->t;
    if (is_sized(t) && s->head.n_bytes != UINT64_MAX && s->head.n_bytes != t->partial.n_bytes)
        return fail_size(t, s->head.n_bytes);
    if (t->partial.n_done > 0) {   // a range was requested, so the server has another file or does not support ranges
        t->is_changed = true;
        return HUB_OK;
    }
    t->is_stream = true;
    return hub_partial_set_validator(&t->partial, validator_of(&s->head));
}

static hub_status check_range(slot *s)
{
    transfer *t = s->t;
    if (s->head.total != UINT64_MAX && s->head.total != t->partial.n_bytes) return fail_size(t, s->head.total);
    if (s->head.begin != s->at)
        return hub_fail(HUB_E_DATA, "%s: the server sends bytes from %llu on, expected %llu", t->o->what,
                        (unsigned long long)s->head.begin, (unsigned long long)s->at);
    t->has_ranges = true;
    return check_validator(t, &s->head);
}

static void check_reply(slot *s)
{
    transfer *t = s->t;
    s->is_checked = true;
    s->is_refused = s->head.status != 200 && s->head.status != 206;
    if (s->is_refused) return;
    t->status = s->head.status == 206 ? check_range(s) : check_whole(s);
    if (t->status == HUB_OK && s->n_redirects > 0) t->direct = s->url;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    slot *s = ctx;
    transfer *t = s->t;
    const size_t n_bytes = size * n;
    if (!s->is_checked) check_reply(s);
    if (t->status != HUB_OK || t->is_changed) return 0;
    if (s->is_refused) return n_bytes;   // a page with an explanation; the status is enough
    const uint64_t end = chunk_begin(t, s->chunk) + hub_partial_chunk_bytes(&t->partial, s->chunk);
    if (is_sized(t) && !t->is_stream && n_bytes > end - s->at) {
        t->status = hub_fail(HUB_E_DATA, "%s: the server sends more than it was asked for", t->o->what);
        return 0;
    }
    t->status = hub_partial_write(&t->partial, s->at, bytes, n_bytes);
    if (t->status != HUB_OK) return 0;
    s->at += n_bytes;
    t->n_failures = 0;
    return n_bytes;
}

// ---------------------------------------------------------------------------------------- requests

static bool has_work(const transfer *t, size_t chunk)
{
    if (is_sized(t) && t->partial.done[chunk] == hub_partial_chunk_bytes(&t->partial, chunk)) return false;
    for (int i = 0; i < t->n_slots; i++)
        if (t->slots[i].is_active && t->slots[i].chunk == chunk) return false;
    return true;
}

static hub_status begin_request(slot *s)
{
    transfer *t = s->t;
    char text[512];
    curl_slist_free_all(s->headers);
    s->headers = NULL;
    s->is_checked = s->is_refused = false;
    s->detail[0] = 0;
    hub_head_reset(&s->head);
    if (!s->curl) s->curl = hub_curl_new();
    if (!s->curl || !hub_curl_address(s->curl, s->url.text, t->o->token, t->o->url, &s->headers))
        return hub_fail(HUB_E_MEMORY, "out of memory");
    if (t->partial.validator[0] && s->at > 0) {
        snprintf(text, sizeof text, "If-Range: %s", t->partial.validator);
        if (!curl_slist_append(s->headers, text)) return hub_fail(HUB_E_MEMORY, "out of memory");
    }
    const uint64_t end = chunk_begin(t, s->chunk) + hub_partial_chunk_bytes(&t->partial, s->chunk);
    snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)s->at, (unsigned long long)end - 1);
    const bool wants_range = is_sized(t) && !t->is_stream;
    curl_easy_setopt(s->curl, CURLOPT_RANGE, wants_range ? text : NULL);
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->curl, CURLOPT_HEADERDATA, &s->head);
    curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->detail);
    curl_easy_setopt(s->curl, CURLOPT_PRIVATE, s);
    // HTTP/2 would send all ranges over one connection, with the speed of one.
    curl_easy_setopt(s->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(s->curl, CURLOPT_BUFFERSIZE, 262144L);
    if (curl_multi_add_handle(t->multi, s->curl) != CURLM_OK) return hub_fail(HUB_E_MEMORY, "out of memory");
    s->is_active = true;
    return HUB_OK;
}

// Begins with one connection; more are added after the server has sent a range.
static hub_status begin_more(transfer *t)
{
    hub_status status = HUB_OK;
    if (hub_now_s() < t->resume_s) return HUB_OK;
    size_t chunk = 0;
    int n_active = 0;
    for (int i = 0; i < t->n_slots; i++) n_active += t->slots[i].is_active;
    if (t->is_stream && n_active == 0 && t->partial.n_done > 0 && t->partial.n_done < t->partial.n_bytes) {
        t->is_changed = true;   // a reply with the whole file broke off, so it starts at the beginning
        return HUB_OK;
    }
    for (int i = 0; i < t->n_slots && status == HUB_OK; i++) {
        slot *s = &t->slots[i];
        if (s->is_active || (n_active > 0 && !t->has_ranges) || (n_active > 0 && t->is_stream)) continue;
        while (chunk < t->partial.n_chunks && !has_work(t, chunk)) chunk++;
        if (chunk == t->partial.n_chunks) break;
        s->t = t;
        s->chunk = chunk;
        s->at = chunk_begin(t, chunk) + t->partial.done[chunk];
        s->n_redirects = 0;
        status = hub_path_set(&s->url, "%s", t->direct.text[0] ? t->direct.text : t->o->url);
        if (status == HUB_OK) status = begin_request(s);
        n_active++;
    }
    return status;
}

static void stop_slot(slot *s)
{
    if (s->is_active) curl_multi_remove_handle(s->t->multi, s->curl);
    s->is_active = false;
}

static hub_status restart(transfer *t)
{
    for (int i = 0; i < t->n_slots; i++) stop_slot(&t->slots[i]);
    if (t->n_restarts++ == MAX_RESTARTS)
        return hub_fail(HUB_E_DATA, "%s: changed at the server, or broke off, %d times", t->o->what, MAX_RESTARTS);
    t->is_changed = t->is_stream = t->has_ranges = false;
    t->status = HUB_OK;
    t->n_hashed = t->n_looked = 0;
    t->is_known = false;
    return hub_partial_restart(&t->partial);
}

// ---------------------------------------------------------------------------------------- ends of requests

// Tries again after a temporary failure, with growing delays. The error is set already.
static hub_status try_again(transfer *t, hub_status status, int wait_s)
{
    enum { LONGEST_WAIT = 60 };
    if (++t->n_failures == MAX_FAILURES || wait_s > LONGEST_WAIT) return status;
    const double wait = wait_s >= 0 ? wait_s : 0.25 * (1 << t->n_failures);
    t->resume_s = hub_now_s() + wait;
    char sentence[1400];
    snprintf(sentence, sizeof sentence, "%.1200s; the next attempt comes in %.0f s", hub_error(), wait < 1 ? 1 : wait);
    if (wait >= 4) t->o->watch->say(t->o->watch->ctx, sentence);
    return HUB_OK;
}

static hub_status follow(slot *s)
{
    hub_path next;
    if (s->n_redirects++ == MAX_REDIRECTS)
        return hub_fail(HUB_E_NETWORK, "%s: redirects more than %d times", s->t->o->url, MAX_REDIRECTS);
    const hub_status status = hub_curl_redirect(s->url.text, s->head.location, &next);
    if (status != HUB_OK) return status;
    s->url = next;
    return begin_request(s);
}

static hub_status end_refused(slot *s)
{
    transfer *t = s->t;
    const long code = s->head.status;
    if (code == 301 || code == 302 || code == 303 || code == 307 || code == 308) return follow(s);
    if (code == 416) {
        t->is_changed = true;
        return HUB_OK;
    }
    const hub_status status = hub_http_refused(&s->head, s->url.text, t->o->what, t->o->token && t->o->token[0]);
    if (t->direct.text[0] && code >= 400 && code < 500) {   // the address from a redirect has expired
        t->direct.text[0] = 0;
        return try_again(t, status, 0);
    }
    return code == 429 || code == 408 || code >= 500 ? try_again(t, status, s->head.retry_s) : status;
}

static hub_status end_request(slot *s, CURLcode code)
{
    transfer *t = s->t;
    stop_slot(s);
    if (t->status != HUB_OK || t->is_changed) return t->status;
    if (!s->is_checked && code == CURLE_OK) check_reply(s);   // the reply has no body
    if (t->status != HUB_OK || t->is_changed) return t->status;
    if (code != CURLE_OK) return try_again(t, hub_curl_failed(code, s->detail, s->url.text), -1);
    if (s->is_refused) return end_refused(s);
    if (!is_sized(t))
        t->partial.n_bytes = s->at;   // the file ends with the reply
    else if (!t->is_stream && t->partial.done[s->chunk] < hub_partial_chunk_bytes(&t->partial, s->chunk))
        return try_again(t, hub_fail(HUB_E_NETWORK, "%s: the server's answer ends early", t->o->what), -1);
    return HUB_OK;
}

static hub_status end_requests(transfer *t)
{
    CURLMsg *message;
    int n_left;
    hub_status status = HUB_OK;
    while (status == HUB_OK && (message = curl_multi_info_read(t->multi, &n_left))) {
        char *s = NULL;
        const CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE) continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &s);
        status = end_request((slot *)(void *)s, code);
    }
    return status;
}

// ---------------------------------------------------------------------------------------- the hash

// Adds bytes of the complete prefix to the hash; false if there are none.
static bool hash_some(transfer *t)
{
    const uint64_t n_prefix = is_sized(t) ? hub_partial_prefix(&t->partial) : 0;
    if (!t->o->digest[0] || n_prefix <= t->n_hashed) return false;
    if (t->n_hashed == 0) hub_digest_init(&t->sum, t->o->digest, t->partial.n_bytes);
    const size_t n = n_prefix - t->n_hashed < HASH_BYTES ? (size_t)(n_prefix - t->n_hashed) : HASH_BYTES;
    t->status = hub_partial_read(&t->partial, t->n_hashed, t->buffer, n);
    if (t->status == HUB_OK) hub_digest_add(&t->sum, t->buffer, n);
    t->n_hashed += n;
    return true;
}

static hub_status check_hash(transfer *t)
{
    char hex[65];
    if (!t->o->digest[0]) return HUB_OK;
    if (t->n_hashed == 0) hub_digest_init(&t->sum, t->o->digest, t->partial.n_bytes);   // also for an empty file
    while (t->n_hashed < t->partial.n_bytes && t->status == HUB_OK) {
        if (t->o->watch->stops(t->o->watch->ctx)) return hub_fail(HUB_E_CANCELLED, "stopped");
        t->o->watch->progress(t->o->watch->ctx, t->o->what, t->n_hashed, t->partial.n_bytes, true);
        if (!hash_some(t)) break;
    }
    if (t->status != HUB_OK) return t->status;
    hub_digest_end(&t->sum, hex);
    if (strcmp(hex, t->o->digest) == 0) return HUB_OK;
    return hub_fail(HUB_E_DATA,
                    "%s: its %s is %s, expected %s; what came was removed, and the same command fetches it again",
                    t->o->what, hub_digest_name(&t->sum), hex, t->o->digest);
}

// ---------------------------------------------------------------------------------------- what comes

// The length of the complete prefix.
static uint64_t n_there(const transfer *t)
{
    return is_sized(t) ? hub_partial_prefix(&t->partial) : t->partial.n_done;
}

static hub_status check_kind(transfer *t, bool is_complete)
{
    char bytes[HUB_KIND_BYTES];
    const uint64_t n = n_there(t);
    if (t->is_known || (n < sizeof bytes && !is_complete)) return HUB_OK;
    const size_t n_read = n < sizeof bytes ? (size_t)n : sizeof bytes;
    hub_status status = n_read > 0 ? hub_partial_read(&t->partial, 0, bytes, n_read) : HUB_OK;
    if (status == HUB_OK) status = hub_check_kind(t->o->file, t->o->is_address, bytes, n_read, t->o->what);
    t->is_known = status == HUB_OK;
    return status;
}

// Checks that a file of unknown size, which may be endless, leaves room on the disk: 1 GiB, or half of the space that
// was free if it is less.
static hub_status check_room(transfer *t)
{
    enum { BYTES_BETWEEN = 16 << 20 };
    const double most_kept = 1 << 30;
    double free_bytes;
    if (t->o->n_bytes != UINT64_MAX || (t->n_looked > 0 && t->partial.n_done - t->n_looked < BYTES_BETWEEN))
        return HUB_OK;
    if (!hub_disk_left(t->o->part, &free_bytes)) return HUB_OK;
    if (t->least_free == 0) t->least_free = free_bytes / 2 < most_kept ? free_bytes / 2 : most_kept;
    t->n_looked = t->partial.n_done;
    if (free_bytes >= t->least_free) return HUB_OK;
    return hub_fail(HUB_E_DISK,
                    "%s: %.2f GiB came, the server does not say how many follow, and the disk has %.2f GiB left; "
                    "nothing of it is kept",
                    t->o->what, (double)t->partial.n_done / (1 << 30), free_bytes / (1 << 30));
}

// ---------------------------------------------------------------------------------------- the loop

static bool is_complete(const transfer *t)
{
    return is_sized(t) && t->partial.n_done == t->partial.n_bytes;
}

static hub_status fetch(transfer *t)
{
    const hub_watch *watch = t->o->watch;
    hub_status status = HUB_OK;
    while (status == HUB_OK && !is_complete(t)) {
        int n_running;
        if (watch->stops(watch->ctx)) return hub_fail(HUB_E_CANCELLED, "stopped");
        watch->progress(watch->ctx, t->o->what, t->o->before + t->partial.n_done, t->o->total, false);
        status = begin_more(t);
        if (status != HUB_OK) break;
        if (curl_multi_perform(t->multi, &n_running) != CURLM_OK) return hub_fail(HUB_E_NETWORK, "libcurl failed");
        status = end_requests(t);
        if (status == HUB_OK) status = t->status;
        if (status == HUB_OK && t->is_changed) status = restart(t);
        if (status == HUB_OK) status = check_kind(t, is_complete(t));
        if (status == HUB_OK) status = check_room(t);
        if (status == HUB_OK && !is_complete(t)) curl_multi_poll(t->multi, NULL, 0, hash_some(t) ? 0 : 100, NULL);
        if (status == HUB_OK) status = t->status;
    }
    return status == HUB_OK ? check_kind(t, true) : status;   // for a partial file that was complete already
}

static void close_slots(transfer *t)
{
    for (int i = 0; i < t->n_slots; i++) {
        if (t->slots[i].t) stop_slot(&t->slots[i]);
        curl_slist_free_all(t->slots[i].headers);
        curl_easy_cleanup(t->slots[i].curl);
    }
    curl_multi_cleanup(t->multi);
    free(t->buffer);
}

// Adds to an error how the download can be continued.
static hub_status tell_rest(const transfer *t, hub_status status)
{
    if (t->partial.n_done == 0 || t->o->n_bytes == UINT64_MAX || status == HUB_E_DISK) return status;
    const double mib = 1 << 20;
    return hub_fail(status, "%s; %.1f of %.1f MiB of %s are kept: 'frit pull %s' continues", hub_error(),
                    (double)t->partial.n_done / mib, (double)t->partial.n_bytes / mib, t->o->what, t->o->typed);
}

static hub_status run(transfer *t)
{
    const int n = t->o->n_connections;
    t->n_slots = n < 1 ? 4 : n > MAX_SLOTS ? MAX_SLOTS : n;
    t->buffer = malloc(HASH_BYTES);
    t->multi = curl_multi_init();
    hub_status status = t->buffer && t->multi ? HUB_OK : hub_fail(HUB_E_MEMORY, "out of memory");
    if (status == HUB_OK) status = fetch(t);
    bool is_wrong = status == HUB_E_DATA;
    if (status == HUB_OK) {
        status = check_hash(t);
        is_wrong = status == HUB_E_DATA;
    }
    if (status != HUB_OK && !is_wrong) status = tell_rest(t, status);
    close_slots(t);
    if (status == HUB_OK) return hub_partial_finish(&t->partial, t->o->target);
    if (is_wrong || t->o->n_bytes == UINT64_MAX)
        hub_partial_remove(&t->partial);
    else
        hub_partial_close(&t->partial);
    return status;
}

hub_status hub_transfer_run(const hub_transfer *options)
{
    if (hub_curl_ready() != HUB_OK) return HUB_E_UNSUPPORTED;
    transfer *t = calloc(1, sizeof *t);
    if (!t) return hub_fail(HUB_E_MEMORY, "out of memory");
    t->o = options;
    t->multi = NULL;
    hub_status status = hub_partial_open(&t->partial, options->part, options->identity, options->n_bytes);
    if (status == HUB_OK) status = run(t);
    free(t);
    return status;
}
