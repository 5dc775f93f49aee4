// SPDX-License-Identifier: MIT
// The choice of a context, for invented machines.
#include "support/support.h"

#include "engine/placement/fit.h"

static char last[FRIT_ERROR_BYTES];
static frit_log_level last_level;

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (last[0] && level > last_level) return;   // the most serious
    snprintf(last, sizeof last, "%s", sentence);
    last_level = level;
}

// 1024 tokens take 32 pages of 1 MiB, or of half a MiB in q8_0.
static frit_fit machine(uint64_t n_mib)
{
    static const frit_log log = {remember, NULL};
    last[0] = 0;
    return (frit_fit){.path = "m.gguf",
                      .log = &log,
                      .n_ctx_train = 8192,
                      .types = {{FRIT_DTYPE_F16, FRIT_DTYPE_F16}, {FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q8_0}},
                      .n_types = 1,
                      .room = {.n_sessions = 1},
                      .memories = {{.device = "cpu",
                                    .n_layers = 12,
                                    .sizes = {{.n_groups = 1, .groups = {{.page_bytes = 1 << 20}}},
                                              {.n_groups = 1, .groups = {{.page_bytes = 1 << 19}}}},
                                    .weight_bytes = 60 << 20,
                                    .mapped_bytes = 40 << 20,
                                    .available = n_mib << 20}},
                      .n_memories = 1};
}

static frit_fit_choice choose(frit_fit fit)
{
    frit_fit_choice choice = {-1, -1};
    assert_ok(frit_fit_choose(&fit, &choice));
    frit_fit_tell(&fit, choice);
    return choice;
}

static int32_t context_of(frit_fit fit)
{
    return choose(fit).n_ctx;
}

static void what_the_model_was_trained_for_is_the_default(void **state)
{
    (void)state;
    assert_int_equal(context_of(machine(100 + 512)), 8192);
    assert_int_equal(last_level, FRIT_LOG_INFO);
    frit_fit unknown = machine(10000);
    unknown.n_ctx_train = 0;
    assert_int_equal(context_of(unknown), 4096);
    frit_fit odd = machine(10000);
    odd.n_ctx_train = 777;
    assert_int_equal(context_of(odd), 777);
}

static void less_memory_gives_the_largest_multiple_that_takes_half(void **state)
{
    (void)state;
    assert_int_equal(context_of(machine(100 + 511)), 7168);
    assert_int_equal(last_level, FRIT_LOG_WARNING);
    assert_string_equal(last, "m.gguf: to fit into memory, the context is 7168 tokens of 8192: cpu needs 324.0 MiB "
                              "of 611.0 MiB that are free");
    assert_int_equal(context_of(machine(100 + 64)), 1024);
    assert_int_equal(context_of(machine(100 + 63)), 31 * 32);
    assert_int_equal(context_of(machine(100 + 2)), 32);
    assert_int_equal(context_of(machine(100 + 1)), 32);   // with nothing to spare
    frit_fit two = machine(100 + 512);
    two.room.n_sessions = 2;
    assert_int_equal(context_of(two), 4096);
    frit_fit scratch = machine(100 + 512);
    scratch.memories[0].scratch_bytes = 10 << 20;
    assert_int_equal(context_of(scratch), 7168);
}

static void what_was_asked_for_may_take_all_but_no_more(void **state)
{
    (void)state;
    frit_fit fit = machine(100 + 64);
    fit.n_ctx = 2048;
    assert_int_equal(context_of(fit), 2048);
    fit.n_ctx = 2049;
    frit_fit_choice choice;
    assert_fails(
        frit_fit_choose(&fit, &choice), FRIT_E_MEMORY,
        "m.gguf: does not fit into the memory of cpu: a context of 2049 tokens for 1 session needs 165.0 MiB "
        "(weights 100.0 MiB, cache 65.0 MiB, scratch 0.0 MiB), 164.0 MiB are free; a context of 2048 tokens fits with "
        "cached keys in f16; types of fewer bits leave more");
    assert_int_equal(choice.n_ctx, 2049);
    fit.n_ctx = 100000000;
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "needs 3.0 TiB (weights 100.0 MiB, cache 3.0 TiB");
    fit = machine(100 + 10000);
    fit.n_ctx = 9000;
    assert_int_equal(context_of(fit), 9000);
    assert_non_null(strstr(last, "longer than the 8192"));
}

