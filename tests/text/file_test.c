// SPDX-License-Identifier: MIT
// Tokenizers read from the files that models are published with, compared with the ids of their reference libraries.
#include "support/support.h"

#include "base/utf8.h"
#include "text/load_json.h"
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <jansson.h>

typedef struct subject {
    frit_arena arena;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;
} subject;

static void open_subject(subject *s, const char *path)
{
    memset(s, 0, sizeof *s);
    assert_ok(frit_vocab_open(&s->vocab, path, 0, &s->arena, NULL));
    assert_ok(frit_tokenizer_new(&s->tokenizer, &s->vocab, NULL));
}

static void close_subject(subject *s)
{
    frit_tokenizer_free(s->tokenizer);
    frit_vocab_deinit(&s->vocab);
    frit_arena_free(&s->arena);
}

static frit_str text_of(const json_t *json)
{
    return (frit_str){json_string_value(json), json_string_length(json)};
}

static void print_difference(const char *what, frit_str text, const json_t *want, const frit_ids *got)
{
    char *wanted = json_dumps(want, JSON_COMPACT);
    print_message("%s: '%.*s'\n  wanted %s\n  got    [", what, (int)text.len, text.ptr, wanted);
    for (size_t i = 0; i < got->n; i++) print_message("%d,", (int)got->items[i]);
    print_message("]\n");
    free(wanted);
}

// 1 if the ids of the text differ.
static int compare_ids(const subject *s, const char *what, frit_str text, const json_t *want, unsigned flags)
{
    frit_ids ids = {0};
    assert_ok(frit_tokenizer_encode(s->tokenizer, text, flags, &ids));
    bool same = ids.n == json_array_size(want);
    for (size_t k = 0; same && k < ids.n; k++) same = ids.items[k] == json_integer_value(json_array_get(want, k));
    if (!same) print_difference(what, text, want, &ids);
    frit_ids_free(&ids);
    return !same;
}

static int compare_text(const subject *s, const json_t *golden_ids, frit_str want, unsigned flags)
{
    frit_ids ids = {0};
    frit_buf text = {0};
    for (size_t i = 0; i < json_array_size(golden_ids); i++)
        frit_ids_push(&ids, (frit_token)json_integer_value(json_array_get(golden_ids, i)));
    assert_ok(frit_tokenizer_decode(s->tokenizer, ids.items, ids.n, flags, &text));
    bool same = text.len == want.len && (want.len == 0 || memcmp(text.data, want.ptr, want.len) == 0);
    if (!same) print_message("decoded: wanted '%.*s', got '%.*s'\n", (int)want.len, want.ptr, (int)text.len, text.data);
    frit_buf_free(&text);
    frit_ids_free(&ids);
    return !same;
}

// Checks goldens of lists: texts, ids, ids_with_special, decoded. `parse`: the library recognises special tokens.
static void check_lists(const char *path, const char *golden_path, unsigned parse)
{
    subject s;
    open_subject(&s, path);
    json_t *golden = load_json(golden_path);
    const json_t *texts = json_object_get(golden, "texts"), *ids = json_object_get(golden, "ids");
    const json_t *with = json_object_get(golden, "ids_with_special"), *decoded = json_object_get(golden, "decoded");
    int n_bad = 0;
    assert_true(json_array_size(texts) > 0);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        frit_str text = text_of(json_array_get(texts, i));
        n_bad += compare_ids(&s, "ids", text, json_array_get(ids, i), parse);
        if (with)
            n_bad += compare_ids(&s, "ids_with_special", text, json_array_get(with, i), parse | FRIT_TEXT_SPECIAL);
        n_bad += compare_text(&s, json_array_get(ids, i), text_of(json_array_get(decoded, i)),
                              parse ? FRIT_TEXT_SPECIAL : 0);
    }
    json_decref(golden);
    close_subject(&s);
    assert_int_equal(n_bad, 0);
}

