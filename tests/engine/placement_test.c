// SPDX-License-Identifier: MIT
// Layers on a device beside the CPU, by options and by memory. Results do not change.
#include "support/support.h"

#include "engine/engine.h"
#include "support/adapters.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

enum { N_LAYERS = 4, N_PLACES = N_LAYERS + 2, CPU = 1 };

static char warning[FRIT_ERROR_BYTES];

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (level == FRIT_LOG_WARNING) snprintf(warning, sizeof warning, "%s", sentence);
}

static frit_model *model;

static int open_model(void **state)
{
    (void)state;
    const frit_model_options options = {.log = remember};
    return frit_model_open(&model, tiny_model("a.gguf", &(tiny_options){.n_layer = N_LAYERS}), &options) != FRIT_OK;
}

static int close_model(void **state)
{
    (void)state;
    frit_model_free(model);
    return 0;
}

static int use_device(void **state)
{
    (void)state;
    warning[0] = 0;
    test_device_use(TEST_DEVICE_ALONE);
    return 0;
}

static int use_none(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){0});
    test_device_use(TEST_DEVICE_NONE);
    return 0;
}

static frit_engine *make(frit_engine_options options)
{
    frit_engine *engine;
    options.cpu = "reference";
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static frit_status fail_to_make(frit_engine_options options)
{
    frit_engine *engine = NULL;
    options.cpu = "reference";
    const frit_status status = frit_engine_new(&engine, model, &options);
    assert_true((status == FRIT_OK) == (engine != NULL));
    frit_engine_free(engine);
    return status;
}

// Compares the logits after a prompt with those of the CPU alone. Returns the number of the device's executables.
static size_t expect_same_logits(frit_engine *engine)
{
    static float expected[TINY_VOCAB];
    frit_session *session;
    const frit_token tokens[] = {5, 6, 7, 8};
    const size_t before = test_device_n_runs();
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, FRIT_COUNT(tokens), NULL));
    assert_ok(frit_engine_step(engine, NULL));
    const float *logits = frit_session_logits(session);
    assert_non_null(logits);
    if (engine->n_devices == 1) memcpy(expected, logits, sizeof expected);
    assert_memory_equal(logits, expected, sizeof expected);
    frit_session_free(session);
    return test_device_n_runs() - before;
}

static void note_expected(void **state)
{
    (void)state;
    frit_engine *engine = make((frit_engine_options){.device = "cpu"});
    assert_int_equal(engine->n_devices, 1);
    assert_int_equal(expect_same_logits(engine), 0);
    frit_engine_free(engine);
}

static int n_on_device(const frit_engine *engine)
{
    int n = 0;
    for (int i = 0; i < N_PLACES; i++) {
        n += engine->device_map.layers[i] != CPU;
        // Layers are placed from the output on; the cache of a layer is on its device.
        if (i > 0) assert_true(engine->device_map.layers[i] <= engine->device_map.layers[i - 1]);
        if (i > 0 && i <= N_LAYERS) assert_int_equal(engine->cache_devices[i - 1], engine->device_map.layers[i]);
    }
    return n;
}

static void as_many_layers_as_were_asked_for_run_on_the_device(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int n;
    } cases[] = {{"0", 0}, {"1", 1}, {"3", 3}, {"5", 5}, {"6", 6}, {"99", 6}, {"all", 6}, {"auto", 6}, {NULL, 6}};
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_engine *engine = make((frit_engine_options){.gpu_layers = cases[i].text});
        assert_int_equal(engine->n_devices, 2);
        assert_int_equal(n_on_device(engine), cases[i].n);
        assert_int_equal(expect_same_logits(engine), cases[i].n > 0);   // one segment
        frit_engine_free(engine);
    }
    assert_string_equal(warning, "");
}

static void otherwise_as_many_as_its_memory_holds(void **state)
{
    (void)state;
    int last = 0, n_between = 0;
    for (uint64_t kib = 1; kib <= 4096; kib *= 2) {
        test_device_set_traits((test_device_traits){.free_bytes = kib << 10});
        frit_engine *engine = make((frit_engine_options){.n_ctx = 128, .n_batch = 32});
        const int n = n_on_device(engine);
        assert_true(n >= last);
        n_between += n > 0 && n < N_PLACES;
        expect_same_logits(engine);
        frit_engine_free(engine);
        if (kib == 1) assert_int_equal(n, 0);
        last = n;
    }
    assert_int_equal(last, N_PLACES);
    assert_true(n_between > 0);
}

// Placement goes by the bytes that devices store, not by the file's.
static void layers_go_where_their_stored_weights_fit(void **state)
{
    (void)state;
    int n_fewer = 0;
    for (uint64_t kib = 256; kib <= 8192; kib *= 2) {
        int n[2];
        for (int larger = 0; larger < 2; larger++) {
            test_device_set_traits((test_device_traits){.free_bytes = kib << 10, .weight_times = larger ? 6 : 1});
            frit_engine *engine = make((frit_engine_options){.n_ctx = 128, .n_batch = 32});
            n[larger] = n_on_device(engine);
            frit_engine_free(engine);
        }
        assert_true(n[1] <= n[0]);
        n_fewer += n[1] < n[0];
    }
    assert_true(n_fewer > 0);
}

