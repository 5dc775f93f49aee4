// SPDX-License-Identifier: MIT
// server/ops/metrics.h: counters and histograms of what the server does, as Prometheus reads them. Any thread.
//
// A row of metrics.c is a metric. Names are those of vLLM where the meaning is the same, so that its dashboards and the
// routers that read them work.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct server_metrics server_metrics;

typedef enum server_counter {
    SERVER_COUNT_PROMPT_TOKENS,
    SERVER_COUNT_ANSWER_TOKENS,
    SERVER_COUNT_CACHE_QUERIES,   // tokens of prompts that were looked for
    SERVER_COUNT_CACHE_HITS,      // ... and found
    SERVER_COUNT_DRAFTED_STEPS,   // of a session
    SERVER_COUNT_DRAFTS,
    SERVER_COUNT_ACCEPTED_DRAFTS,
    SERVER_COUNT_STOPPED,   // requests
    SERVER_COUNT_CUT,
    SERVER_COUNT_ABORTED,
    SERVER_COUNT_FAILED,
    SERVER_COUNT_REFUSED,   // the queue was full
    SERVER_COUNT_STEPS,
    SERVER_COUNT_LOADS,   // of the model
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
    SERVER_TIME_PER_TOKEN,   // of one answer: the mean
    SERVER_PROMPT_TOKENS,
    SERVER_ANSWER_TOKENS,
    SERVER_STEP_TOKENS,
    SERVER_STEP_SESSIONS,
    SERVER_N_HISTOGRAMS,
} server_histogram;

typedef struct server_gauges {   // of the moment
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
// Without metrics (NULL) nothing happens.
void server_metrics_count(server_metrics *metrics, server_counter counter, uint64_t n);
void server_metrics_observe(server_metrics *metrics, server_histogram histogram, double value);
// malloc'd, in Prometheus' text format; NULL: no memory. started: in seconds since 1970.
char *server_metrics_text(const server_measured *models, size_t n, int64_t started);
