// SPDX-License-Identifier: MIT
// Token healing: wherever a prompt is cut, the generated text spells it exactly, with the tokens that the model finds
// likeliest.
#include "support/support.h"

#include "frit.h"

#include <math.h>

enum { MAX_TOKENS = 256 };
static const char text[] = "Once upon a time there was a little girl named Lily. She loved to play in the garden, and";

typedef struct subject {
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    size_t n_healed, n_other;   // prompts whose last tokens were dropped, and prompts spelled with other tokens
} subject;

static void open_subject(subject *s, const char *path)
{
    *s = (subject){0};
    assert_ok(frit_model_open(&s->model, path, NULL));
    assert_ok(frit_engine_new(&s->engine, s->model, &(frit_engine_options){.n_ctx = 256, .n_threads = 1}));
    assert_ok(frit_session_new(&s->session, s->engine));
    assert_ok(frit_sampler_new(&s->sampler, s->model, NULL));
}

static void close_subject(subject *s)
{
    frit_sampler_free(s->sampler);
    frit_session_free(s->session);
    frit_engine_free(s->engine);
    frit_model_free(s->model);
}

static size_t spell(const subject *s, const frit_token *tokens, size_t n, char *out, size_t size)
{
    size_t n_bytes;
    assert_ok(frit_detokenize(s->model, tokens, n, 0, out, size - 1, &n_bytes));
    out[n_bytes] = 0;
    return n_bytes;
}

// Returns the likeliest token that spells the rest or begins with it.
static frit_token best(const subject *s, const char *rest, size_t n_rest)
{
    frit_model_info info;
    frit_model_get_info(s->model, &info);
    const float *logits = frit_session_logits(s->session);
    frit_token found = -1;
    for (frit_token i = 0; i < info.n_vocab; i++) {
        size_t n;
        const char *piece = frit_token_piece(s->model, i, &n);
        size_t n_common = n < n_rest ? n : n_rest;
        bool fits = n_rest == 0 || (n > 0 && memcmp(piece, rest, n_common) == 0);
        if (fits && (found < 0 || logits[i] > logits[found])) found = i;
    }
    return found;
}

static void heal_prompt(subject *s, size_t n_prompt)
{
    frit_token tokens[MAX_TOKENS], made[MAX_TOKENS];
    size_t n, n_keep, n_made;
    char all[2048];
    assert_ok(frit_tokenize(s->model, text, n_prompt, FRIT_TEXT_SPECIAL, tokens, MAX_TOKENS, &n));
    frit_sampler_reset(s->sampler);
    assert_ok(frit_sampler_heal(s->sampler, s->model, tokens, n, &n_keep));
    assert_true(n_keep >= 1 && n_keep <= n);
    memcpy(made, tokens, n_keep * sizeof *made);
    assert_ok(frit_session_truncate(s->session, 0));
    assert_ok(frit_session_push(s->session, tokens, n_keep, NULL));
    size_t n_spelled = spell(s, tokens, n_keep, all, sizeof all);
    for (n_made = n_keep; n_made < n_keep + 12 && n_spelled < n_prompt + 8; n_made++) {
        int32_t n_rows;
        while (frit_session_pending(s->session) > 0) assert_ok(frit_engine_step(s->engine, &n_rows));
        // After a first token with a hidden space, the rest may begin with a space that is not shown.
        bool plain = n_keep > 1;
        frit_token want = plain ? best(s, text + n_spelled, n_spelled < n_prompt ? n_prompt - n_spelled : 0) : -1;
        assert_ok(frit_session_next(s->session, s->sampler, &made[n_made]));
        if (plain && n_spelled < n_prompt) assert_int_equal(made[n_made], want);
        n_spelled = spell(s, made, n_made + 1, all, sizeof all);
    }
    if (n_spelled < n_prompt || memcmp(all, text, n_prompt) != 0)
        fail_msg("the prompt '%.*s' became '%s'", (int)n_prompt, text, all);
    s->n_healed += n_keep < n;
    s->n_other += n_keep < n && memcmp(made + n_keep, tokens + n_keep, (n - n_keep) * sizeof *made) != 0;
}

static void every_cut_is_spelled_to_the_byte(void **state)
{
    (void)state;
    const char *paths[] = {project_path("models/fable.gguf"), shared_path("models/stories260k-f32.gguf")};
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) {
        subject s;
        open_subject(&s, paths[i]);
        for (size_t n = 1; n < sizeof text; n++) heal_prompt(&s, n);
        print_message("%zu of %zu prompts healed, %zu by other tokens\n", s.n_healed, sizeof text - 1, s.n_other);
        assert_true(s.n_healed > 20 && s.n_other > 5);
        close_subject(&s);
    }
}

static void special_tokens_and_the_first_one_stay(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, project_path("models/fable.gguf"));
    frit_token tokens[MAX_TOKENS];
    size_t n, n_keep;
    assert_ok(frit_tokenize(s.model, "Onc", 3, FRIT_TEXT_SPECIAL, tokens, MAX_TOKENS, &n));
    assert_ok(frit_sampler_heal(s.sampler, s.model, tokens, 1, &n_keep));   // only a BOS
    assert_int_equal(n_keep, 1);
    frit_token ends_special[] = {tokens[1], tokens[0]};
    assert_ok(frit_sampler_heal(s.sampler, s.model, ends_special, 2, &n_keep));
    assert_int_equal(n_keep, 2);
    assert_ok(frit_sampler_heal(s.sampler, s.model, NULL, 0, &n_keep));
    assert_int_equal(n_keep, 0);
    assert_fails(frit_sampler_heal(s.sampler, s.model, &(frit_token){-1}, 1, &n_keep), FRIT_E_INVALID, "token 0 of 1");
    close_subject(&s);
}

static void a_reset_ends_it(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, project_path("models/fable.gguf"));
    frit_model_info info;
    frit_model_get_info(s.model, &info);
    float *logits = calloc((size_t)info.n_vocab, sizeof *logits);
    frit_token tokens[MAX_TOKENS], token;
    size_t n, n_keep;
    assert_ok(frit_tokenize(s.model, "Once upon a ti", 14, FRIT_TEXT_SPECIAL, tokens, MAX_TOKENS, &n));
    assert_ok(frit_sampler_heal(s.sampler, s.model, tokens, n, &n_keep));
    assert_true(n_keep < n);
    logits[5] = 1;   // a token that spells nothing
    assert_ok(frit_sampler_sample(s.sampler, logits, &token));
    assert_int_not_equal(token, 5);
    frit_sampler_reset(s.sampler);
    assert_ok(frit_sampler_sample(s.sampler, logits, &token));
    assert_int_equal(token, 5);
    free(logits);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_is_spelled_to_the_byte),
        cmocka_unit_test(special_tokens_and_the_first_one_stay),
        cmocka_unit_test(a_reset_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
