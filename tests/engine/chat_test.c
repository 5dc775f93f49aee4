// SPDX-License-Identifier: MIT
// Prompts of chats from models' files: a template is rendered completely, and the right one of several templates is
// used.
#include "support/support.h"

#include "base/file/file.h"
#include "support/gguf_builder.h"
#include "support/tiny_model.h"

#include "text/chat/chat_sources.h"

#include "frit.h"

#define TURNS "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"

enum { MOST_TOKENS = 64 };

// A vocabulary of a few words and two marks, with options about BOS and EOS.
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
    snprintf(path, sizeof path, "%.400s/%s", folder, name);
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

// ChatML is not the model's own template, so its prompt begins in the same way as the model's texts.
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

// ------------------------------------------------------------------------------------- templates with names

#define ASK       "\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]"
#define WITH_TOOL "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"
#define TOOL_USE  "{% for t in tools %}[{{ t.function.name }}]{% endfor %}" TURNS
#define BY_NAME(first)                                                                                                 \
    "[{\"name\": \"" first "\", \"template\": \"" TURNS "\"}, {\"name\": \"tool_use\", \"template\": \"" TOOL_USE "\"" \
    "}]"

// Returns the prompt; NULL if it is refused.
static char *prompt_of(const frit_model *model, const char *request)
{
    frit_turn *turn;
    size_t n;
    if (frit_turn_new(&turn, model, request, strlen(request)) != FRIT_OK) return NULL;
    char *text = strdup(frit_turn_prompt(turn, &n));
    frit_turn_free(turn);
    return text;
}

static void expect_prompt(const frit_model *model, const char *request, const char *begin)
{
    char *text = prompt_of(model, request);
    if (!text || strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("%s: '%s' does not begin with '%s' (%s)", request, text ? text : "", begin, text ? "" : frit_error());
    free(text);
}

// "tool_use" is for conversations with tools, "default" for the others.
static void check_both(const frit_model *model)
{
    static const char variables[] = "{" ASK ", " WITH_TOOL "}";
    char text[64];
    size_t n;
    expect_prompt(model, "{" ASK "}", "<user>hello");
    expect_prompt(model, "{" ASK ", \"tools\": []}", "<user>hello");
    expect_prompt(model, "{" ASK ", " WITH_TOOL ", \"tool_choice\": \"none\"}", "<user>hello");
    expect_prompt(model, "{" ASK ", " WITH_TOOL "}", "[f]<user>hello");
    assert_ok(frit_chat_render_json(model, NULL, variables, sizeof variables - 1, text, sizeof text, &n));
    assert_memory_equal(text, "[f]<user>hello", n);
}

static void folder_with_both(const char *folder, int form)
{
    if (form < 2) return;
    char path[512];
    snprintf(path, sizeof path, "%.400s/additional_chat_templates", folder);
    if (form == 2) put(folder, "chat_template.json", "{\"chat_template\": " BY_NAME("default") "}");
    if (form == 2) return;
    assert_ok(frit_folder_make(path));
    put(path, "tool_use.jinja", "\xef\xbb\xbf" TOOL_USE);   // a byte order mark is skipped
    put(path, "readme.txt", "no template");
    if (form == 3) put(folder, "chat_template.jinja", "\xef\xbb\xbf" TURNS);
}

static const char *const forms[] = {
    CONFIG(", \"chat_template\": " BY_NAME("default")),
    CONFIG(", \"chat_template\": {\"tool_use\": \"" TOOL_USE "\", \"default\": \"" TURNS "\"}"),
    CONFIG(""),                                              // chat_template.json
    CONFIG(", \"chat_template\": \"{{ 'overridden' }}\""),   // files
    CONFIG(", \"chat_template\": \"" TURNS "\""),            // the default here, the other in a file
};

static void a_folder_has_its_templates_in_any_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(forms); i++) {
        char name[16];
        snprintf(name, sizeof name, "form%zu", i);
        const char *folder = text_folder(name, TOKENIZER("null"), forms[i]);
        folder_with_both(folder, (int)i);
        frit_model *model = open_text(folder, NULL);
        check_both(model);
        frit_model_free(model);
    }
}

typedef struct gguf_form {
    const char *main, *names[3], *key, *text;
} gguf_form;

