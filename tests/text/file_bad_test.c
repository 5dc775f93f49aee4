// SPDX-License-Identifier: MIT
// Tokenizer files that are refused, each with an error, and texts and rules that must not take forever.
#include "support/support.h"

#include "text/stream.h"
#include "text/vocab/vocab_file.h"

#include "base/utf8.h"

#include <time.h>

typedef struct subject {
    frit_arena arena;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;
} subject;

static frit_status open_text(subject *s, const char *text)
{
    const char *path = temp_path("tokenizer.json");
    memset(s, 0, sizeof *s);
    write_file(path, text, strlen(text));
    frit_status status = frit_vocab_open(&s->vocab, path, 0, &s->arena, NULL);
    return status == FRIT_OK ? frit_tokenizer_new(&s->tokenizer, &s->vocab, NULL) : status;
}

static void close_subject(subject *s)
{
    frit_tokenizer_free(s->tokenizer);
    frit_vocab_deinit(&s->vocab);
    frit_arena_free(&s->arena);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);   // the machine may be busy
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define BPE(vocab, merges) "\"model\":{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"
#define AB                 BPE("{\"a\":0,\"b\":1,\"ab\":2}", "[\"a b\"]")
#define SPLIT(regex) \
    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}"

static void bad_files_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        frit_status status;
    } cases[] = {
        {"{}", "neither 'model'", FRIT_E_FORMAT},
        {"{\"model\": 5}", "neither 'model'", FRIT_E_FORMAT},
        {"{\"model\": {\"vocab\"", "a colon is expected", FRIT_E_FORMAT},
        {"{" BPE("{}", "[]") "}", "the vocabulary is empty", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":0,\"b\":0}", "[]") "}", "both 'a' and 'b' have the id 0", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":-1}", "[]") "}", "'a' has the id -1", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":1.5}", "[]") "}", "'a' has the id 1.5", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":2000000000}", "[]") "}", "has id 2000000000, but there are only 1 tokens", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":0,\"\":1}", "[[\"\",\"a\"]]") "}", "it would go on for ever", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":0}", "[\"a b\"]") "}", "needs the token 'b'", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":0,\"b\":1}", "[\"a b\"]") "}", "needs the token 'ab'", FRIT_E_FORMAT},
        {"{" BPE("{\"a\":0}", "[\"ab\"]") "}", "lacks the space", FRIT_E_FORMAT},
        {"{" AB ",\"added_tokens\":[{\"id\":1,\"content\":\"x\"}]}", "both 'b' and 'x' have the id 1", FRIT_E_FORMAT},
        {"{" AB ",\"added_tokens\":[{\"id\":5,\"content\":\"b\"}]}", "in the vocabulary it has id 1", FRIT_E_FORMAT},
        {"{" AB "," SPLIT("(a") "}", "pre_tokenizer: regex '(a' cannot be used", FRIT_E_FORMAT},
        {"{" AB "," SPLIT("[a") "}", "a class without its end", FRIT_E_UNSUPPORTED},
        {"{" AB ",\"normalizer\":{\"type\":\"Magic\"}}", "type 'Magic' is not known", FRIT_E_UNSUPPORTED},
        {"{" AB ",\"decoder\":{\"type\":\"CTC\"}}", "type 'CTC' is not known", FRIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"Magic\",\"vocab\":{\"a\":0}}}", "type is 'Magic'", FRIT_E_UNSUPPORTED},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",0]]}}", "unk_id is 7", FRIT_E_FORMAT},
        {"IQ== 0\nIg==\n", "line 2: base64 and a rank", FRIT_E_FORMAT},
        {"hello", "neither a tokenizer.json", FRIT_E_FORMAT},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        subject s;
        assert_fails(open_text(&s, cases[i].text), cases[i].status, cases[i].part);
        close_subject(&s);
    }
}

static void hopeless_regexes_end_soon(void **state)
{
    (void)state;
    static const char *const regexes[] = {"(a+)+$", "(a|aa)+$", "(a*)*b", "(?:a?){30}a{30}b", "(.*.*.*)*c"};
    for (size_t i = 0; i < FRIT_COUNT(regexes); i++) {
        char text[512], long_text[200];
        snprintf(text, sizeof text, "{%s," SPLIT("%s") "}", AB, regexes[i]);
        memset(long_text, 'a', sizeof long_text);
        long_text[sizeof long_text - 1] = '!';
        subject s;
        assert_ok(open_text(&s, text));
        frit_ids ids = {0};
        double start = seconds();
        frit_status status = frit_tokenizer_encode(s.tokenizer, (frit_str){long_text, sizeof long_text}, 0, &ids);
        if (status != FRIT_OK) assert_int_equal(status, FRIT_E_TIMEOUT);
        if (seconds() - start > 1) print_message("%s took %.1f s\n", regexes[i], seconds() - start);
        assert_true(seconds() - start < 10);   // a generous limit, because the machine may be busy
        frit_ids_free(&ids);
        close_subject(&s);
    }
}

