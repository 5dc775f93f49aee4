// SPDX-License-Identifier: MIT
// Speculation: the text with drafts equals the text without, greedy and sampled, alone and among other sessions.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "engine/spec/speculate.h"
#include "engine/spec/distribution.h"

#include <math.h>

enum { N_PROMPT = 24, N_TEXT = 96 };

static const frit_engine_options engines[] = {
    {.cpu = "reference", .n_sessions = 3}, {.n_sessions = 3, .n_threads = 2}, {.n_sessions = 3, .n_batch = 7}};

static const frit_sampler_options samplers[] = {
    {.temp = 0},
    {.temp = 0, .repeat_penalty = 1.1f, .repeat_last_n = 16},
    {.temp = 0.3f, .top_k = 5, .seed = 3},
    {.temp = 0.7f, .top_p = 0.9f, .min_p = 0.05f, .frequency_penalty = 0.2f, .seed = 9},
};

static frit_session *begin(frit_engine *engine, const frit_speculate_options *speculate, int seed)
{
    frit_session *session;
    frit_token prompt[N_PROMPT];
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = 5 + (i * i + seed) % 7;   // a text with repetitions
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    if (speculate) assert_ok(frit_session_speculate(session, speculate));
    return session;
}

static void generate(frit_session *session, const frit_sampler_options *options, size_t at_once, frit_token *tokens)
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, options));
    for (size_t n = 0, n_more = 0; n < N_TEXT; n += n_more) {
        const size_t room = N_TEXT - n < at_once ? N_TEXT - n : at_once;
        assert_ok(frit_session_next_tokens(session, sampler, tokens + n, room, &n_more));
        assert_true(n_more >= 1 && n_more <= room);
        assert_int_equal(frit_session_length(session), N_PROMPT + n + n_more);
        assert_memory_equal(frit_session_tokens(session) + N_PROMPT, tokens, (n + n_more) * sizeof *tokens);
    }
    frit_sampler_free(sampler);
}

static void a_text_with_drafts_is_the_text_without(void **state)
{
    (void)state;
    uint64_t n_drafted = 0, n_accepted = 0;
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[e]);
        for (size_t i = 0; i < FRIT_COUNT(samplers); i++) {
            frit_token plain[N_TEXT], drafted[N_TEXT];
            frit_session *a = begin(engine, NULL, (int)i);
            frit_session *b = begin(engine, &(frit_speculate_options){.always = true, .max_drafts = 6}, (int)i);
            generate(a, &samplers[i], 1, plain);
            generate(b, &samplers[i], i % 2 ? 4 : 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            frit_speculation_info info;
            assert_ok(frit_session_get_speculation(b, &info));
            assert_null(info.why_not);
            assert_true(info.n_accepted <= info.n_drafted);
            n_drafted += info.n_drafted;
            n_accepted += info.n_accepted;
            frit_session_free(a);
            frit_session_free(b);
        }
        frit_engine_free(engine);
    }
    assert_true(n_accepted > 0);   // both cases occurred
    assert_true(n_accepted < n_drafted);
}

