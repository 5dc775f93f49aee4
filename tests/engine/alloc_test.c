// SPDX-License-Identifier: MIT
// A steady decode step allocates nothing. The test program replaces malloc and counts calls.
#include "support/support.h"

#include "frit.h"
#include "support/tiny_model.h"

#include <stdatomic.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define CAN_COUNT 1
#else
#define CAN_COUNT 0
#endif

static atomic_int n_calls;   // of all threads

#if CAN_COUNT
void *__libc_malloc(size_t n_bytes);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t n_bytes);
void *__libc_memalign(size_t alignment, size_t n_bytes);
void __libc_free(void *memory);

void *malloc(size_t n_bytes)
{
    n_calls++;
    return __libc_malloc(n_bytes);
}

void *calloc(size_t n, size_t size)
{
    n_calls++;
    return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t n_bytes)
{
    n_calls++;
    return __libc_realloc(memory, n_bytes);
}

void *aligned_alloc(size_t alignment, size_t n_bytes)
{
    n_calls++;
    return __libc_memalign(alignment, n_bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t n_bytes)
{
    n_calls++;
    *memory = __libc_memalign(alignment, n_bytes);
    return *memory ? 0 : 12;
}

void free(void *memory)
{
    n_calls++;
    __libc_free(memory);
}
#endif

enum { SESSIONS = 3, STEPS = 100 };

typedef struct world {
    frit_model *model;
    frit_engine *engine;
    frit_session *sessions[SESSIONS];
    frit_sampler *sampler;
    frit_text_stream *stream;
} world;

static world make_world(const char *cpu, bool no_fuse)
{
    world w;
    const frit_sampler_options sampling = {
        .temp = 0.8f, .top_k = 10, .top_p = 0.95f, .min_p = 0.01f, .repeat_penalty = 1.1f, .seed = 1};
    const frit_engine_options options = {.cpu = cpu, .n_sessions = SESSIONS, .n_threads = 2, .no_fuse = no_fuse};
    assert_ok(frit_model_open(&w.model, tiny_model("alloc.gguf", &(tiny_options){0}), NULL));
    assert_ok(frit_engine_new(&w.engine, w.model, &options));
    for (int i = 0; i < SESSIONS; i++) assert_ok(frit_session_new(&w.sessions[i], w.engine));
    assert_ok(frit_sampler_new(&w.sampler, w.model, &sampling));
    assert_ok(frit_text_stream_new(&w.stream, w.model, 0));
    return w;
}

static void free_world(world *w)
{
    frit_text_stream_free(w->stream);
    frit_sampler_free(w->sampler);
    for (int i = 0; i < SESSIONS; i++) frit_session_free(w->sessions[i]);
    frit_engine_free(w->engine);
    frit_model_free(w->model);
}

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

// Generates one token in every session, in one step; then one more by frit_session_next.
static void decode_once(world *w, const frit_push_options *options)
{
    frit_token token = 5;
    int32_t n_rows;
    const char *text;
    size_t n_bytes;
    for (int i = 0; i < SESSIONS; i++) {
        if (frit_session_length(w->sessions[i]) > TINY_CTX - 10) assert_ok(frit_session_truncate(w->sessions[i], 3));
        if (frit_session_pending(w->sessions[i]) == 0) assert_ok(frit_session_push(w->sessions[i], &token, 1, options));
    }
    assert_ok(frit_engine_step(w->engine, &n_rows));
    assert_int_equal(n_rows, SESSIONS);
    if (options && options->output != FRIT_OUTPUT_ALL) return;
    assert_ok(frit_session_next(w->sessions[0], w->sampler, &token));
    assert_ok(frit_text_stream_push(w->stream, token, &text, &n_bytes));
}

// Generates a token in every session, picked by the step, while the previous step is in flight.
static void decode_in_flight(world *w, uint64_t *before)
{
    uint64_t step;
    for (int i = 0; i < SESSIONS; i++) {
        if (frit_session_length(w->sessions[i]) > TINY_CTX - 10) {
            assert_ok(frit_session_truncate(w->sessions[i], 3));
            assert_ok(frit_session_push(w->sessions[i], &(frit_token){5}, 1, NULL));
        }
        assert_ok(frit_session_pick(w->sessions[i], w->sampler, &(frit_pick_options){.logprobs = true, .n_top = 3}));
    }
    assert_ok(frit_engine_submit(w->engine, &step, NULL));
    for (int i = 0; i < SESSIONS; i++) assert_ok(frit_session_push_picked(w->sessions[i]));
    if (*before > 0) assert_ok(frit_engine_wait(w->engine, *before));
    for (int i = 0; i<SESSIONS && * before> 0; i++) {
        frit_picked picked;
        if (frit_session_picked(w->sessions[i], &picked) == FRIT_OK) frit_sampler_accept(w->sampler, picked.token);
    }
    *before = step;
}

static void check_picks(const char *cpu)
{
    world w = make_world(cpu, false);
    uint64_t step = 0;
    for (int i = 0; i < SESSIONS; i++)
        for (int k = 0; k < 4; k++) assert_ok(frit_session_push(w.sessions[i], &(frit_token){5 + k}, 1, NULL));
    for (int i = 0; i < 100; i++) decode_in_flight(&w, &step);   // until the penalties' window is full
    const int before = n_calls;
    for (int i = 0; i < STEPS; i++) decode_in_flight(&w, &step);
    assert_int_equal(n_calls, before);
    free_world(&w);
}

// Drafts, verified by picks.
static void check_drafts(const char *cpu)
{
    const frit_speculate_options options = {.always = true, .max_drafts = 4};
    world w = make_world(cpu, false);
    frit_session *session = w.sessions[0];
    frit_token tokens[5];
    size_t n;
    int before = 0;
    assert_ok(frit_session_speculate(session, &options));
    for (int k = 0; k < 12; k++) assert_ok(frit_session_push(session, &(frit_token){5 + k % 3}, 1, NULL));
    for (int i = 0; i < TINY_CTX + STEPS; i++) {   // after the session has reached its full length once
        if (i == TINY_CTX) before = n_calls;
        if (frit_session_length(session) > TINY_CTX - 10) {
            assert_ok(frit_session_truncate(session, 12));
            assert_ok(frit_session_push(session, &(frit_token){5}, 1, NULL));
        }
        assert_ok(frit_session_next_tokens(session, w.sampler, tokens, 5, &n));
    }
    assert_int_equal(n_calls, before);
    frit_speculation_info info;
    assert_ok(frit_session_get_speculation(session, &info));
    assert_true(info.n_drafted > STEPS);
    free_world(&w);
}

static void check_steady(const char *cpu, bool no_fuse)
{
    static const frit_push_options all[] = {{.output = FRIT_OUTPUT_LAST, .row = NULL, .row_ctx = NULL},
                                            {.output = FRIT_OUTPUT_ALL, .row = ignore_row, .row_ctx = NULL},
                                            {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row, .row_ctx = NULL},
                                            {.output = FRIT_OUTPUT_NONE, .row = NULL, .row_ctx = NULL}};
    for (size_t o = 0; o < FRIT_COUNT(all); o++) {
        world w = make_world(cpu, no_fuse);
        for (int i = 0; i < 100; i++) decode_once(&w, &all[o]);   // plans, text buffers, a full window of penalties
        int before = n_calls;
        for (int i = 0; i < STEPS; i++) decode_once(&w, &all[o]);
        assert_int_equal(n_calls, before);
        free_world(&w);
    }
}

static void a_steady_step_allocates_nothing_by_the_reference(void **state)
{
    (void)state;
    if (!CAN_COUNT) skip_because("calls of malloc cannot be counted in this build");
    check_steady("reference", false);
    check_picks("reference");
    check_drafts("reference");
}

static void a_steady_step_allocates_nothing_by_the_best_kernels(void **state)
{
    (void)state;
    if (!CAN_COUNT) skip_because("calls of malloc cannot be counted in this build");
    check_steady(NULL, false);
    check_picks(NULL);
    check_drafts(NULL);
    check_steady(NULL, true);
}

static void the_counter_counts(void **state)
{
    (void)state;
    if (!CAN_COUNT) skip_because("calls of malloc cannot be counted in this build");
    int before = n_calls;
    world w = make_world(NULL, false);
    assert_true(n_calls > before + 20);
    decode_once(&w, NULL);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(a_steady_step_allocates_nothing_by_the_reference),
        cmocka_unit_test(a_steady_step_allocates_nothing_by_the_best_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
