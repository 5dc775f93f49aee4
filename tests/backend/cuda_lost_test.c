// SPDX-License-Identifier: MIT
// Loses a GPU while it is used, and lets other processes use its memory, on the GPU of tests/emulator.
#include "backend/gpu.h"
#include "engine/engine.h"
#include "sample/sampler.h"
#include "support/tiny_model.h"

#include <dlfcn.h>

enum { N_BATCH = 132, N_PICKS = 8, LOST = 719 };   // CUDA_ERROR_LAUNCH_FAILED

static void (*break_gpu)(int result);
static void (*take_memory)(uint64_t n_bytes);
static int (*get_memory)(size_t *n_free, size_t *n_all);
static frit_model *model;

// Functions of the emulated driver, which the backend has opened too.
static void prepare(void)
{
    if (is_real() || !has_emulator()) skip_because("only the emulator's GPU can be broken");
    void *library = dlopen(driver_path, RTLD_NOW);
    assert_non_null(library);
    *(void **)&break_gpu = dlsym(library, "emulated_break");
    *(void **)&take_memory = dlsym(library, "emulated_take");
    *(void **)&get_memory = dlsym(library, "cuMemGetInfo_v2");
    assert_true(break_gpu && take_memory && get_memory);
    assert_ok(frit_model_open(&model, tiny_model("lost.gguf", &(tiny_options){.n_ctx = 512}), NULL));
}

static frit_engine *new_engine(void)
{
    const frit_engine_options options = {
        .n_ctx = 256, .n_threads = 1, .n_sessions = 2, .n_batch = N_BATCH, .device = "cuda", .gpu_layers = "all"};
    frit_engine *engine;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static frit_session *new_session(frit_engine *engine, size_t n_tokens)
{
    frit_session *session;
    frit_token tokens[N_BATCH];
    for (size_t i = 0; i < n_tokens; i++) tokens[i] = (frit_token)(4 + i % 26);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, n_tokens, NULL));
    return session;
}

// Picks the first tokens after a prompt.
static void pick(frit_engine *engine, frit_token *picks)
{
    frit_sampler *sampler;
    frit_session *session = new_session(engine, 9);
    assert_ok(frit_sampler_new(&sampler, model, &(frit_sampler_options){.temp = 0}));
    for (int i = 0; i < N_PICKS; i++) assert_ok(frit_session_next(session, sampler, &picks[i]));
    frit_sampler_free(sampler);
    frit_session_free(session);
}

static frit_status run_all(frit_engine *engine, frit_session *session)
{
    frit_status status = FRIT_OK;
    int32_t n_rows = 1;
    while (status == FRIT_OK && n_rows > 0 && frit_session_pending(session) > 0)
        status = frit_engine_step(engine, &n_rows);
    return status != FRIT_OK ? status : frit_session_status(session);
}

// Each step fails with an error, nothing runs on the CPU instead, and everything can be freed.
static void a_lost_gpu_is_an_error_of_each_step(void **state)
{
    (void)state;
    prepare();
    frit_token before[N_PICKS], after[N_PICKS];
    frit_engine *engine = new_engine();
    pick(engine, before);
    frit_session *session = new_session(engine, 9);
    assert_ok(run_all(engine, session));
    break_gpu(LOST);
    for (int i = 0; i < 3; i++) {
        const frit_token next = 5;
        const bool is_queued = frit_session_push(session, &next, 1, NULL) == FRIT_OK;
        assert_true(i > 0 || is_queued);
        if (is_queued) assert_true(run_all(engine, session) != FRIT_OK);
        if (!strstr(frit_error(), "unspecified launch failure")) fail_msg("'%s'", frit_error());
    }
    frit_engine *other;
    assert_true(frit_engine_new(&other, model, &(frit_engine_options){.n_ctx = 64, .device = "cuda"}) != FRIT_OK);
    frit_session_free(session);
    frit_engine_free(engine);
    break_gpu(0);
    engine = new_engine();
    pick(engine, after);
    assert_memory_equal(before, after, sizeof before);
    frit_engine_free(engine);
    frit_model_free(model);
}

// A step with more rows than before needs memory. It fails with an error that has numbers, smaller steps still run, and
// it works when memory is free again.
static void memory_of_others_fails_only_what_needs_it(void **state)
{
    (void)state;
    prepare();
    frit_token before[N_PICKS], after[N_PICKS];
    frit_engine *engine = new_engine();
    pick(engine, before);
    size_t n_free, n_all;
    assert_int_equal(get_memory(&n_free, &n_all), 0);
    take_memory(n_free);
    frit_session *session = new_session(engine, N_BATCH);
    assert_int_equal(run_all(engine, session), FRIT_E_MEMORY);
    if (!strstr(frit_error(), "MB are free")) fail_msg("'%s'", frit_error());
    frit_session_free(session);
    pick(engine, after);
    assert_memory_equal(before, after, sizeof before);
    take_memory(0);
    session = new_session(engine, N_BATCH);
    assert_ok(run_all(engine, session));
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lost_gpu_is_an_error_of_each_step, use_emulator, use_no_emulator),
        cmocka_unit_test_setup_teardown(memory_of_others_fails_only_what_needs_it, use_emulator, use_no_emulator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
