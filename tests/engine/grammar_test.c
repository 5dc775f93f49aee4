// SPDX-License-Identifier: MIT
// Grammars on samplers: random logits give answers that match, by picks and by the sampler chain. Sessions end when
// nothing can follow.
#include "support/support.h"

#include "engine/engine.h"

static frit_model *open_model(void)
{
    frit_model *model = NULL;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    return model;
}

static frit_grammar *make(const frit_model *model, const char *text, frit_grammar_kind kind)
{
    frit_grammar *grammar = NULL;
    const frit_grammar_options options = {.kind = kind};
    assert_ok(frit_grammar_new(&grammar, model, text, strlen(text), &options));
    return grammar;
}

static size_t keep_all(void *ctx, frit_candidate *candidates, size_t n)
{
    (void)ctx, (void)candidates;
    return n;
}

// Samples with random logits until the text is over; the bytes must match the automaton.
static void answer_at_random(const frit_model *model, frit_grammar *grammar, frit_rng *rng, bool by_chain)
{
    const int32_t n_vocab = model->info.n_vocab;
    const frit_sampler_options options = {.temp = 1, .seed = frit_rng_next(rng), .stage = by_chain ? keep_all : NULL};
    frit_sampler *sampler = NULL;
    frit_match match;
    float *logits = malloc((size_t)n_vocab * sizeof *logits);
    assert_ok(frit_sampler_new(&sampler, model, &options));
    assert_int_equal(frit_sampler_is_pick(sampler), !by_chain);
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    assert_ok(frit_match_init(&match, grammar->automaton, 0));
    for (int i = 0; i < 60 && !frit_sampler_is_over(sampler); i++) {
        frit_token token;
        size_t n_bytes, n_read;
        random_normal(rng, logits, (size_t)n_vocab, 3);
        assert_ok(frit_sampler_sample(sampler, logits, &token));
        const char *piece = frit_token_piece(model, token, &n_bytes);
        if (frit_token_is_end(model, token)) {
            assert_true(frit_match_is_final(&match));
        } else {
            assert_true(n_bytes > 0);
            assert_ok(frit_match_push(&match, piece, n_bytes, &n_read));
            assert_int_equal(n_read, n_bytes);
        }
        assert_ok(frit_sampler_accept(sampler, token));
    }
    frit_match_deinit(&match);
    frit_sampler_free(sampler);
    free(logits);
}

static void random_logits_give_answers_that_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        frit_grammar_kind kind;
    } grammars[] = {
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \"maxLength\": 9}, \"b\": {\"type\": "
         "\"integer\"}}, \"required\": [\"a\", \"b\"], \"additionalProperties\": false}",
         FRIT_GRAMMAR_SCHEMA},
        {"{\"type\": \"array\", \"items\": {\"enum\": [\"one\", \"two\", null]}, \"maxItems\": 5}",
         FRIT_GRAMMAR_SCHEMA},
        {"(yes|no)( [a-z]{1,6}){0,4}\\.", FRIT_GRAMMAR_REGEX},
        {"{\"format\": {\"type\": \"triggered_tags\", \"stop_after_first\": true, \"triggers\": [\"<\"], \"tags\": "
         "[{\"begin\": \"<\", \"content\": {\"type\": \"regex\", \"pattern\": \"[a-z]{1,6}\"}, \"end\": \">\"}]}}",
         FRIT_GRAMMAR_TAGS},
        {"root ::= (\"- \" [^\\n]{1,20} \"\\n\"){1,3}", FRIT_GRAMMAR_GBNF},
    };
    frit_model *model = open_model();
    frit_rng rng;
    frit_rng_init(&rng, 5);
    for (size_t i = 0; i < FRIT_COUNT(grammars); i++) {
        frit_grammar *grammar = make(model, grammars[i].text, grammars[i].kind);
        for (int k = 0; k < 20; k++) answer_at_random(model, grammar, &rng, k % 2);
        frit_grammar_free(grammar);
    }
    frit_model_free(model);
}

static void a_session_ends_where_nothing_can_follow(void **state)
{
    (void)state;
    frit_model *model = open_model();
    frit_engine *engine = NULL;
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_token tokens[64], token;
    size_t n_tokens, n = 0, n_bytes;
    frit_buf text = {0};
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 128}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    assert_ok(frit_tokenize(model, "The king said", 13, FRIT_TEXT_SPECIAL, tokens, 64, &n_tokens));
    assert_ok(frit_session_push(session, tokens, n_tokens, NULL));
    frit_grammar *grammar = make(model, " (yes|no|perhaps) to (him|her)", FRIT_GRAMMAR_REGEX);
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    frit_grammar_free(grammar);   // the sampler keeps the grammar
    while (!frit_sampler_is_over(sampler) && n++ < 40) {
        assert_ok(frit_session_next(session, sampler, &token));
        const char *piece = frit_token_piece(model, token, &n_bytes);
        frit_buf_append(&text, piece, n_bytes);
    }
    assert_true(frit_sampler_is_over(sampler));
    assert_true(strstr(" yes to him yes to her no to him no to her perhaps to him perhaps to her", text.data) != NULL);
    assert_ok(frit_sampler_reset(sampler));
    assert_false(frit_sampler_is_over(sampler));
    frit_buf_free(&text);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

