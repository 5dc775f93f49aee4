// SPDX-License-Identifier: MIT
// Folders with vocab.json and merges.txt, or vocab.txt, and no tokenizer.json, compared with the ids of transformers
// 5.24's AutoTokenizer.
#include "support/support.h"

#include "base/file/file.h"
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <jansson.h>

static const char *folder;

static const char *in_folder(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    if (text)
        write_file(in_folder(name), text, strlen(text));
    else
        frit_file_remove(in_folder(name));
}

// Writes the 256 bytes in the order of byte-level BPE, "he", "ll", " w", and further pieces.
static void write_pieces(const char *const *more, size_t n_more)
{
    json_t *vocab = json_object();
    int n_other = 0;
    for (int byte = 0; byte < 256; byte++) {
        const bool is_shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        const int code = is_shown ? byte : 256 + n_other++;
        char piece[3] = {(char)(code < 128 ? code : 0xC0 | code >> 6), (char)(code < 128 ? 0 : 0x80 | (code & 63)), 0};
        json_object_set_new(vocab, piece, json_integer(byte));
    }
    json_object_set_new(vocab, "he", json_integer(256));
    json_object_set_new(vocab, "ll", json_integer(257));
    json_object_set_new(vocab, "\xC4\xA0w", json_integer(258));
    for (size_t i = 0; i < n_more; i++) json_object_set_new(vocab, more[i], json_integer(259 + (json_int_t)i));
    char *text = json_dumps(vocab, 0);
    write_text("vocab.json", text);
    write_text("merges.txt", "#version: 0.2\nh e\nl l\n\xC4\xA0 w\n");
    free(text);
    json_decref(vocab);
}

static int make_folder(void **state)
{
    (void)state;
    static char path[4096];
    static int n;
    char name[32];
    snprintf(name, sizeof name, "pair-%d", n++);
    snprintf(path, sizeof path, "%s", temp_path(name));
    folder = path;
    return frit_folder_make(path) == FRIT_OK ? 0 : -1;
}

typedef struct encoded {
    const char *config, *tokenizer;   // config.json, and tokenizer_config.json or NULL
    const char *text;
    frit_token ids[24];   // with special tokens; ends with -1
} encoded;

static void expect_ids(const encoded *row)
{
    frit_arena arena = {0};
    frit_vocab vocab;
    frit_tokenizer *tokenizer;
    frit_ids ids = {0};
    write_text("config.json", row->config);
    write_text("tokenizer_config.json", row->tokenizer);
    assert_non_null(frit_vocab_file_kind(folder));
    assert_ok(frit_vocab_open(&vocab, folder, 0, &arena, NULL));
    assert_ok(frit_tokenizer_new(&tokenizer, &vocab, NULL));
    assert_ok(
        frit_tokenizer_encode(tokenizer, frit_str_of(row->text), FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, &ids));
    for (size_t i = 0; i <= ids.n; i++)
        if ((i < ids.n ? ids.items[i] : -1) != row->ids[i])
            fail_msg("%s, %s: '%s': token %zu is %d, expected %d", row->config, row->tokenizer ? row->tokenizer : "",
                     row->text, i, i < ids.n ? (int)ids.items[i] : -1, (int)row->ids[i]);
    frit_ids_free(&ids);
    frit_tokenizer_free(tokenizer);
    frit_vocab_deinit(&vocab);
    frit_arena_free(&arena);
}

#define GPT2    "{\"model_type\":\"gpt2\"}"
#define ROBERTA "{\"model_type\":\"roberta\"}"
#define BERT    "{\"model_type\":\"bert\"}"

static void byte_level_folders_give_the_ids_of_their_class(void **state)
{
    (void)state;
    static const encoded rows[] = {
        {GPT2, "{\"tokenizer_class\":\"GPT2Tokenizer\"}", "hello w", {256, 257, 111, 258, -1}},
        {GPT2, NULL, "Hello  w\n \xC3\xA9", {72, 101, 257, 111, 32, 258, 10, 32, 195, 169, -1}},
        {GPT2, NULL, "hello<|endoftext|>w", {256, 257, 111, 259, 119, -1}},
        {GPT2,
         "{\"tokenizer_class\":\"GPT2TokenizerFast\",\"add_prefix_space\":true}",
         "hello w",
         {32, 256, 257, 111, 258, -1}},
        {GPT2,
         "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true}",
         "hello w",
         {259, 256, 257, 111, 258, -1}},
        {"{\"model_type\":\"qwen3\"}", NULL, "Hello  w\n \xC3\xA9", {72, 101, 257, 111, 32, 258, 10, 32, 195, 169, -1}},
        {"{\"model_type\":\"phi\"}", "{\"tokenizer_class\":\"CodeGenTokenizer\"}", "hello w", {256, 257, 111, 258, -1}},
        {"{\"model_type\":\"mamba\"}", NULL, "hello<|endoftext|>w", {256, 257, 111, 259, 119, -1}},
        {ROBERTA, NULL, "hello w", {260, 256, 257, 111, 258, 261, -1}},   // special tokens get the next ids
    };
    static const char *const ends[] = {"<|endoftext|>"};
    write_pieces(ends, 1);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) expect_ids(&rows[i]);
}