// Checks goldens that are a list of {"text", "ids", "decoded"}.
static void check_items(const char *path, const char *golden_path, unsigned flags)
{
    subject s;
    open_subject(&s, path);
    json_t *golden = load_json(golden_path), *item;
    size_t i;
    int n_bad = 0;
    assert_true(json_array_size(golden) > 0);
    json_array_foreach(golden, i, item)
    {
        const json_t *decoded = json_object_get(item, "decoded");
        n_bad += compare_ids(&s, "ids", text_of(json_object_get(item, "text")), json_object_get(item, "ids"), flags);
        if (decoded) n_bad += compare_text(&s, json_object_get(item, "ids"), text_of(decoded), 0);
    }
    json_decref(golden);
    close_subject(&s);
    assert_int_equal(n_bad, 0);
}

static void llama3_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_lists(shared_path("goldens/tokenizer/real/llama3/tokenizer.json"),
                shared_path("goldens/tokenizer/real/llama3/golden.json"), FRIT_TEXT_PARSE_SPECIAL);
}

static void deepseek_v3_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_lists(shared_path("goldens/tokenizer/real/deepseek_v3/tokenizer.json"),
                shared_path("goldens/tokenizer/real/deepseek_v3/golden.json"), FRIT_TEXT_PARSE_SPECIAL);
}

static void mistral_v3_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_lists(shared_path("goldens/tokenizer/real/mistral_v3/tokenizer.model"),
                shared_path("goldens/tokenizer/real/mistral_v3/golden.json"), 0);
}

static void tekken_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_lists(shared_path("goldens/tokenizer/real/tekken_240718/tekken.json"),
                shared_path("goldens/tokenizer/real/tekken_240718/golden.json"), 0);
}

static void sentencepiece_bpe_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_items(shared_path("goldens/tokenizer/spm-bpe.model"), shared_path("goldens/tokenizer/spm-bpe.json"), 0);
}

static void sentencepiece_unigram_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_items(shared_path("goldens/tokenizer/spm-unigram.model"), shared_path("goldens/tokenizer/spm-unigram.json"),
                0);
}

static void wordpiece_gives_the_ids_of_its_library(void **state)
{
    (void)state;
    check_items(shared_path("goldens/tokenizer/wordpiece.json"), shared_path("goldens/tokenizer/wordpiece.golden.json"),
                FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL);
}

// Small tokenizers with combinations of flags, and the results of the tokenizers library; written by flags.py.
static int check_made_up(const json_t *row, size_t i)
{
    const char *path = temp_path("flags.json");
    const json_t *items = json_object_get(row, "items");
    const size_t n = json_array_size(items);
    subject s;
    int n_bad = 0;
    assert_int_equal(json_dump_file(json_object_get(row, "tokenizer"), path, 0), 0);
    open_subject(&s, path);
    assert_true(n > 0);
    for (size_t k = 0; k < n; k++) {
        const json_t *item = json_array_get(items, k), *ids = json_object_get(item, "ids");
        const json_t *decoded = json_object_get(item, "decoded");
        n_bad += compare_ids(&s, "ids", text_of(json_object_get(item, "text")), ids, FRIT_TEXT_PARSE_SPECIAL);
        if (decoded) n_bad += compare_text(&s, ids, text_of(decoded), FRIT_TEXT_SPECIAL);
    }
    if (n_bad > 0) print_message("tokenizer %zu of flags.json: %d differences\n", i, n_bad);
    close_subject(&s);
    return n_bad;
}

static void flags_mean_what_the_tokenizers_library_makes_of_them(void **state)
{
    (void)state;
    json_t *rows = load_json(project_path("tests/text/flags.json")), *row;
    size_t i;
    int n_bad = 0;
    assert_int_equal(json_array_size(rows), 22);
    json_array_foreach(rows, i, row) n_bad += check_made_up(row, i);
    json_decref(rows);
    assert_int_equal(n_bad, 0);
}