// Sessions with drafts and without, whose tokens run in the same steps.
static void sessions_with_and_without_drafts_share_steps(void **state)
{
    (void)state;
    enum { SESSIONS = 3 };
    for (size_t e = 0; e < FRIT_COUNT(engines); e++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, engines[e]);
        frit_session *sessions[SESSIONS];
        frit_sampler *sampler[SESSIONS];
        frit_token plain[SESSIONS][N_TEXT];
        for (int s = 0; s < SESSIONS; s++) {
            sessions[s] = begin(engine, NULL, s);
            generate(sessions[s], &samplers[s], 1, plain[s]);
            frit_session_free(sessions[s]);
            const frit_speculate_options options = {.always = true, .max_drafts = 3 + s};
            sessions[s] = begin(engine, s == 1 ? NULL : &options, s);
            assert_ok(frit_sampler_create(&sampler[s], TINY_VOCAB, &samplers[s]));
            assert_ok(frit_session_pick(sessions[s], sampler[s], NULL));
        }
        bool all = false, is_done[SESSIONS] = {false};
        while (!all) {
            all = true;
            while (frit_session_pending(sessions[0]) + frit_session_pending(sessions[1]) +
                       frit_session_pending(sessions[2]) >
                   0)
                assert_ok(frit_engine_step(engine, NULL));
            for (int s = 0; s < SESSIONS; s++) {
                frit_picked picked;
                size_t n;
                if (is_done[s]) continue;
                assert_ok(frit_session_picked(sessions[s], &picked));
                assert_ok(frit_session_push(sessions[s], &picked.token, 1, NULL));
                const size_t length = frit_session_length(sessions[s]);
                for (size_t i = length - 1 - (size_t)picked.n_accepted; i < length; i++)
                    assert_ok(frit_sampler_accept(sampler[s], frit_session_tokens(sessions[s])[i]));
                is_done[s] = length >= N_PROMPT + N_TEXT;
                if (is_done[s]) continue;
                assert_ok(frit_session_draft(sessions[s], sampler[s], 8, &n));
                assert_ok(frit_session_pick(sessions[s], sampler[s], &(frit_pick_options){.n_drafts = n}));
                all = false;
            }
        }
        for (int s = 0; s < SESSIONS; s++) {
            assert_memory_equal(plain[s], frit_session_tokens(sessions[s]) + N_PROMPT, sizeof plain[s]);
            frit_session_free(sessions[s]);
            frit_sampler_free(sampler[s]);
        }
        frit_engine_free(engine);
    }
}

static void speculation_survives_truncation_and_forks(void **state)
{
    (void)state;
    const frit_speculate_options speculate = {.always = true, .max_drafts = 5};
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 3});
    frit_token plain[N_TEXT], again[N_TEXT];
    frit_session *session = begin(engine, &speculate, 1), *fork;
    generate(session, &samplers[0], 16, plain);
    assert_ok(frit_session_truncate(session, N_PROMPT - 1));
    assert_ok(frit_session_push(session, &(frit_token){5 + ((N_PROMPT - 1) * (N_PROMPT - 1) + 1) % 7}, 1, NULL));
    assert_ok(frit_session_fork(&fork, session));
    generate(session, &samplers[0], 16, again);
    assert_memory_equal(plain, again, sizeof plain);
    generate(fork, &samplers[0], 16, again);
    assert_memory_equal(plain, again, sizeof plain);
    frit_speculation_info info;
    assert_ok(frit_session_get_speculation(fork, &info));
    assert_true(info.n_drafted > 0);
    frit_session_free(fork);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void a_text_fills_the_context_to_its_end(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_ctx = 64});
    frit_session *session = begin(engine, &(frit_speculate_options){.always = true}, 0);
    frit_sampler *sampler;
    frit_token tokens[16];
    size_t n;
    frit_status status;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &samplers[0]));
    while ((status = frit_session_next_tokens(session, sampler, tokens, 16, &n)) == FRIT_OK) continue;
    assert_int_equal(status, FRIT_E_LIMIT);
    assert_int_equal(frit_session_length(session), 64);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

static void what_cannot_be_verified_gives_a_reason(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 1});
    frit_session *session = begin(engine, &(frit_speculate_options){.always = true}, 0);
    frit_speculation_info info;
    frit_token tokens[8];
    size_t n;
    frit_sampler_options options = {.temp = 1, .seed = 1};
    assert_ok(frit_sampler_set_option(&options, "dry-multiplier", "1"));
    frit_sampler *sampler;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &options));
    for (int i = 0; i < 5; i++) {
        assert_ok(frit_session_next_tokens(session, sampler, tokens, 8, &n));
        assert_int_equal(n, 1);
    }
    assert_ok(frit_session_get_speculation(session, &info));
    assert_non_null(strstr(info.why_not, "stages"));
    assert_int_equal(info.n_drafted, 0);
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.kind = "magic"}), FRIT_E_INVALID, "magic");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.max_drafts = 65}), FRIT_E_INVALID, "65");
    assert_ok(frit_session_speculate(session, &(frit_speculate_options){.kind = "none"}));
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
}

