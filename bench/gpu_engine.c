// SPDX-License-Identifier: MIT
// Decode steps of the engine with a model file: the host's time for a step, the part of it in functions of the driver,
// and how long the GPU is idle. Each sequence picks the likeliest token, and each step is submitted before the tokens
// of the step before are read, as in generation. Also tokens per second of frit_session_next with one session.
#include "backend/cuda/device.h"
#include "engine/engine.h"
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_SEQUENCES = 64, WARM_UP = 16, STEPS = 256 };

// ------------------------------------------------------------------------------- the driver's part

static frit_cuda_driver plain;             // the functions that are timed
static double launch_s, copy_s, event_s;   // in graph launches, copies, events
static frit_cuda_event began[STEPS], ended[STEPS];
static int n_launched;   // graphs launched since time_driver, one in each step

static double now_s(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int timed_graph_launch(frit_cuda_graph_exec exec, frit_cuda_stream stream)
{
    const int i = n_launched < STEPS ? n_launched++ : STEPS - 1;
    plain.event_record(began[i], stream);
    const double begin = now_s();
    const int result = plain.graph_launch(exec, stream);
    launch_s += now_s() - begin;
    plain.event_record(ended[i], stream);
    return result;
}

static int timed_copy_up(uint64_t to, const void *from, size_t n, frit_cuda_stream stream)
{
    const double begin = now_s();
    const int result = plain.copy_up(to, from, n, stream);
    copy_s += now_s() - begin;
    return result;
}

static int timed_event_record(frit_cuda_event event, frit_cuda_stream stream)
{
    const double begin = now_s();
    const int result = plain.event_record(event, stream);
    event_s += now_s() - begin;
    return result;
}

static int timed_stream_wait_event(frit_cuda_stream stream, frit_cuda_event event, unsigned flags)
{
    const double begin = now_s();
    const int result = plain.stream_wait_event(stream, event, flags);
    event_s += now_s() - begin;
    return result;
}

static void time_driver(frit_cuda_device *d)
{
    plain = d->driver;
    n_launched = 0;
    for (int i = 0; i < STEPS; i++) {
        must(frit_cuda_check(&plain, plain.event_new(&began[i], 0), "making an event"));
        must(frit_cuda_check(&plain, plain.event_new(&ended[i], 0), "making an event"));
    }
    d->driver.graph_launch = timed_graph_launch;
    d->driver.copy_up = timed_copy_up;
    d->driver.event_record = timed_event_record;
    d->driver.stream_wait_event = timed_stream_wait_event;
    launch_s = copy_s = event_s = 0;
}

// Reads the GPU's clock: milliseconds in which steps ran, and from the begin of the first step to the end of the last.
static void read_clock(double *busy_ms, double *span_ms)
{
    float ms = 0;
    *busy_ms = 0;
    for (int i = 0; i < n_launched; i++) {
        must(frit_cuda_check(&plain, plain.event_elapsed(&ms, began[i], ended[i]), "reading a GPU's clock"));
        *busy_ms += ms;
    }
    if (n_launched > 0)
        must(frit_cuda_check(&plain, plain.event_elapsed(&ms, began[0], ended[n_launched - 1]),
                             "reading a GPU's clock"));
    *span_ms = ms;
    for (int i = 0; i < STEPS; i++) {
        plain.event_free(began[i]);
        plain.event_free(ended[i]);
    }
}

// ------------------------------------------------------------------------------- steps of many sequences

typedef struct decode_run {
    frit_engine *engine;
    frit_sampler *sampler;
    frit_session *sessions[MOST_SEQUENCES];
    int n;
    double waited_s;   // time that the host waited for steps
} decode_run;

// Waits for a step, and takes its tokens.
static void take(decode_run *r, uint64_t step)
{
    frit_picked picked;
    const double begin = now_s();
    must(frit_engine_wait(r->engine, step));
    r->waited_s += now_s() - begin;
    for (int i = 0; i < r->n; i++) must(frit_session_picked(r->sessions[i], &picked));
}

static void decode(decode_run *r, frit_token first, int n_steps)
{
    uint64_t before = 0, step = 0;
    for (int i = 0; i < r->n; i++, first++) must(frit_session_push(r->sessions[i], &first, 1, NULL));
    for (int i = 0; i < n_steps; i++) {
        for (int k = 0; k < r->n; k++) must(frit_session_pick(r->sessions[k], r->sampler, NULL));
        must(frit_engine_submit(r->engine, &step, NULL));
        if (i > 0) take(r, before);
        for (int k = 0; k < r->n && i + 1 < n_steps; k++) must(frit_session_push_picked(r->sessions[k]));
        before = step;
    }
    take(r, before);
}

static void run_sequences(const bench *b, frit_model *model, int n)
{
    const frit_engine_options options = {.device = "cuda",
                                         .n_ctx = 1024,
                                         .n_sessions = n,
                                         .cache_type_k = "f16",
                                         .cache_type_v = "f16",
                                         .weights_cache = b->compiler.folder};
    decode_run r = {.n = n};
    must(frit_engine_new(&r.engine, model, &options));
    must(frit_sampler_new(&r.sampler, model, &(frit_sampler_options){.temp = 0}));
    for (int i = 0; i < n; i++) must(frit_session_new(&r.sessions[i], r.engine));
    decode(&r, 100, WARM_UP);
    frit_cuda_device *d = (frit_cuda_device *)r.engine->devices[0];
    time_driver(d);
    r.waited_s = 0;
    const double begin = now_s();
    decode(&r, 200, STEPS);
    const double us = (now_s() - begin) * 1e6 / STEPS, waited_us = r.waited_s * 1e6 / STEPS;
    double busy_ms, span_ms;
    read_clock(&busy_ms, &span_ms);
    printf("| %d | %.0f | %.1f | %.1f | %.1f | %.1f | %.0f | %.1f %% |\n", n, us, us - waited_us,
           launch_s * 1e6 / STEPS, copy_s * 1e6 / STEPS, event_s * 1e6 / STEPS, 1000 * busy_ms / n_launched,
           100 * (1 - busy_ms / span_ms));
    fflush(stdout);
    for (int i = 0; i < n; i++) frit_session_free(r.sessions[i]);
    frit_sampler_free(r.sampler);
    frit_engine_free(r.engine);
}

// ------------------------------------------------------------------------------- one session

// Prints tokens per second of frit_session_next, and a hash of the tokens, which must not depend on running a step
// ahead. A tiny penalty makes it wait for each token.
static void run_next(const bench *b, frit_model *model, float penalty)
{
    const frit_engine_options options = {.device = "cuda",
                                         .n_ctx = 1024,
                                         .n_sessions = 1,
                                         .cache_type_k = "f16",
                                         .cache_type_v = "f16",
                                         .weights_cache = b->compiler.folder};
    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    frit_token token = 100;
    uint64_t sum = 0;
    double begin = 0;
    must(frit_engine_new(&engine, model, &options));
    must(frit_session_new(&session, engine));
    must(frit_sampler_new(&sampler, model, &(frit_sampler_options){.temp = 0, .frequency_penalty = penalty}));
    must(frit_session_push(session, &token, 1, NULL));
    for (int i = 0; i < WARM_UP + STEPS; i++) {
        if (i == WARM_UP) begin = now_s();
        must(frit_session_next(session, sampler, &token));
        sum = sum * 31 + (uint64_t)token;
    }
    printf("| frit_session_next, %s | %.0f | %.1f | %016llx |\n", penalty > 0 ? "token by token" : "a step ahead",
           (now_s() - begin) * 1e6 / STEPS, STEPS / (now_s() - begin), (unsigned long long)sum);
    fflush(stdout);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

void bench_engine(const bench *b, const char *path)
{
    static const int counts[] = {1, 8, 32, MOST_SEQUENCES};
    frit_model *model;
    must(frit_model_open(&model, path, NULL));
    printf(
        "| sequences | us a step | of it the host's own | graph launch | copy | events | in GPU kernels | GPU idle |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < FRIT_COUNT(counts); i++) run_sequences(b, model, counts[i]);
    printf("\n| one session | us a token | tokens/s | the text's hash |\n|---|---|---|---|\n");
    run_next(b, model, 0);
    run_next(b, model, 1e-9f);
    printf("\n");
    frit_model_free(model);
}
