// SPDX-License-Identifier: MIT
// server/ops/traces.h: sends a span for each request to a collector of OpenTelemetry (OTLP/HTTP, as JSON).
//
// Spans wait in a bounded queue, and one thread sends them in batches. Spans that do not fit, or that the collector
// refuses, are dropped and counted. Requests never wait. Spans have no texts of requests and replies.
#pragma once
#include "server/api/problem.h"

#include <stdint.h>

typedef struct server_traces server_traces;

typedef struct server_trace {   // from the header traceparent, or a new one
    uint8_t trace[16], parent[8];
    bool has_parent;
    bool is_wanted;   // false: the caller asked not to record it
} server_trace;

typedef struct server_span {
    server_trace trace;
    const char *operation;        // "chat", "text_completion", "embeddings"; NULL: another request
    const char *method, *route;   // constant
    char model[128];              // "": none
    char id[129];                 // id of the request
    int status;                   // of HTTP; 0: no reply
    double seconds;
    bool has_usage;
    uint64_t n_prompt, n_cached, n_answer;
    double queued_s, first_token_s;   // since the request arrived; 0: unknown
} server_span;

// The operation of a route in the words of OpenTelemetry; NULL: the route does not run a model.
const char *server_trace_operation(const char *path);
// Reads the value of traceparent. NULL, or a wrong value, begins a new trace.
void server_trace_read(const char *traceparent, server_trace *out);
// `url`: http://HOST[:PORT][/PATH]; the defaults are port 4318 and /v1/traces. False with a problem.
bool server_traces_open(server_traces **out, const char *url, server_problem *problem);
// Adds the span of a request that ends now. `traces` NULL: does nothing.
void server_traces_add(server_traces *traces, const server_span *span);
// Writes counters in Prometheus' text format; "" if `traces` is NULL.
void server_traces_metrics(server_traces *traces, char out[512]);
void server_traces_close(server_traces *traces);   // sends the waiting spans once