// A draft model that agrees often (the same weights), and one that rarely does.
static void a_draft_model_does_not_change_the_text(void **state)
{
    (void)state;
    const tiny_options models[] = {{0}, {.seed = 77, .n_layer = 1}};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 3});
        frit_engine *draft = tiny_engine(&models[m], (frit_engine_options){.n_sessions = 3});
        for (size_t i = 0; i < 2 * FRIT_COUNT(samplers); i++) {
            const size_t k = i / 2;
            const frit_speculate_options speculate = {
                .kind = i % 2 ? "auto" : "draft", .draft = draft, .always = k > 0, .max_drafts = 4};
            frit_token plain[N_TEXT], drafted[N_TEXT];
            frit_session *a = begin(engine, NULL, (int)k), *b = begin(engine, &speculate, (int)k), *fork;
            assert_ok(frit_session_fork(&fork, b));
            generate(a, &samplers[k], 1, plain);
            generate(b, &samplers[k], 16, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            generate(fork, &samplers[k], 3, drafted);
            assert_memory_equal(plain, drafted, sizeof plain);
            frit_speculation_info info;
            assert_ok(frit_session_get_speculation(b, &info));
            if (k > 0) assert_true(info.n_drafted > 0);
            if (k > 0 && m == 0 && i % 2 == 0) assert_int_equal(info.n_accepted, info.n_drafted);
            frit_session_free(fork);
            frit_session_free(a);
            frit_session_free(b);
        }
        frit_engine_free(draft);
        frit_engine_free(engine);
    }
}

enum { MANY = 3 };

// Takes the tokens of a step; returns false if the text is long enough.
static bool go_on(frit_session *session, frit_sampler *sampler)
{
    frit_picked picked;
    assert_ok(frit_session_picked(session, &picked));
    assert_ok(frit_session_push(session, &picked.token, 1, NULL));
    const size_t length = frit_session_length(session);
    for (size_t k = length - 1 - (size_t)picked.n_accepted; k < length; k++)
        assert_ok(frit_sampler_accept(sampler, frit_session_tokens(session)[k]));
    return length < N_PROMPT + N_TEXT;
}

// Generates in all sessions at once, with drafts in shared steps, after the first token was requested. Returns the
// number of steps.
static int generate_together(frit_engine *engine, frit_session *const *sessions, frit_sampler *const *sampler)
{
    int n_steps = 0;
    size_t n_going = MANY;
    bool is_done[MANY] = {false};
    for (; n_going > 0; n_steps++) {
        frit_draft_item items[MANY] = {{0}};
        assert_ok(frit_engine_step(engine, NULL));
        n_going = 0;
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(frit_session_pending(sessions[i]), 0);
            if (is_done[i]) continue;
            is_done[i] = !go_on(sessions[i], sampler[i]);
            if (!is_done[i])
                items[n_going++] = (frit_draft_item){.session = sessions[i], .sampler = sampler[i], .max_drafts = 8};
        }
        assert_ok(frit_sessions_draft(items, n_going));
        for (size_t i = 0; i < n_going; i++)
            assert_ok(frit_session_pick(items[i].session, items[i].sampler,
                                        &(frit_pick_options){.n_drafts = items[i].n_drafts}));
    }
    return n_steps;
}

