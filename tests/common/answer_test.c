// SPDX-License-Identifier: MIT
// The text of an answer: for every kind of tokenizer and any tokens, stop strings end it at the exact byte, even across
// tokens and characters.
#include "support/support.h"

#include "common/answer.h"

enum { MAX_TOKENS = 96, MAX_STOPS = 4, N_ROUNDS = 400 };

static const char *const names[] = {
    "llama-spm.gguf",    "gpt-2.gguf",     "bert-bge.gguf", "deepseek-llm.gguf",  "spm-bpe.model",
    "spm-unigram.model", "wordpiece.json", "real/llama3",   "real/tekken_240718", "real/mistral_v3",
};

static const char sample[] =
    "The frog's caf\xc3\xa9: na\xc3\xafve \xf0\x9f\x90\xb8\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 "
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e, "
    "aaaaaaab ababab ababc </s> <|im_end|>\n\n\nUser: 12.5%";

// Makes tokens of a part of the sample, or any tokens.
static size_t make_tokens(const frit_model *model, frit_rng *rng, frit_token *tokens)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    size_t n = 0;
    if (random_between(rng, 0, 2) > 0) {
        size_t begin = (size_t)random_between(rng, 0, sizeof sample - 2);
        size_t end = (size_t)random_between(rng, (int64_t)begin + 1, sizeof sample - 1);
        frit_tokenize(model, sample + begin, end - begin, 0, tokens, MAX_TOKENS, &n);
        return n < MAX_TOKENS ? n : MAX_TOKENS;
    }
    n = (size_t)random_between(rng, 1, 24);
    int64_t last = random_between(rng, 0, 1) ? info.n_vocab - 1 : 300 < info.n_vocab ? 300 : info.n_vocab - 1;
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(rng, 0, last);
    return n;
}

// Pushes the tokens and returns the text that was shown, malloc'd.
static char *show(const frit_model *model, const frit_token *tokens, size_t n, frit_option_list stop, bool *stopped)
{
    app_answer answer;
    app_text shown;
    size_t n_shown = 0;
    char *all = calloc(1, 1);
    assert_ok(app_answer_init(&answer, model, stop));
    for (size_t i = 0; i <= n && !answer.stopped; i++) {
        assert_ok(i < n ? app_answer_push(&answer, tokens[i], &shown) : app_answer_end(&answer, &shown));
        all = realloc(all, n_shown + shown.n + 1);
        memcpy(all + n_shown, shown.ptr, shown.n);
        all[n_shown += shown.n] = 0;
    }
    assert_int_equal(strlen(all), n_shown);   // the texts here contain no zeros
    assert_string_equal(all, answer.text);
    *stopped = answer.stopped;
    app_answer_deinit(&answer);
    return all;
}

static bool holds_zero(const frit_model *model, const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        const char *piece = frit_token_piece(model, tokens[i], &n_bytes);
        if (memchr(piece, 0, n_bytes)) return true;
    }
    return false;
}

static void check_round(const frit_model *model, frit_rng *rng, size_t *n_stopped)
{
    frit_token tokens[MAX_TOKENS];
    size_t n = make_tokens(model, rng, tokens);
    if (holds_zero(model, tokens, n)) return;
    bool stopped;
    char *whole = show(model, tokens, n, (frit_option_list){0}, &stopped);
    assert_false(stopped);
    // Stop strings: parts of the text, any bytes, some with an end that does not occur.
    char texts[MAX_STOPS][64];
    const char *items[MAX_STOPS];
    frit_option_list stop = {items, (size_t)random_between(rng, 1, MAX_STOPS)};
    size_t n_whole = strlen(whole), first = n_whole;
    for (size_t i = 0; i < stop.n; i++) {
        size_t begin = (size_t)random_between(rng, 0, (int64_t)n_whole), length = (size_t)random_between(rng, 0, 12);
        if (length > n_whole - begin) length = n_whole - begin;
        memcpy(texts[i], whole + begin, length);
        texts[i][length] = 0;
        if (random_between(rng, 0, 2) == 0) strcat(texts[i], "\x01");
        items[i] = texts[i];
        const char *found = texts[i][0] ? strstr(whole, texts[i]) : NULL;
        if (found && (size_t)(found - whole) < first) first = (size_t)(found - whole);
    }
    bool expected = first < n_whole;
    char *shown = show(model, tokens, n, stop, &stopped);
    if (stopped != expected || strlen(shown) != first || memcmp(shown, whole, first) != 0)
        fail_msg("of '%s' with the stop '%s' and %zu more '%s' is shown", whole, items[0], stop.n - 1, shown);
    *n_stopped += stopped;
    free(shown);
    free(whole);
}

static void stop_strings_end_answers_of_every_tokenizer_to_the_byte(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 5);
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        frit_model *model;
        size_t n_stopped = 0;
        assert_ok(frit_model_open(&model, shared_path("goldens/tokenizer/%s", names[i]),
                                  &(frit_model_options){.vocab_only = true}));
        for (int round = 0; round < N_ROUNDS; round++) check_round(model, &rng, &n_stopped);
        print_message("%-20s %zu of %d answers were stopped\n", names[i], n_stopped, N_ROUNDS);
        assert_true(n_stopped > N_ROUNDS / 4);
        frit_model_free(model);
    }
}

static void text_that_is_spelled_again_is_not_shown_again(void **state)
{
    (void)state;
    frit_model *model;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), &(frit_model_options){.vocab_only = true}));
    frit_token tokens[MAX_TOKENS];
    size_t n;
    assert_ok(frit_tokenize(model, "Once upon", 9, 0, tokens, MAX_TOKENS, &n));
    for (size_t n_skip = 0; n_skip <= 9; n_skip++) {
        app_answer answer;
        app_text shown;
        assert_ok(app_answer_init(&answer, model, (frit_option_list){0}));
        answer.n_skip = n_skip;
        for (size_t i = 0; i < n; i++) assert_ok(app_answer_push(&answer, tokens[i], &shown));
        assert_ok(app_answer_end(&answer, &shown));
        assert_string_equal(answer.text, &"Once upon"[n_skip]);
        app_answer_deinit(&answer);
    }
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_strings_end_answers_of_every_tokenizer_to_the_byte),
        cmocka_unit_test(text_that_is_spelled_again_is_not_shown_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
