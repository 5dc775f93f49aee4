// SPDX-License-Identifier: MIT
// Tokens, contexts and calls that sessions refuse, and stay usable after it; damaged weights and files.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"

#include <unistd.h>

enum { N = 50 };   // tokens of the usual text

// Both ways to compute: plain code with f32 caches, and the best kernels.
static const frit_engine_options engines[] = {{.cpu = "reference", .n_sessions = 4}, {.n_sessions = 4, .n_threads = 2}};

static void push(frit_session *session, const frit_token *tokens, size_t n)
{
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

static void bad_tokens_queue_nothing(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    frit_session *session = make_session(engine);
    const frit_token high[] = {1, 2, TINY_VOCAB}, negative[] = {-1};
    assert_fails(frit_session_push(session, high, 3, NULL), FRIT_E_INVALID,
                 "token 2 of 3 is 64, this model's ids are 0 to 63");
    assert_fails(frit_session_push(session, negative, 1, NULL), FRIT_E_INVALID, "token 0 of 1 is -1");
    assert_fails(frit_session_push(session, high, 2, &(frit_push_options){.output = FRIT_OUTPUT_ALL}), FRIT_E_INVALID,
                 "row function");
    assert_fails(frit_session_push(session, high, 2, &(frit_push_options){.output = (frit_output)9}), FRIT_E_INVALID,
                 "output 9");
    assert_int_equal(frit_session_length(session), 0);
    assert_fails(frit_session_truncate(session, 1), FRIT_E_INVALID, "0 tokens cannot be truncated to 1");
    frit_session_free(session);
    frit_engine_free(engine);
}

static void a_full_context_is_refused_and_stays_usable(void **state)
{
    (void)state;
    frit_engine_options options = engines[1];
    options.n_ctx = 40;
    options.n_sessions = 1;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_token tokens[N], token = -1;
    make_tokens(3, tokens, N, TINY_VOCAB);
    frit_session *session = make_session(engine);
    assert_fails(frit_session_push(session, tokens, 41, NULL), FRIT_E_LIMIT, "its context is 40");
    push(session, tokens, 38);
    frit_sampler *sampler;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, NULL));
    assert_ok(frit_session_next(session, sampler, &token));
    assert_ok(frit_session_next(session, sampler, &token));
    token = -5;
    assert_fails(frit_session_next(session, sampler, &token), FRIT_E_LIMIT, "context of 40 tokens is full");
    assert_int_equal(token, -5);
    assert_non_null(frit_session_logits(session));
    assert_fails(frit_session_push(session, tokens, 1, NULL), FRIT_E_LIMIT, "holds 40");
    assert_ok(frit_session_truncate(session, 39));
    push(session, tokens, 1);
    run_all(engine);
    assert_non_null(frit_session_logits(session));
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void sessions_share_the_pages_that_there_are(void **state)
{
    (void)state;
    frit_engine_options options = {.cpu = "reference", .n_ctx = 96, .n_sessions = 1, .no_prefix_cache = true};
    frit_engine *engine = tiny_engine(&(tiny_options){0}, options);
    frit_token tokens[96];
    make_tokens(3, tokens, 96, TINY_VOCAB);
    frit_session *a = make_session(engine), *b = make_session(engine), *c = make_session(engine);
    push(a, tokens, 33);
    push(b, tokens, 32);
    run_all(engine);
    push(c, tokens, 1);
    push(b, tokens, 1);
    assert_fails(frit_engine_step(engine, NULL), FRIT_E_LIMIT,
                 "2 sessions wait for room in it, and no other one runs: 0 of 3 pages");
    assert_int_equal(frit_session_pending(c), 1);
    assert_ok(frit_session_truncate(a, 32));   // a page for one of them
    assert_ok(frit_engine_step(engine, NULL));
    assert_int_equal(frit_session_pending(b) + frit_session_pending(c), 1);
    frit_session_free(a);
    run_all(engine);
    assert_non_null(frit_session_logits(b));
    assert_non_null(frit_session_logits(c));
    frit_session_free(b);
    frit_session_free(c);
    frit_engine_free(engine);
}