static void sessions_draft_together(void **state)
{
    (void)state;
    static const char *const kinds[] = {"draft", "auto", "ngram"};
    const tiny_options models[] = {{0}, {.seed = 77, .n_layer = 1}};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = MANY});
        frit_engine *draft = tiny_engine(&models[m], (frit_engine_options){.n_sessions = MANY});
        for (size_t k = 0; k < FRIT_COUNT(kinds); k++) {
            frit_session *sessions[MANY];
            frit_sampler *sampler[MANY];
            frit_token plain[MANY][N_TEXT];
            for (int s = 0; s < MANY; s++) {
                const frit_speculate_options speculate = {
                    .kind = kinds[k], .draft = draft, .always = true, .max_drafts = 3 + s};
                sessions[s] = begin(engine, NULL, s);
                generate(sessions[s], &samplers[s], 1, plain[s]);
                frit_session_free(sessions[s]);
                sessions[s] = begin(engine, &speculate, s);
                assert_ok(frit_sampler_create(&sampler[s], TINY_VOCAB, &samplers[s]));
                assert_ok(frit_session_pick(sessions[s], sampler[s], NULL));
            }
            const int n_steps = generate_together(engine, sessions, sampler);
            if (m == 0 && k == 0) assert_true(n_steps < N_TEXT / 2);   // of the same weights: all drafts are right
            for (int s = 0; s < MANY; s++) {
                frit_speculation_info info;
                assert_ok(frit_session_get_speculation(sessions[s], &info));
                assert_true(info.n_drafted > 0);
                if (m == 0 && k == 0) assert_int_equal(info.n_accepted, info.n_drafted);
                assert_memory_equal(plain[s], frit_session_tokens(sessions[s]) + N_PROMPT, sizeof plain[s]);
                frit_session_free(sessions[s]);
                frit_sampler_free(sampler[s]);
            }
        }
        frit_engine_free(draft);
        frit_engine_free(engine);
    }
}

// A right prediction is accepted from its first token on; a wrong one changes nothing.
static void a_prediction_is_guessed_from(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2});
    const frit_speculate_options speculate = {.always = true, .max_drafts = 8};
    frit_token plain[N_TEXT], text[N_TEXT], other[N_TEXT];
    frit_session *session = begin(engine, NULL, 1);
    generate(session, &samplers[2], 1, plain);
    frit_session_free(session);
    for (int kind = 0; kind < 3; kind++) {
        frit_speculation_info info;
        memcpy(other, plain, sizeof other);
        for (int i = 0; i < N_TEXT; i++) {
            if (kind == 1 && i % 16 == 7) other[i] = (plain[i] + 1) % TINY_VOCAB;
            if (kind == 2) other[i] = (plain[i] + 1 + i % 3) % TINY_VOCAB;
        }
        session = begin(engine, &speculate, 1);
        assert_ok(frit_session_predict(session, plain, 3));   // is replaced
        assert_ok(frit_session_predict(session, other, N_TEXT));
        generate(session, &samplers[2], 16, text);
        assert_memory_equal(text, plain, sizeof text);
        assert_ok(frit_session_get_speculation(session, &info));
        if (kind == 0) assert_in_range(info.n_accepted, N_TEXT * 3 / 4, N_TEXT);
        if (kind == 1) assert_in_range(info.n_accepted, N_TEXT / 4, N_TEXT);
        // The session's next text has no prediction.
        assert_ok(frit_session_truncate(session, N_PROMPT - 1));
        assert_ok(frit_session_predict(session, NULL, 0));
        assert_ok(frit_session_push(session, &(frit_token){5 + ((N_PROMPT - 1) * (N_PROMPT - 1) + 1) % 7}, 1, NULL));
        generate(session, &samplers[2], 16, text);
        assert_memory_equal(text, plain, sizeof text);
        frit_session_free(session);
    }
    frit_engine_free(engine);
}

static void a_draft_model_of_another_vocabulary_is_refused(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 1});
    frit_engine *other = tiny_engine(&(tiny_options){.n_vocab = 60}, (frit_engine_options){.n_sessions = 1});
    frit_session *session = begin(engine, NULL, 0);
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.draft = other}), FRIT_E_INVALID,
                 "64 tokens, found 60");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.draft = engine}), FRIT_E_INVALID,
                 "its own");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.kind = "draft"}), FRIT_E_INVALID, "needs");
    assert_fails(frit_session_speculate(session, &(frit_speculate_options){.min_p = 2}), FRIT_E_INVALID, "0 to 1");
    frit_session_free(session);
    frit_engine_free(other);
    frit_engine_free(engine);
}

