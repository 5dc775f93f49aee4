// SPDX-License-Identifier: MIT
// Compares estimates with counters of engines and with the process's memory.
#include "support/support.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

#include "frit.h"

static frit_estimate_device only_device(const frit_estimate *estimate)
{
    frit_estimate_device device, none;
    assert_true(frit_estimate_get_device(estimate, 0, &device));
    assert_false(frit_estimate_get_device(estimate, 1, &none));
    return device;
}

static void expect_counters(const char *path, const frit_engine_options *options)
{
    frit_model *model;
    frit_engine *engine;
    frit_estimate *estimate;
    frit_estimate_info info;
    frit_engine_info made;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_estimate_new(&estimate, model, options));
    assert_ok(frit_estimate_get_info(estimate, &info));
    assert_null(info.why_not);
    const frit_estimate_device device = only_device(estimate);
    assert_ok(frit_engine_new(&engine, model, options));
    assert_ok(frit_engine_get_info(engine, &made));
    assert_int_equal(info.n_ctx, made.n_ctx);
    assert_int_equal(info.kv_token_bytes, made.kv_token_bytes);
    assert_int_equal(device.packed_bytes, made.packed_bytes);
    assert_int_equal(device.packed_bytes + device.mapped_bytes, made.weight_bytes);
    assert_int_equal(device.kv_bytes, made.kv_bytes);
    frit_engine_free(engine);
    frit_estimate_free(estimate);
    frit_model_free(model);
}

static void counters_of_the_engine_are_those_of_the_estimate(void **state)
{
    (void)state;
    const frit_engine_options cases[] = {
        {.n_ctx = 512},
        {.n_ctx = 300, .n_sessions = 3, .cache_type_k = "q8_0", .cache_type_v = "q4_0"},
        {.n_batch = 32, .cpu = "reference"},
        {.n_ctx = 128, .cpu = "scalar", .fit = "off"},
        {.n_ctx = 128, .prefix_host_mib = 16},
        {.n_ctx = 128, .prefix_host_mib = 16, .no_prefix_cache = true},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        expect_counters(project_path("models/fable.gguf"), &cases[i]);
        expect_counters(tiny_model("tiny.gguf", &(tiny_options){.times = 2}), &(frit_engine_options){0});
    }
}

static uint64_t kv_bytes_of(frit_model *model, int32_t host_mib)
{
    frit_estimate *estimate;
    assert_ok(frit_estimate_new(&estimate, model, &(frit_engine_options){.n_ctx = 128, .prefix_host_mib = host_mib}));
    const frit_estimate_device device = only_device(estimate);
    frit_estimate_free(estimate);
    return device.kv_bytes;
}

// Exact up to one host page.
static void memory_for_prompts_of_the_past_counts(void **state)
{
    (void)state;
    frit_model *model;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    const uint64_t none = kv_bytes_of(model, 0), some = kv_bytes_of(model, 16), more = kv_bytes_of(model, 48);
    assert_in_range(some - none, 15 << 20, 16 << 20);
    assert_in_range(more - none, 47 << 20, 48 << 20);
    frit_model_free(model);
}

static void what_does_not_fit_is_shown_and_refused_alike(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    frit_estimate *estimate;
    frit_estimate_info info;
    const frit_engine_options options = {.n_ctx = 1 << 27};
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    assert_ok(frit_estimate_new(&estimate, model, &options));
    assert_ok(frit_estimate_get_info(estimate, &info));
    const frit_estimate_device device = only_device(estimate);
    assert_int_equal(info.n_ctx, 1 << 27);
    assert_non_null(info.why_not);
    assert_non_null(strstr(info.why_not, "does not fit into the memory of cpu: a context of 134217728 tokens"));
    assert_non_null(strstr(info.why_not, " tokens fits with cached keys in q8_0"));
    assert_true(device.kv_bytes > device.free_bytes);
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_MEMORY, "does not fit into the memory of cpu");
    frit_estimate_free(estimate);
    frit_model_free(model);
}

