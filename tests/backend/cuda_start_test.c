// SPDX-License-Identifier: MIT
// Starting an engine on NVIDIA GPUs: memory as estimated, and a compiler or cached kernels.
#include "backend/gpu_engine.h"

// ------------------------------------------------------------------------------- what is not there

static void too_little_memory_is_an_error_with_numbers(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("only the emulator's memory is small");
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    setenv("FRIT_EMULATED_BYTES", "70000000", 1);   // the loader's pieces, and a little more
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .device = "cuda", .gpu_layers = "all"};
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_MEMORY, "the memory of cuda: ");
    assert_non_null(strstr(frit_error(), "are free"));
    setenv("FRIT_EMULATED_BYTES", "220000000", 1);   // only the cache does not fit
    const frit_engine_options long_options = {.n_ctx = 20000,
                                              .n_threads = 2,
                                              .device = "cuda",
                                              .gpu_layers = "all",
                                              .cache_type_k = "f16",
                                              .cache_type_v = "f16"};
    assert_fails(frit_engine_new(&engine, model, &long_options), FRIT_E_MEMORY, "a context of 20000 tokens");
    assert_non_null(strstr(frit_error(), "tokens fits with"));
    unsetenv("FRIT_EMULATED_BYTES");
    frit_model_free(model);
}

// A machine without NVRTC can use a folder that was filled on a machine with NVRTC.
static void kept_kernels_need_no_compiler(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("the machine has its own NVRTC");
    frit_engine *engine;
    frit_model *model = random_model(SMALL_LLAMA("32"));
    float expected[N_PIECES * 320], got[N_PIECES * 320];
    const frit_engine_options options = {.n_ctx = 160, .n_threads = 2, .device = "cuda"};
    frit_cuda_libraries libraries = {.driver = driver_path, .nvrtc = folder, .blas = folder};
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", temp_path("kept"));
    libraries.cubins = kept;
    frit_cuda_use_libraries(&libraries);
    assert_ok(frit_engine_new(&engine, model, &options));
    run_pieces(engine, 5, 320, expected);
    frit_engine_free(engine);
    libraries.nvrtc = "/nowhere";
    frit_cuda_use_libraries(&libraries);
    assert_ok(frit_engine_new(&engine, model, &options));
    run_pieces(engine, 5, 320, got);
    frit_engine_free(engine);
    assert_memory_equal(got, expected, sizeof got);
    libraries.cubins = temp_path("empty");
    frit_cuda_use_libraries(&libraries);
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_NOT_FOUND, "there is no NVRTC");
    libraries.cubins = NULL;
    frit_cuda_use_libraries(&libraries);
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_INVALID, "--weights-cache has to name a folder");
    use_emulator(NULL);
    frit_model_free(model);
}

static frit_log_level heard;   // of the last message that has the text below
static const char *listens_for;

static void hear(void *ctx, frit_log_level level, const char *message)
{
    (void)ctx;
    if (strstr(message, listens_for)) heard = level;
}

// An archive that was written without a GPU starts a GPU without a compiler. The emulator's GPU has 4 multiprocessors,
// so it is given the kernels of one with more.
static void archives_need_no_compiler(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("the machine has its own NVRTC");
    frit_engine *engine;
    frit_model *model = random_model(SMALL_LLAMA("32"));
    float expected[N_PIECES * 320], got[N_PIECES * 320];
    frit_kernels_report report;
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("archives"));
    const frit_engine_options options = {.n_ctx = 160, .n_threads = 2, .device = "cuda"};
    frit_kernels_options wanted = {.folder = path, .gpu = "h200"};
    frit_cuda_libraries libraries = {.driver = driver_path, .nvrtc = folder, .blas = folder};
    setenv("FRIT_EMULATED_MULTIPROCESSORS", "140", 1);
    frit_cuda_use_libraries(&libraries);
    assert_ok(frit_kernels_write(model, &options, &wanted, &report));
    assert_true(report.n_kernels > 20 && report.n_added == report.n_kernels);
    const uint64_t n_bytes = report.n_bytes;
    assert_ok(frit_kernels_write(model, &options, &wanted, &report));   // all of them are there
    assert_int_equal(report.n_added, 0);
    assert_int_equal(report.n_bytes, n_bytes);
    libraries.nvrtc = "/nowhere";
    libraries.package = path;
    model->log = (frit_log){.fn = hear};
    listens_for = "132 of 140 multiprocessors are used";
    for (int has_blas = 1; has_blas >= 0; has_blas--) {
        heard = FRIT_LOG_DEBUG;
        libraries.blas = has_blas ? folder : "/nowhere";
        frit_cuda_use_libraries(&libraries);
        assert_ok(frit_engine_new(&engine, model, &options));
        assert_int_equal(heard, FRIT_LOG_WARNING);
        run_pieces(engine, 5, 320, has_blas ? expected : got);
        frit_engine_free(engine);
    }
    assert_true(nmse(got, expected, N_PIECES * 320) <= 1e-4);
    model->log = (frit_log){0};
    frit_model_free(model);
    model = random_model(SMALL_LLAMA("64"));   // other shapes than the archive has
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_NOT_FOUND, "sm_90.kernels, and there is no NVRTC");
    assert_non_null(strstr(frit_error(), "'frit kernels'"));
    unsetenv("FRIT_EMULATED_MULTIPROCESSORS");
    wanted.gpu = "h1000";
    assert_fails(frit_kernels_write(model, &options, &wanted, &report), FRIT_E_INVALID, "expected one of a100, ");
    use_emulator(NULL);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- other kinds of GPU

