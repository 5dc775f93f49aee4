// SPDX-License-Identifier: MIT
// Tokenizers against published vocabularies: ids in three modes, and the way back to text.
#include "support/support.h"

#include "format/checkpoint.h"
#include "text/pretok.h"
#include "text/stream.h"

#include <jansson.h>
#include <time.h>

typedef struct subject {
    frit_checkpoint *ckpt;
    frit_meta meta; // the checkpoint's, maybe with another pre-tokenizer
    frit_arena arena;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;
} subject;

static void say(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    (void)level;
    print_message("note: %s\n", sentence);
}

// `pre`: the pre-tokenizer to use instead of the file's, or NULL.
static void open_subject(subject *s, const char *path, const char *pre)
{
    memset(s, 0, sizeof *s);
    frit_log log = {say, NULL};
    assert_ok(frit_checkpoint_open(&s->ckpt, path, NULL));
    frit_meta_init(&s->meta, &s->arena);
    for (size_t i = 0; i < s->ckpt->meta.n; i++) {
        frit_pair pair = s->ckpt->meta.pairs[i];
        if (pre && frit_str_is(pair.key, "tokenizer.ggml.pre")) pair.value.text = frit_str_of(pre);
        assert_ok(frit_meta_add(&s->meta, pair.key, pair.value));
    }
    assert_ok(frit_vocab_read(&s->vocab, &s->meta, 0, &s->arena, &log));
    assert_ok(frit_tokenizer_new(&s->tokenizer, &s->vocab, &log));
}

static void close_subject(subject *s)
{
    frit_tokenizer_free(s->tokenizer);
    frit_vocab_deinit(&s->vocab);
    frit_meta_deinit(&s->meta);
    frit_arena_free(&s->arena);
    frit_checkpoint_close(s->ckpt);
}

static json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

static frit_str text_of(const json_t *json)
{
    return (frit_str){json_string_value(json), json_string_length(json)};
}

// Counts texts whose ids differ, and tells about the first ones.
static int count_differences(const subject *s, const char *what, const json_t *texts, const json_t *golden,
                             unsigned flags)
{
    int n_bad = 0;
    assert_int_equal(json_array_size(texts), json_array_size(golden));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        frit_ids ids = {0};
        assert_ok(frit_tokenizer_encode(s->tokenizer, text_of(json_array_get(texts, i)), flags, &ids));
        const json_t *want = json_array_get(golden, i);
        bool same = ids.n == json_array_size(want);
        for (size_t k = 0; same && k < ids.n; k++) same = ids.items[k] == json_integer_value(json_array_get(want, k));
        if (!same && n_bad++ < 3) {
            char *wanted = json_dumps(want, JSON_COMPACT);
            print_message("%s: '%s'\n  wanted %s\n  got    ", what, json_string_value(json_array_get(texts, i)),
                          wanted);
            for (size_t k = 0; k < ids.n; k++) print_message("%d,", (int)ids.items[k]);
            print_message("\n");
            free(wanted);
        }
        frit_ids_free(&ids);
    }
    return n_bad;
}

static void check_goldens(const char *name)
{
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/%s.gguf", name), NULL);
    json_t *golden = load_json(shared_path("goldens/tokenizer/%s.json", name));
    const json_t *texts = json_object_get(golden, "texts");
    static const struct {
        const char *key;
        unsigned flags;
    } modes[] = {{"ids", 0},
                 {"ids_with_special", FRIT_TEXT_SPECIAL},
                 {"ids_parse_special", FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL}};
    int n_bad = 0;
    for (size_t i = 0; i < FRIT_COUNT(modes); i++) {
        char what[64];
        snprintf(what, sizeof what, "%s %s", name, modes[i].key);
        n_bad += count_differences(&s, what, texts, json_object_get(golden, modes[i].key), modes[i].flags);
    }
    json_decref(golden);
    close_subject(&s);
    assert_int_equal(n_bad, 0);
}

#define GOLDEN_TEST(function, name)                                                                                    \
    static void function(void **state)                                                                                 \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_goldens(name);                                                                                           \
    }
GOLDEN_TEST(gpt_2_gives_the_published_ids, "gpt-2")
GOLDEN_TEST(llama_gives_the_published_ids, "llama-spm")
GOLDEN_TEST(phi_3_gives_the_published_ids, "phi-3")
GOLDEN_TEST(starcoder_gives_the_published_ids, "starcoder")
GOLDEN_TEST(baichuan_gives_the_published_ids, "baichuan")
GOLDEN_TEST(deepseek_coder_gives_the_published_ids, "deepseek-coder")
GOLDEN_TEST(deepseek_llm_gives_the_published_ids, "deepseek-llm")
GOLDEN_TEST(falcon_gives_the_published_ids, "falcon")
GOLDEN_TEST(gpt_neox_gives_the_published_ids, "gpt-neox")
GOLDEN_TEST(mpt_gives_the_published_ids, "mpt")
GOLDEN_TEST(refact_gives_the_published_ids, "refact")
GOLDEN_TEST(bert_gives_the_published_ids, "bert-bge")

static void every_pre_tokenizer_gives_the_published_ids(void **state)
{
    (void)state;
    json_t *golden = load_json(shared_path("goldens/tokenizer/pretokenizers.json"));
    const json_t *texts = json_object_get(golden, "texts");
    const char *name;
    json_t *ids;
    int n_bad = 0, n_names = 0;
    json_object_foreach(json_object_get(golden, "pre"), name, ids)
    {
        n_names++;
        if (!frit_pretok_find(name)) {
            print_message("%s: not known\n", name);
            n_bad++;
            continue;
        }
        subject s;
        open_subject(&s, shared_path("goldens/tokenizer/fable-vocab.gguf"), name);
        n_bad += count_differences(&s, name, texts, ids, 0) > 0;
        close_subject(&s);
    }
    json_decref(golden);
    print_message("%d of %d pre-tokenizers differ\n", n_bad, n_names);
    assert_int_equal(n_bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt_2_gives_the_published_ids),
        cmocka_unit_test(llama_gives_the_published_ids),
        cmocka_unit_test(phi_3_gives_the_published_ids),
        cmocka_unit_test(starcoder_gives_the_published_ids),
        cmocka_unit_test(baichuan_gives_the_published_ids),
        cmocka_unit_test(deepseek_coder_gives_the_published_ids),
        cmocka_unit_test(deepseek_llm_gives_the_published_ids),
        cmocka_unit_test(falcon_gives_the_published_ids),
        cmocka_unit_test(gpt_neox_gives_the_published_ids),
        cmocka_unit_test(mpt_gives_the_published_ids),
        cmocka_unit_test(refact_gives_the_published_ids),
        cmocka_unit_test(bert_gives_the_published_ids),
        cmocka_unit_test(every_pre_tokenizer_gives_the_published_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