static void the_cache_is_narrowed_where_that_gives_a_useful_context(void **state)
{
    (void)state;
    frit_fit fit = machine(100 + 256);   // f16: 4096 tokens in half of it
    fit.n_types = 2;
    frit_fit_choice choice = choose(fit);
    assert_int_equal(choice.types, 0);
    assert_int_equal(choice.n_ctx, 4096);
    fit = machine(100 + 255);
    fit.n_types = 2;
    choice = choose(fit);
    assert_int_equal(choice.types, 1);
    assert_int_equal(choice.n_ctx, 7168);
    assert_non_null(
        strstr(last, "7168 tokens of 8192, cached keys and values are q8_0: cpu needs 212.0 MiB of 355.0 MiB"));
    fit.n_ctx = 8000;   // f16 would need 250 MiB
    choice = choose(fit);
    assert_int_equal(choice.types, 0);
    fit.n_ctx = 8192;
    choice = choose(fit);
    assert_int_equal(choice.types, 1);
    assert_int_equal(choice.n_ctx, 8192);
    // Without keys and values types make no difference.
    fit = machine(100 + 1);
    fit.n_types = 2;
    fit.memories[0].sizes[0] = fit.memories[0].sizes[1] = (frit_kv_sizes){0};
    assert_int_equal(choose(fit).types, 0);
}

static void every_memory_must_have_room(void **state)
{
    (void)state;
    frit_fit fit = machine(100 + 10000);
    fit.memories[1] = fit.memories[0];
    fit.memories[0].device = "gpu";
    fit.memories[0].available = (100 + 128) << 20;
    fit.n_memories = 2;
    fit.places_auto = true;
    assert_int_equal(context_of(fit), 2048);
    assert_non_null(strstr(last,
                           "12 layers run on gpu and 12 on cpu: gpu needs 164.0 MiB of 228.0 MiB that are free, cpu "
                           "needs 164.0 MiB of 9.9 GiB"));
    fit.n_ctx = 5000;
    frit_fit_choice choice;
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "does not fit into the memory of gpu");
}

static void nothing_is_chosen_or_refused_where_fit_is_off(void **state)
{
    (void)state;
    frit_fit fit = machine(1);
    fit.off = true;
    fit.n_types = 2;
    assert_int_equal(context_of(fit), 8192);
    assert_int_equal(last_level, FRIT_LOG_INFO);
    fit.n_ctx = 123456;
    const frit_fit_choice choice = choose(fit);
    assert_int_equal(choice.n_ctx, 123456);
    assert_int_equal(choice.types, 0);
}

static void machines_without_any_room_are_refused(void **state)
{
    (void)state;
    frit_fit_choice choice;
    frit_fit fit = machine(50);   // not even the weights
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "a context of 32 tokens for 1 session needs 101.0 MiB");
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "weights of a smaller type");
    fit = machine(1000);
    fit.memories[0].sizes[0].groups[0].page_bytes = UINT64_MAX;
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "weights of a smaller type");
    fit = machine(1000);
    fit.n_ctx = INT32_MAX;
    fit.room.n_sessions = INT32_MAX;
    fit.memories[0].sizes[0].groups[0].page_bytes = 0;
    assert_fails(frit_fit_choose(&fit, &choice), FRIT_E_MEMORY, "2147483647 tokens");
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

// The figures of docs/dev/architecture.md.
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
        cmocka_unit_test(the_cache_is_narrowed_where_that_gives_a_useful_context),
        cmocka_unit_test(every_memory_must_have_room),
        cmocka_unit_test(nothing_is_chosen_or_refused_where_fit_is_off),
        cmocka_unit_test(machines_without_any_room_are_refused),
        cmocka_unit_test(windows_take_a_fraction_of_what_all_positions_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
