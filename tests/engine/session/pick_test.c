// SPDX-License-Identifier: MIT
// Sampling in sessions: a token depends only on its session's text, the sampler and its position.
#include "support/engines.h"
#include "support/support.h"

#include "engine/model/model.h"

static const frit_engine_options engines[] = {{.cpu = "reference", .n_sessions = 4}, {.n_sessions = 4, .n_threads = 2}};

static void push(frit_session *session, const frit_token *tokens, size_t n)
{
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

// Samples the next n tokens of a session with these options.
static void sample_tokens(frit_session *session, const frit_sampler_options *options, frit_token *tokens, size_t n)
{
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, options));
    for (size_t i = 0; i < n; i++) assert_ok(frit_session_next(session, sampler, &tokens[i]));
    frit_sampler_free(sampler);
}

static void a_token_depends_on_its_place_not_on_what_was_sampled_before(void **state)
{
    (void)state;
    enum { SESSIONS = 3, LONG = 24 };
    const frit_sampler_options options = {.temp = 2, .top_k = 50, .top_p = 0.99f, .seed = 5};
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[e]);
        frit_session *sessions[SESSIONS];
        frit_sampler *samplers[SESSIONS];
        frit_token prompt[SESSIONS], alone[SESSIONS][LONG], token;
        int n_different = 0;
        for (int s = 0; s < SESSIONS; s++) {
            sessions[s] = make_session(engine);
            assert_ok(frit_sampler_create(&samplers[s], TINY_VOCAB, &options));
            prompt[s] = (frit_token)(3 + s);
            push(sessions[s], &prompt[s], 1);
            sample_tokens(sessions[s], &options, alone[s], LONG);
            // Again from some position, by another sampler: the tokens are the same.
            for (size_t from = LONG - 1; from > 0; from -= 7) {
                frit_token again[LONG];
                run_all(engine);   // including the last token
                assert_ok(frit_session_truncate(sessions[s], from));
                push(sessions[s], &alone[s][from - 1], 1);
                sample_tokens(sessions[s], &options, again, LONG - from);
                assert_memory_equal(again, alone[s] + from, (LONG - from) * sizeof *again);
                if (from < 7) break;
            }
            for (int i = 1; i < LONG; i++) n_different += alone[s][i] != alone[s][i - 1];
            assert_ok(frit_session_truncate(sessions[s], 0));
            push(sessions[s], &prompt[s], 1);
        }
        assert_true(n_different > LONG);
        // All sessions in the same steps.
        for (int i = 0; i < LONG; i++)
            for (int s = 0; s < SESSIONS; s++) {
                assert_ok(frit_session_next(sessions[s], samplers[s], &token));
                assert_int_equal(token, alone[s][i]);
            }
        for (int s = 0; s < SESSIONS; s++) frit_sampler_free(samplers[s]);
        frit_engine_free(engine);
        for (int s = 0; s < SESSIONS; s++) frit_session_free(sessions[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_depends_on_its_place_not_on_what_was_sampled_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