// A grammar names a special token, which no text allows, and any but that token.
static void a_grammar_names_tokens(void **state)
{
    (void)state;
    frit_model *model = open_model();
    frit_sampler *sampler = NULL;
    frit_token special = -1, next;
    frit_buf text = {0};
    for (frit_token i = 0; i < model->vocab.n && special < 0; i++)
        if (model->vocab.entries[i].kind == FRIT_TOKEN_CONTROL && !model->vocab.entries[i].is_end) special = i;
    assert_true(special >= 0);
    const frit_str piece = model->vocab.entries[special].piece;
    frit_buf_printf(&text, "root ::= %.*s !<[%d]>{2} \"yes\" <[%d]>", (int)piece.len, piece.ptr, special, special);
    frit_grammar *grammar = make(model, text.data, FRIT_GRAMMAR_GBNF);
    frit_rng rng;
    frit_rng_init(&rng, 3);
    float *logits = malloc((size_t)model->info.n_vocab * sizeof *logits);
    for (int k = 0; k < 20; k++) {
        assert_ok(frit_sampler_new(&sampler, model, &(frit_sampler_options){.temp = 1, .seed = (uint64_t)k}));
        assert_ok(frit_sampler_set_grammar(sampler, grammar));
        int n = 0;
        for (; !frit_sampler_is_over(sampler); n++) {
            random_normal(&rng, logits, (size_t)model->info.n_vocab, 3);
            assert_ok(frit_sampler_sample(sampler, logits, &next));
            assert_int_equal(next == special, n == 0 || (n > 3 && next == special));
            assert_false(frit_token_is_end(model, next));
            assert_ok(frit_sampler_accept(sampler, next));
        }
        assert_true(n >= 5 && next == special);
        frit_sampler_free(sampler);
    }
    free(logits);
    frit_grammar_free(grammar);
    frit_buf_free(&text);
    frit_model_free(model);
}

// Returns the greedy or sampled answer after a prompt; with drafts, also their number.
static frit_buf answer_with(const frit_model *model, frit_engine *engine, frit_grammar *grammar,
                            const frit_sampler_options *sampling, const frit_speculate_options *speculate,
                            frit_speculation_info *info)
{
    static const char prompt[] = "The king said: name, name, name and number.";
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_token tokens[64];
    size_t n, n_bytes;
    frit_buf text = {0};
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_new(&sampler, model, sampling));
    assert_ok(frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, 64, &n));
    assert_ok(frit_session_push(session, tokens, n, NULL));
    for (size_t i = 0; i < n; i++) assert_ok(frit_sampler_accept(sampler, tokens[i]));
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    if (speculate) assert_ok(frit_session_speculate(session, speculate));
    for (size_t length = 0; length < 80 && !frit_sampler_is_over(sampler); length += n) {
        assert_ok(frit_session_next_tokens(session, sampler, tokens, 80 - length < 16 ? 80 - length : 16, &n));
        for (size_t i = 0; i < n; i++) {
            const char *piece = frit_token_piece(model, tokens[i], &n_bytes);
            frit_buf_append(&text, piece, n_bytes);
            frit_buf_char(&text, '|');   // the tokens must be equal too
        }
    }
    assert_ok(frit_session_get_speculation(session, info));
    frit_sampler_free(sampler);
    frit_session_free(session);
    return text;
}

