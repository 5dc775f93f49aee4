// SPDX-License-Identifier: MIT
// Tokenizers against published vocabularies: ids in three modes, and decoding.
#include "support/growth.h"
#include "support/support.h"

#include "base/utf8.h"
#include "format/checkpoint.h"
#include "text/load_json.h"
#include "text/tokenizer/pretok.h"
#include "text/stream.h"

#include <jansson.h>

typedef struct subject {
    frit_checkpoint *ckpt;
    frit_meta meta;   // the checkpoint's, maybe with another pre-tokenizer
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

// `pre`: a pre-tokenizer instead of the file's, or NULL.
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

static frit_str text_of(const json_t *json)
{
    return (frit_str){json_string_value(json), json_string_length(json)};
}

// Counts texts whose ids differ, and prints the first ones.
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

#define GOLDEN_TEST(function, name)    \
    static void function(void **state) \
    {                                  \
        (void)state;                   \
        check_goldens(name);           \
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

// ------------------------------------------------------------------------------------- properties

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->len ? buf->data : "", buf->len};
}

// Encodes and decodes; fails unless the result is the text.
static void check_round_trip(const subject *s, frit_str text, unsigned flags)
{
    frit_ids ids = {0};
    frit_buf back = {0};
    assert_ok(frit_tokenizer_encode(s->tokenizer, text, flags, &ids));
    assert_ok(frit_tokenizer_decode(s->tokenizer, ids.items, ids.n,
                                    flags & FRIT_TEXT_PARSE_SPECIAL ? FRIT_TEXT_SPECIAL : 0, &back));
    if (str_of(&back).len != text.len || memcmp(str_of(&back).ptr, text.ptr, text.len) != 0)
        fail_msg("'%.*s' came back as '%s'", (int)text.len, text.ptr, str_of(&back).ptr);
    frit_buf_free(&back);
    frit_ids_free(&ids);
}

static void what_was_encoded_decodes_to_the_same_text(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-2", "llama-spm", "deepseek-llm", "mpt", "baichuan", "fable-vocab"};
    json_t *golden = load_json(shared_path("goldens/tokenizer/gpt-2.json"));
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s;
        open_subject(&s, shared_path("goldens/tokenizer/%s.gguf", names[i]), NULL);
        size_t k;
        json_t *text;
        json_array_foreach(json_object_get(golden, "texts"), k, text)
        {
            check_round_trip(&s, text_of(text), 0);
            check_round_trip(&s, text_of(text), FRIT_TEXT_SPECIAL);
        }
        check_round_trip(&s, (frit_str){"a\0b", 3}, 0);
        check_round_trip(&s, (frit_str){"", 0}, FRIT_TEXT_SPECIAL);
        close_subject(&s);
    }
    json_decref(golden);
}

static void special_tokens_in_text_are_parsed_only_on_demand(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/fable-vocab.gguf"), NULL);
    frit_str text = frit_str_of("<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>");
    frit_ids ids = {0};
    assert_ok(frit_tokenizer_encode(s.tokenizer, text, FRIT_TEXT_PARSE_SPECIAL, &ids));
    assert_int_equal(ids.items[0], 2);
    assert_int_equal(ids.items[ids.n - 1], 4);
    ids.n = 0;
    assert_ok(frit_tokenizer_encode(s.tokenizer, text, 0, &ids));
    for (size_t i = 0; i < ids.n; i++) assert_true(ids.items[i] > 5);
    frit_ids_free(&ids);
    check_round_trip(&s, text, FRIT_TEXT_PARSE_SPECIAL);
    close_subject(&s);
}

static void a_text_that_begins_with_the_bos_gets_no_second_one(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/llama-spm.gguf"), NULL);
    frit_ids ids = {0};
    assert_ok(
        frit_tokenizer_encode(s.tokenizer, frit_str_of("<s>Hello"), FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, &ids));
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.items[0], 1);
    assert_true(ids.items[1] != 1);
    frit_ids_free(&ids);
    close_subject(&s);
}

static void text_cannot_spell_a_control_token(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/llama-spm.gguf"), NULL);
    frit_ids ids = {0};
    assert_ok(frit_tokenizer_encode(s.tokenizer, frit_str_of("</s><s><unk><0x41></s>"), 0, &ids));
    for (size_t i = 0; i < ids.n; i++) assert_int_equal(s.vocab.entries[ids.items[i]].kind, FRIT_TOKEN_NORMAL);
    frit_ids_free(&ids);
    close_subject(&s);
}