static void gpus_that_are_too_old_are_refused(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("only the emulator's GPU is of any kind");
    frit_engine *engine;
    frit_model *model = random_model(SMALL_LLAMA("32"));
    const frit_engine_options options = {.n_ctx = 160, .n_threads = 2, .device = "cuda"};
    setenv("FRIT_EMULATED_ARCH", "61", 1);
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_UNSUPPORTED, "sm_61; expected sm_70 or newer");
    setenv("FRIT_EMULATED_ARCH", "70", 1);   // NVRTC 13 does not compile for it
    frit_cuda_use_libraries(&(frit_cuda_libraries){.driver = driver_path, .nvrtc = folder, .blas = folder});
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_INVALID, "NVRTC (libnvrtc.so.12) cannot be loaded");
    use_emulator(NULL);
    unsetenv("FRIT_EMULATED_ARCH");
    frit_model_free(model);
}

// GPUs with less than half of the shared memory, and without bulk copies.
static void gpus_with_less_shared_memory_give_the_same_text(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("only the emulator's GPU is of any kind");
    frit_model *model = random_model(SMALL_LLAMA("32"));
    float logits[2][N_PIECES * 320];
    const frit_engine_options options = {
        .n_ctx = 160, .n_threads = 2, .device = "cuda", .cache_type_k = "f16", .cache_type_v = "f16"};
    for (int i = 0; i < 2; i++) {
        frit_engine *engine;
        if (i) setenv("FRIT_EMULATED_ARCH", "86", 1);
        assert_ok(frit_engine_new(&engine, model, &options));
        assert_int_equal(((const frit_cuda_device *)engine->devices[0])->gpu.arch, i ? 86 : 90);
        run_pieces(engine, 40, 320, logits[i]);
        frit_engine_free(engine);
    }
    unsetenv("FRIT_EMULATED_ARCH");
    assert_true(nmse(logits[1], logits[0], N_PIECES * 320) <= 1e-6);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- products that are measured

static const frit_cuda_autotune *autotune_of(const frit_engine *engine)
{
    return &((const frit_cuda_device *)engine->devices[0])->autotune;
}

// Number of measured products of up to 128 rows.
static void run_measured(frit_model *model, const char *kept, bool deterministic, frit_engine **engine, float *logits)
{
    const frit_engine_options options = {.n_ctx = 160,
                                         .n_threads = 2,
                                         .n_batch = 128,
                                         .device = "cuda",
                                         .cache_type_k = "f16",
                                         .cache_type_v = "f16",
                                         .weights_cache = kept,
                                         .deterministic = deterministic};
    assert_ok(frit_engine_new(engine, model, &options));
    run_pieces(*engine, 100, 320, logits);
}

// The emulated clock makes the last measured candidate the fastest. On a real GPU any candidate may be. Products of
// warpgroups, which sm_90 has, are not measured.
static void products_are_measured_once_and_remembered(void **state)
{
    (void)state;
    require_gpu();
    setenv("FRIT_EMULATED_ARCH", "80", 1);
    frit_engine *engine;
    frit_model *model = random_model(SMALL_LLAMA("32"));
    float first[N_PIECES * 320], again[N_PIECES * 320], fixed[N_PIECES * 320];
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", temp_path("measured"));
    setenv("FRIT_EMULATED_HURRY", "1", 1);
    run_measured(model, kept, false, &engine, first);
    unsetenv("FRIT_EMULATED_HURRY");
    const size_t n = autotune_of(engine)->n_known, n_bytes = n * sizeof(frit_cuda_tuned);
    frit_cuda_tuned *known = malloc(n_bytes + 1);
    memcpy(known, autotune_of(engine)->known, n_bytes);
    size_t n_by_blas = 0, n_of_warps = 0;
    assert_true(n > 0);
    assert_int_equal(autotune_of(engine)->n_requests, 0);
    for (size_t i = 0; i < n; i++) {
        n_by_blas += known[i].by_blas != 0;
        n_of_warps += known[i].types[0] >= 0 && known[i].row_tiles > 0;
    }
    assert_true(is_real() || n_by_blas > 0);
    assert_true(n_of_warps > 0);
    frit_engine_free(engine);

    run_measured(model, kept, false, &engine, again);
    assert_int_equal(autotune_of(engine)->n_known, n);
    assert_memory_equal(autotune_of(engine)->known, known, n_bytes);
    assert_memory_equal(again, first, sizeof first);
    frit_engine_free(engine);

    run_measured(model, kept, true, &engine, fixed);
    assert_int_equal(autotune_of(engine)->n_known, 0);
    assert_true(nmse(fixed, first, N_PIECES * 320) <= 1e-5);
    frit_engine_free(engine);
    unsetenv("FRIT_EMULATED_ARCH");
    free(known);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- memory

enum { N_ROWS = 132 };   // rows of the largest step, which on sm_80 has gemms by cuBLASLt

static void run_rows(frit_engine *engine, size_t n_rows)
{
    frit_session *session;
    frit_token tokens[N_ROWS];
    for (size_t i = 0; i < n_rows; i++) tokens[i] = (frit_token)(5 + i);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, n_rows, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    frit_session_free(session);
}

static void compare_with_estimate(void)
{
    enum { ALIGNMENTS = 256 << 10 };
    const frit_engine_options options = {.n_ctx = 512,
                                         .n_threads = 2,
                                         .n_batch = N_ROWS,
                                         .device = "cuda",
                                         .gpu_layers = "all",
                                         .no_prefix_cache = true};
    frit_model *model;
    frit_engine *engine;
    frit_estimate *estimate;
    frit_estimate_device device;
    frit_device_info info;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    assert_ok(frit_estimate_new(&estimate, model, &options));
    assert_true(frit_estimate_get_device(estimate, 0, &device));
    assert_string_equal(device.name, "cuda");
    assert_ok(frit_engine_new(&engine, model, &options));
    run_rows(engine, 1);
    run_rows(engine, N_ROWS);
    engine->devices[0]->backend->info(engine->devices[0], &info);
    const double mib = 1 << 20, taken = (double)(device.free_bytes - info.free_bytes) / mib,
                 needed = (double)(device.packed_bytes + device.kv_bytes + device.scratch_bytes) / mib;
    print_message("estimated %.1f MiB (weights %.1f, cache %.1f, scratch %.1f), taken %.1f MiB\n", needed,
                  (double)device.packed_bytes / mib, (double)device.kv_bytes / mib, (double)device.scratch_bytes / mib,
                  taken);
    assert_true(taken <= needed + ALIGNMENTS / mib);
    if (!is_real()) assert_true(taken >= 0.85 * needed);   // others may use the memory of a GPU
    frit_engine_free(engine);
    frit_estimate_free(estimate);
    frit_model_free(model);
}

static void the_gpu_takes_what_was_estimated(void **state)
{
    (void)state;
    require_gpu();
    compare_with_estimate();
    if (is_real()) return;
    static const char *const others[] = {"80", "75"};   // cuBLASLt and products in f32 need other memory
    for (size_t i = 0; i < FRIT_COUNT(others); i++) {
        setenv("FRIT_EMULATED_ARCH", others[i], 1);
        compare_with_estimate();
    }
    unsetenv("FRIT_EMULATED_ARCH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_kernels_need_no_compiler),
        cmocka_unit_test(archives_need_no_compiler),
        cmocka_unit_test(gpus_that_are_too_old_are_refused),
        cmocka_unit_test(gpus_with_less_shared_memory_give_the_same_text),
        cmocka_unit_test(products_are_measured_once_and_remembered),
        cmocka_unit_test(too_little_memory_is_an_error_with_numbers),
        cmocka_unit_test(the_gpu_takes_what_was_estimated),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
