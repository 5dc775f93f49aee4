// SPDX-License-Identifier: MIT
// Whole models on the backend for NVIDIA GPUs, on the GPU that tests/emulator makes up: the same host code and the same
// kernels, compiled for the host. With words behind the command: of models whose names contain one of them.
#include "arch/golden.h"
#include "backend/cuda/device.h"
#include "base/file.h"
#include "engine/engine.h"
#include "support/kept_rows.h"

static const char folder[] = FRIT_BUILD_DIR "/tests/emulator", cubins[] = FRIT_BUILD_DIR "/tests/emulator/kernels",
                  driver_path[] = FRIT_BUILD_DIR "/tests/emulator/libcuda.so.1";

static bool has_emulator(void)
{
    FILE *file = fopen(driver_path, "rb");
    if (file) fclose(file);
    return file;
}

static int use_emulator(void **state)
{
    (void)state;
    if (!has_emulator()) return 0;
    frit_cuda_use_libraries(
        &(frit_cuda_libraries){.driver = driver_path, .nvrtc = folder, .blas = folder, .cubins = cubins});
    return 0;
}

static int use_no_emulator(void **state)
{
    (void)state;
    frit_cuda_use_libraries(NULL);
    return 0;
}

static void require_emulator(void)
{
    if (!has_emulator()) skip_because("this build has no emulator for GPUs (tests/CMakeLists.txt says why)");
}

// ------------------------------------------------------------------------------- logits

static frit_engine *new_engine(frit_model *model, const char *device)
{
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32", .n_sessions = 2, .device = device};
    frit_engine *engine;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static void run(frit_engine *engine, frit_session *session, const golden *g, size_t begin, size_t end, size_t chunk,
                kept_rows *r)
{
    const frit_push_options options = {.output = g->output, .row = keep_row, .row_ctx = r};
    for (size_t i = begin; i < end; i += chunk) {
        const size_t n = end - i < chunk ? end - i : chunk;
        int32_t n_rows;
        assert_ok(frit_session_push(session, g->tokens + i, n, &options));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        r->n_rows += n;
    }
}

static frit_ticket n_steps_of(const frit_engine *engine)
{
    assert_ptr_equal(engine->devices[0]->backend, &frit_backend_cuda);
    return ((const frit_cuda_device *)engine->devices[0])->n_submitted;
}

static double error_of(frit_model *model, const golden *g, size_t chunk)
{
    kept_rows r = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    frit_engine *engine = new_engine(model, "cuda");
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    if (g->source) assert_ok(frit_session_encode(session, g->source, g->n_source, NULL));
    run(engine, session, g, 0, g->n_tokens, chunk, &r);
    assert_true(n_steps_of(engine) > 0);
    const double error = nmse(r.logits, g->logits, g->n_tokens * g->n_vocab);
    frit_session_free(session);
    frit_engine_free(engine);
    free(r.logits);
    return error;
}

static char **wanted;

static bool is_wanted(const char *name)
{
    // Fused steps; softcaps, windows and norms after products; ALiBi, layer norms and biases; experts, which the CPU
    // computes; norms of heads.
    static const char *const names[] = {"llama-dense", "gemma2-dense", "bloom-dense", "llama-moe", "qwen3-dense"};
    for (char **word = wanted; word && *word; word++)
        if (strstr(name, *word)) return true;
    for (size_t i = 0; i < FRIT_COUNT(names) && !(wanted && *wanted); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    require_emulator();
    size_t n_run = 0;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!is_wanted(golden_name(i)) || !golden_is_here(i)) continue;
        golden g = golden_load(i);
        frit_model *model;
        assert_ok(frit_model_open(&model, g.path, NULL));
        const double prompt = error_of(model, &g, g.n_tokens), steps = error_of(model, &g, 3);
        print_message("| %-22s | %9.1e | %9.1e |\n", golden_name(i), prompt, steps);
        assert_true(prompt <= 1e-6 && steps <= 1e-6);
        frit_model_free(model);
        golden_free(&g);
        n_run++;
    }
    if (n_run == 0) skip_because("the reference models are not here");
}

// ------------------------------------------------------------------------------- sessions

static void a_session_moves_between_gpu_and_cpu(void **state)
{
    (void)state;
    require_emulator();
    size_t i = 0;
    while (i < N_GOLDENS && strcmp(golden_name(i), "llama-dense") != 0) i++;
    if (i == N_GOLDENS || !golden_is_here(i)) skip_because("the reference model llama-dense is not here");
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    kept_rows r = {.logits = calloc(g.n_tokens * g.n_vocab, sizeof(float)), .n_vocab = g.n_vocab};
    const char *path = temp_path("moved");
    for (int turn = 0; turn < 2; turn++) {
        frit_engine *engine = new_engine(model, turn ? "cpu" : "cuda");
        frit_session *session, *fork;
        assert_ok(frit_session_new(&session, engine));
        if (turn) assert_ok(frit_session_load(session, path));
        assert_ok(frit_session_fork(&fork, session));
        frit_session_free(session);
        run(engine, fork, &g, turn * g.n_tokens / 2, turn ? g.n_tokens : g.n_tokens / 2, 5, &r);
        if (!turn) assert_ok(frit_session_save(fork, path));
        frit_session_free(fork);
        frit_engine_free(engine);
    }
    assert_true(nmse(r.logits, g.logits, g.n_tokens * g.n_vocab) <= 1e-6);
    free(r.logits);
    frit_model_free(model);
    golden_free(&g);
}

// ------------------------------------------------------------------------------- what is not there

static void too_little_memory_is_an_error_with_numbers(void **state)
{
    (void)state;
    require_emulator();
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    setenv("FRIT_EMULATED_BYTES", "70000000", 1);   // the loader's pieces, and a little more
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .device = "cuda", .gpu_layers = "all"};
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_MEMORY, "on cuda: ");
    assert_non_null(strstr(frit_error(), "available"));
    unsetenv("FRIT_EMULATED_BYTES");
    frit_model_free(model);
}

int main(int argc, char **argv)
{
    wanted = argc > 0 ? argv + 1 : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_reference),
        cmocka_unit_test(a_session_moves_between_gpu_and_cpu),
        cmocka_unit_test(too_little_memory_is_an_error_with_numbers),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