static void sampling_needs_logits(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    frit_session *session = make_session(engine);
    frit_sampler *sampler, *other;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, NULL));
    assert_ok(frit_sampler_create(&other, TINY_VOCAB + 1, NULL));
    frit_token token = 7;
    assert_fails(frit_session_next(session, sampler, &token), FRIT_E_INVALID, "the session is empty");
    assert_ok(frit_session_push(session, &token, 1, &(frit_push_options){.output = FRIT_OUTPUT_NONE}));
    assert_fails(frit_session_next(session, sampler, &token), FRIT_E_INVALID, "asked for no logits");
    push(session, &token, 1);
    assert_fails(frit_session_next(session, other, &token), FRIT_E_INVALID, "for 65 tokens, the model has 64");
    assert_ok(frit_session_next(session, sampler, &token));
    assert_int_equal(sampler->counts[token], 1);
    frit_sampler_free(sampler);
    frit_sampler_free(other);
    frit_session_free(session);
    frit_engine_free(engine);
}

typedef struct meddling {
    frit_engine *engine;
    frit_session *session;
    int n;
} meddling;

static void meddle(void *ctx, size_t i, const float *values, size_t n)
{
    (void)i, (void)values, (void)n;
    meddling *m = ctx;
    const frit_token token = 1;
    int32_t n_rows;
    frit_session *session;
    assert_fails(frit_session_push(m->session, &token, 1, NULL), FRIT_E_INVALID, "row function");
    assert_fails(frit_session_truncate(m->session, 0), FRIT_E_INVALID, "row function");
    assert_fails(frit_engine_step(m->engine, &n_rows), FRIT_E_INVALID, "row function");
    assert_fails(frit_session_new(&session, m->engine), FRIT_E_INVALID, "row function");
    m->n++;
}

static void row_functions_may_not_change_sessions(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[0]);
    meddling m = {engine, make_session(engine), 0};
    const frit_token tokens[] = {1, 2, 3};
    assert_ok(frit_session_push(m.session, tokens, 3,
                                &(frit_push_options){.output = FRIT_OUTPUT_ALL, .row = meddle, .row_ctx = &m}));
    run_all(engine);
    assert_int_equal(m.n, 3);
    frit_session_free(m.session);
    frit_engine_free(engine);
}

static void damaged_weights_are_named(void **state)
{
    (void)state;
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_model *model = load_tiny(&(tiny_options){.damaged = "output.weight"});
        frit_engine *engine = make_engine(model, engines[e]);
        frit_session *session = make_session(engine);
        const frit_token tokens[] = {1, 2, 3};
        push(session, tokens, 3);
        int32_t n_rows;
        assert_ok(frit_engine_step(engine, &n_rows));
        assert_fails(frit_session_status(session), FRIT_E_FORMAT, "logits after token 2 are not finite");
        assert_non_null(strstr(frit_error(), "tiny.gguf"));
        assert_null(frit_session_logits(session));
        assert_int_equal(frit_session_pending(session), 0);
        frit_session_free(session);
        frit_engine_free(engine);
        frit_model_free(model);
    }
}

static void a_file_that_shrinks_is_noticed(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", tiny_model("shrinks.gguf", &(tiny_options){0}));
    frit_model *model = NULL;
    assert_ok(frit_model_open(&model, path, NULL));
    frit_engine *engine = make_engine(model, engines[0]);
    frit_session *session = make_session(engine);
    const frit_token token = 1;
    push(session, &token, 1);
    assert_int_equal(truncate(path, 1000), 0);
    int32_t n_rows;
    assert_fails(frit_engine_step(engine, &n_rows), FRIT_E_IO, "shrinks.gguf: the file shrank from");
    assert_non_null(strstr(frit_error(), "to 1000 bytes while in use"));
    assert_int_equal(frit_session_pending(session), 1);
    frit_session_free(session);
    frit_engine_free(engine);
    assert_fails(frit_engine_new(&engine, model, NULL), FRIT_E_IO, "to 1000 bytes while in use");
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_tokens_queue_nothing),
        cmocka_unit_test(a_full_context_is_refused_and_stays_usable),
        cmocka_unit_test(sessions_share_the_pages_that_there_are),
        cmocka_unit_test(sampling_needs_logits),
        cmocka_unit_test(row_functions_may_not_change_sessions),
        cmocka_unit_test(damaged_weights_are_named),
        cmocka_unit_test(a_file_that_shrinks_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
