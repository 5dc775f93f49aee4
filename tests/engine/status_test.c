// SPDX-License-Identifier: MIT
// The status of a session: one that fails does not disturb the others of its engine.
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit.h"

// The embedding of this token, in the middle of the table, contains a NaN: only sessions with this token fail.
enum { BAD = TINY_VOCAB / 2, GOOD = 5 };

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    frit_session *good, *bad;
    frit_sampler *sampler;
} fixture;

static fixture open_fixture(const char *cpu)
{
    fixture f;
    const frit_engine_options options = {.n_ctx = 64, .n_sessions = 2, .n_threads = 2, .cpu = cpu};
    assert_ok(frit_model_open(&f.model, tiny_model("a.gguf", &(tiny_options){.damaged = "token_embd.weight"}), NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_session_new(&f.good, f.engine));
    assert_ok(frit_session_new(&f.bad, f.engine));
    assert_ok(frit_sampler_new(&f.sampler, f.model, NULL));
    return f;
}

static void close_fixture(fixture *f)
{
    frit_sampler_free(f->sampler);
    frit_session_free(f->good);
    frit_session_free(f->bad);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static void push(frit_session *session, frit_token first, frit_token second)
{
    const frit_token tokens[] = {first, second};
    assert_ok(frit_session_push(session, tokens, 2, NULL));
}

static const char *const cpus[] = {"reference", NULL};

static void a_session_does_not_fail_for_another_one(void **state)
{
    (void)state;
    for (size_t c = 0; c < FRIT_COUNT(cpus); c++) {
        fixture f = open_fixture(cpus[c]);
        frit_token token = -1;
        push(f.bad, GOOD, BAD);
        push(f.good, GOOD, GOOD + 1);
        assert_ok(frit_session_next(f.good, f.sampler, &token));   // both sessions run in its steps
        assert_in_range(token, 0, TINY_VOCAB - 1);
        assert_ok(frit_session_status(f.good));
        assert_fails(frit_session_status(f.bad), FRIT_E_FORMAT, "a.gguf: the model's logits after token 1 are not");
        frit_fail_say("something else");
        assert_fails(frit_session_next(f.bad, f.sampler, &token), FRIT_E_FORMAT, "after token 1 are not finite");
        assert_fails(frit_session_status(f.bad), FRIT_E_FORMAT, "after token 1 are not finite");
        close_fixture(&f);
    }
}

static void a_failed_session_rests_until_it_is_truncated(void **state)
{
    (void)state;
    fixture f = open_fixture(NULL);
    frit_session *fork;
    frit_token token = GOOD;
    int32_t n_rows;
    size_t n;
    push(f.bad, GOOD, BAD);
    assert_ok(frit_engine_step(f.engine, &n_rows));
    assert_int_equal(n_rows, 2);
    assert_int_equal(frit_session_pending(f.bad), 0);
    assert_null(frit_session_logits(f.bad));
    assert_fails(frit_session_push(f.bad, &token, 1, NULL), FRIT_E_FORMAT, "not finite");
    assert_fails(frit_session_save(f.bad, temp_path("failed")), FRIT_E_FORMAT, "not finite");
    assert_fails(frit_session_save_memory(f.bad, NULL, 0, &n), FRIT_E_FORMAT, "not finite");
    assert_fails(frit_session_fork(&fork, f.bad), FRIT_E_FORMAT, "not finite");
    assert_int_equal(frit_session_length(f.bad), 2);
    assert_ok(frit_engine_step(f.engine, &n_rows));
    assert_int_equal(n_rows, 0);
    assert_ok(frit_session_truncate(f.bad, 0));
    assert_ok(frit_session_status(f.bad));
    push(f.bad, GOOD + 1, GOOD + 2);
    assert_ok(frit_session_next(f.bad, f.sampler, &token));
    close_fixture(&f);
}

typedef struct seen {
    size_t n, last;
} seen;

static void look(void *ctx, size_t i, const float *values, size_t n)
{
    seen *s = ctx;
    (void)values, (void)n;
    s->n++;
    s->last = i;
}

static void rows_end_where_a_session_fails(void **state)
{
    (void)state;
    fixture f = open_fixture(NULL);
    const frit_token tokens[] = {GOOD, GOOD + 1, BAD, GOOD, GOOD};
    const frit_token *rest = tokens + 2;
    seen bad = {0}, good = {0};
    const frit_push_options of_bad = {.output = FRIT_OUTPUT_ALL, .row = look, .row_ctx = &bad};
    const frit_push_options of_good = {.output = FRIT_OUTPUT_ALL, .row = look, .row_ctx = &good};
    assert_ok(frit_session_push(f.bad, tokens, 2, &of_bad));
    assert_ok(frit_session_push(f.good, tokens, 2, &of_good));
    assert_ok(frit_engine_step(f.engine, NULL));
    assert_ok(frit_session_push(f.bad, rest, 3, &of_bad));
    assert_ok(frit_engine_step(f.engine, NULL));
    assert_int_equal(good.n, 2);
    assert_int_equal(bad.n, 2);
    assert_int_equal(bad.last, 1);
    assert_fails(frit_session_status(f.bad), FRIT_E_FORMAT, "after token 2 are not finite");
    assert_ok(frit_session_truncate(f.bad, 5));   // clears the status; nothing waits, and no row function is called
                                                  // again
    assert_ok(frit_session_status(f.bad));
    assert_int_equal(frit_session_pending(f.bad), 0);
    assert_int_equal(bad.n, 2);
    close_fixture(&f);
}

// Pages of a failed session contain NaN; later owners do not see it.
static void a_failed_session_leaves_nothing_to_others(void **state)
{
    (void)state;
    for (size_t c = 0; c < FRIT_COUNT(cpus); c++) {
        fixture f = open_fixture(cpus[c]);
        frit_token bad[60], good[60], token;
        for (int i = 0; i < 60; i++) bad[i] = BAD, good[i] = GOOD + i % 20;
        for (size_t n = 1; n < 60; n += 7) {
            assert_ok(frit_session_push(f.bad, bad, 60, NULL));
            assert_ok(frit_engine_step(f.engine, NULL));
            assert_fails(frit_session_status(f.bad), FRIT_E_FORMAT, "not finite");
            assert_ok(frit_session_truncate(f.bad, 0));
            assert_ok(frit_session_push(f.good, good, n, NULL));
            for (int i = 0; i < 3; i++) assert_ok(frit_session_next(f.good, f.sampler, &token));
            assert_ok(frit_session_truncate(f.good, 0));
        }
        close_fixture(&f);
    }
}

static void ignore_vector(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    (void)item, (void)i, (void)values, (void)n;
    ++*(int *)ctx;
}

static void embedding_fails_for_its_own_items_only(void **state)
{
    (void)state;
    fixture f = open_fixture(NULL);
    const frit_token good[] = {GOOD, GOOD + 1}, bad[] = {GOOD, BAD};
    int n = 0;
    push(f.bad, GOOD, BAD);
    const frit_embed_item items[] = {{.tokens = good, .n_tokens = 2}, {.tokens = bad, .n_tokens = 2}};
    assert_ok(frit_embed_texts(f.engine, items, 1, NULL, ignore_vector, &n));
    assert_int_equal(n, 1);
    assert_fails(frit_embed_texts(f.engine, items, 2, NULL, ignore_vector, &n), FRIT_E_FORMAT, "not finite");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_does_not_fail_for_another_one),
        cmocka_unit_test(a_failed_session_rests_until_it_is_truncated),
        cmocka_unit_test(rows_end_where_a_session_fails),
        cmocka_unit_test(a_failed_session_leaves_nothing_to_others),
        cmocka_unit_test(embedding_fails_for_its_own_items_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
