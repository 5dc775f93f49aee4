// SPDX-License-Identifier: MIT
// Misuse and faults of WebGPU, with a library that checks each call and computes nothing (webgpu_fake.h): each ends
// with a status and a sentence, no step ends the process, and no object is left behind. A model's steps, which the
// library checks too, need no GPU for it.
#include "backend/webgpu/device.h"
#include "base/library.h"
#include "engine/engine.h"
#include "sample/sampler.h"
#include "support/support.h"
#include "support/tiny_model.h"
#include "backend/webgpu_fake.h"

#include <dlfcn.h>

static const char path[] = FRIT_BUILD_DIR "/tests/libfrit_fake_webgpu.so";
static void (*set)(const fake_settings *settings);
static int (*n_living)(void), (*n_submits)(void);
static uint64_t (*n_dispatches)(void);

static int use_fake(void **state)
{
    (void)state;
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    *(void **)&set = dlsym(library, "fake_set");
    *(void **)&n_living = dlsym(library, "fake_n_living");
    *(void **)&n_submits = dlsym(library, "fake_n_submits");
    *(void **)&n_dispatches = dlsym(library, "fake_n_dispatches");
    frit_webgpu_use_library(path);
    return 0;
}

static int use_no_fake(void **state)
{
    (void)state;
    frit_webgpu_use_library(NULL);
    return 0;
}

static void set_faults(fake_settings settings)
{
    if (settings.n_adapters == 0) settings.n_adapters = 1;
    set(&settings);
}

// ------------------------------------------------------------------------------- opening

static void a_machine_without_an_adapter_has_no_gpu(void **state)
{
    (void)state;
    frit_gpu gpu;
    set(&(fake_settings){.n_adapters = 0});
    assert_fails(frit_gpu_open(&gpu, path, -1), FRIT_E_NOT_FOUND, "there is none");
    assert_int_equal(frit_gpu_n_adapters(path), 0);
    assert_int_equal(n_living(), 0);
}

static void an_adapter_that_is_refused_has_a_reason(void **state)
{
    (void)state;
    frit_gpu gpu;
    set_faults((fake_settings){.refuses_device = true});
    assert_fails(frit_gpu_open(&gpu, path, -1), FRIT_E_UNSUPPORTED, "it is in use");
    assert_int_equal(n_living(), 0);
}

static void limits_that_are_too_small_are_named(void **state)
{
    (void)state;
    frit_gpu gpu;
    set_faults((fake_settings){.has_small_limits = true});
    assert_fails(frit_gpu_open(&gpu, path, -1), FRIT_E_UNSUPPORTED,
                 "fast fake has 4 storage buffers of a kernel; expected at least 8");
    assert_int_equal(n_living(), 0);
}

static void adapters_have_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"fast fake", "small fake", "fake processor"};
    frit_gpu gpu;
    set_faults((fake_settings){.n_adapters = 3});
    assert_int_equal(frit_gpu_n_adapters(path), 3);
    for (int i = 0; i < 3; i++) {
        assert_ok(frit_gpu_open(&gpu, path, i));
        assert_string_equal(gpu.name, names[i]);
        assert_int_equal(gpu.features.is_software, i == 2);
        frit_gpu_close(&gpu);
    }
    assert_fails(frit_gpu_open(&gpu, path, 3), FRIT_E_NOT_FOUND, "finds 3 adapters, and none with number 3");
    frit_machine_device device;
    int n_found = 0;
    for (size_t i = 0; frit_machine_get_device(i, &device); i++) {
        if (strncmp(device.name, "webgpu:", 7) != 0) continue;
        assert_true(device.is_usable && strstr(device.kind, names[n_found]));
        n_found++;
    }
    assert_int_equal(n_found, 3);
    assert_int_equal(n_living(), 0);
}

static frit_log_level loudest;

static void keep_level(void *ctx, frit_log_level level, const char *text)
{
    (void)ctx;
    if (strstr(text, "is a processor, not a GPU")) loudest = level;
}

static void a_processor_is_used_with_a_warning(void **state)
{
    (void)state;
    frit_device *device;
    const frit_log log = {.fn = keep_level};
    set_faults((fake_settings){.n_adapters = 3});
    loudest = FRIT_LOG_INFO;
    assert_ok(frit_backend_webgpu.open(
        &device, &(frit_device_options){.n_threads = 1, .number = 2, .n_members = 1, .log = &log}));
    frit_backend_webgpu.close(device);
    assert_int_equal(loudest, FRIT_LOG_WARNING);
    assert_int_equal(n_living(), 0);
}

// ------------------------------------------------------------------------------- kernels, memory, lists

