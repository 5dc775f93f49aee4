// SPDX-License-Identifier: MIT
// server/ops/traces.h: a span for each request, sent to a collector of OpenTelemetry (OTLP/HTTP, as JSON).
//
// Spans wait in a bounded queue. One thread sends them in batches; what does not fit, and what the collector does not
// take, is dropped and counted. Requests never wait. What requests and answers say is not sent.
#pragma once
#include "server/api/problem.h"

#include <stdint.h>

typedef struct server_traces server_traces;

typedef struct server_trace {   // from the header traceparent, or new
    uint8_t trace[16], parent[8];
    bool has_parent;
    bool is_wanted;   // the caller may ask that nothing is recorded
} server_trace;

typedef struct server_span {
    server_trace trace;
    const char *operation;        // "chat", "text_completion", "embeddings"; NULL: another request
    const char *method, *route;   // constant
    char model[128];              // "": none
    char id[129];                 // of the request
    int status;                   // of HTTP; 0: there was no answer
    double seconds;
    bool has_usage;
    uint64_t n_prompt, n_cached, n_answer;
    double queued_s, first_token_s;   // from its arrival; 0: not known
} server_span;

// What requests for a route's path do, in the words of OpenTelemetry; NULL: something else than a model's work.
const char *server_trace_operation(const char *path);
// Reads a header's value; NULL or a wrong one: a new trace.
void server_trace_read(const char *traceparent, server_trace *out);
// `url`: http://HOST[:PORT][/PATH], by default port 4318 and /v1/traces. False with a problem.
bool server_traces_open(server_traces **out, const char *url, server_problem *problem);
// Of a request that is over now. NULL: nothing happens.
void server_traces_add(server_traces *traces, const server_span *span);
// Counters in Prometheus' text format; "" without traces.
void server_traces_metrics(server_traces *traces, char out[512]);
void server_traces_close(server_traces *traces);   // sends what waits, once