static void normalizers_that_double_a_text_are_stopped(void **state)
{
    (void)state;
    frit_buf text = {0};
    frit_buf_text(&text, "{" AB ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 60; i++)
        frit_buf_printf(&text, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}",
                        i ? "," : "");
    frit_buf_text(&text, "]}}");
    subject s;
    assert_ok(open_text(&s, text.data));
    frit_ids ids = {0};
    assert_fails(frit_tokenizer_encode(s.tokenizer, frit_str_of("a"), 0, &ids), FRIT_E_LIMIT,
                 "the normalizers make a text");
    frit_ids_free(&ids);
    frit_buf_free(&text);
    close_subject(&s);
}

// Checks that a stream of random tokens gives the decoded text, with invalid UTF-8 replaced.
static void check_stream(const subject *s, frit_rng *rng)
{
    for (int round = 0; round < 200; round++) {
        unsigned flags = round % 2 ? FRIT_TEXT_SPECIAL : 0;
        frit_token ids[40];
        size_t n = (size_t)random_between(rng, 0, 40);
        for (size_t k = 0; k < n; k++) ids[k] = (frit_token)random_between(rng, 0, round % 3 ? 300 : s->vocab.n - 1);
        frit_buf whole = {0}, repaired = {0}, streamed = {0};
        assert_ok(frit_tokenizer_decode(s->tokenizer, ids, n, flags, &whole));
        frit_unicode_repair((frit_str){whole.len ? whole.data : "", whole.len}, FRIT_REPAIR_PARTS, &repaired);
        frit_stream stream;
        frit_stream_init(&stream, s->tokenizer, flags);
        for (size_t k = 0; k <= n; k++) {
            frit_str text = k < n ? frit_stream_push(&stream, ids[k]) : frit_stream_flush(&stream);
            assert_int_equal(frit_utf8_valid_prefix(text.ptr, text.len), text.len);
            frit_buf_append(&streamed, text.ptr, text.len);
        }
        assert_int_equal(streamed.len, repaired.len);
        if (streamed.len) assert_memory_equal(streamed.data, repaired.data, repaired.len);
        frit_stream_deinit(&stream);
        frit_buf_free(&whole);
        frit_buf_free(&repaired);
        frit_buf_free(&streamed);
    }
}

static void streams_of_every_kind_give_the_repaired_text(void **state)
{
    (void)state;
    static const char *const names[] = {"spm-unigram.model", "spm-bpe.model", "wordpiece.json",
                                        "real/tekken_240718/tekken.json", "real/mistral_v3/tokenizer.model"};
    frit_rng rng;
    frit_rng_init(&rng, 11);
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s = {0};
        assert_ok(frit_vocab_open(&s.vocab, shared_path("goldens/tokenizer/%s", names[i]), 0, &s.arena, NULL));
        assert_ok(frit_tokenizer_new(&s.tokenizer, &s.vocab, NULL));
        check_stream(&s, &rng);
        close_subject(&s);
    }
}

static void a_megabyte_of_one_thing_is_encoded_at_once(void **state)
{
    (void)state;
    static const char *const names[] = {"spm-unigram.model", "spm-bpe.model", "wordpiece.json",
                                        "real/llama3/tokenizer.json", "real/tekken_240718/tekken.json"};
    static const char *const units[] = {"a", " ", "7", "\xf0\x9f\x98\x80", "\xcc\x81\xcc\xa3"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        subject s = {0};
        assert_ok(frit_vocab_open(&s.vocab, shared_path("goldens/tokenizer/%s", names[i]), 0, &s.arena, NULL));
        assert_ok(frit_tokenizer_new(&s.tokenizer, &s.vocab, NULL));
        for (size_t k = 0; k < FRIT_COUNT(units); k++) {
            frit_buf text = {0};
            while (text.len < 1 << 20) frit_buf_text(&text, units[k]);
            frit_ids ids = {0};
            double start = seconds();
            assert_ok(frit_tokenizer_encode(s.tokenizer, (frit_str){text.data, text.len}, 0, &ids));
            double taken = seconds() - start;
            if (taken > 2) print_message("%s: a megabyte of '%s' took %.1f s\n", names[i], units[k], taken);
            assert_true(taken < 30);   // a generous limit; quadratic time would be minutes
            frit_ids_free(&ids);
            frit_buf_free(&text);
        }
        close_subject(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_files_are_refused_with_a_sentence),
        cmocka_unit_test(hopeless_regexes_end_soon),
        cmocka_unit_test(normalizers_that_double_a_text_are_stopped),
        cmocka_unit_test(streams_of_every_kind_give_the_repaired_text),
        cmocka_unit_test(a_megabyte_of_one_thing_is_encoded_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
