// SPDX-License-Identifier: MIT
// A queue of spans, their JSON, and the thread that sends them.
#include "server/ops/traces.h"

#include "server/ops/clock.h"

#include "server/api/json_text.h"
#include "server/http/http_client.h"

#include "frit.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_WAITING = 2048, BATCH = 256, KIND_SERVER = 2, STATUS_ERROR = 2, DELAY_S = 1 };

typedef struct entry {
    server_span span;
    uint8_t id[8];
    uint64_t end_ns;   // since 1970
} entry;

struct server_traces {
    server_target target;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    entry *items;   // ring of MAX_WAITING
    entry *batch;   // used by the thread alone
    size_t first, n;
    uint64_t n_sent, n_dropped;
    bool stop;
};

const char *server_trace_operation(const char *path)
{
    static const struct {
        const char *path, *operation;
    } rows[] = {
        {"/v1/chat/completions", "chat"},
        {"/v1/messages", "chat"},
        {"/v1/responses", "chat"},
        {"/api/chat", "chat"},
        {"/v1/completions", "text_completion"},
        {"/completion", "text_completion"},
        {"/infill", "text_completion"},
        {"/api/generate", "text_completion"},
        {"/v1/embeddings", "embeddings"},
        {"/api/embed", "embeddings"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].path, path) == 0) return rows[i].operation;
    return NULL;
}

// ---------------------------------------------------------------------------------------- traceparent

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads n bytes as lower-case hexadecimal digits. False: other characters, or all bytes are 0.
static bool read_hex(const char *text, size_t n, uint8_t *out)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) {
        const int high = digit_of(text[2 * i]), low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
        any |= out[i];
    }
    return any != 0;
}

// Reads /dev/urandom, as glibc 2.17 has no getentropy.
static void new_id(uint8_t *id, size_t n)
{
    FILE *source = fopen("/dev/urandom", "rb");
    if (!source || fread(id, 1, n, source) != n) memset(id, 1, n);
    if (source) fclose(source);
}

// Reads "00-TRACE-PARENT-FLAGS" (W3C Trace Context), which later versions may extend.
static bool read_parent(const char *text, server_trace *out)
{
    uint8_t version = 0, flags = 0;
    if (strlen(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
    const bool is_first = strncmp(text, "00", 2) == 0;
    if (!is_first && (!read_hex(text, 1, &version) || version == 0xff || (text[55] && text[55] != '-'))) return false;
    if (is_first && text[55]) return false;
    if (!read_hex(text + 3, 16, out->trace) || !read_hex(text + 36, 8, out->parent)) return false;
    if (!read_hex(text + 53, 1, &flags) && strncmp(text + 53, "00", 2) != 0) return false;
    out->has_parent = true;
    out->is_wanted = flags & 1;
    return true;
}

void server_trace_read(const char *traceparent, server_trace *out)
{
    *out = (server_trace){.is_wanted = true};
    if (traceparent && read_parent(traceparent, out)) return;
    *out = (server_trace){.is_wanted = true};
    new_id(out->trace, sizeof out->trace);
}

// ---------------------------------------------------------------------------------------- JSON

static json_t *hex_json(const uint8_t *bytes, size_t n)
{
    char text[33];
    for (size_t i = 0; i < n; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return json_string(text);
}

static void add_attribute(json_t *list, const char *key, const char *kind, json_t *value)
{
    json_array_append_new(list, json_pack("{s:s, s:{s:o}}", "key", key, "value", kind, value));
}

static void add_text(json_t *list, const char *key, const char *text)
{
    if (text && *text) add_attribute(list, key, "stringValue", json_string(text));
}

// OTLP's JSON writes 64-bit numbers as strings.
static json_t *number_json(uint64_t n)
{
    return json_sprintf("%llu", (unsigned long long)n);
}

static json_t *attributes_json(const server_span *span)
{
    json_t *list = json_array();
    add_text(list, "gen_ai.operation.name", span->operation);
    if (span->operation) add_text(list, "gen_ai.provider.name", "frit");
    if (span->operation) add_text(list, "gen_ai.request.model", span->model);
    if (span->operation) add_text(list, "gen_ai.response.model", span->model);
    add_text(list, "gen_ai.request.id", span->id);
    add_text(list, "http.request.method", span->method);
    add_text(list, "http.route", span->route);
    if (span->status > 0)
        add_attribute(list, "http.response.status_code", "intValue", number_json((uint64_t)span->status));
    if (span->has_usage) {
        add_attribute(list, "gen_ai.usage.input_tokens", "intValue", number_json(span->n_prompt));
        add_attribute(list, "gen_ai.usage.cache_read.input_tokens", "intValue", number_json(span->n_cached));
        add_attribute(list, "gen_ai.usage.output_tokens", "intValue", number_json(span->n_answer));
    }
    if (span->queued_s > 0)
        add_attribute(list, "gen_ai.latency.time_in_queue", "doubleValue", json_real(span->queued_s));
    if (span->first_token_s > 0)
        add_attribute(list, "gen_ai.latency.time_to_first_token", "doubleValue", json_real(span->first_token_s));
    add_attribute(list, "gen_ai.latency.e2e", "doubleValue", json_real(span->seconds));
    if (span->status >= 400) add_attribute(list, "error.type", "stringValue", number_json((uint64_t)span->status));
    if (span->status == 0) add_text(list, "error.type", "aborted");
    return list;
}

static json_t *span_json(const entry *e)
{
    const server_span *span = &e->span;
    const uint64_t start_ns = e->end_ns - (uint64_t)(1e9 * span->seconds);
    const bool failed = span->status == 0 || span->status >= 500;
    json_t *name = span->operation ? json_sprintf("%s %s", span->operation, span->model)
                                   : json_sprintf("%s %s", span->method, span->route);
    json_t *json = json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:{s:i}}", "traceId", hex_json(span->trace.trace, 16),
                             "spanId", hex_json(e->id, 8), "name", name, "kind", (int)KIND_SERVER, "startTimeUnixNano",
                             number_json(start_ns), "endTimeUnixNano", number_json(e->end_ns), "attributes",
                             attributes_json(span), "status", "code", failed ? (int)STATUS_ERROR : 0);
    if (json && span->trace.has_parent) json_object_set_new(json, "parentSpanId", hex_json(span->trace.parent, 8));
    return json;
}

// The JSON of a batch, malloc'd; NULL: no memory.
static char *batch_text(const entry *items, size_t n)
{
    json_t *resource = json_array(), *spans = json_array();
    add_text(resource, "service.name", "frit");
    add_text(resource, "service.version", frit_version());
    for (size_t i = 0; i < n; i++) json_array_append_new(spans, span_json(&items[i]));
    return server_json_text(json_pack("{s:[{s:{s:o}, s:[{s:{s:s}, s:o}]}]}", "resourceSpans", "resource", "attributes",
                                      resource, "scopeSpans", "scope", "name", "frit", "spans", spans));
}

// ---------------------------------------------------------------------------------------- sending

static bool send_batch(const server_traces *traces, size_t n)
{
    char *text = batch_text(traces->batch, n);
    const int status = text ? server_http_client_post(&traces->target, text, strlen(text)) : 0;
    free(text);
    return status / 100 == 2;
}

// Waits a moment for more spans of the batch.
static void wait_for_batch(server_traces *traces)
{
    const double until = server_now() + DELAY_S;
    while (!traces->stop && traces->n < BATCH && server_wait_until(&traces->news, &traces->lock, until)) {
    }
}

static void *run_sender(void *ctx)
{
    server_traces *traces = ctx;
    bool gives_up = false;   // the collector failed while the server ends: the rest is dropped
    pthread_mutex_lock(&traces->lock);
    while (!traces->stop || (traces->n > 0 && !gives_up)) {
        if (traces->n == 0) {
            pthread_cond_wait(&traces->news, &traces->lock);
            continue;
        }
        wait_for_batch(traces);
        size_t n = 0;
        for (; n < BATCH && n < traces->n; n++) traces->batch[n] = traces->items[(traces->first + n) % MAX_WAITING];
        traces->first = (traces->first + n) % MAX_WAITING;
        traces->n -= n;
        pthread_mutex_unlock(&traces->lock);
        const bool good = send_batch(traces, n);
        pthread_mutex_lock(&traces->lock);
        gives_up = traces->stop && !good;
        *(good ? &traces->n_sent : &traces->n_dropped) += n;
    }
    pthread_mutex_unlock(&traces->lock);
    return NULL;
}

void server_traces_add(server_traces *traces, const server_span *span)
{
    struct timespec now;
    if (!traces || !span->trace.is_wanted) return;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&traces->lock);
    if (traces->n == MAX_WAITING) {
        traces->n_dropped++;
    } else {
        entry *e = &traces->items[(traces->first + traces->n++) % MAX_WAITING];
        *e = (entry){.span = *span, .end_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec};
        new_id(e->id, sizeof e->id);
        if (traces->n == 1 || traces->n == BATCH) pthread_cond_signal(&traces->news);
    }
    pthread_mutex_unlock(&traces->lock);
}

