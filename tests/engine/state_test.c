// SPDX-License-Identifier: MIT
// Sessions of recurrent models: a state cannot be shortened, so what is kept runs again; each session holds one.
#include "frit.h"
#include "support/support.h"

#include <math.h>

enum { N_TOKENS = 12 };
static const frit_token tokens[N_TOKENS] = {5, 17, 99, 3, 64, 21, 8, 77, 30, 1, 50, 2};

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
} fixture;

static fixture open_hybrid(int n_sessions)
{
    fixture f;
    assert_ok(frit_model_open(&f.model, shared_path("goldens/arch/jamba-dense.gguf"), NULL));
    const frit_engine_options options = {.n_ctx = 64, .n_sessions = n_sessions, .n_threads = 1};
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    return f;
}

static void close_hybrid(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static void run(fixture *f)
{
    int32_t n_rows;
    do assert_ok(frit_engine_step(f->engine, &n_rows));
    while (n_rows > 0);
}

static void count_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)i, (void)values, (void)n;
    ++*(int *)ctx;
}

static void what_is_kept_runs_again_and_gives_the_same(void **state)
{
    (void)state;
    fixture f = open_hybrid(2);
    frit_session *straight, *astray;
    int n_seen = 0;
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = count_row, .row_ctx = &n_seen};
    assert_ok(frit_session_new(&straight, f.engine));
    assert_ok(frit_session_new(&astray, f.engine));
    assert_ok(frit_session_push(straight, tokens, N_TOKENS, NULL));
    assert_ok(frit_session_push(astray, tokens, 7, &all));
    run(&f);
    assert_ok(frit_session_push(astray, tokens, 3, NULL));
    run(&f);
    assert_ok(frit_session_truncate(astray, 7));
    assert_int_equal(frit_session_pending(astray), 7);
    assert_ok(frit_session_push(astray, tokens + 7, N_TOKENS - 7, NULL));
    run(&f);
    assert_int_equal(n_seen, 7);   // results are handed out once
    const float *expected = frit_session_logits(straight), *found = frit_session_logits(astray);
    assert_non_null(expected);
    assert_non_null(found);
    assert_true(nmse(found, expected, 128) < 1e-10);
    frit_session_free(straight);
    frit_session_free(astray);
    close_hybrid(&f);
}

static void a_truncated_session_gets_its_logits_back(void **state)
{
    (void)state;
    fixture f = open_hybrid(1);
    frit_session *s;
    float before[128];
    assert_ok(frit_session_new(&s, f.engine));
    assert_ok(frit_session_push(s, tokens, 5, NULL));
    run(&f);
    memcpy(before, frit_session_logits(s), sizeof before);
    assert_ok(frit_session_push(s, tokens + 5, 4, NULL));
    run(&f);
    assert_ok(frit_session_truncate(s, 5));
    run(&f);
    assert_non_null(frit_session_logits(s));
    assert_true(nmse(frit_session_logits(s), before, 128) < 1e-10);
    frit_session_free(s);
    close_hybrid(&f);
}

static void a_session_holds_a_state_until_it_is_emptied(void **state)
{
    (void)state;
    fixture f = open_hybrid(1);
    frit_session *first, *second;
    assert_ok(frit_session_new(&first, f.engine));
    assert_ok(frit_session_new(&second, f.engine));
    assert_ok(frit_session_push(first, tokens, 2, NULL));
    assert_fails(frit_session_push(second, tokens, 2, NULL), FRIT_E_LIMIT, "states of 1 sessions");
    assert_ok(frit_session_truncate(first, 0));
    assert_ok(frit_session_push(second, tokens, 2, NULL));
    run(&f);
    frit_session_free(second);
    assert_ok(frit_session_push(first, tokens, 2, NULL));
    frit_session_free(first);
    close_hybrid(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_runs_again_and_gives_the_same),
        cmocka_unit_test(a_truncated_session_gets_its_logits_back),
        cmocka_unit_test(a_session_holds_a_state_until_it_is_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