static const char kernel[] = "@compute @workgroup_size(64) fn main() { }",
                  bare_shift[] = "@compute @workgroup_size(64) fn main() { let a = 1u | 2u << 3u; }";

static void faulty_kernels_and_refused_pipelines_are_errors(void **state)
{
    (void)state;
    frit_gpu gpu;
    frit_gpu_pipeline pipeline;
    set_faults((fake_settings){.refused_pipeline = 1});
    assert_ok(frit_gpu_open(&gpu, path, -1));
    assert_fails(frit_gpu_pipeline_new(&gpu, "bad", "fn main( {", "rw", &pipeline), FRIT_E_UNSUPPORTED, "not WGSL");
    assert_fails(frit_gpu_pipeline_new(&gpu, "bare", bare_shift, "rw", &pipeline), FRIT_E_UNSUPPORTED, "not WGSL");
    assert_fails(frit_gpu_pipeline_new(&gpu, "refused", kernel, "rw", &pipeline), FRIT_E_UNSUPPORTED,
                 "the driver refuses the kernel");
    frit_gpu_close(&gpu);
    assert_int_equal(n_living(), 0);
}

static void memory_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    frit_gpu gpu;
    frit_gpu_buffer small, large;
    set_faults((fake_settings){.memory = 1 << 20});
    assert_ok(frit_gpu_open(&gpu, path, -1));
    assert_ok(frit_gpu_buffer_new(&gpu, 1 << 10, FRIT_GPU_STORAGE, "little", &small));
    assert_fails(frit_gpu_buffer_new(&gpu, 1 << 20, FRIT_GPU_STORAGE, "much", &large), FRIT_E_MEMORY, "no memory");
    assert_null(large.handle);
    frit_gpu_buffer_free(&gpu, &small);
    assert_ok(frit_gpu_buffer_new(&gpu, 1 << 20, FRIT_GPU_STORAGE, "much", &large));
    frit_gpu_buffer_free(&gpu, &large);
    frit_gpu_close(&gpu);
    assert_int_equal(n_living(), 0);
}

// A write, a read and a list after the loss, and the loss in between: none ends the process.
static void a_lost_gpu_refuses_all_work(void **state)
{
    (void)state;
    frit_gpu gpu;
    frit_gpu_buffer buffer;
    float x[16] = {0};
    for (int at_map = 0; at_map < 2; at_map++) {
        set_faults((fake_settings){.lost_at_submit = at_map ? 0 : 1, .lost_at_map = at_map ? 1 : 0});
        assert_ok(frit_gpu_open(&gpu, path, -1));
        assert_ok(frit_gpu_buffer_new(&gpu, sizeof x, FRIT_GPU_STORAGE, "x", &buffer));
        assert_fails(frit_gpu_read(&gpu, &buffer, 0, x, sizeof x), FRIT_E_UNSUPPORTED, "the GPU was lost");
        assert_fails(frit_gpu_write(&gpu, &buffer, 0, x, sizeof x), FRIT_E_UNSUPPORTED, "the fake has lost it");
        assert_fails(frit_gpu_submit(&gpu, &(frit_gpu_list){.is_new = true}), FRIT_E_UNSUPPORTED, "lost");
        frit_gpu_buffer_free(&gpu, &buffer);
        frit_gpu_close(&gpu);
        assert_int_equal(n_living(), 0);
    }
}

static void a_mapping_that_fails_is_an_error(void **state)
{
    (void)state;
    frit_gpu gpu;
    frit_gpu_buffer buffer;
    float x[16] = {0};
    set_faults((fake_settings){.failed_map = 1});
    assert_ok(frit_gpu_open(&gpu, path, -1));
    assert_ok(frit_gpu_buffer_new(&gpu, sizeof x, FRIT_GPU_STORAGE, "x", &buffer));
    assert_fails(frit_gpu_read(&gpu, &buffer, 0, x, sizeof x), FRIT_E_UNSUPPORTED, "results cannot be read");
    assert_ok(frit_gpu_read(&gpu, &buffer, 0, x, sizeof x));
    frit_gpu_buffer_free(&gpu, &buffer);
    frit_gpu_close(&gpu);
    assert_int_equal(n_living(), 0);
}

static void errors_without_a_scope_are_found_by_the_next_call(void **state)
{
    (void)state;
    frit_gpu gpu;
    set_faults((fake_settings){.uncaptured_at_submit = 1});
    assert_ok(frit_gpu_open(&gpu, path, -1));
    assert_fails(frit_gpu_submit(&gpu, &(frit_gpu_list){0}), FRIT_E_UNSUPPORTED, "an error that no call expects");
    assert_ok(frit_gpu_submit(&gpu, &(frit_gpu_list){0}));
    frit_gpu_close(&gpu);
    assert_int_equal(n_living(), 0);
}

