// SPDX-License-Identifier: MIT
// Generated texts of several contexts are the same however they run: alone, sharing steps, with drafts and with
// picks in flight.
#include "engine/session/shift_fixture.h"
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

enum { N_LONG = 3 * N_CTX, N_PROMPT = 40 };

typedef struct generating {
    frit_token tokens[N_LONG];
    const char *speculation;   // NULL: none
    float temp;
    size_t saved_at;    // the session is saved, and loaded by another; 0: it is not
    size_t forked_at;   // a fork continues
} generating;

static frit_sampler *make_sampler(const fixture *f, float temp)
{
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, &(frit_sampler_options){.temp = temp, .seed = 4}));
    return sampler;
}

static void set_up(frit_session *session, const char *speculation)
{
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){.n_keep = N_PROMPT}));
    if (speculation)
        assert_ok(frit_session_speculate(session, &(frit_speculate_options){.kind = speculation, .always = true}));
}

static frit_session *replace(const fixture *f, frit_session *session, const generating *g, size_t n)
{
    frit_session *other = session;
    if (g->saved_at > 0 && n >= g->saved_at && n < g->saved_at + 4) {
        const char *path = temp_path("shifted");
        assert_ok(frit_session_save(session, path));
        frit_session_free(session);
        other = make_session(f->engine);
        set_up(other, g->speculation);
        assert_ok(frit_session_load(other, path));
    } else if (g->forked_at > 0 && n >= g->forked_at && n < g->forked_at + 4) {
        assert_ok(frit_session_fork(&other, session));
        frit_session_free(session);
    }
    return other;
}

static void generate(const fixture *f, generating *g)
{
    frit_token prompt[N_PROMPT], next[4];
    plain_tokens(1, prompt, N_PROMPT, f->n_vocab);
    frit_session *session = make_session(f->engine);
    frit_sampler *sampler = make_sampler(f, g->temp);
    set_up(session, g->speculation);
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    for (size_t n = 0, n_next; n < N_LONG; n += n_next) {
        assert_ok(frit_session_next_tokens(session, sampler, next, N_LONG - n < 4 ? N_LONG - n : 4, &n_next));
        memcpy(g->tokens + n, next, n_next * sizeof *next);
        session = replace(f, session, g, n);
    }
    frit_shift_info info;
    assert_ok(frit_session_get_shift(session, &info));
    assert_int_equal(info.n_dropped + frit_session_length(session), N_PROMPT + N_LONG);
    assert_true(info.n_dropped > 2 * N_CTX);
    assert_memory_equal(frit_session_tokens(session), prompt, sizeof prompt);
    frit_session_free(session);
    frit_sampler_free(sampler);
}

static void texts_of_three_contexts_are_the_same_however_they_run(void **state)
{
    (void)state;
    static const struct {
        frit_engine_options engine;
        const char *speculation;
        size_t saved_at, forked_at;
    } ways[] = {
        {{.n_batch = 7}, NULL, 0, 0},
        {{.no_prefix_cache = true}, NULL, 0, 0},
        {{.n_batch = 16, .n_sessions = 2}, "ngram", 0, 0},
        {{.n_sessions = 2}, NULL, 200, 300},
        {{.n_sessions = 2}, "ngram", 150, 250},
    };
    for (int sampled = 0; sampled < 2; sampled++) {
        generating expected = {.temp = (float)sampled};
        fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.deterministic = true});
        generate(&f, &expected);
        assert_no_page_is_lost(&f);
        close_model(&f);
        for (size_t i = 0; i < FRIT_COUNT(ways); i++) {
            generating found = {.temp = (float)sampled,
                                .speculation = ways[i].speculation,
                                .saved_at = ways[i].saved_at,
                                .forked_at = ways[i].forked_at};
            frit_engine_options options = ways[i].engine;
            options.deterministic = true;
            f = open_tiny(&(tiny_options){0}, options);
            generate(&f, &found);
            assert_no_page_is_lost(&f);
            assert_memory_equal(found.tokens, expected.tokens, sizeof found.tokens);
            close_model(&f);
        }
    }
}

enum { N_TOGETHER = 4 };

