// SPDX-License-Identifier: MIT
// The counts of a profiled engine.
#include "support/support.h"

#include "base/time.h"
#include "frit_tools.h"
#include "support/tiny_model.h"

typedef struct world {
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
} world;

static world make_world(const char *cpu, int32_t n_threads)
{
    world w;
    const frit_engine_options options = {.cpu = cpu, .n_threads = n_threads};
    assert_ok(frit_model_open(&w.model, tiny_model("profile.gguf", &(tiny_options){0}), NULL));
    assert_ok(frit_engine_new(&w.engine, w.model, &options));
    assert_ok(frit_session_new(&w.session, w.engine));
    return w;
}

static void free_world(world *w)
{
    frit_session_free(w->session);
    frit_engine_free(w->engine);
    frit_model_free(w->model);
}

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

// Every token has logits, so every row runs through every product. Returns the step's time in seconds.
static double step(world *w, size_t n_tokens)
{
    static const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = ignore_row};
    static const frit_token tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int32_t n_rows;
    assert_ok(frit_session_push(w->session, tokens, n_tokens, &all));
    uint64_t start = frit_time_ns();
    assert_ok(frit_engine_step(w->engine, &n_rows));
    return 1e-9 * (double)(frit_time_ns() - start);
}

static frit_profile_row sum_rows(const world *w, const char *op)
{
    frit_profile_row sum = {0}, row;
    for (size_t i = 0; frit_engine_get_profile(w->engine, i, &row); i++) {
        assert_true(row.run_s >= 0 && row.n_bytes >= 0 && row.n_ops >= 0);
        if (op && strncmp(row.op, op, strlen(op)) != 0) continue;
        sum.n_calls += row.n_calls;
        sum.run_s += row.run_s;
        sum.wait_s += row.wait_s;
        sum.n_bytes += row.n_bytes;
        sum.n_ops += row.n_ops;
    }
    return sum;
}

static void nothing_is_counted_unless_asked(void **state)
{
    (void)state;
    world w = make_world(NULL, 2);
    frit_profile_row row;
    step(&w, 3);
    assert_false(frit_engine_get_profile(w.engine, 0, &row));
    assert_ok(frit_engine_profile(w.engine, true));
    assert_false(frit_engine_get_profile(w.engine, 0, &row));
    step(&w, 1);
    assert_true(frit_engine_get_profile(w.engine, 0, &row));
    assert_ok(frit_engine_profile(w.engine, false));
    assert_false(frit_engine_get_profile(w.engine, 0, &row));
    step(&w, 1);
    free_world(&w);
}

static void the_rows_add_up_to_the_time_of_the_steps(void **state)
{
    (void)state;
    static const char *const cpus[] = {NULL, "scalar", "reference"};
    for (size_t c = 0; c < FRIT_COUNT(cpus); c++) {
        for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
            world w = make_world(cpus[c], n_threads);
            assert_ok(frit_engine_profile(w.engine, true));
            double seconds = step(&w, 8) + step(&w, 1) + step(&w, 4);
            frit_profile_row all = sum_rows(&w, NULL);
            assert_true(all.run_s > 0);
            assert_true(all.run_s + all.wait_s > 0 && all.run_s + all.wait_s <= seconds);
            assert_int_equal(sum_rows(&w, "start and end").n_calls, 3);
            free_world(&w);
        }
    }
}

static void products_count_their_weights_and_operations(void **state)
{
    (void)state;
    world w = make_world(NULL, 2);
    frit_model_info info;
    frit_model_get_info(w.model, &info);
    assert_ok(frit_engine_profile(w.engine, true));
    step(&w, 1);
    frit_profile_row one = sum_rows(&w, "linear");
    // The model's own counts include the vectors, which are small.
    assert_true(one.n_ops <= (double)info.ops_per_token && one.n_ops > 0.95 * (double)info.ops_per_token);
    assert_true(one.n_bytes <= (double)info.bytes_per_token && one.n_bytes > 0.95 * (double)info.bytes_per_token);
    // A prompt reads the weights once.
    assert_ok(frit_engine_profile(w.engine, true));
    step(&w, 8);
    frit_profile_row eight = sum_rows(&w, "linear");
    assert_true(eight.n_bytes == one.n_bytes);
    assert_true(eight.n_ops == 8 * one.n_ops);
    free_world(&w);
}

static void attention_counts_what_it_looks_back_at(void **state)
{
    (void)state;
    world w = make_world(NULL, 2);
    step(&w, 8);
    assert_ok(frit_engine_profile(w.engine, true));
    step(&w, 1);
    // 9 positions, 2 layers, 4 heads of 8 over 2 of keys and values in f16.
    frit_profile_row attend = sum_rows(&w, "attend");
    assert_true(attend.n_bytes == 9 * 2 * 2 * (8 + 8) * 2);
    assert_true(attend.n_ops == 9 * 2 * 4 * (8 + 8) * 2);
    free_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_unless_asked),
        cmocka_unit_test(the_rows_add_up_to_the_time_of_the_steps),
        cmocka_unit_test(products_count_their_weights_and_operations),
        cmocka_unit_test(attention_counts_what_it_looks_back_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