// ------------------------------------------------------------------------------- engines

enum { N_TOKENS = 40 };

static frit_model *model;

static frit_status new_engine(const char *device, frit_engine **engine)
{
    if (!model) assert_ok(frit_model_open(&model, tiny_model("fake.gguf", &(tiny_options){.n_ctx = 256}), NULL));
    return frit_engine_new(engine, model,
                           &(frit_engine_options){.n_ctx = 128, .n_threads = 1, .device = device, .gpu_layers = "all"});
}

// Runs a prompt and single tokens.
static frit_status run_texts(frit_engine *engine, int n_steps)
{
    frit_session *session;
    frit_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = 4 + i % 26;
    assert_ok(frit_session_new(&session, engine));
    frit_status status = frit_session_push(session, tokens, N_TOKENS, NULL);
    for (int i = 0; i < n_steps && status == FRIT_OK; i++) {
        int32_t n_rows = 1;
        while (status == FRIT_OK && n_rows > 0 && frit_session_pending(session) > 0)
            status = frit_engine_step(engine, &n_rows);
        if (status == FRIT_OK) status = frit_session_status(session);
        if (status == FRIT_OK) status = frit_session_push(session, tokens, 1, NULL);
    }
    frit_session_free(session);
    return status;
}

// The library ends the process if a list is wrong.
static void steps_of_a_model_are_right_lists(void **state)
{
    (void)state;
    frit_engine *engine;
    set_faults((fake_settings){0});
    assert_ok(new_engine("webgpu", &engine));
    const frit_status status = run_texts(engine, 6);
    if (status != FRIT_OK) assert_non_null(strstr(frit_error(), "NaN"));   // nothing is computed
    assert_true(n_submits() >= 6 && n_dispatches() > 100);
    frit_engine_free(engine);
    assert_int_equal(n_living(), 0);
}

// Whenever the GPU is lost, the engine's calls fail with the reason, and all can be freed.
static void an_engine_outlives_its_gpu(void **state)
{
    (void)state;
    frit_engine *engine;
    int n_failed = 0;
    for (int at = 1; at < 9; at++) {
        set_faults((fake_settings){.lost_at_submit = at});
        frit_status status = new_engine("webgpu", &engine);
        const bool has_engine = status == FRIT_OK;
        if (has_engine) status = run_texts(engine, 6);
        if (status != FRIT_OK) assert_non_null(strstr(frit_error(), "lost"));
        n_failed += status != FRIT_OK;
        if (has_engine) frit_engine_free(engine);
        assert_int_equal(n_living(), 0);
    }
    assert_true(n_failed >= 5);
    set_faults((fake_settings){.memory = 1 << 16});
    assert_int_equal(new_engine("webgpu", &engine), FRIT_E_MEMORY);
    assert_int_equal(n_living(), 0);
    assert_ok(new_engine("cpu", &engine));
    assert_ok(run_texts(engine, 2));
    frit_engine_free(engine);
    frit_model_free(model);
    model = NULL;
}

static void names_of_devices_choose_adapters(void **state)
{
    (void)state;
    frit_engine *engine;
    set_faults((fake_settings){.n_adapters = 2});
    assert_ok(new_engine("webgpu:1", &engine));
    assert_string_equal(((const frit_webgpu_device *)engine->devices[0])->gpu.name, "small fake");
    frit_engine_free(engine);
    assert_fails(new_engine("webgpu:2", &engine), FRIT_E_INVALID, "none with number 2");
    assert_fails(new_engine("webgpu:x", &engine), FRIT_E_INVALID, "'webgpu:x' is not a device");
    assert_fails(new_engine("gpu:0", &engine), FRIT_E_INVALID, "'gpu:0' is not a device");
    assert_int_equal(n_living(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_an_adapter_has_no_gpu),
        cmocka_unit_test(an_adapter_that_is_refused_has_a_reason),
        cmocka_unit_test(limits_that_are_too_small_are_named),
        cmocka_unit_test(adapters_have_numbers),
        cmocka_unit_test(a_processor_is_used_with_a_warning),
        cmocka_unit_test(faulty_kernels_and_refused_pipelines_are_errors),
        cmocka_unit_test(memory_that_does_not_fit_is_refused),
        cmocka_unit_test(a_lost_gpu_refuses_all_work),
        cmocka_unit_test(a_mapping_that_fails_is_an_error),
        cmocka_unit_test(errors_without_a_scope_are_found_by_the_next_call),
        cmocka_unit_test(steps_of_a_model_are_right_lists),
        cmocka_unit_test(names_of_devices_choose_adapters),
        cmocka_unit_test(an_engine_outlives_its_gpu),
    };
    return cmocka_run_group_tests(tests, use_fake, use_no_fake);
}
