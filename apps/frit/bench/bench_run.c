// SPDX-License-Identifier: MIT
// Measuring one row of a benchmark.
//
// The sequences are filled to the test's depth once and truncated to it after each repetition. The backend counts the
// bytes and operations of the warm-up run, because it knows what it reads: weights, experts, the positions of a window.
#include "frit/bench/bench.h"

#include <stdlib.h>

enum { WARM_UP_TOKENS = 16 };   // of generation; a prompt warms up completely

static frit_status check_sessions(const bench_run *run)
{
    for (int i = 0; i < run->n_parallel; i++) {
        frit_status status = frit_session_status(run->sessions[i]);
        if (status != FRIT_OK) return status;
    }
    return FRIT_OK;
}

// Runs all queued tokens.
static frit_status drain(bench_run *run, int64_t *n_steps)
{
    bool pending = true;
    while (pending) {
        pending = false;
        for (int i = 0; i < run->n_parallel; i++) pending = pending || frit_session_pending(run->sessions[i]) > 0;
        if (!pending) break;
        int32_t n_rows;
        frit_status status = frit_engine_advance(run->engine, &n_rows);
        if (status != FRIT_OK) return status;
        *n_steps += n_rows > 0;
        if (!cli_progress_step(&run->progress, (double)run->n_done / run->n_rows)) return FRIT_E_CANCELLED;
    }
    return check_sessions(run);
}

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