static void drafts_fit_and_change_nothing(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"name of the king\": {\"enum\": [\"Frederick the first\", \"Arthur "
        "the second\"]}, \"name of the queen\": {\"type\": \"string\", \"maxLength\": 12}, \"number of the king\": "
        "{\"type\": \"integer\", \"maximum\": 99, \"minimum\": 10}}, \"required\": [\"name of the king\", \"name of "
        "the "
        "queen\", \"number of the king\"], \"additionalProperties\": false}";
    static const frit_sampler_options samplers[] = {
        {.temp = 0}, {.temp = 0.8f, .top_k = 20, .repeat_penalty = 1.2f, .repeat_last_n = 8, .seed = 5}};
    frit_model *model = open_model();
    frit_engine *engine = NULL, *draft = NULL;
    const frit_engine_options options = {.n_ctx = 256, .n_sessions = 2, .deterministic = true};
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_engine_new(&draft, model, &options));
    frit_grammar *grammar = make(model, schema, FRIT_GRAMMAR_SCHEMA);
    for (size_t i = 0; i < FRIT_COUNT(samplers); i += FRIT_TEST_STRIDE) {
        const frit_speculate_options kinds[] = {{.kind = "ngram", .always = true, .max_drafts = 7},
                                                {.kind = "draft", .always = true, .max_drafts = 3, .draft = draft},
                                                {.always = true, .draft = draft}};
        frit_speculation_info info;
        frit_buf plain = answer_with(model, engine, grammar, &samplers[i], NULL, &info);
        assert_true(plain.len > 0);
        for (size_t k = 0; k < FRIT_COUNT(kinds); k++) {
            frit_buf text = answer_with(model, engine, grammar, &samplers[i], &kinds[k], &info);
            assert_string_equal(text.data, plain.data);
            assert_null(info.why_not);
            assert_true(info.n_accepted >= 8 && info.n_accepted <= info.n_drafted);
            frit_buf_free(&text);
        }
        frit_buf_free(&plain);
    }
    frit_grammar_free(grammar);
    frit_engine_free(draft);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void mistakes_have_a_sentence(void **state)
{
    (void)state;
    frit_model *model = open_model();
    frit_grammar *grammar = NULL;
    frit_sampler *sampler = NULL;
    const frit_grammar_options unknown = {.kind = 7};
    assert_fails(frit_grammar_new(&grammar, model, "x", 1, &unknown), FRIT_E_INVALID, "the kind of a grammar is 7");
    assert_fails(frit_grammar_new(&grammar, model, "root", 4, NULL), FRIT_E_INVALID, "expected ::=");
    assert_null(grammar);
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    grammar = make(model, "[0-9]+", FRIT_GRAMMAR_REGEX);
    assert_ok(frit_sampler_set_grammar(sampler, grammar));
    frit_token tokens[4];
    size_t n;
    assert_ok(frit_tokenize(model, "king", 4, 0, tokens, 4, &n));
    assert_fails(frit_sampler_accept(sampler, tokens[n - 1]), FRIT_E_INVALID, "does not fit the grammar");
    frit_sampler_free(sampler);
    frit_grammar_free(grammar);
    frit_model_free(model);
}

static void a_grammar_compiles_on_a_thread_of_its_own(void **state)
{
    (void)state;
    enum { MANY = 6 };
    static const char text[] = "root ::= \"ab\" [a-d]{1,8}";
    frit_model *model = NULL;
    frit_grammar_job *jobs[MANY];
    frit_grammar *grammar;
    frit_rng rng;
    frit_rng_init(&rng, 5);
    model = open_model();
    for (int i = 0; i < MANY; i++)   // compiled together, including the vocabulary's trie
        assert_ok(frit_grammar_begin(&jobs[i], model, text, strlen(text), NULL));
    for (int i = 0; i < MANY - 1; i++) {
        assert_ok(frit_grammar_finish(jobs[i], &grammar));
        answer_at_random(model, grammar, &rng, false);
        frit_grammar_free(grammar);
    }
    frit_model_free(model);   // jobs keep the model
    assert_ok(frit_grammar_finish(jobs[MANY - 1], NULL));
}

static void a_mistake_is_told_before_the_thread_begins(void **state)
{
    (void)state;
    static const struct {
        frit_grammar_kind kind;
        const char *text, *part;
        frit_status status;
    } bad[] = {{FRIT_GRAMMAR_GBNF, "root", "expected ::=", FRIT_E_INVALID},
               {FRIT_GRAMMAR_GBNF, "root ::= <[1000000]>", "expected the id of a token of the model's", FRIT_E_INVALID},
               {FRIT_GRAMMAR_GBNF, "root ::= <no token>", "expected a text that is one token", FRIT_E_INVALID},
               {FRIT_GRAMMAR_GBNF, "root ::= root", "no text", FRIT_E_INVALID},
               {FRIT_GRAMMAR_REGEX, "(a", "expected", FRIT_E_INVALID},
               {FRIT_GRAMMAR_SCHEMA, "{\"type\": \"text\"}", "'type' names an unknown type", FRIT_E_INVALID},
               {FRIT_GRAMMAR_SCHEMA, "{\"uniqueItems\": true}", "uniqueItems", FRIT_E_UNSUPPORTED},
               {FRIT_GRAMMAR_TAGS, "{}", "neither structures nor a format", FRIT_E_INVALID},
               {(frit_grammar_kind)4, "{}", "expected 0 to 3", FRIT_E_INVALID}};
    frit_model *model = open_model();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        frit_grammar_job *job = (frit_grammar_job *)(void *)model;
        const frit_grammar_options options = {.kind = bad[i].kind};
        assert_fails(frit_grammar_begin(&job, model, bad[i].text, strlen(bad[i].text), &options), bad[i].status,
                     bad[i].part);
        assert_null(job);
    }
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_logits_give_answers_that_fit),
        cmocka_unit_test(a_session_ends_where_nothing_can_follow),
        cmocka_unit_test(a_grammar_names_tokens),
        cmocka_unit_test(drafts_fit_and_change_nothing),
        cmocka_unit_test(mistakes_have_a_sentence),
        cmocka_unit_test(a_grammar_compiles_on_a_thread_of_its_own),
        cmocka_unit_test(a_mistake_is_told_before_the_thread_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
