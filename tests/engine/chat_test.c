// SPDX-License-Identifier: MIT
// Prompts of chats from models' files: a rendered template is whole, and of several templates one is used.
#include "support/support.h"

#include "base/file.h"
#include "support/gguf_builder.h"
#include "support/tiny_model.h"

#include "frit.h"

#define TURNS "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"

enum { MOST_TOKENS = 64 };

// A vocabulary of a few words and two marks, with what is put around a text.
#define TOKENIZER(around)                                                                                             \
    "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", \"special\": true}, "                \
    "{\"id\": 1, \"content\": \"</s>\", \"special\": true}], \"normalizer\": null, "                                  \
    "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": " around ", \"decoder\": null, "              \
    "\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"<s>\": 0, \"</s>\": 1, \"?\": 2, \"hello\": 3, \"user\": 4, " \
    "\"<\": 5, \">\": 6}, \"unk_token\": \"?\"}}"
#define AROUND                                                                                                       \
    "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "        \
    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"</s>\", \"type_id\": 0}}], "     \
    "\"pair\": [], \"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [0], \"tokens\": [\"<s>\"]}, \"</s>\": " \
    "{\"id\": \"</s>\", \"ids\": [1], \"tokens\": [\"</s>\"]}}}"
#define CONFIG(more) "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"" more "}"

// ------------------------------------------------------------------------------------- models of text alone

static frit_model *open_text(const char *path, const frit_model_options *options)
{
    frit_model_options all = options ? *options : (frit_model_options){0};
    frit_model *model;
    all.vocab_only = true;
    assert_ok(frit_model_open(&model, path, &all));
    return model;
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, text, strlen(text));
}

// A folder with a tokenizer and its configuration.
static const char *text_folder(const char *name, const char *tokenizer, const char *config)
{
    const char *folder = temp_path(name);
    assert_ok(frit_folder_make(folder));
    put(folder, "tokenizer.json", tokenizer);
    put(folder, "tokenizer_config.json", config);
    return folder;
}

static size_t chat_tokens(const frit_model *model, frit_token tokens[MOST_TOKENS])
{
    const frit_message message = {.role = "user", .content = "hello"};
    size_t n;
    assert_ok(frit_chat_tokenize(model, &message, 1, NULL, tokens, MOST_TOKENS, &n));
    // A turn has the same prompt.
    static const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}";
    frit_turn *turn;
    frit_token again[MOST_TOKENS];
    size_t n_again;
    assert_ok(frit_turn_new(&turn, model, request, sizeof request - 1));
    assert_ok(frit_turn_tokenize(turn, NULL, again, MOST_TOKENS, &n_again));
    assert_int_equal(n_again, n);
    assert_memory_equal(again, tokens, n * sizeof *tokens);
    frit_turn_free(turn);
    return n;
}

static bool has(const frit_token *tokens, size_t n, frit_token token)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] == token) return true;
    return false;
}

// ------------------------------------------------------------------------------------- a whole prompt

static void nothing_is_put_around_a_rendered_template(void **state)
{
    (void)state;
    static const char *const configs[] = {
        CONFIG(", \"chat_template\": \"" TURNS "\""),
        CONFIG(", \"chat_template\": \"" TURNS "\", \"add_bos_token\": true, \"add_eos_token\": true, "
               "\"tokenizer_class\": \"LlamaTokenizerFast\""),
    };
    static const char *const tokenizers[] = {TOKENIZER(AROUND), TOKENIZER("null")};
    for (size_t i = 0; i < FRIT_COUNT(configs); i++) {
        frit_model *model = open_text(text_folder(i ? "flags" : "around", tokenizers[i], configs[i]), NULL);
        frit_token tokens[MOST_TOKENS];
        size_t n;
        assert_ok(frit_tokenize(model, "hello", 5, FRIT_TEXT_SPECIAL, tokens, MOST_TOKENS, &n));
        assert_int_equal(n, 3);   // as embeddings read it
        assert_int_equal(tokens[0], 0);
        assert_int_equal(tokens[2], 1);
        n = chat_tokens(model, tokens);
        assert_false(has(tokens, n, 0) || has(tokens, n, 1));
        assert_int_equal(tokens[n - 1], 3);
        frit_model_free(model);
    }
}

static void a_bos_is_there_once_where_the_template_writes_it(void **state)
{
    (void)state;
    const char *folder =
        text_folder("bos", TOKENIZER(AROUND), CONFIG(", \"chat_template\": \"{{ bos_token }}" TURNS "\""));
    frit_model *model = open_text(folder, NULL);
    frit_token tokens[MOST_TOKENS];
    const size_t n = chat_tokens(model, tokens);
    assert_int_equal(tokens[0], 0);
    assert_false(has(tokens + 1, n - 1, 0) || has(tokens, n, 1));
    frit_model_free(model);
}

static void a_gguf_that_adds_an_eos_has_the_prompt_of_one_that_does_not(void **state)
{
    (void)state;
    frit_token with[MOST_TOKENS], without[MOST_TOKENS];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        const tiny_options options = {.chat_template = TURNS, .no_tensors = true, .adds_eos = i == 1};
        frit_model *model = open_text(tiny_model(i ? "eos.gguf" : "plain.gguf", &options), NULL);
        n[i] = chat_tokens(model, i ? with : without);
        frit_model_free(model);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(with, without, n[0] * sizeof *with);
    assert_false(has(with, n[0], 2));
}

// ChatML is not the model's own words, so it begins as the model's texts do.
static void chatml_in_the_place_of_a_template_begins_as_texts_of_the_model_do(void **state)
{
    (void)state;
    static const char *const configs[] = {CONFIG(""), CONFIG(", \"chat_template\": \"{% if %}\"")};
    static const char *const tokenizers[] = {TOKENIZER(AROUND), TOKENIZER("null")};
    for (size_t i = 0; i < FRIT_COUNT(configs); i++) {
        for (size_t k = 0; k < FRIT_COUNT(tokenizers); k++) {
            char name[16];
            snprintf(name, sizeof name, "guess%zu%zu", i, k);
            frit_model *model = open_text(text_folder(name, tokenizers[k], configs[i]), NULL);
            frit_token tokens[MOST_TOKENS];
            const size_t n = chat_tokens(model, tokens);
            assert_int_equal(tokens[0] == 0, k == 0);
            assert_false(has(tokens + 1, n - 1, 0) || has(tokens, n, 1));
            frit_model_free(model);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_put_around_a_rendered_template),
        cmocka_unit_test(a_bos_is_there_once_where_the_template_writes_it),
        cmocka_unit_test(a_gguf_that_adds_an_eos_has_the_prompt_of_one_that_does_not),
        cmocka_unit_test(chatml_in_the_place_of_a_template_begins_as_texts_of_the_model_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