static void the_text_goes_on_when_the_draft_model_is_gone(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2});
    frit_engine *draft = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_ctx = 64});
    frit_token plain[N_TEXT], drafted[N_TEXT];
    for (int gone = 0; gone < 2; gone++) {   // the draft session reaches its context, or is freed
        frit_session *a = begin(engine, NULL, 0);
        frit_session *b = begin(engine, &(frit_speculate_options){.kind = "draft", .draft = draft, .always = true}, 0);
        if (gone) frit_engine_free(draft);
        generate(a, &samplers[2], 1, plain);
        generate(b, &samplers[2], 16, drafted);
        assert_memory_equal(plain, drafted, sizeof plain);
        frit_session_free(a);
        frit_session_free(b);
    }
    frit_engine_free(engine);
}

static void drafts_leave_the_distribution_as_it_is(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 1, .n_threads = 1});
    frit_engine *draft = tiny_engine(&(tiny_options){.seed = 77}, (frit_engine_options){.n_threads = 1});
    expect_distribution(engine, &(frit_speculate_options){.kind = "draft", .draft = draft});
    frit_engine_free(draft);
    frit_engine_free(engine);
}

static void guesses_from_the_text_leave_the_distribution_as_it_is(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.n_sessions = 1, .n_threads = 1});
    expect_distribution(engine, &(frit_speculate_options){.kind = "ngram"});
    frit_engine_free(engine);
}

// Compares with a search of the whole text for the longest match of its end; the latest of equal ones.
static void the_index_finds_the_longest_match(void **state)
{
    (void)state;
    enum { N = 60, GUESSES = 8 };
    frit_ngrams ngrams;
    frit_token text[N], guess[GUESSES];
    frit_rng rng;
    frit_rng_init(&rng, 4);
    assert_ok(frit_ngrams_init(&ngrams, N));
    size_t n = 0;
    for (int round = 0; round < 3000; round++) {
        if (random_between(&rng, 0, 9) == 0) n = (size_t)random_between(&rng, 0, (int64_t)n);
        if (n == N) n = 0;
        text[n++] = (frit_token)random_between(&rng, 0, 2);
        size_t place = 0, longest = 1;
        for (size_t i = n - 1; i-- > 0;) {
            size_t k = 0;
            while (k < FRIT_LONGEST_MATCH && k <= i && text[i - k] == text[n - 1 - k]) k++;
            if (k > longest) longest = k, place = i;
        }
        int32_t n_match;
        frit_ngrams_follow(&ngrams, text, n);
        const int32_t n_guess = frit_ngrams_draft(&ngrams, guess, GUESSES, &n_match);
        assert_int_equal(n_match, longest > 1 ? longest : 0);
        assert_int_equal(n_guess, longest > 1 ? GUESSES : 0);
        for (int32_t i = 0; i < n_guess; i++) {
            const size_t at = place + 1 + (size_t)i;
            assert_int_equal(guess[i], at < n ? text[at] : guess[at - n]);
        }
    }
    frit_ngrams_deinit(&ngrams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_with_drafts_is_the_text_without),
        cmocka_unit_test(sessions_with_and_without_drafts_share_steps),
        cmocka_unit_test(speculation_survives_truncation_and_forks),
        cmocka_unit_test(a_text_fills_the_context_to_its_end),
        cmocka_unit_test(what_cannot_be_verified_gives_a_reason),
        cmocka_unit_test(a_draft_model_does_not_change_the_text),
        cmocka_unit_test(sessions_draft_together),
        cmocka_unit_test(a_prediction_is_guessed_from),
        cmocka_unit_test(a_draft_model_of_another_vocabulary_is_refused),
        cmocka_unit_test(the_text_goes_on_when_the_draft_model_is_gone),
        cmocka_unit_test(drafts_leave_the_distribution_as_it_is),
        cmocka_unit_test(guesses_from_the_text_leave_the_distribution_as_it_is),
        cmocka_unit_test(the_index_finds_the_longest_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
