// SPDX-License-Identifier: MIT
// Models whose tokens see all others: a session's rows run in one step, even with a small n_batch, and run again
// whenever rows are added.
#include "arch/golden.h"
#include "support/engines.h"

typedef struct rows {
    float *values;   // [n, width]
    size_t n, width;
} rows;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    rows *r = ctx;
    r->width = n;
    memcpy(r->values + i * n, values, n * sizeof *values);
    r->n++;
}

typedef struct fixture {
    golden g;
    frit_output output;
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    rows rows;
} fixture;

static fixture open_golden(const char *name, int32_t n_batch)
{
    fixture f = {0};
    size_t i = 0;
    while (strcmp(golden_name(i), name) != 0) i++;
    f.g = golden_load(i);
    f.output = golden_output(golden_get(i));
    const frit_engine_options options = {
        .n_ctx = 64, .n_sessions = 3, .n_batch = n_batch, .cache_type_k = "f32", .cache_type_v = "f32"};
    assert_ok(frit_model_open(&f.model, f.g.path, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_session_new(&f.session, f.engine));
    f.rows.values = calloc(f.g.n_tokens * f.g.n_vocab, sizeof *f.rows.values);
    return f;
}

static void close_golden(fixture *f)
{
    frit_session_free(f->session);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    free(f->rows.values);
    golden_free(&f->g);
}

static void push(fixture *f, size_t begin, size_t end)
{
    assert_ok(frit_session_push(f->session, f->g.tokens + begin, end - begin,
                                &(frit_push_options){.output = f->output, .row = keep_row, .row_ctx = &f->rows}));
}

static const char *const models[] = {"bert", "modernbert", "dream-dense", "rnd1-moe"};

static void more_rows_than_a_batch_run_in_one_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) {
        fixture f = open_golden(models[i], 8);
        frit_engine_info info;
        int32_t n_rows;
        push(&f, 0, f.g.n_tokens);
        assert_ok(frit_engine_step(f.engine, &n_rows));
        assert_int_equal(n_rows, f.g.n_tokens);
        assert_int_equal(frit_session_pending(f.session), 0);
        assert_true(nmse(f.rows.values, f.g.logits, f.g.n_tokens * f.g.n_vocab) <= 1e-6);
        frit_engine_get_info(f.engine, &info);
        assert_in_range(info.n_batch, f.g.n_tokens, 64);
        close_golden(&f);
    }
}

static void what_waits_runs_with_what_follows(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) {
        fixture f = open_golden(models[i], 16);
        rows first = {.values = calloc(f.g.n_tokens * f.g.n_vocab, sizeof(float))};
        const frit_push_options options = {.output = f.output, .row = keep_row, .row_ctx = &first};
        assert_ok(frit_session_push(f.session, f.g.tokens, 10, &options));
        push(&f, 10, f.g.n_tokens);
        run_all(f.engine);
        const size_t n = f.g.n_vocab;
        assert_true(nmse(first.values, f.g.logits, 10 * n) <= 1e-6);
        assert_true(nmse(f.rows.values, f.g.logits + 10 * n, (f.g.n_tokens - 10) * n) <= 1e-6);
        free(first.values);
        close_golden(&f);
    }
}

static void further_tokens_make_all_run_again_without_results(void **state)
{
    (void)state;
    fixture f = open_golden("dream-dense", 0);
    const size_t half = f.g.n_tokens / 2;
    push(&f, 0, half);
    run_all(f.engine);
    assert_int_equal(f.rows.n, half);
    assert_ok(frit_session_push(f.session, f.g.tokens + half, f.g.n_tokens - half, NULL));
    assert_int_equal(frit_session_pending(f.session), f.g.n_tokens);
    run_all(f.engine);
    assert_int_equal(f.rows.n, half);
    const float *last = frit_session_logits(f.session);
    assert_non_null(last);
    assert_true(nmse(last, f.g.logits + (f.g.n_tokens - 1) * f.g.n_vocab, f.g.n_vocab) <= 1e-6);
    // Fewer tokens: the remaining ones have seen the others.
    assert_ok(frit_session_truncate(f.session, half));
    assert_int_equal(frit_session_pending(f.session), half);
    run_all(f.engine);
    last = frit_session_logits(f.session);
    assert_non_null(last);
    assert_true(nmse(last, f.rows.values + (half - 1) * f.g.n_vocab, f.g.n_vocab) <= 1e-10);
    close_golden(&f);
}

static void sessions_share_steps_whole(void **state)
{
    (void)state;
    fixture f = open_golden("bert", 64);
    frit_session *others[2];
    const frit_push_options none = {.output = FRIT_OUTPUT_NONE};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(frit_session_new(&others[i], f.engine));
        assert_ok(frit_session_push(others[i], f.g.tokens + i, 20, &none));
    }
    push(&f, 0, f.g.n_tokens);
    int32_t n_rows;
    assert_ok(frit_engine_step(f.engine, &n_rows));
    assert_true(n_rows == 40 || n_rows == (int32_t)f.g.n_tokens);   // 88 do not fit
    run_all(f.engine);
    assert_true(nmse(f.rows.values, f.g.logits, f.g.n_tokens * f.g.n_vocab) <= 1e-6);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(frit_session_pending(others[i]), 0);
        frit_session_free(others[i]);
    }
    close_golden(&f);
}

static void what_cannot_run_together_is_refused(void **state)
{
    (void)state;
    fixture f = open_golden("dream-dense", 0);
    push(&f, 0, 4);
    const frit_push_options hidden = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = keep_row, .row_ctx = &f.rows};
    assert_fails(frit_session_push(f.session, f.g.tokens, 4, &hidden), FRIT_E_INVALID, "must run in one step");
    assert_int_equal(frit_session_length(f.session), 4);
    close_golden(&f);
    f = open_golden("bert", 0);
    assert_fails(frit_session_push(f.session, f.g.tokens, 4, NULL), FRIT_E_UNSUPPORTED, "an encoder has no logits");
    close_golden(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_rows_than_a_batch_run_in_one_step),
        cmocka_unit_test(what_waits_runs_with_what_follows),
        cmocka_unit_test(further_tokens_make_all_run_again_without_results),
        cmocka_unit_test(sessions_share_steps_whole),
        cmocka_unit_test(what_cannot_run_together_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