// The tiny model's vocabulary with templates in its metadata.
static frit_model *open_gguf(const gguf_form *form)
{
    gguf_builder b = {0};
    static const char *const tokens[] = {"<unk>", "<s>", "</s>"};
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_text(&b, "tokenizer.ggml.model", "llama");
    gguf_add_texts(&b, "tokenizer.ggml.tokens", 3, tokens);
    gguf_add_array(&b, "tokenizer.ggml.scores", FRIT_VALUE_F32, 3, (float[]){0, 0, 0});
    gguf_add_array(&b, "tokenizer.ggml.token_type", FRIT_VALUE_I32, 3, (int32_t[]){2, 3, 3});
    size_t n = 0;
    while (n < 3 && form->names[n]) n++;
    if (form->main) gguf_add_text(&b, "tokenizer.chat_template", form->main);
    if (n > 0) gguf_add_texts(&b, "tokenizer.chat_templates", n, form->names);
    if (form->key) gguf_add_text(&b, form->key, form->text);
    if (n > 1) gguf_add_text(&b, "tokenizer.chat_template.rag", TURNS);
    frit_buf file = gguf_build(&b);
    const char *path = temp_path("named.gguf");
    write_file(path, file.data, file.len);
    frit_buf_free(&file);
    gguf_builder_free(&b);
    return open_text(path, NULL);
}

static void a_gguf_has_its_templates_with_or_without_the_list_of_names(void **state)
{
    (void)state;
    static const gguf_form both[] = {
        {TURNS, {"tool_use"}, "tokenizer.chat_template.tool_use", TOOL_USE},
        {TURNS, {NULL}, "tokenizer.chat_template.tool_use", TOOL_USE},
        {TURNS, {"rag", "tool_use"}, "tokenizer.chat_template.tool_use", TOOL_USE},
    };
    for (size_t i = 0; i < FRIT_COUNT(both); i++) {
        frit_model *model = open_gguf(&both[i]);
        check_both(model);
        frit_model_free(model);
    }
    // A template of another task is not used for tools.
    frit_model *model = open_gguf(&(gguf_form){TOOL_USE, {"rag"}, "tokenizer.chat_template.rag", TURNS});
    expect_prompt(model, "{" ASK ", " WITH_TOOL "}", "[f]<user>hello");
    frit_model_free(model);
}

static void of_several_templates_without_a_default_the_caller_chooses(void **state)
{
    (void)state;
    frit_model *model =
        open_text(text_folder("several", TOKENIZER("null"), CONFIG(", \"chat_template\": " BY_NAME("rag"))), NULL);
    frit_model_info info;
    frit_model_get_info(model, &info);
    assert_true(info.chat_format[0]);   // so that callers do not treat it as a model without chats
    expect_prompt(model, "{" ASK ", " WITH_TOOL "}", "[f]<user>hello");
    assert_null(prompt_of(model, "{" ASK "}"));
    assert_non_null(strstr(frit_error(), "'rag', 'tool_use'"));
    frit_model_free(model);
    const char *path = temp_path("several");
    model = open_text(path, &(frit_model_options){.chat_template = "rag"});
    expect_prompt(model, "{" ASK "}", "<user>hello");
    frit_model_free(model);
    model = open_text(path, &(frit_model_options){.chat_template = "tool_use"});
    expect_prompt(model, "{" ASK "}", "<user>hello");
    expect_prompt(model, "{" ASK ", " WITH_TOOL "}", "[f]<user>hello");
    frit_model_free(model);
    const frit_model_options wrong = {.vocab_only = true, .chat_template = "tool_us"};
    assert_fails(frit_model_open(&model, path, &wrong), FRIT_E_NOT_FOUND, "tool_us");
    // A single template is used for everything.
    model = open_text(
        text_folder("single", TOKENIZER("null"),
                    CONFIG(", \"chat_template\": [{\"name\": \"tool_use\", \"template\": \"" TOOL_USE "\"}]")),
        NULL);
    check_both(model);
    frit_model_free(model);
}

static void converting_keeps_all_templates(void **state)
{
    (void)state;
    frit_chat_sources sources = {.n = 0}, again = {.n = 0};
    frit_arena arena = {0};
    frit_meta meta;
    frit_meta_init(&meta, &arena);
    const frit_str names[] = {frit_str_of("rag"), frit_str_of("default"), frit_str_of("tool_use")};
    for (size_t i = 0; i < 3; i++) assert_ok(frit_chat_sources_set(&sources, names[i], names[i], &arena));
    assert_ok(frit_chat_sources_write(&sources, &meta));
    assert_ok(frit_chat_sources_read(&again, &meta, &arena));
    assert_int_equal(again.n, 3);
    for (size_t i = 0; i < 3; i++) {
        const frit_str text = frit_chat_sources_find(&again, names[i].ptr);
        assert_true(frit_str_is(text, names[i].ptr));
    }
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_put_around_a_rendered_template),
        cmocka_unit_test(a_bos_is_there_once_where_the_template_writes_it),
        cmocka_unit_test(a_gguf_that_adds_an_eos_has_the_prompt_of_one_that_does_not),
        cmocka_unit_test(a_folder_has_its_templates_in_any_form),
        cmocka_unit_test(a_gguf_has_its_templates_with_or_without_the_list_of_names),
        cmocka_unit_test(of_several_templates_without_a_default_the_caller_chooses),
        cmocka_unit_test(converting_keeps_all_templates),
        cmocka_unit_test(chatml_in_the_place_of_a_template_begins_as_texts_of_the_model_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