// Runs steps of all sessions; each requests its next token while the others have theirs in flight.
static void sessions_that_share_steps_give_their_texts(void **state)
{
    (void)state;
    frit_token alone[N_TOGETHER][N_LONG], together[N_TOGETHER][N_LONG];
    for (int n_others = 0; n_others < N_TOGETHER; n_others += N_TOGETHER - 1) {
        fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 1 + n_others,
                                                                        .n_batch = n_others ? 24 : 64,
                                                                        .prompt_budget = 8,
                                                                        .deterministic = true});
        for (int first = 0; first < N_TOGETHER; first += 1 + n_others) {
            frit_session *sessions[N_TOGETHER];
            frit_sampler *sampler = make_sampler(&f, 0);
            for (int s = first; s <= first + n_others; s++) {
                frit_token prompt[N_CTX];
                const size_t n = 20 + 30 * (size_t)s;   // the contexts become full at different times
                plain_tokens(20 + (uint64_t)s, prompt, n, f.n_vocab);
                sessions[s] = make_session(f.engine);
                set_up(sessions[s], NULL);
                assert_ok(frit_session_push(sessions[s], prompt, n, NULL));
                assert_ok(frit_session_pick(sessions[s], sampler, NULL));
            }
            for (size_t n[N_TOGETHER] = {0}, n_done = 0; n_done <= (size_t)n_others;) {
                frit_picked picked;
                assert_ok(frit_engine_step(f.engine, NULL));
                for (int s = first; s <= first + n_others; s++) {
                    if (n[s] == N_LONG || frit_session_pending(sessions[s]) > 0) continue;
                    assert_ok(frit_session_picked(sessions[s], &picked));
                    (n_others ? together : alone)[s][n[s]++] = picked.token;
                    n_done += n[s] == N_LONG;
                    if (n[s] == N_LONG) continue;
                    assert_ok(frit_session_push(sessions[s], &picked.token, 1, NULL));
                    assert_ok(frit_session_pick(sessions[s], sampler, NULL));
                }
            }
            for (int s = first; s <= first + n_others; s++) frit_session_free(sessions[s]);
            frit_sampler_free(sampler);
        }
        assert_no_page_is_lost(&f);
        close_model(&f);
    }
    assert_memory_equal(alone, together, sizeof alone);
}

// Tokens are queued before they are known, and steps are submitted before the previous ones have finished.
static void picks_are_pushed_before_they_are_known(void **state)
{
    (void)state;
    frit_token expected[N_LONG], found[N_LONG];
    fixture f = open_tiny(&(tiny_options){0}, (frit_engine_options){.n_sessions = 2, .deterministic = true});
    frit_sampler *sampler = make_sampler(&f, 0);
    frit_token prompt[N_PROMPT];
    plain_tokens(1, prompt, N_PROMPT, f.n_vocab);
    frit_session *plain = make_session(f.engine), *ahead = make_session(f.engine);
    set_up(plain, NULL);
    set_up(ahead, NULL);
    push(&f, plain, prompt, N_PROMPT);
    for (size_t i = 0; i < N_LONG; i++) assert_ok(frit_session_next(plain, sampler, &expected[i]));
    assert_ok(frit_session_push(ahead, prompt, N_PROMPT, NULL));
    assert_ok(frit_session_pick(ahead, sampler, NULL));
    for (size_t i = 0; i < N_LONG; i++) {
        frit_picked picked;
        uint64_t step;
        assert_ok(frit_engine_submit(f.engine, &step, NULL));
        if (step == 0) assert_ok(frit_engine_submit(f.engine, &step, NULL));
        assert_ok(frit_session_push_picked(ahead));
        assert_ok(frit_session_pick(ahead, sampler, NULL));
        assert_ok(frit_engine_wait(f.engine, step));
        assert_ok(frit_session_picked(ahead, &picked));
        found[i] = picked.token;
    }
    assert_memory_equal(found, expected, sizeof found);
    frit_session_free(plain);
    frit_session_free(ahead);
    frit_sampler_free(sampler);
    close_model(&f);
}

// Layers with windows of 24 positions: pages before the windows are unreferenced, and the pages of the kept tokens too.
static void windows_shift_with_the_rest(void **state)
{
    (void)state;
    if (!shared_has("goldens/hf/gemma3_text")) skip_because("the reference model gemma3_text is not here");
    generating by_window = {0}, whole = {0};
    for (int full = 0; full < 2; full++) {
        fixture f = open_model(shared_path("goldens/hf/gemma3_text"), (frit_engine_options){.full_windows = full,
                                                                                            .no_prefix_cache = true,
                                                                                            .cache_type_k = "f32",
                                                                                            .deterministic = true});
        assert_true(full || f.engine->kv.has_windows);
        generate(&f, full ? &whole : &by_window);
        assert_no_page_is_lost(&f);
        close_model(&f);
    }
    assert_memory_equal(whole.tokens, by_window.tokens, sizeof whole.tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_three_contexts_are_the_same_however_they_run),
        cmocka_unit_test(sessions_that_share_steps_give_their_texts),
        cmocka_unit_test(picks_are_pushed_before_they_are_known),
        cmocka_unit_test(windows_shift_with_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