// Layers that an option places on the CPU need no memory of the device, so more layers fit.
static void tensors_placed_elsewhere_leave_room_for_layers(void **state)
{
    (void)state;
    int n_more = 0;
    for (uint64_t kib = 256; kib <= 8192; kib *= 2) {
        int n[2];
        for (int i = 0; i < 2; i++) {
            test_device_set_traits((test_device_traits){.free_bytes = kib << 10, .weight_times = 6});
            frit_engine *engine =
                make((frit_engine_options){.n_ctx = 128, .n_batch = 32, .override_tensor = i == 0 ? NULL : "ffn_=cpu"});
            n[i] = n_on_device(engine);
            frit_engine_free(engine);
        }
        assert_true(n[1] >= n[0]);
        n_more += n[1] > n[0];
    }
    assert_true(n_more > 0);
}

static void a_context_must_fit_on_every_device(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){.free_bytes = 256 << 10});
    const frit_engine_options all = {.gpu_layers = "all", .n_batch = 8},
                              long_one = {.gpu_layers = "all", .n_batch = 8, .n_ctx = 2048};
    frit_engine *engine = make(all);
    frit_engine_info info;
    assert_ok(frit_engine_get_info(engine, &info));
    assert_in_range(info.n_ctx, 32, TINY_CTX - 1);
    frit_engine_free(engine);
    assert_fails(fail_to_make(long_one), FRIT_E_MEMORY, "memory of test: a context of 2048 tokens");
    engine = make((frit_engine_options){.n_batch = 8, .device = "cpu"});
    assert_ok(frit_engine_get_info(engine, &info));
    assert_int_equal(info.n_ctx, TINY_CTX);
    frit_engine_free(engine);
}

static void tensors_can_be_placed_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *rules;
        size_t n_seqs;   // of the device
    } cases[] = {
        {"ffn_down=cpu", N_LAYERS + 1},   // in the middle of a layer
        {"blk\\.1\\.ffn_(gate|up)=CPU", 2},
        {"blk\\.1\\.ffn_down=test,ffn_down=cpu", N_LAYERS},   // the first matching rule is used
        {"ffn_down=test,ffn_down=cpu", 1},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_engine *engine = make((frit_engine_options){.override_tensor = cases[i].rules});
        assert_int_equal(expect_same_logits(engine), cases[i].n_seqs);
        frit_engine_free(engine);
    }
    frit_engine *engine = make((frit_engine_options){.override_tensor = "ffn_down=test", .gpu_layers = "0"});
    assert_int_equal(expect_same_logits(engine), N_LAYERS);
    assert_string_equal(warning, "");
    frit_engine_free(engine);
    frit_engine_free(make((frit_engine_options){.override_tensor = "ffn_dawn=cpu"}));
    assert_non_null(strstr(warning, "'ffn_dawn=cpu' matches no tensor"));
}

// The output and two of four layers run on the device, and it gets their adapter matrices once.
static void devices_get_the_matrices_of_adapters_that_they_read(void **state)
{
    (void)state;
    frit_engine *engine = make((frit_engine_options){.gpu_layers = "3"});
    frit_adapter *adapter;
    frit_session *session;
    const adapter_options options = {.only = "attn_q."};
    assert_ok(frit_adapter_open(&adapter, model, make_adapter("b.gguf", temp_path("a.gguf"), &options, NULL), NULL));
    assert_ok(frit_session_new(&session, engine));
    const size_t before = test_device_n_matrices();
    for (int i = 1; i < 3; i++) {
        assert_ok(frit_session_set_adapters(session, &adapter, (float[]){(float)i}, 1));
        assert_int_equal(test_device_n_matrices() - before, 2);
    }
    frit_session_free(session);
    frit_adapter_free(adapter);
    frit_engine_free(engine);
}