static void roberta_puts_its_tokens_around_a_text(void **state)
{
    (void)state;
    static const char *const special[] = {"<|endoftext|>", "<s>", "<pad>", "</s>", "<unk>", "<mask>"};
    static const encoded rows[] = {
        {ROBERTA, "{\"tokenizer_class\":\"RobertaTokenizer\"}", "hello w", {260, 256, 257, 111, 258, 262, -1}},
        {ROBERTA, NULL, "hello</s> <mask> hell", {260, 256, 257, 111, 262, 32, 264, 32, 256, 257, 262, -1}},
        {"{\"model_type\":\"bart\"}",
         "{\"tokenizer_class\":\"BartTokenizer\"}",
         "hello w",
         {260, 256, 257, 111, 258, 262, -1}},
    };
    write_pieces(special, FRIT_COUNT(special));
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) expect_ids(&rows[i]);
}

static void wordpiece_folders_give_the_ids_of_bert(void **state)
{
    (void)state;
    static const encoded rows[] = {
        {BERT, "{\"tokenizer_class\":\"BertTokenizer\"}", "Hello w", {2, 5, 8, 3, -1}},
        {BERT, NULL, "hellow, \xC3\x89 \xE4\xB8\xADw", {2, 5, 9, 10, 12, 13, 8, 3, -1}},
        {BERT, NULL, "heLLo \xC3\xA9", {2, 5, 12, 3, -1}},
        {BERT, NULL, "[MASK] zzz", {2, 4, 1, 3, -1}},
        {BERT, "{\"tokenizer_class\":\"BertTokenizer\",\"do_lower_case\":false}", "heLLo \xC3\xA9", {2, 1, 11, 3, -1}},
        {BERT,
         "{\"tokenizer_class\":\"BertTokenizerFast\",\"strip_accents\":false,\"tokenize_chinese_chars\":false}",
         "hellow, \xC3\x89 \xE4\xB8\xADw",
         {2, 5, 9, 10, 11, 13, 9, 3, -1}},
        {BERT, "{\"tokenizer_class\":\"DistilBertTokenizer\"}", "Hello w", {2, 5, 8, 3, -1}},
    };
    write_text("vocab.txt",
               "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nhe\n##llo\nw\n##w\n,\n\xC3\xA9\ne\n\xE4\xB8\xAD\nh\n");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) expect_ids(&rows[i]);
}

static void other_classes_and_lone_files_are_refused_with_what_is_known(void **state)
{
    (void)state;
    frit_arena arena = {0};
    frit_vocab vocab;
    write_pieces(NULL, 0);
    write_text("config.json", GPT2);
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"CLIPTokenizer\"}");
    assert_fails(
        frit_vocab_open(&vocab, folder, 0, &arena, NULL), FRIT_E_UNSUPPORTED,
        "the tokenizer_class CLIPTokenizer of tokenizer_config.json is not supported, expected a tokenizer_class "
        "GPT2Tokenizer, ");
    write_text("tokenizer_config.json", NULL);
    write_text("config.json", "{\"model_type\":\"bloom\"}");
    assert_fails(frit_vocab_open(&vocab, folder, 0, &arena, NULL), FRIT_E_UNSUPPORTED, "bloom");
    write_text("config.json", GPT2);
    write_text("vocab.json", "[1]");
    assert_fails(frit_vocab_open(&vocab, folder, 0, &arena, NULL), FRIT_E_FORMAT, "vocab.json: not a JSON object");
    write_text("vocab.json", "{\"a\":1.5}");
    assert_fails(frit_vocab_open(&vocab, folder, 0, &arena, NULL), FRIT_E_FORMAT, "id");
    write_text("vocab.json", NULL);
    assert_null(frit_vocab_file_kind(folder));
    write_text("vocab.txt", "a\nb\n");
    assert_fails(frit_vocab_open(&vocab, folder, 0, &arena, NULL), FRIT_E_NOT_FOUND,
                 "GPT2Tokenizer needs a vocab.json");
    frit_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(byte_level_folders_give_the_ids_of_their_class, make_folder),
        cmocka_unit_test_setup(roberta_puts_its_tokens_around_a_text, make_folder),
        cmocka_unit_test_setup(wordpiece_folders_give_the_ids_of_bert, make_folder),
        cmocka_unit_test_setup(other_classes_and_lone_files_are_refused_with_what_is_known, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
