// SPDX-License-Identifier: MIT
// The choice of a context, with made-up machines.
#include "support/support.h"

#include "engine/fit.h"

static char last[FRIT_ERROR_BYTES];
static frit_log_level last_level;

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (last[0] && level > last_level) return;   // the most serious
    snprintf(last, sizeof last, "%s", sentence);
    last_level = level;
}

// 1024 tokens are 32 pages of 1 MiB.
static frit_fit machine(uint64_t mib)
{
    static const frit_log log = {remember, NULL};
    last[0] = 0;
    return (frit_fit){.path = "m.gguf",
                      .log = &log,
                      .n_ctx_train = 8192,
                      .room = {.n_sessions = 1},
                      .sizes = {.n_groups = 1, .groups = {{.page_bytes = 1 << 20}}},
                      .weight_bytes = 100 << 20,
                      .scratch_bytes = 0,
                      .available = mib << 20};
}

static int32_t choose(frit_fit fit)
{
    int32_t n_ctx = -1;
    assert_ok(frit_fit_context(&fit, &n_ctx));
    return n_ctx;
}

static void what_the_model_was_trained_for_is_the_default(void **state)
{
    (void)state;
    assert_int_equal(choose(machine(100 + 512)), 8192);
    assert_int_equal(last_level, FRIT_LOG_INFO);
    frit_fit unknown = machine(10000);
    unknown.n_ctx_train = 0;
    assert_int_equal(choose(unknown), 4096);
    frit_fit odd = machine(10000);
    odd.n_ctx_train = 777;
    assert_int_equal(choose(odd), 777);
}

static void less_memory_gives_the_largest_multiple_that_takes_half(void **state)
{
    (void)state;
    assert_int_equal(choose(machine(100 + 511)), 7168);
    assert_int_equal(last_level, FRIT_LOG_WARNING);
    assert_non_null(strstr(last, "7168 tokens of 8192"));
    assert_non_null(strstr(last, "511.0 MiB"));
    assert_int_equal(choose(machine(100 + 64)), 1024);
    assert_int_equal(choose(machine(100 + 63)), 31 * 32);
    assert_int_equal(choose(machine(100 + 2)), 32);
    frit_fit two = machine(100 + 512);
    two.room.n_sessions = 2;
    assert_int_equal(choose(two), 4096);
    frit_fit scratch = machine(100 + 512);
    scratch.scratch_bytes = 10 << 20;
    assert_int_equal(choose(scratch), 7168);
}

static void what_was_asked_for_may_take_all_but_no_more(void **state)
{
    (void)state;
    frit_fit fit = machine(100 + 64);
    fit.n_ctx = 2048;
    assert_int_equal(choose(fit), 2048);
    fit.n_ctx = 2049;
    int32_t n_ctx = -1;
    assert_fails(frit_fit_context(&fit, &n_ctx), FRIT_E_MEMORY, "needs 68157440 bytes, 67108864 are available");
    assert_int_equal(n_ctx, -1);
    fit = machine(100 + 10000);
    fit.n_ctx = 9000;
    assert_int_equal(choose(fit), 9000);
    assert_non_null(strstr(last, "longer than the 8192"));
}

static void machines_without_any_room_are_refused(void **state)
{
    (void)state;
    int32_t n_ctx;
    frit_fit fit = machine(50);   // not even the weights
    assert_fails(frit_fit_context(&fit, &n_ctx), FRIT_E_MEMORY, "m.gguf: a context of 32 tokens");
    fit = machine(1000);
    fit.sizes.groups[0].page_bytes = UINT64_MAX;
    assert_fails(frit_fit_context(&fit, &n_ctx), FRIT_E_MEMORY, "smaller context");
    fit = machine(1000);
    fit.n_ctx = INT32_MAX;
    fit.room.n_sessions = INT32_MAX;
    fit.sizes.groups[0].page_bytes = 0;
    assert_fails(frit_fit_context(&fit, &n_ctx), FRIT_E_MEMORY, "2147483647 tokens");
}

// ------------------------------------------------------------------------------- windows

typedef struct window_model {
    const char *name;
    int32_t n_layers, period, n_head_kv, dim, window;   // of `period` layers the last one has no window
    int32_t mib, full_mib;                              // of the cache at 32,768 tokens, f16
} window_model;

static const window_model window_models[] = {
    {"gemma-3-4b", 34, 6, 4, 256, 1024, 1118, 4352},
    {"gpt-oss-20b", 24, 2, 8, 64, 128, 804, 1536},
};

static uint64_t cache_mib(const window_model *model, bool full_windows)
{
    frit_cache_spec specs[64] = {{0}};
    for (int32_t i = 0; i < model->n_layers; i++)
        specs[i] = (frit_cache_spec){.kind = FRIT_CACHE_KV,
                                     .n_head_kv = model->n_head_kv,
                                     .k_dim = model->dim,
                                     .v_dim = model->dim,
                                     .window = i % model->period == model->period - 1 ? 0 : model->window};
    const frit_kv_shape shape = {.specs = specs,
                                 .n_layers = model->n_layers,
                                 .types = {FRIT_DTYPE_F16, FRIT_DTYPE_F16},
                                 .full_windows = full_windows};
    const frit_kv_room room = {.n_ctx = 32768, .n_sessions = 1, .n_rows = 2 * 512, .n_snapshots = 2};
    frit_kv_sizes sizes;
    frit_kv_measure(&shape, &sizes);
    return frit_kv_bytes(&sizes, &room) >> 20;
}

// The figures of docs/architecture.md.
static void windows_take_a_fraction_of_what_all_positions_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(window_models); i++) {
        const window_model *model = &window_models[i];
        const uint64_t mib = cache_mib(model, false), full = cache_mib(model, true);
        print_message("%s: %d MiB, all positions %d MiB\n", model->name, (int)mib, (int)full);
        assert_in_range(mib, (uint64_t)model->mib - 2, (uint64_t)model->mib + 2);
        assert_in_range(full, (uint64_t)model->full_mib, (uint64_t)model->full_mib + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_model_was_trained_for_is_the_default),
        cmocka_unit_test(less_memory_gives_the_largest_multiple_that_takes_half),
        cmocka_unit_test(what_was_asked_for_may_take_all_but_no_more),
        cmocka_unit_test(machines_without_any_room_are_refused),
        cmocka_unit_test(windows_take_a_fraction_of_what_all_positions_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
