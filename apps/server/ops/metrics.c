// SPDX-License-Identifier: MIT
// The table of metrics, and their text.
#include "server/ops/metrics.h"

#include "common/grow.h"
#include "frit.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_BUCKETS = 24 };

// Ascending upper bounds of histograms, as in vLLM; 0 ends a row.
static const double first_token_bounds[MAX_BUCKETS] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560};
static const double token_bounds[MAX_BUCKETS] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                                 0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
static const double request_bounds[MAX_BUCKETS] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                                   30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
static const double count_bounds[MAX_BUCKETS] = {1,   2,    5,    10,   20,    50,    100,   200,
                                                 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

static const double step_bounds[MAX_BUCKETS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

static const struct {
    const char *name, *help;
    const double *bounds;
} histograms[SERVER_N_HISTOGRAMS] = {
    [SERVER_TIME_TO_FIRST_TOKEN] = {"vllm:time_to_first_token_seconds", "from a request's arrival to its first token",
                                    first_token_bounds},
    [SERVER_TIME_BETWEEN_TOKENS] = {"vllm:inter_token_latency_seconds", "between two tokens of an answer",
                                    token_bounds},
    [SERVER_TIME_WHOLE] = {"vllm:e2e_request_latency_seconds", "from a request's arrival to its last token",
                           request_bounds},
    [SERVER_TIME_QUEUED] = {"vllm:request_queue_time_seconds", "from a request's arrival to its session",
                            request_bounds},
    [SERVER_TIME_PREFILL] = {"vllm:request_prefill_time_seconds", "from its session to its first token",
                             request_bounds},
    [SERVER_TIME_DECODE] = {"vllm:request_decode_time_seconds", "from its first to its last token", request_bounds},
    [SERVER_TIME_INFERENCE] = {"vllm:request_inference_time_seconds", "from its session to its last token",
                               request_bounds},
    [SERVER_TIME_PER_TOKEN] = {"vllm:request_time_per_output_token_seconds",
                               "between the tokens of an answer: its mean", token_bounds},
    [SERVER_STEP_TOKENS] = {"vllm:iteration_tokens_total", "tokens that a step ran", step_bounds},
    [SERVER_STEP_SESSIONS] = {"frit_step_sessions", "requests that had a session in a step", step_bounds},
    [SERVER_PROMPT_TOKENS] = {"vllm:request_prompt_tokens", "tokens of a prompt", count_bounds},
    [SERVER_ANSWER_TOKENS] = {"vllm:request_generation_tokens", "tokens of an answer", count_bounds},
};

// Rows of one name follow each other, and differ in `label`.
static const struct {
    const char *name, *help, *label;
} counters[SERVER_N_COUNTERS] = {
    [SERVER_COUNT_PROMPT_TOKENS] = {"vllm:prompt_tokens_total", "tokens of prompts", ""},
    [SERVER_COUNT_ANSWER_TOKENS] = {"vllm:generation_tokens_total", "tokens of answers", ""},
    [SERVER_COUNT_CACHE_QUERIES] = {"vllm:prefix_cache_queries_total", "tokens looked for in the prefix cache", ""},
    [SERVER_COUNT_CACHE_HITS] = {"vllm:prefix_cache_hits_total", "tokens found in the prefix cache", ""},
    [SERVER_COUNT_DRAFTED_STEPS] = {"vllm:spec_decode_num_drafts_total", "steps of a session with guessed tokens", ""},
    [SERVER_COUNT_DRAFTS] = {"vllm:spec_decode_num_draft_tokens_total", "guessed tokens that ran", ""},
    [SERVER_COUNT_ACCEPTED_DRAFTS] = {"vllm:spec_decode_num_accepted_tokens_total", "guessed tokens that were right",
                                      ""},
    [SERVER_COUNT_STOPPED] = {"vllm:request_success_total", "answers by the reason of their end",
                              ",finished_reason=\"stop\""},
    [SERVER_COUNT_CUT] = {"vllm:request_success_total", "", ",finished_reason=\"length\""},
    [SERVER_COUNT_ABORTED] = {"vllm:request_success_total", "", ",finished_reason=\"abort\""},
    [SERVER_COUNT_FAILED] = {"frit_requests_failed_total", "answers that ended with an error", ""},
    [SERVER_COUNT_REFUSED] = {"frit_requests_refused_total", "requests refused with status 429", ""},
    [SERVER_COUNT_STEPS] = {"frit_steps_total", "steps of the engine", ""},
    [SERVER_COUNT_LOADS] = {"frit_model_loads_total", "how often the model was loaded", ""},
    [SERVER_COUNT_PICTURES] = {"frit_pictures_encoded_total", "pictures that the encoder ran for", ""},
};

typedef struct histogram {
    uint64_t n, buckets[MAX_BUCKETS];   // not cumulative
    double sum;
} histogram;

struct server_metrics {
    pthread_mutex_t lock;
    uint64_t counters[SERVER_N_COUNTERS];
    histogram histograms[SERVER_N_HISTOGRAMS];
};

server_metrics *server_metrics_new(void)
{
    server_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics) pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void server_metrics_free(server_metrics *metrics)
{
    if (!metrics) return;
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

void server_metrics_count(server_metrics *metrics, server_counter counter, uint64_t n)
{
    if (!metrics) return;
    pthread_mutex_lock(&metrics->lock);
    metrics->counters[counter] += n;
    pthread_mutex_unlock(&metrics->lock);
}

void server_metrics_observe(server_metrics *metrics, server_histogram which, double value)
{
    if (!metrics) return;
    const double *bounds = histograms[which].bounds;
    int i = 0;
    while (i < MAX_BUCKETS && bounds[i] > 0 && value > bounds[i]) i++;
    pthread_mutex_lock(&metrics->lock);
    histogram *h = &metrics->histograms[which];
    h->n++;
    h->sum += value;
    if (i < MAX_BUCKETS && bounds[i] > 0) h->buckets[i]++;
    pthread_mutex_unlock(&metrics->lock);
}

// ---------------------------------------------------------------------------------------- text

typedef struct writing {
    char *text;
    size_t n, capacity;
    char model[512];   // {model_name="..." without the closing brace
    bool failed;
} writing;

static void put_line(writing *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put_line(writing *w, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line) w->failed = true;
    w->failed = w->failed || !APP_GROW(w->text, w->capacity, w->n + (size_t)n + 1);
    if (w->failed) return;
    memcpy(w->text + w->n, line, (size_t)n + 1);
    w->n += (size_t)n;
}

static void put_head(writing *w, const char *name, const char *help, const char *type)
{
    put_line(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

typedef double (*gauge_fn)(const server_measured *model);

static double running_of(const server_measured *model)
{
    return model->gauges.n_running;
}

static double waiting_of(const server_measured *model)
{
    return model->gauges.n_waiting;
}

static double cache_use_of(const server_measured *model)
{
    return model->gauges.cache_use;
}

static double sessions_of(const server_measured *model)
{
    return model->gauges.n_sessions;
}

static double loaded_of(const server_measured *model)
{
    return model->is_loaded;
}

static const struct {
    const char *name, *help;
    gauge_fn value;
} gauges[] = {
    {"vllm:num_requests_running", "requests that have a session", running_of},
    {"vllm:num_requests_waiting", "requests that wait for a session", waiting_of},
    {"vllm:kv_cache_usage_perc", "tokens of running requests, of those that the cache has room for; 1: all",
     cache_use_of},
    {"frit_sessions", "requests that may run at once", sessions_of},
    {"frit_model_loaded", "1: the model is loaded", loaded_of},
};

static void put_histogram(writing *w, int which, const histogram *h)
{
    const char *name = histograms[which].name;
    const double *bounds = histograms[which].bounds;
    uint64_t n = 0;
    for (int i = 0; i < MAX_BUCKETS && bounds[i] > 0; i++) {
        n += h->buckets[i];
        put_line(w, "%s_bucket%s,le=\"%.10g\"} %llu\n", name, w->model, bounds[i], (unsigned long long)n);
    }
    put_line(w, "%s_bucket%s,le=\"+Inf\"} %llu\n", name, w->model, (unsigned long long)h->n);
    put_line(w, "%s_sum%s} %.10g\n", name, w->model, h->sum);
    put_line(w, "%s_count%s} %llu\n", name, w->model, (unsigned long long)h->n);
}

// Escapes backslash, quote and newline in the value of a label, and cuts long values.
static void write_model(char *out, size_t size, const char *model)
{
    size_t n = (size_t)snprintf(out, size, "{model_name=\"");
    for (; *model && n + 4 < size; model++) {
        if (*model == '\\' || *model == '"' || *model == '\n') out[n++] = '\\';
        out[n++] = *model == '\n' ? 'n' : *model;
    }
    snprintf(out + n, size - n, "\"");
}

static void put_counter(writing *w, size_t which, const server_measured *model)
{
    pthread_mutex_lock(&model->metrics->lock);
    const uint64_t n = model->metrics->counters[which];
    pthread_mutex_unlock(&model->metrics->lock);
    write_model(w->model, sizeof w->model, model->name);
    put_line(w, "%s%s%s} %llu\n", counters[which].name, w->model, counters[which].label, (unsigned long long)n);
}

char *server_metrics_text(const server_measured *models, size_t n, int64_t started)
{
    writing w = {0};
    for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++) {
        put_head(&w, gauges[i].name, gauges[i].help, "gauge");
        for (size_t k = 0; k < n; k++) {
            write_model(w.model, sizeof w.model, models[k].name);
            put_line(&w, "%s%s} %.10g\n", gauges[i].name, w.model, gauges[i].value(&models[k]));
        }
    }
    put_head(&w, "frit_build_info", "the version", "gauge");
    put_line(&w, "frit_build_info{version=\"%s\"} 1\n", frit_version());
    put_head(&w, "process_start_time_seconds", "since 1970", "gauge");
    put_line(&w, "process_start_time_seconds %lld\n", (long long)started);
    for (size_t i = 0; i < SERVER_N_COUNTERS; i++) {
        if (counters[i].help[0]) put_head(&w, counters[i].name, counters[i].help, "counter");
        for (size_t k = 0; k < n; k++) put_counter(&w, i, &models[k]);
    }
    for (int i = 0; i < SERVER_N_HISTOGRAMS; i++) {
        put_head(&w, histograms[i].name, histograms[i].help, "histogram");
        for (size_t k = 0; k < n; k++) {
            pthread_mutex_lock(&models[k].metrics->lock);
            const histogram h = models[k].metrics->histograms[i];
            pthread_mutex_unlock(&models[k].metrics->lock);
            write_model(w.model, sizeof w.model, models[k].name);
            put_histogram(&w, i, &h);
        }
    }
    if (!w.failed) return w.text;
    free(w.text);
    return NULL;
}