// Two of four layers run on the device, with their part of the adapter.
static void adapters_must_fit_into_the_memory_of_their_devices(void **state)
{
    (void)state;
    frit_adapter *adapter;
    frit_session *session;
    const adapter_options options = {.only = "attn_q.", .rank = 64};
    assert_ok(frit_adapter_open(&adapter, model, make_adapter("c.gguf", temp_path("a.gguf"), &options, NULL), NULL));
    frit_adapter_info info;
    assert_ok(frit_adapter_get_info(adapter, &info));
    const uint64_t all = frit_adapter_bytes(adapter, NULL, 0);
    assert_int_equal(all, info.n_bytes);
    for (int fits = 0; fits < 2; fits++) {
        test_device_set_traits((test_device_traits){.free_bytes = 256 << 20});
        frit_engine *engine = make((frit_engine_options){.gpu_layers = "3", .n_ctx = 128, .n_batch = 32});
        assert_ok(frit_session_new(&session, engine));
        enum { ALIGNMENTS = 4096 };
        test_device_set_free(engine->devices[0], fits ? all / 2 + ALIGNMENTS : all / 2 - 1);
        const frit_status status = frit_session_set_adapters(session, &adapter, (float[]){1}, 1);
        if (fits) {
            assert_ok(status);
            assert_int_equal(frit_adapter_bytes(adapter, engine->adapters.devices, 0), all / 2);
        } else {
            assert_fails(status, FRIT_E_MEMORY, "c.gguf: needs");
            expect_same_logits(engine);
        }
        frit_session_free(session);
        frit_engine_free(engine);
    }
    frit_adapter_free(adapter);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    assert_fails(fail_to_make((frit_engine_options){.gpu_layers = "4x"}), FRIT_E_INVALID,
                 "'4x' is not a number of layers");
    assert_fails(fail_to_make((frit_engine_options){.gpu_layers = "-1"}), FRIT_E_INVALID, "expected 0 or more");
    assert_fails(fail_to_make((frit_engine_options){.gpu_layers = ""}), FRIT_E_INVALID, "'' is not a number");
    assert_fails(fail_to_make((frit_engine_options){.device = "cuda7"}), FRIT_E_INVALID, "'cuda7' is not a device");
    assert_fails(fail_to_make((frit_engine_options){.override_tensor = "ffn"}), FRIT_E_INVALID, "PATTERN=DEVICE");
    assert_fails(fail_to_make((frit_engine_options){.override_tensor = "=cpu"}), FRIT_E_INVALID, "PATTERN=DEVICE");
    assert_fails(fail_to_make((frit_engine_options){.override_tensor = "ffn=cpu,"}), FRIT_E_INVALID, "PATTERN=DEVICE");
    assert_fails(fail_to_make((frit_engine_options){.override_tensor = "ffn=cuda"}), FRIT_E_INVALID,
                 "no device 'cuda', it has test, cpu");
    assert_true(fail_to_make((frit_engine_options){.override_tensor = "(=cpu"}) != FRIT_OK);
}

static void without_a_device_layers_stay_on_the_cpu(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){.is_absent = true});
    frit_engine *engine = make((frit_engine_options){0});
    assert_int_equal(expect_same_logits(engine), 0);
    assert_int_equal(engine->n_devices, 1);
    frit_engine_free(engine);
    assert_fails(fail_to_make((frit_engine_options){.device = "test"}), FRIT_E_INVALID, "'test' is not a device");
    test_device_use(TEST_DEVICE_NONE);
    frit_engine_free(make((frit_engine_options){.gpu_layers = "0"}));
    frit_engine_free(make((frit_engine_options){.gpu_layers = "auto", .device = "CPU", .override_tensor = "ffn=cpu"}));
    assert_string_equal(warning, "");
    frit_engine_free(make((frit_engine_options){.gpu_layers = "99"}));
    assert_non_null(strstr(warning, "gpu-layers 99: there is no GPU"));
    assert_fails(fail_to_make((frit_engine_options){.gpu_layers = "99x"}), FRIT_E_INVALID, "'99x'");
}

static void deterministic_engines_have_one_kind_of_numbers(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){.least_prefill = 16});
    frit_engine *engine = make((frit_engine_options){0});
    assert_int_equal(engine->rows.least[FRIT_ROWS_PREFILL], 16);
    frit_engine_free(engine);
    engine = make((frit_engine_options){.deterministic = true});
    assert_int_equal(engine->rows.least[FRIT_ROWS_PREFILL], INT32_MAX);
    frit_engine_free(engine);
    test_device_set_traits((test_device_traits){.least_prefill = 16, .ignores_deterministic = true});
    assert_fails(fail_to_make((frit_engine_options){.deterministic = true}), FRIT_E_UNSUPPORTED,
                 "device test computes");
    // Also with the best CPU kernels.
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.deterministic = true, .device = "cpu"}));
    assert_int_equal(engine->rows.least[FRIT_ROWS_PREFILL], INT32_MAX);
    frit_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(note_expected, use_device, use_none),
        cmocka_unit_test_setup_teardown(as_many_layers_as_were_asked_for_run_on_the_device, use_device, use_none),
        cmocka_unit_test_setup_teardown(otherwise_as_many_as_its_memory_holds, use_device, use_none),
        cmocka_unit_test_setup_teardown(layers_go_where_their_stored_weights_fit, use_device, use_none),
        cmocka_unit_test_setup_teardown(tensors_placed_elsewhere_leave_room_for_layers, use_device, use_none),
        cmocka_unit_test_setup_teardown(a_context_must_fit_on_every_device, use_device, use_none),
        cmocka_unit_test_setup_teardown(tensors_can_be_placed_by_name, use_device, use_none),
        cmocka_unit_test_setup_teardown(devices_get_the_matrices_of_adapters_that_they_read, use_device, use_none),
        cmocka_unit_test_setup_teardown(adapters_must_fit_into_the_memory_of_their_devices, use_device, use_none),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, use_device, use_none),
        cmocka_unit_test_setup_teardown(without_a_device_layers_stay_on_the_cpu, use_device, use_none),
        cmocka_unit_test_setup_teardown(deterministic_engines_have_one_kind_of_numbers, use_device, use_none),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