static void every_byte_that_is_no_text_becomes_one_replacement_character(void **state)
{
    (void)state;
    static const struct {
        frit_str text;
        const char *want;
    } cases[] = {
        {{"a\xff"
          "b",
          3},
         "a\xef\xbf\xbd"
         "b"},
        {{"\xe3\x81", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
        {{"\xc0\x80", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
        {{"\xed\xa0\x80", 3}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {{"\xc3\xa9\x80", 3}, "\xc3\xa9\xef\xbf\xbd"},
    };
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/gpt-2.gguf"), NULL);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_ids got = {0}, want = {0};
        assert_ok(frit_tokenizer_encode(s.tokenizer, cases[i].text, 0, &got));
        assert_ok(frit_tokenizer_encode(s.tokenizer, frit_str_of(cases[i].want), 0, &want));
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.items, want.items, want.n * sizeof *want.items);
        frit_ids_free(&got);
        frit_ids_free(&want);
    }
    close_subject(&s);
}

static void bytes_that_are_no_text_survive_in_sentencepiece(void **state)
{
    (void)state;
    subject s;
    open_subject(&s, shared_path("goldens/tokenizer/llama-spm.gguf"), NULL);
    check_round_trip(&s, (frit_str){"a\xff\xe3\x81 b\x80", 7}, 0);
    close_subject(&s);
}

// The streamed text of random tokens is the decoded text, with invalid UTF-8 replaced.
static void a_stream_gives_the_repaired_text(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-2", "llama-spm", "fable-vocab"};
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s;
        open_subject(&s, shared_path("goldens/tokenizer/%s.gguf", names[i]), NULL);
        for (int round = 0; round < 300; round++) {
            unsigned flags = round % 2 ? FRIT_TEXT_SPECIAL : 0;
            frit_token ids[40];
            size_t n = (size_t)random_between(&rng, 0, 40);
            // Low ids are single bytes in these vocabularies: sequences break and complete often.
            for (size_t k = 0; k < n; k++)
                ids[k] = (frit_token)random_between(&rng, 0, round % 3 ? 300 : s.vocab.n - 1);
            frit_buf whole = {0}, repaired = {0}, streamed = {0};
            assert_ok(frit_tokenizer_decode(s.tokenizer, ids, n, flags, &whole));
            for (size_t at = 0; at < whole.len;) {
                uint32_t c;
                int len = frit_utf8_decode(whole.data + at, whole.len - at, &c);
                if (len > 0)
                    frit_buf_append(&repaired, whole.data + at, (size_t)len);
                else
                    frit_buf_text(&repaired, "\xef\xbf\xbd");
                at += len > 0 ? (size_t)len : len < 0 ? (size_t)-len : whole.len - at;
            }
            frit_stream stream;
            frit_stream_init(&stream, s.tokenizer, flags);
            for (size_t k = 0; k <= n; k++) {
                frit_str text = k < n ? frit_stream_push(&stream, ids[k]) : frit_stream_flush(&stream);
                assert_int_equal(frit_utf8_valid_prefix(text.ptr, text.len), text.len);
                assert_int_equal(text.ptr[text.len], 0);
                frit_buf_append(&streamed, text.ptr, text.len);
            }
            assert_int_equal(streamed.len, repaired.len);
            if (streamed.len) assert_memory_equal(streamed.data, repaired.data, repaired.len);
            frit_stream_deinit(&stream);
            frit_buf_free(&whole);
            frit_buf_free(&repaired);
            frit_buf_free(&streamed);
        }
        close_subject(&s);
    }
}

// ------------------------------------------------------------------------------------- long texts

// Repetitions of these texts would take quadratic time in a simple tokenizer.
static const char *const units[] = {"a",    " ",  "7", "\n",  " a",  "'", "\xcc\x81", "\xe6\x97\xa5",
                                    "\xff", "<|", "A", "\t ", " \n", "aB"};

typedef struct encoding {
    const subject *s;
    const char *unit;
} encoding;

static void encode_repeated(void *ctx, size_t n_bytes)
{
    const encoding *e = ctx;
    frit_buf text = {0};
    frit_ids ids = {0};
    while (text.len < n_bytes) frit_buf_text(&text, e->unit);
    frit_buf_text(&text, "x");
    assert_ok(frit_tokenizer_encode(e->s->tokenizer, str_of(&text), FRIT_TEXT_PARSE_SPECIAL, &ids));
    frit_ids_free(&ids);
    frit_buf_free(&text);
}

static void check_long_texts(const subject *s, const char *name, size_t n_bytes, size_t n_units)
{
    for (size_t i = 0; i < n_units; i++) {
        const double times = growth_of(encode_repeated, &(encoding){s, units[i]}, n_bytes / 8);
        if (times > GROWTH_LIMIT) fail_msg("%s: 8 times '%s' takes %.0f times as long", name, units[i], times);
    }
}

static void a_megabyte_without_borders_is_encoded_in_linear_time(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-spm", "gpt-2", "mpt"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s;
        open_subject(&s, shared_path("goldens/tokenizer/%s.gguf", names[i]), NULL);
        check_long_texts(&s, names[i], 1 << 20, 5);
        close_subject(&s);
    }
}

static void no_pre_tokenizer_takes_quadratic_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < frit_pretok_n_rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(frit_pretok_rows[i].names, " "), frit_pretok_rows[i].names);
        subject s;
        open_subject(&s, shared_path("goldens/tokenizer/fable-vocab.gguf"), name);
        check_long_texts(&s, name, 1 << 17, FRIT_COUNT(units));
        close_subject(&s);
    }
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
        cmocka_unit_test(what_was_encoded_decodes_to_the_same_text),
        cmocka_unit_test(special_tokens_in_text_are_parsed_only_on_demand),
        cmocka_unit_test(a_text_that_begins_with_the_bos_gets_no_second_one),
        cmocka_unit_test(text_cannot_spell_a_control_token),
        cmocka_unit_test(every_byte_that_is_no_text_becomes_one_replacement_character),
        cmocka_unit_test(bytes_that_are_no_text_survive_in_sentencepiece),
        cmocka_unit_test(a_stream_gives_the_repaired_text),
        cmocka_unit_test(a_megabyte_without_borders_is_encoded_in_linear_time),
        cmocka_unit_test(no_pre_tokenizer_takes_quadratic_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
