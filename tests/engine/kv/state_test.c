// SPDX-License-Identifier: MIT
// Sessions of recurrent models: a state cannot be rolled back, so tokens run again. Each session has one state.
#include "frit.h"
#include "support/engines.h"
#include "support/support.h"

#include <math.h>

enum { N_TOKENS = 12, N_LONG = 160 };
static const frit_token tokens[N_TOKENS] = {5, 17, 99, 3, 64, 21, 8, 77, 30, 1, 50, 2};

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
} fixture;

static fixture open_golden(const char *name, frit_engine_options options)
{
    fixture f;
    assert_ok(frit_model_open(&f.model, shared_path("goldens/%s", name), NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    return f;
}

static fixture open_hybrid(int n_sessions)
{
    return open_golden("arch/jamba-dense.gguf",
                       (frit_engine_options){.n_ctx = 64, .n_sessions = n_sessions, .n_threads = 1});
}

static void close_hybrid(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
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
    run_all(f.engine);
    assert_ok(frit_session_push(astray, tokens, 3, NULL));
    run_all(f.engine);
    assert_ok(frit_session_truncate(astray, 7));
    assert_int_equal(frit_session_pending(astray), 7);
    assert_ok(frit_session_push(astray, tokens + 7, N_TOKENS - 7, NULL));
    run_all(f.engine);
    assert_int_equal(n_seen, 7);   // each result is delivered once
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
    run_all(f.engine);
    memcpy(before, frit_session_logits(s), sizeof before);
    assert_ok(frit_session_push(s, tokens + 5, 4, NULL));
    run_all(f.engine);
    assert_ok(frit_session_truncate(s, 5));
    run_all(f.engine);
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
    assert_ok(frit_session_push(second, tokens, 2, NULL));
    assert_ok(frit_engine_step(f.engine, NULL));
    assert_fails(frit_engine_step(f.engine, NULL), FRIT_E_LIMIT, "0 of 1 states are free");
    assert_int_equal(frit_session_pending(first), 0);
    assert_int_equal(frit_session_pending(second), 2);
    assert_ok(frit_session_truncate(first, 0));
    run_all(f.engine);
    assert_non_null(frit_session_logits(second));
    assert_ok(frit_session_push(first, tokens, 2, NULL));
    frit_session_free(second);
    run_all(f.engine);
    frit_session_free(first);
    close_hybrid(&f);
}

// ------------------------------------------------------------------------------- copies

static const char *const recurrent[] = {"arch/jamba-dense.gguf", "arch/qwen35-dense.gguf", "arch/lfm2-dense.gguf",
                                        "arch/kimi-linear-moe.gguf", "hf/rwkv"};

static void push_long(fixture *f, frit_session *s, size_t first, size_t n)
{
    frit_token text[N_LONG];
    for (size_t i = 0; i < n; i++) text[i] = tokens[(first + i) % N_TOKENS] + (frit_token)((first + i) / N_TOKENS);
    assert_ok(frit_session_push(s, text, n, NULL));
    run_all(f->engine);
}

static void expect_logits(const frit_session *s, const float *expected)
{
    assert_non_null(frit_session_logits(s));
    const double error = nmse(frit_session_logits(s), expected, 128);
    if (!(error < 1e-9)) fail_msg("NMSE %g", error);
}

// Snapshots after 64 and 128 tokens: at the beginning of a page, 16 tokens or more before the end of a push.
static void a_session_goes_back_to_the_last_copies(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * FRIT_COUNT(recurrent); i++) {
        const frit_engine_options options = {.n_ctx = 256,
                                             .n_threads = 2,
                                             .n_state_copies = 3,
                                             .no_prefix_cache = true,
                                             .cpu = i % 2 ? "reference" : NULL,
                                             .cache_type_k = "f32",
                                             .cache_type_v = "f32"};
        fixture f = open_golden(recurrent[i / 2], options);
        frit_session *s;
        float at_160[128], at_80[128];
        assert_ok(frit_session_new(&s, f.engine));
        push_long(&f, s, 0, 80);
        memcpy(at_80, frit_session_logits(s), sizeof at_80);
        assert_ok(frit_session_truncate(s, 0));
        push_long(&f, s, 0, N_LONG);
        memcpy(at_160, frit_session_logits(s), sizeof at_160);
        assert_ok(frit_session_truncate(s, 0));
        push_long(&f, s, 0, 100);
        push_long(&f, s, 100, 60);
        assert_ok(frit_session_truncate(s, 140));
        assert_int_equal(frit_session_pending(s), 140 - 128);
        push_long(&f, s, 140, 20);
        expect_logits(s, at_160);
        assert_ok(frit_session_truncate(s, 80));
        assert_int_equal(frit_session_pending(s), 80 - 64);
        run_all(f.engine);
        expect_logits(s, at_80);
        push_long(&f, s, 80, 80);   // a snapshot at 128 again
        expect_logits(s, at_160);
        assert_ok(frit_session_truncate(s, 129));
        assert_int_equal(frit_session_pending(s), 1);
        assert_ok(frit_session_truncate(s, 20));
        assert_int_equal(frit_session_pending(s), 20);
        frit_session_free(s);
        close_hybrid(&f);
    }
}

static void only_so_many_copies_are_kept_as_options_say(void **state)
{
    (void)state;
    static const struct {
        int32_t n;
        size_t pending[3];   // after truncating to 180, 116 and 52, with pushes of 64
    } rows[] = {{-1, {180, 116, 52}}, {1, {20, 116, 52}}, {2, {20, 20, 52}}, {0, {20, 20, 52}}, {3, {20, 20, 20}}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        fixture f =
            open_golden("arch/jamba-dense.gguf", (frit_engine_options){.n_ctx = 256, .n_state_copies = rows[i].n});
        frit_session *s;
        assert_ok(frit_session_new(&s, f.engine));
        for (size_t k = 0; k < 3; k++) push_long(&f, s, 64 * k, 64);
        for (size_t k = 0; k < 3; k++) {
            assert_ok(frit_session_truncate(s, 180 - 64 * k));
            assert_int_equal(frit_session_pending(s), rows[i].pending[k]);
            run_all(f.engine);
        }
        frit_session_free(s);
        close_hybrid(&f);
    }
    fixture f = open_hybrid(1);
    frit_engine *engine;
    assert_fails(frit_engine_new(&engine, f.model, &(frit_engine_options){.n_state_copies = 9}), FRIT_E_INVALID,
                 "state-copies");
    close_hybrid(&f);
}

static void copies_are_saved_with_a_session(void **state)
{
    (void)state;
    fixture f =
        open_golden("arch/jamba-dense.gguf", (frit_engine_options){.n_ctx = 256, .n_sessions = 2, .n_state_copies = 3});
    frit_session *a, *b;
    float at_160[128];
    assert_ok(frit_session_new(&a, f.engine));
    assert_ok(frit_session_new(&b, f.engine));
    push_long(&f, b, 20, 80);   // its state has another number than the saved session's
    push_long(&f, a, 0, 100);
    push_long(&f, a, 100, 60);
    memcpy(at_160, frit_session_logits(a), sizeof at_160);
    assert_ok(frit_session_save(a, temp_path("copies")));
    assert_ok(frit_session_load(b, temp_path("copies")));
    assert_ok(frit_session_truncate(b, 140));
    assert_int_equal(frit_session_pending(b), 140 - 128);
    push_long(&f, b, 140, 20);
    expect_logits(b, at_160);
    assert_ok(frit_session_truncate(b, 80));
    assert_int_equal(frit_session_pending(b), 80 - 64);
    frit_session_free(a);
    frit_session_free(b);
    close_hybrid(&f);
    f = open_golden("arch/jamba-dense.gguf",
                    (frit_engine_options){.n_ctx = 256, .n_state_copies = 1});   // room for the last one
    assert_ok(frit_session_new(&a, f.engine));
    assert_ok(frit_session_load(a, temp_path("copies")));
    assert_ok(frit_session_truncate(a, 140));
    assert_int_equal(frit_session_pending(a), 140 - 128);
    assert_ok(frit_session_truncate(a, 80));
    assert_int_equal(frit_session_pending(a), 80);
    frit_session_free(a);
    close_hybrid(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_runs_again_and_gives_the_same),
        cmocka_unit_test(a_truncated_session_gets_its_logits_back),
        cmocka_unit_test(a_session_holds_a_state_until_it_is_emptied),
        cmocka_unit_test(a_session_goes_back_to_the_last_copies),
        cmocka_unit_test(only_so_many_copies_are_kept_as_options_say),
        cmocka_unit_test(copies_are_saved_with_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