// Queues the next n tokens of every sequence; sequences have different tokens.
static frit_status push(bench_run *run, int32_t n, frit_output output)
{
    frit_status status = FRIT_OK;
    frit_push_options options = {.output = output};
    if (run->encodes && output == FRIT_OUTPUT_LAST)   // the output of encoders
        options = (frit_push_options){.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    for (int i = 0; i < run->n_parallel && status == FRIT_OK; i++) {
        frit_session *session = run->sessions[i];
        const frit_token *tokens = run->tokens + frit_session_length(session) + (size_t)i;
        status = frit_session_push(session, tokens, (size_t)n, &options);
    }
    return status;
}

static frit_status run_prompt(bench_run *run, int32_t n, int32_t n_batch, frit_output output, int64_t *n_steps)
{
    frit_status status = FRIT_OK;
    for (int32_t i = 0; i < n && status == FRIT_OK; i += n_batch) {
        int32_t rest = n - i;
        bool last = rest <= n_batch;
        status = push(run, last ? rest : n_batch, last ? output : FRIT_OUTPUT_NONE);
        if (status == FRIT_OK) status = drain(run, n_steps);
    }
    return status;
}

// Submits the queued tokens, one of each sequence. *step is the last step.
static frit_status submit_tokens(bench_run *run, uint64_t *step, int64_t *n_steps)
{
    for (int32_t left = run->n_parallel, n_rows; left > 0; left -= n_rows) {
        frit_status status = frit_engine_submit(run->engine, step, &n_rows);
        if (status == FRIT_OK && n_rows == 0) status = check_sessions(run);
        if (status != FRIT_OK) return status;
        if (n_rows == 0) return FRIT_E_INTERNAL;
        ++*n_steps;
    }
    return cli_progress_step(&run->progress, (double)run->n_done / run->n_rows) ? FRIT_OK : FRIT_E_CANCELLED;
}

// Waits for a step, and takes the token that each sequence has picked in it or before. Does nothing if step is 0.
static frit_status take_picked(bench_run *run, uint64_t step)
{
    frit_status status = step > 0 ? frit_engine_wait(run->engine, step) : FRIT_OK;
    frit_picked picked;
    for (int i = 0; i < run->n_parallel && step > 0 && status == FRIT_OK; i++)
        status = frit_session_picked(run->sessions[i], &picked);
    return status;
}

// Runs steps that pick the likeliest token, if the device can. As in generation, the next step is submitted before the
// token is read. It runs the next random token instead of the picked one, so that experts vary.
static frit_status run_picking(bench_run *run, int32_t n_gen, int64_t *n_steps)
{
    uint64_t before = 0, step = 0;
    frit_status status = FRIT_OK;
    for (int32_t i = 0; i < n_gen && status == FRIT_OK; i++) {
        status = push(run, 1, FRIT_OUTPUT_LAST);
        for (int k = 0; k < run->n_parallel && status == FRIT_OK; k++)
            status = frit_session_pick(run->sessions[k], run->sampler, NULL);
        if (status == FRIT_OK) status = submit_tokens(run, &step, n_steps);
        if (status == FRIT_OK) status = take_picked(run, before);
        before = step;
    }
    return status == FRIT_OK ? take_picked(run, before) : status;
}

static frit_status run_once(bench_run *run, const bench_test *test, int32_t n_gen, int64_t *n_steps, double *seconds)
{
    frit_status status = FRIT_OK;
    for (int i = 0; i < run->n_parallel && status == FRIT_OK; i++)
        status = frit_session_truncate(run->sessions[i], (size_t)test->n_depth);
    if (status == FRIT_OK) status = drain(run, n_steps);   // recurrent models run some tokens again
    uint64_t start = cli_now_ns();
    *n_steps = 0;
    if (status == FRIT_OK) status = run_prompt(run, test->n_prompt, test->n_batch, FRIT_OUTPUT_LAST, n_steps);
    if (!run->encodes && status == FRIT_OK) status = run_picking(run, n_gen, n_steps);
    for (int32_t i = 0; i < n_gen && run->encodes && status == FRIT_OK; i++) {
        status = push(run, 1, FRIT_OUTPUT_LAST);
        if (status == FRIT_OK) status = drain(run, n_steps);
    }
    *seconds = (double)(cli_now_ns() - start) * 1e-9;
    return status;
}

// ---------------------------------------------------------------------------------------- sessions, tokens

static void drop_sessions(bench_run *run)
{
    for (int i = 0; i < run->n_parallel; i++) frit_session_free(run->sessions[i]);
    free(run->sessions);
    free(run->tokens);
    frit_sampler_free(run->sampler);
    run->sessions = NULL;
    run->tokens = NULL;
    run->sampler = NULL;
    run->n_parallel = 0;
}

static frit_status make_sessions(bench_run *run, const bench_row *row)
{
    const bench_test *test = &row->test;
    run->encodes = row->model->kind == FRIT_KIND_ENCODER;
    size_t n_tokens = (size_t)test->n_depth + (size_t)test->n_prompt + (size_t)test->n_gen + (size_t)test->n_parallel;
    run->sessions = calloc((size_t)test->n_parallel, sizeof(frit_session *));
    run->tokens = malloc(n_tokens * sizeof *run->tokens);
    if (!run->sessions || !run->tokens) return FRIT_E_MEMORY;
    uint64_t random = 1;
    for (size_t i = 0; i < n_tokens; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        run->tokens[i] = (frit_token)((random >> 33) % (uint64_t)row->model->n_vocab);
    }
    frit_status status =
        run->encodes ? FRIT_OK : frit_sampler_new(&run->sampler, run->model, &(frit_sampler_options){0});
    while (run->n_parallel < test->n_parallel && status == FRIT_OK) {
        status = frit_session_new(&run->sessions[run->n_parallel], run->engine);
        if (status == FRIT_OK) status = cli_use_adapters(&run->adapters, run->sessions[run->n_parallel++]);
    }
    int64_t n_steps = 0;
    if (status == FRIT_OK) status = run_prompt(run, test->n_depth, test->n_depth, FRIT_OUTPUT_NONE, &n_steps);
    return status;
}

void bench_run_free(bench_run *run)
{
    drop_sessions(run);
    free(run->profile);
    run->profile = NULL;
    cli_free_adapters(&run->adapters);
    frit_engine_free(run->engine);
    run->engine = NULL;
}

// ---------------------------------------------------------------------------------------- counting

static frit_status keep_profile(bench_run *run)
{
    frit_profile_row row;
    size_t n = 0;
    while (frit_engine_get_profile(run->engine, n, &row)) n++;
    free(run->profile);
    run->n_profile = 0;
    run->profile = malloc((n + 1) * sizeof *run->profile);
    if (!run->profile) return FRIT_E_MEMORY;
    while (run->n_profile < n) {
        frit_engine_get_profile(run->engine, run->n_profile, &run->profile[run->n_profile]);
        run->n_profile++;
    }
    return FRIT_OK;
}

static frit_status count(bench_run *run, const bench_test *test, int32_t n_gen, int64_t *n_steps, double *seconds)
{
    frit_status status = frit_engine_profile(run->engine, true);
    if (status == FRIT_OK) status = run_once(run, test, n_gen, n_steps, seconds);
    if (status == FRIT_OK) status = keep_profile(run);
    return status;
}

frit_status bench_count(bench_run *run, const bench_row *row, int64_t *n_steps, double *seconds)
{
    return count(run, &row->test, row->test.n_gen, n_steps, seconds);
}

static frit_status warm_up(bench_run *run, bench_row *row)
{
    const bench_test *test = &row->test;
    bool only_gen = test->n_prompt == 0;
    int32_t n_gen = only_gen && test->n_gen > WARM_UP_TOKENS ? WARM_UP_TOKENS : test->n_gen;
    double n_tokens = (double)test->n_parallel * (test->n_prompt + n_gen), seconds;
    int64_t n_steps;
    frit_status status = count(run, test, n_gen, &n_steps, &seconds);
    if (status == FRIT_E_UNSUPPORTED) return run_once(run, test, n_gen, &n_steps, &seconds);
    for (size_t i = 0; status == FRIT_OK && i < run->n_profile; i++) {
        row->n_bytes += run->profile[i].n_bytes / n_tokens;
        row->n_ops += run->profile[i].n_ops / n_tokens;
    }
    return status == FRIT_OK ? frit_engine_profile(run->engine, false) : status;
}

frit_status bench_measure(bench_run *run, bench_row *row)
{
    const int32_t n_repeats = run->args->bench.n_repeats;
    drop_sessions(run);
    row->seconds = calloc((size_t)n_repeats, sizeof *row->seconds);
    frit_status status = row->seconds ? make_sessions(run, row) : FRIT_E_MEMORY;
    if (status == FRIT_OK) status = warm_up(run, row);
    while (status == FRIT_OK && row->n_samples < n_repeats) {
        int64_t n_steps;
        status = run_once(run, &row->test, row->test.n_gen, &n_steps, &row->seconds[row->n_samples]);
        if (status == FRIT_OK) row->n_samples++;
        if (status == FRIT_OK) run->n_done++;
    }
    return status;
}