void server_traces_metrics(server_traces *traces, char out[512])
{
    out[0] = 0;
    if (!traces) return;
    pthread_mutex_lock(&traces->lock);
    const unsigned long long n_sent = traces->n_sent, n_dropped = traces->n_dropped;
    pthread_mutex_unlock(&traces->lock);
    snprintf(out, 512,
             "# HELP frit_spans_sent_total spans that the collector has taken\n# TYPE frit_spans_sent_total counter\n"
             "frit_spans_sent_total %llu\n"
             "# HELP frit_spans_dropped_total spans that it has not\n# TYPE frit_spans_dropped_total counter\n"
             "frit_spans_dropped_total %llu\n",
             n_sent, n_dropped);
}

static void free_traces(server_traces *traces)
{
    pthread_cond_destroy(&traces->news);
    pthread_mutex_destroy(&traces->lock);
    free(traces->items);
    free(traces->batch);
    free(traces);
}

bool server_traces_open(server_traces **out, const char *url, server_problem *problem)
{
    server_target target;
    *out = NULL;
    if (!server_target_parse("otlp-endpoint", url, "4318", "/v1/traces", &target, problem)) return false;
    server_traces *traces = calloc(1, sizeof *traces);
    if (!traces) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    traces->target = target;
    pthread_mutex_init(&traces->lock, NULL);
    server_cond_init(&traces->news);
    traces->items = calloc(MAX_WAITING, sizeof *traces->items);
    traces->batch = calloc(BATCH, sizeof *traces->batch);
    if (!traces->items || !traces->batch || pthread_create(&traces->thread, NULL, run_sender, traces) != 0) {
        free_traces(traces);
        return server_refuse(problem, 500, NULL, NULL, "the thread that sends traces cannot be started");
    }
    *out = traces;
    return true;
}

void server_traces_close(server_traces *traces)
{
    if (!traces) return;
    pthread_mutex_lock(&traces->lock);
    traces->stop = true;
    pthread_cond_signal(&traces->news);
    pthread_mutex_unlock(&traces->lock);
    pthread_join(traces->thread, NULL);
    free_traces(traces);
}
