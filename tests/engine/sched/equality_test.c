// SPDX-License-Identifier: MIT
// A greedy text is the same in all situations: alone; in a batch of eight; with the prefix cache cold and warm; in
// sessions whose pages are evicted and whose tokens run again; after a session was saved and loaded; in forks; with
// drafts that are right, and with wrong ones.
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"
#include "support/tiny_model.h"

enum { N_SESSIONS = 8, N_PROMPT = 40, N_TEXT = 40, N_CTX = 96, HALF = N_TEXT / 2 };

typedef struct texts {
    frit_token tokens[N_SESSIONS][N_TEXT];
} texts;

static frit_model *model;
static int32_t n_vocab;

// With `deterministic`, tokens that run again, many at once, have the results that they had one by one.
static frit_engine *text_engine(int32_t n_sessions, bool no_prefix_cache)
{
    const frit_engine_options options = {.n_ctx = N_CTX,
                                         .n_sessions = n_sessions,
                                         .n_threads = 2,
                                         .no_prefix_cache = no_prefix_cache,
                                         .deterministic = true};
    return make_engine(model, options);
}

static frit_session *begin(frit_engine *engine, int i)
{
    frit_session *session;
    frit_token prompt[N_PROMPT];
    for (int k = 0; k < N_PROMPT; k++) prompt[k] = (frit_token)((i * 131 + k * (k + 7 + i)) % n_vocab);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    return session;
}

static frit_token likeliest(const frit_session *session)
{
    const float *logits = frit_session_logits(session);
    frit_token best = 0;
    assert_non_null(logits);
    for (frit_token t = 1; t < n_vocab; t++)
        if (logits[t] > logits[best]) best = t;
    return best;
}

// Generates the next n tokens of one session.
static void go_on(frit_engine *engine, frit_session *session, frit_token *tokens, int n)
{
    for (int i = 0; i < n; i++) {
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
        tokens[i] = likeliest(session);
        assert_ok(frit_session_push(session, &tokens[i], 1, NULL));
    }
}

static void expect_same(const texts *text, const texts *expected)
{
    for (int i = 0; i < N_SESSIONS; i++)
        assert_memory_equal(text->tokens[i], expected->tokens[i], sizeof expected->tokens[i]);
}

// ------------------------------------------------------------------------------- the ways

static void alone(texts *out)
{
    frit_engine *engine = text_engine(1, true);
    for (int i = 0; i < N_SESSIONS; i++) {
        frit_session *session = begin(engine, i);
        go_on(engine, session, out->tokens[i], N_TEXT);
        frit_session_free(session);
    }
    frit_engine_free(engine);
}

// Generates all texts at once. Returns how often a session lost the tokens that had run.
static int together(frit_engine *engine, texts *out, size_t *n_cached)
{
    frit_session *sessions[N_SESSIONS];
    size_t n_done[N_SESSIONS] = {0};
    int n_tokens[N_SESSIONS] = {0}, n_left = N_SESSIONS, n_lost = 0;
    *n_cached = 0;
    for (int i = 0; i < N_SESSIONS; i++) sessions[i] = begin(engine, i);
    while (n_left > 0) {
        assert_ok(frit_engine_step(engine, NULL));
        for (int i = 0; i < N_SESSIONS; i++) {
            frit_session *session = sessions[i];
            if (!session) continue;
            n_lost += session->n_done < n_done[i];
            n_done[i] = session->n_done;
            if (frit_session_pending(session) > 0) continue;
            const frit_token token = out->tokens[i][n_tokens[i]++] = likeliest(session);
            if (n_tokens[i] < N_TEXT) {
                assert_ok(frit_session_push(session, &token, 1, NULL));
                continue;
            }
            *n_cached += frit_session_cached(session);
            frit_session_free(session);
            sessions[i] = NULL;
            n_left--;
        }
    }
    return n_lost;
}

// Generates half of a text, and the rest in another engine.
static void saved(texts *out)
{
    frit_engine *engines[] = {text_engine(2, true), text_engine(2, true)};
    for (int i = 0; i < N_SESSIONS; i++) {
        size_t n_bytes = 0;
        frit_session *session = begin(engines[0], i), *loaded;
        go_on(engines[0], session, out->tokens[i], HALF);
        assert_fails(frit_session_save_memory(session, NULL, 0, &n_bytes), FRIT_E_LIMIT, "there is room for 0");
        void *bytes = malloc(n_bytes);
        assert_non_null(bytes);
        assert_ok(frit_session_save_memory(session, bytes, n_bytes, &n_bytes));
        frit_session_free(session);
        assert_ok(frit_session_new(&loaded, engines[1]));
        assert_ok(frit_session_load_memory(loaded, bytes, n_bytes));
        go_on(engines[1], loaded, out->tokens[i] + HALF, N_TEXT - HALF);
        frit_session_free(loaded);
        free(bytes);
    }
    frit_engine_free(engines[0]);
    frit_engine_free(engines[1]);
}

// Generates half of a text, and the rest in the session and a fork, alternately.
static void forked(texts *out, texts *out_fork)
{
    frit_engine *engine = text_engine(2, true);
    for (int i = 0; i < N_SESSIONS; i++) {
        frit_session *session = begin(engine, i), *fork;
        go_on(engine, session, out->tokens[i], HALF);
        assert_ok(frit_session_fork(&fork, session));
        memcpy(out_fork->tokens[i], out->tokens[i], HALF * sizeof(frit_token));
        for (int k = HALF; k < N_TEXT; k++) {
            go_on(engine, fork, &out_fork->tokens[i][k], 1);
            go_on(engine, session, &out->tokens[i][k], 1);
        }
        frit_session_free(fork);
        frit_session_free(session);
    }
    frit_engine_free(engine);
}

