// SPDX-License-Identifier: MIT
// Published tokenizers written as keys of a GGUF file: read back, they give the same tokens for the goldens' texts.
#include "support/support.h"

#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"
#include "text/vocab/vocab_write.h"

#include <jansson.h>

typedef struct subject {
    const char *path, *texts;   // below goldens/tokenizer
    const char *model, *pre;    // expected in the file; pre NULL: none
} subject;

static const subject subjects[] = {
    {"real/llama3/tokenizer.json", "real/llama3/golden.json", "gpt2", "llama3"},
    {"real/deepseek_v3/tokenizer.json", "real/deepseek_v3/golden.json", "gpt2", "deepseek-v3"},
    {"real/mistral_v3/tokenizer.model", "real/mistral_v3/golden.json", "llama", NULL},
    {"real/tekken_240718/tekken.json", "real/tekken_240718/golden.json", "gpt2", "tekken"},
    {"spm-bpe.model", "real/llama3/golden.json", "llama", NULL},
    {"spm-unigram.model", "real/llama3/golden.json", "t5", NULL},
    {"wordpiece.json", "real/llama3/golden.json", "bert", NULL},
};

static void check_text(const frit_meta *meta, const char *key, const char *expected)
{
    frit_str value = {"", 0};
    bool found;
    assert_ok(frit_meta_get_text(meta, key, &value, &found));
    if (found != (expected != NULL) || (found && !frit_str_is(value, expected)))
        fail_msg("%s is '%.*s', expected '%s'", key, (int)value.len, value.ptr, expected ? expected : "nothing");
}

static size_t count_differences(const frit_tokenizer *a, const frit_tokenizer *b, const char *golden)
{
    json_error_t error;
    json_t *json = json_load_file(golden, 0, &error), *item;
    if (!json) fail_msg("%s: %s", golden, error.text);
    const json_t *texts = json_object_get(json, "texts");
    size_t i, n = 0;
    assert_true(json_array_size(texts) > 10);
    json_array_foreach(texts, i, item)
    {
        const frit_str text = {json_string_value(item), json_string_length(item)};
        frit_ids x = {0}, y = {0};
        assert_ok(frit_tokenizer_encode(a, text, FRIT_TEXT_SPECIAL, &x));
        assert_ok(frit_tokenizer_encode(b, text, FRIT_TEXT_SPECIAL, &y));
        const bool same = x.n == y.n && (x.n == 0 || memcmp(x.items, y.items, x.n * sizeof *x.items) == 0);
        if (!same) print_message("differs: '%.*s'\n", (int)text.len, text.ptr);
        n += !same;
        frit_ids_free(&x);
        frit_ids_free(&y);
    }
    json_decref(json);
    return n;
}

static void check_subject(const subject *s)
{
    frit_arena arena = {0};
    frit_vocab vocab, again;
    frit_tokenizer *original, *written;
    frit_meta meta;
    bool is_exact;
    frit_meta_init(&meta, &arena);
    assert_ok(frit_vocab_open(&vocab, shared_path("goldens/tokenizer/%s", s->path), 0, &arena, NULL));
    assert_ok(frit_vocab_write(&vocab, &meta, &is_exact));
    check_text(&meta, "tokenizer.ggml.model", s->model);
    check_text(&meta, "tokenizer.ggml.pre", s->pre);
    assert_ok(frit_vocab_read(&again, &meta, vocab.n, &arena, NULL));
    assert_ok(frit_tokenizer_new(&original, &vocab, NULL));
    assert_ok(frit_tokenizer_new(&written, &again, NULL));
    const size_t n = count_differences(original, written, shared_path("goldens/tokenizer/%s", s->texts));
    print_message("%-34s %s%s%s: %s, %zu texts differ\n", s->path, s->model, s->pre ? " " : "", s->pre ? s->pre : "",
                  is_exact ? "exact" : "not exact", n);
    assert_true(is_exact);
    assert_int_equal(n, 0);
    frit_tokenizer_free(written);
    frit_tokenizer_free(original);
    frit_vocab_deinit(&again);
    frit_vocab_deinit(&vocab);
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
}

static void published_tokenizers_are_written_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(subjects); i++) check_subject(&subjects[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_tokenizers_are_written_exactly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
