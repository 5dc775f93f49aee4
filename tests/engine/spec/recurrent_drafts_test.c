// SPDX-License-Identifier: MIT
// Drafts of recurrent models: the text equals the text without drafts, and a state that has seen refused drafts is
// restored.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "engine/spec/speculate.h"

enum { N_PROMPT = 40, N_TEXT = 80, MAX_VOCAB = 512, MAX_DRAFTS = 5 };

static const char *const models[] = {"arch/jamba-dense.gguf", "arch/qwen35-dense.gguf", "arch/lfm2-dense.gguf",
                                     "arch/kimi-linear-moe.gguf", "hf/rwkv"};

static const frit_engine_options engines[] = {
    {.n_ctx = 256, .n_threads = 1, .n_sessions = 3, .cpu = "reference"},
    {.n_ctx = 256, .n_threads = 2, .n_sessions = 3, .deterministic = true, .n_state_copies = 1},
    {.n_ctx = 256, .n_threads = 2, .n_sessions = 3, .deterministic = true, .n_batch = 7, .no_prefix_cache = true},
};

static const frit_sampler_options samplers[] = {
    {.temp = 0},
    {.temp = 0.8f, .top_k = 20, .seed = 5},
    {.temp = 1, .repeat_penalty = 1.1f, .seed = 9},
};

static void push_prompt(frit_session *session, int seed)
{
    frit_token prompt[N_PROMPT];
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = 5 + (i * i + seed) % 11;
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
}

// Computes the last token's logits in a session that has never seen a draft.
static void straight_logits(frit_engine *engine, const frit_token *tokens, size_t n, float *logits)
{
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    for (size_t i = 0; i < n; i++) {
        assert_ok(frit_session_push(session, &tokens[i], 1, NULL));
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    }
    assert_non_null(frit_session_logits(session));
    memcpy(logits, frit_session_logits(session), (size_t)engine->hp.n_vocab * sizeof *logits);
    frit_session_free(session);
}

static void expect_state(frit_session *session)
{
    float logits[MAX_VOCAB];
    const size_t n = frit_session_length(session);
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(session->engine, NULL));
    straight_logits(session->engine, frit_session_tokens(session), n, logits);
    assert_non_null(frit_session_logits(session));
    const double error = nmse(frit_session_logits(session), logits, (size_t)session->engine->hp.n_vocab);
    if (!(error < 1e-9)) fail_msg("after %zu tokens: NMSE %g", n, error);
}

// `expected` is the prediction, in which every seventh token is changed; NULL: no drafts.
static void generate(frit_session *session, const frit_sampler_options *options, const frit_token *expected,
                     frit_token *tokens)
{
    frit_sampler *sampler;
    frit_token guess[N_TEXT];
    const int32_t n_vocab = session->engine->hp.n_vocab;
    assert_ok(frit_sampler_create(&sampler, n_vocab, options));
    for (int i = 0; expected && i < N_TEXT; i++) guess[i] = i % 7 == 6 ? (expected[i] + 1) % n_vocab : expected[i];
    for (size_t n = 0, n_more = 0; n < N_TEXT; n += n_more) {
        if (expected) assert_ok(frit_session_predict(session, guess + n, N_TEXT - n));
        assert_ok(frit_session_next_tokens(session, sampler, tokens + n, N_TEXT - n, &n_more));
        assert_true(n_more >= 1 && frit_session_pending(session) <= 1 + MAX_DRAFTS);   // few tokens run again
        assert_memory_equal(frit_session_tokens(session) + N_PROMPT, tokens, (n + n_more) * sizeof *tokens);
        if (expected && n / 20 != (n + n_more) / 20) expect_state(session);
    }
    frit_sampler_free(sampler);
}

static void texts_and_states_are_those_without_drafts(void **state)
{
    (void)state;
    const frit_speculate_options speculate = {.always = true, .max_drafts = MAX_DRAFTS};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
            frit_engine *engine = load_engine(shared_path("goldens/%s", models[m]), engines[e]);
            for (size_t i = 0; i < FRIT_COUNT(samplers); i++) {
                frit_token plain[N_TEXT], drafted[N_TEXT];
                frit_speculation_info info;
                frit_session *a, *b;
                assert_ok(frit_session_new(&a, engine));
                push_prompt(a, (int)i);
                generate(a, &samplers[i], NULL, plain);
                frit_session_free(a);
                assert_ok(frit_session_new(&b, engine));
                push_prompt(b, (int)i);
                assert_ok(frit_session_speculate(b, &speculate));
                generate(b, &samplers[i], plain, drafted);
                assert_ok(frit_session_get_speculation(b, &info));
                for (int k = 0; k < N_TEXT; k++)
                    if (plain[k] != drafted[k]) fail_msg("%s: token %d differs", models[m], k);
                // Drafts were refused after 0 to 4 right ones.
                if (info.n_accepted < N_TEXT / 2 || info.n_drafted < info.n_accepted + 8)
                    fail_msg("%s: %d of %d accepted", models[m], (int)info.n_accepted, (int)info.n_drafted);
                frit_session_free(b);
            }
            frit_engine_free(engine);
        }
    }
}

// Forks, files and truncation continue from accepted tokens, not from the snapshot before drafts.
static void sessions_with_drafts_are_forked_saved_and_truncated(void **state)
{
    (void)state;
    const frit_speculate_options speculate = {.always = true, .max_drafts = 4};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        frit_engine *engine = load_engine(shared_path("goldens/%s", models[m]), engines[1]);
        frit_token plain[N_TEXT], tokens[N_TEXT];
        frit_session *a, *b, *fork, *read;
        const char *path = temp_path("drafts.session");
        assert_ok(frit_session_new(&a, engine));
        push_prompt(a, 1);
        generate(a, &samplers[0], NULL, plain);
        frit_session_free(a);
        assert_ok(frit_session_new(&b, engine));
        push_prompt(b, 1);
        assert_ok(frit_session_speculate(b, &speculate));
        generate(b, &samplers[0], plain, tokens);
        assert_ok(frit_session_fork(&fork, b));
        expect_state(fork);
        assert_ok(frit_session_truncate(fork, N_PROMPT + 9));
        expect_state(fork);
        frit_session_free(fork);
        assert_ok(frit_session_save(b, path));
        assert_ok(frit_session_new(&read, engine));
        assert_ok(frit_session_load(read, path));
        expect_state(read);
        assert_ok(frit_session_truncate(read, N_PROMPT));
        expect_state(read);
        frit_session_free(read);
        assert_ok(frit_session_truncate(b, N_PROMPT));
        generate(b, &samplers[0], plain, tokens);
        assert_memory_equal(plain, tokens, sizeof plain);
        frit_session_free(b);
        frit_engine_free(engine);
    }
}

static void drafts_need_a_copy_of_the_states(void **state)
{
    (void)state;
    frit_engine *engine =
        load_engine(shared_path("goldens/%s", models[0]), (frit_engine_options){.n_ctx = 64, .n_state_copies = -1});
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    assert_fails(frit_session_speculate(session, NULL), FRIT_E_UNSUPPORTED, "made without copies");
    frit_session_free(session);
    frit_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_states_are_those_without_drafts),
        cmocka_unit_test(sessions_with_drafts_are_forked_saved_and_truncated),
        cmocka_unit_test(drafts_need_a_copy_of_the_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