// Generates with drafts from the text, and from a prediction: `expected`, or `expected` with every fifth token changed.
static void speculated(texts *out, const texts *expected, bool is_wrong, frit_speculation_info *sum)
{
    frit_engine *engine = text_engine(1, true);
    frit_sampler *sampler;
    const frit_speculate_options options = {.kind = "ngram", .max_drafts = 4, .always = true};
    *sum = (frit_speculation_info){0};
    for (int i = 0; i < N_SESSIONS; i++) {
        frit_session *session = begin(engine, i);
        frit_speculation_info info;
        frit_token predicted[N_TEXT];
        for (int k = 0; k < N_TEXT; k++) predicted[k] = (expected->tokens[i][k] + (is_wrong && k % 5 == 4)) % n_vocab;
        assert_ok(frit_sampler_new(&sampler, model, &(frit_sampler_options){0}));
        assert_ok(frit_session_speculate(session, &options));
        assert_ok(frit_session_predict(session, predicted, N_TEXT));
        for (size_t n = 0, n_more; n < N_TEXT; n += n_more)
            assert_ok(frit_session_next_tokens(session, sampler, out->tokens[i] + n, N_TEXT - n, &n_more));
        assert_ok(frit_session_get_speculation(session, &info));
        sum->n_drafted += info.n_drafted;
        sum->n_accepted += info.n_accepted;
        frit_sampler_free(sampler);
        frit_session_free(session);
    }
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- comparing

// Recurrent states are found if a text continues a text that ended (tests/engine/kv/prefix_test.c). Sessions wait for a
// free state, and lose none.
static void check_batches(const texts *expected, bool has_states)
{
    texts text;
    size_t n_cached;
    frit_engine *engine = text_engine(N_SESSIONS, false);
    assert_int_equal(together(engine, &text, &n_cached), 0);
    assert_int_equal(n_cached, 0);
    expect_same(&text, expected);   // cold
    assert_int_equal(together(engine, &text, &n_cached), 0);
    assert_in_range(n_cached, has_states ? 0 : N_SESSIONS * FRIT_PAGE_TOKENS, N_SESSIONS * N_PROMPT);
    expect_same(&text, expected);   // warm
    frit_engine_free(engine);
    for (int i = 0; i < 2; i++) {   // memory for two sessions, without and with host memory for evicted pages
        engine = text_engine(2, i == 0);
        assert_int_equal(together(engine, &text, &n_cached) > 0, !has_states);
        expect_same(&text, expected);
        frit_engine_free(engine);
    }
}

static void check_speculation(const texts *expected)
{
    texts text;
    frit_speculation_info right, wrong;
    speculated(&text, expected, false, &right);
    expect_same(&text, expected);
    assert_true(right.n_accepted > 0);
    speculated(&text, expected, true, &wrong);
    expect_same(&text, expected);
    assert_true(wrong.n_accepted < wrong.n_drafted);
}

static void check(const char *path, bool has_states)
{
    texts expected, text, fork;
    frit_model_info info;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_model_get_info(model, &info));
    n_vocab = info.n_vocab;
    alone(&expected);
    assert_memory_not_equal(expected.tokens[0], expected.tokens[1], sizeof expected.tokens[0]);
    check_batches(&expected, has_states);
    saved(&text);
    expect_same(&text, &expected);
    forked(&text, &fork);
    expect_same(&text, &expected);
    expect_same(&fork, &expected);
    check_speculation(&expected);
    frit_model_free(model);
}

static void a_greedy_text_is_the_same_in_all_ways(void **state)
{
    (void)state;
    check(tiny_model("a.gguf", &(tiny_options){0}), false);
}

static void a_quantized_model_writes_the_same_in_all_ways(void **state)
{
    (void)state;
    check(project_path("models/fable.gguf"), false);
}

// Windows; latent attention and experts; experts; recurrent layers beside attention.
static void other_kinds_of_models_write_the_same_in_all_ways(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool has_states;
    } kinds[] = {{"goldens/hf/gemma3_text", false},
                 {"goldens/hf/deepseek_v3", false},
                 {"goldens/hf/qwen3_moe", false},
                 {"goldens/hf/qwen3_next", true},
                 {"goldens/arch/jamba-dense.gguf", true}};
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) {
        if (!shared_has("%s", kinds[i].path)) skip_because("the reference models are not here");
        check(shared_path("%s", kinds[i].path), kinds[i].has_states);
    }
}

int main(void)
{
    const struct CMUnitTest of_device[] = {
        cmocka_unit_test(a_greedy_text_is_the_same_in_all_ways),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_greedy_text_is_the_same_in_all_ways),
        cmocka_unit_test(a_quantized_model_writes_the_same_in_all_ways),
        cmocka_unit_test(other_kinds_of_models_write_the_same_in_all_ways),
    };
    if (getenv("FRIT_TEST_DEVICE")) return cmocka_run_group_tests(of_device, NULL, NULL);   // plain C is slow
    return cmocka_run_group_tests(tests, NULL, NULL);
}
