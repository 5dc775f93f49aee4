// SPDX-License-Identifier: MIT
// server/ops/metrics.h: counters and histograms in the text format of Prometheus. Any thread.
//
// A row of metrics.c is a metric. Metrics with the meaning of one of vLLM have its name, so that dashboards and routers
// for vLLM work.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct server_metrics server_metrics;

typedef enum server_counter {
    SERVER_COUNT_PROMPT_TOKENS,
    SERVER_COUNT_ANSWER_TOKENS,
    SERVER_COUNT_CACHE_QUERIES,   // prompt tokens that were looked up
    SERVER_COUNT_CACHE_HITS,      // prompt tokens that were found
    SERVER_COUNT_DRAFTED_STEPS,   // steps of a session with drafts
    SERVER_COUNT_DRAFTS,
    SERVER_COUNT_ACCEPTED_DRAFTS,
    SERVER_COUNT_STOPPED,   // requests that ended by themselves
    SERVER_COUNT_CUT,
    SERVER_COUNT_ABORTED,
    SERVER_COUNT_FAILED,
    SERVER_COUNT_REFUSED,   // requests that found the queue full
    SERVER_COUNT_STEPS,
    SERVER_COUNT_LOADS,      // times that the model was loaded
    SERVER_COUNT_PICTURES,   // pictures that were encoded
    SERVER_N_COUNTERS,
} server_counter;

typedef enum server_histogram {
    SERVER_TIME_TO_FIRST_TOKEN,
    SERVER_TIME_BETWEEN_TOKENS,
    SERVER_TIME_WHOLE,
    SERVER_TIME_QUEUED,
    SERVER_TIME_PREFILL,
    SERVER_TIME_DECODE,
    SERVER_TIME_INFERENCE,
    SERVER_TIME_PER_TOKEN,   // mean of an answer
    SERVER_PROMPT_TOKENS,
    SERVER_ANSWER_TOKENS,
    SERVER_STEP_TOKENS,
    SERVER_STEP_SESSIONS,
    SERVER_N_HISTOGRAMS,
} server_histogram;

typedef struct server_gauges {   // current values
    int32_t n_sessions, n_running, n_waiting;
    double cache_use;   // 0 to 1
} server_gauges;

typedef struct server_measured {   // a model
    server_metrics *metrics;
    const char *name;
    bool is_loaded;
    server_gauges gauges;
} server_measured;

server_metrics *server_metrics_new(void);   // NULL: no memory
void server_metrics_free(server_metrics *metrics);
// The functions below do nothing if `metrics` is NULL.
void server_metrics_count(server_metrics *metrics, server_counter counter, uint64_t n);
void server_metrics_observe(server_metrics *metrics, server_histogram histogram, double value);
// The metrics in Prometheus' text format, malloc'd; NULL: no memory. `started`: seconds since 1970.
char *server_metrics_text(const server_measured *models, size_t n, int64_t started);