static void devices_with_memory_of_their_own_have_rows(void **state)
{
    (void)state;
    frit_model *model;
    frit_estimate *estimate;
    frit_estimate_device device, host;
    test_device_use(TEST_DEVICE_ALONE);
    test_device_set_traits((test_device_traits){.free_bytes = 64 << 20});
    assert_ok(frit_model_open(&model, tiny_model("two.gguf", &(tiny_options){.n_layer = 4}), NULL));
    assert_ok(frit_estimate_new(&estimate, model, &(frit_engine_options){.gpu_layers = "3", .cpu = "reference"}));
    assert_true(frit_estimate_get_device(estimate, 0, &device));
    assert_true(frit_estimate_get_device(estimate, 1, &host));
    assert_false(frit_estimate_get_device(estimate, 2, &host));
    assert_string_equal(device.name, "test");
    assert_string_equal(host.name, "cpu");
    assert_int_equal(device.n_layers, 3);
    assert_int_equal(host.n_layers, 3);
    assert_int_equal(device.free_bytes, 64 << 20);
    assert_true(device.kv_bytes > 0 && host.kv_bytes > 0);
    frit_estimate_free(estimate);
    frit_model_free(model);
    test_device_set_traits((test_device_traits){0});
    test_device_use(TEST_DEVICE_NONE);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Returns the memory of this process that is not a mapped file's, in bytes.
static uint64_t anonymous_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu kB", &kib) == 1) break;
    fclose(file);
    return kib << 10;
}

static void fill_context(frit_engine *engine, int32_t n_ctx)
{
    static const size_t n_rows[] = {1, 8, 32};   // plans for steps of these rows; and of more
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    frit_token *tokens = calloc((size_t)n_ctx, sizeof *tokens);
    assert_non_null(tokens);
    for (int32_t i = 0; i < n_ctx - 1; i++) tokens[i] = 300 + i % 100;
    assert_ok(frit_session_push(session, tokens, (size_t)n_ctx - 1, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    for (size_t i = 0; i < FRIT_COUNT(n_rows); i++) {
        assert_ok(frit_session_truncate(session, 0));
        assert_ok(frit_session_push(session, tokens + i + 1, n_rows[i], NULL));
        assert_ok(frit_engine_step(engine, NULL));
    }
    frit_session_free(session);
    free(tokens);
}

// The tolerance: 10 %, and 8 MiB for lists of tokens, rows and threads.
static void the_process_takes_what_was_estimated(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    frit_estimate *estimate;
    frit_estimate_info info;
    const frit_engine_options options = {.n_ctx = 2048, .n_threads = 2, .device = "cpu"};
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    assert_ok(frit_estimate_new(&estimate, model, &options));
    assert_ok(frit_estimate_get_info(estimate, &info));
    const frit_estimate_device device = only_device(estimate);
    const uint64_t before = anonymous_bytes();
    assert_ok(frit_engine_new(&engine, model, &options));
    fill_context(engine, info.n_ctx);
    const double taken = (double)(anonymous_bytes() - before) / (1 << 20);
    const double expected = (double)(device.packed_bytes + device.kv_bytes + device.scratch_bytes) / (1 << 20);
    print_message("estimated %.1f MiB (weights %.1f, cache %.1f, scratch %.1f), taken %.1f MiB\n", expected,
                  (double)device.packed_bytes / (1 << 20), (double)device.kv_bytes / (1 << 20),
                  (double)device.scratch_bytes / (1 << 20), taken);
    assert_true(taken < 1.1 * expected + 8);
    assert_true(taken > 0.9 * expected - 8);
    frit_engine_free(engine);
    frit_estimate_free(estimate);
    frit_model_free(model);
}

#else

static void the_process_takes_what_was_estimated(void **state)
{
    (void)state;
    skip_because("memory of the process is counted on Linux, without sanitizers");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_of_the_engine_are_those_of_the_estimate),
        cmocka_unit_test(memory_for_prompts_of_the_past_counts),
        cmocka_unit_test(what_does_not_fit_is_shown_and_refused_alike),
        cmocka_unit_test(devices_with_memory_of_their_own_have_rows),
        cmocka_unit_test(the_process_takes_what_was_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