// ------------------------------------------------------------------------------------- decoders

// Byte-level BPE whose ids are the bytes, with merges of "th" and "the".
static const char *write_byte_level(const char *decoder)
{
    frit_buf json = {0};
    frit_buf_text(&json, "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                         "\"add_prefix_space\": false, \"use_regex\": true}, \"post_processor\": null, \"decoder\": ");
    frit_buf_printf(&json, "%s, \"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {", decoder);
    for (unsigned byte = 0; byte < 256; byte++) {
        char letter[5] = {0};
        letter[frit_utf8_encode(frit_letter_of((unsigned char)byte), letter)] = 0;
        const bool is_quoted = byte == '"' || byte == '\\';
        frit_buf_printf(&json, "\"%s%s\": %u, ", is_quoted ? "\\" : "", letter, byte);
    }
    frit_buf_text(&json, "\"th\": 256, \"the\": 257}, \"merges\": [\"t h\", \"th e\"]}}");
    const char *path = temp_path("byte-level.json");
    write_file(path, json.data, json.len);
    frit_buf_free(&json);
    return path;
}

static void ids_do_not_depend_on_the_decoder(void **state)
{
    (void)state;
    static const char *const decoders[] = {
        "null",
        "{\"type\": \"ByteLevel\"}",
        "{\"type\": \"Fuse\"}",
        "{\"type\": \"ByteFallback\"}",
        "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}",
        "{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}",
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"b\"}",
        "{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": \"always\"}",
    };
    static const unsigned char text[] = "the \xc3\xa9 w\n\xe6\x97\xa5\"th\\ ";
    static const frit_token want[] = {257, ' ', 0xc3, 0xa9, ' ', 'w', '\n', 0xe6, 0x97, 0xa5, '"', 256, '\\', ' '};
    for (size_t i = 0; i < FRIT_COUNT(decoders); i++) {
        subject s;
        frit_ids ids = {0};
        open_subject(&s, write_byte_level(decoders[i]));
        assert_ok(frit_tokenizer_encode(s.tokenizer, (frit_str){(const char *)text, sizeof text - 1}, 0, &ids));
        if (ids.n != FRIT_COUNT(want) || memcmp(ids.items, want, sizeof want) != 0)
            fail_msg("the decoder %s changes the ids", decoders[i]);
        frit_ids_free(&ids);
        close_subject(&s);
    }
}

static void the_reported_tokenizer_has_the_ids_of_its_twin(void **state)
{
    (void)state;
    static const frit_token want[] = {256, 258, 111, 32, 195, 169, 257};
    static const char *const names[] = {"tokenizer.json", "with-decoder.json"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s;
        frit_ids ids = {0};
        open_subject(&s, shared_path("bugs/14-byte-level-without-decoder/%s", names[i]));
        assert_ok(frit_tokenizer_encode(s.tokenizer, frit_str_of("hello \xc3\xa9 w"), 0, &ids));
        assert_int_equal(ids.n, FRIT_COUNT(want));
        assert_memory_equal(ids.items, want, sizeof want);
        frit_ids_free(&ids);
        close_subject(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_do_not_depend_on_the_decoder),
        cmocka_unit_test(the_reported_tokenizer_has_the_ids_of_its_twin),
        cmocka_unit_test(flags_mean_what_the_tokenizers_library_makes_of_them),
        cmocka_unit_test(llama3_gives_the_ids_of_its_library),
        cmocka_unit_test(deepseek_v3_gives_the_ids_of_its_library),
        cmocka_unit_test(mistral_v3_gives_the_ids_of_its_library),
        cmocka_unit_test(tekken_gives_the_ids_of_its_library),
        cmocka_unit_test(sentencepiece_bpe_gives_the_ids_of_its_library),
        cmocka_unit_test(sentencepiece_unigram_gives_the_ids_of_its_library),
        cmocka_unit_test(wordpiece_gives_the_ids_of_its_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
