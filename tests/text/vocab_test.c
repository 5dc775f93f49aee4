// SPDX-License-Identifier: MIT
// Vocabularies: reading, inference, and a refusal for every inconsistency.
#include "support/support.h"

#include "text/tokenizer/tokenizer.h"

// A small vocabulary as metadata; a test changes one thing and reads it.
typedef struct fixture {
    frit_arena arena;
    frit_meta meta;
    frit_str tokens[16], merges[4];
    int32_t types[16];
    float scores[16];
    frit_vocab vocab;
    int n_warnings;
} fixture;

static void count_warning(void *ctx, frit_log_level level, const char *sentence)
{
    (void)sentence;
    if (level == FRIT_LOG_WARNING) ++((fixture *)ctx)->n_warnings;
}

static void add(fixture *f, const char *key, frit_value value)
{
    assert_ok(frit_meta_add(&f->meta, frit_str_of(key), value));
}

static void add_array(fixture *f, const char *key, frit_value_type type, uint64_t n, const void *items)
{
    frit_value value = {.type = FRIT_VALUE_ARRAY};
    value.array.type = type;
    value.array.n = n;
    value.array.items = items;
    add(f, key, value);
}

static void add_text(fixture *f, const char *key, const char *text)
{
    assert_ok(frit_meta_add_text(&f->meta, key, text));
}

static void add_number(fixture *f, const char *key, uint64_t number)
{
    assert_ok(frit_meta_add_u64(&f->meta, key, number));
}

// Lists of texts end with NULL.
static uint64_t fill(frit_str *items, const char *const *texts)
{
    uint64_t n = 0;
    for (; texts[n]; n++) items[n] = frit_str_of(texts[n]);
    return n;
}

static void begin(fixture *f, const char *model)
{
    memset(f, 0, sizeof *f);
    frit_meta_init(&f->meta, &f->arena);
    add_text(f, "tokenizer.ggml.model", model);
    if (strcmp(model, "gpt2") == 0) add_text(f, "tokenizer.ggml.pre", "gpt-2");
}

static void add_tokens(fixture *f, const char *const *texts)
{
    add_array(f, "tokenizer.ggml.tokens", FRIT_VALUE_TEXT, fill(f->tokens, texts), f->tokens);
}

static void add_merges(fixture *f, const char *const *texts)
{
    add_array(f, "tokenizer.ggml.merges", FRIT_VALUE_TEXT, fill(f->merges, texts), f->merges);
}

static void add_types(fixture *f, uint64_t n)
{
    for (int i = 0; i < 16; i++)
        if (f->types[i] == 0) f->types[i] = FRIT_TOKEN_NORMAL;
    add_array(f, "tokenizer.ggml.token_type", FRIT_VALUE_I32, n, f->types);
}

static frit_status read_it(fixture *f, int64_t expected)
{
    frit_log log = {count_warning, f};
    return frit_vocab_read(&f->vocab, &f->meta, expected, &f->arena, &log);
}

static void end(fixture *f)
{
    frit_vocab_deinit(&f->vocab);
    frit_meta_deinit(&f->meta);
    frit_arena_free(&f->arena);
}

static const char *const letters[] = {"a", "b", "ab", "<|im_end|>", NULL};
static const char *const one_merge[] = {"a b", NULL};

static void gpt2(fixture *f)
{
    begin(f, "gpt2");
    add_tokens(f, letters);
    add_merges(f, one_merge);
}

static void a_vocabulary_is_read(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    f.types[3] = FRIT_TOKEN_CONTROL;
    add_types(&f, 4);
    assert_ok(read_it(&f, 4));
    assert_int_equal(f.vocab.n, 4);
    assert_int_equal(f.vocab.n_merges, 1);
    assert_int_equal(f.vocab.merges[0].merged, 2);
    assert_int_equal(f.vocab.eot, 3);
    assert_int_equal(f.vocab.n_specials, 1);
    assert_true(f.vocab.entries[3].is_end);
    assert_false(f.vocab.entries[0].is_end);
    assert_int_equal(f.vocab.bos, -1);
    assert_int_equal(f.n_warnings, 0);
    end(&f);
}

static void a_model_without_text_has_as_many_tokens_as_its_embedding(void **state)
{
    (void)state;
    const char *names[] = {"none", "no_vocab"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        begin(&f, names[i]);
        assert_ok(read_it(&f, 77));
        assert_int_equal(f.vocab.n, 77);
        assert_string_equal(f.vocab.model, "none");
        frit_tokenizer *tokenizer;
        assert_ok(frit_tokenizer_new(&tokenizer, &f.vocab, NULL));
        assert_null(tokenizer);
        end(&f);
    }
}

static void llama_has_its_usual_ids_where_the_file_is_silent(void **state)
{
    (void)state;
    static const char *const pieces[] = {"<unk>", "<s>", "</s>", NULL};
    fixture f;
    begin(&f, "llama");
    add_tokens(&f, pieces);
    add_array(&f, "tokenizer.ggml.scores", FRIT_VALUE_F32, 3, f.scores);
    assert_ok(read_it(&f, 0));
    assert_int_equal(f.vocab.unk, 0);
    assert_int_equal(f.vocab.bos, 1);
    assert_int_equal(f.vocab.eos, 2);
    assert_true(f.vocab.add_bos && f.vocab.add_space_prefix && f.vocab.entries[2].is_end);
    end(&f);
}

static void equal_pieces_warn_and_the_first_is_found(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", "b", "ab", "a", NULL};
    fixture f;
    begin(&f, "gpt2");
    add_tokens(&f, pieces);
    add_merges(&f, one_merge);
    assert_ok(read_it(&f, 0));
    assert_int_equal(f.n_warnings, 1);
    assert_int_equal(frit_vocab_find(&f.vocab, frit_str_of("a")), 0);
    end(&f);
}

static void end_in_a_format_with_channels_does_not_end_the_answer(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", "b", "ab", "<|end|>", "<|return|>", "<|call|>", "<|channel|>", NULL};
    fixture f;
    begin(&f, "gpt2");
    add_tokens(&f, pieces);
    add_merges(&f, one_merge);
    assert_ok(read_it(&f, 0));
    assert_false(f.vocab.entries[3].is_end);
    assert_true(f.vocab.entries[4].is_end && f.vocab.entries[5].is_end);
    assert_int_equal(f.vocab.entries[6].kind, FRIT_TOKEN_USER);
    end(&f);
}

static void a_bad_padding_id_is_only_a_warning(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    add_number(&f, "tokenizer.ggml.padding_token_id", 4);
    assert_ok(read_it(&f, 0));
    assert_int_equal(f.vocab.pad, -1);
    assert_int_equal(f.n_warnings, 1);
    end(&f);
}

// ------------------------------------------------------------------------------------- refusals

#define REFUSED(f, expected, status, part)                     \
    do {                                                       \
        assert_fails(read_it(&(f), (expected)), status, part); \
        end(&(f));                                             \
    } while (0)

static void tokens_of_the_wrong_type_are_refused(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "gpt2");
    add_number(&f, "tokenizer.ggml.tokens", 3);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.tokens is of type");
    begin(&f, "gpt2");
    add_array(&f, "tokenizer.ggml.tokens", FRIT_VALUE_I32, 4, f.types);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.tokens is an array of");
}

static void missing_and_empty_vocabularies_are_refused(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "gpt2");
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.tokens is missing");
    begin(&f, "gpt2");
    add_array(&f, "tokenizer.ggml.tokens", FRIT_VALUE_TEXT, 0, f.tokens);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.tokens is empty");
}

static void a_vocabulary_that_is_not_as_long_as_the_embedding_is_refused(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    REFUSED(f, 5, FRIT_E_FORMAT, "4 items, but the embedding table has 5 rows");
}

static void arrays_of_another_length_are_refused(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    add_types(&f, 3);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.token_type has 3 items, but there are 4 tokens");
    gpt2(&f);
    add_array(&f, "tokenizer.ggml.scores", FRIT_VALUE_F32, 5, f.scores);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.scores has 5 items, but there are 4 tokens");
}

static void unknown_token_types_are_refused(void **state)
{
    (void)state;
    static const int32_t bad[] = {7, -1, 1000};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        fixture f;
        gpt2(&f);
        f.types[2] = bad[i];
        add_types(&f, 4);
        REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.token_type: token 2 has type");
    }
}

static void scores_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    f.scores[1] = __builtin_nanf("");
    add_array(&f, "tokenizer.ggml.scores", FRIT_VALUE_F32, 4, f.scores);
    REFUSED(f, 0, FRIT_E_FORMAT, "the score of token 1");
    begin(&f, "llama");
    add_tokens(&f, letters);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.scores is missing");
}

static void ids_outside_the_vocabulary_are_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id",
                                       "seperator_token_id"};
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        fixture f;
        gpt2(&f);
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s", keys[i]);
        frit_str name = {frit_arena_text(&f.arena, key, strlen(key)), strlen(key)};
        assert_ok(frit_meta_add(&f.meta, name, (frit_value){.type = FRIT_VALUE_U32, .u = 4}));
        REFUSED(f, 0, FRIT_E_FORMAT, "is 4, but there are 4 tokens");
    }
}

static void asking_for_a_bos_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    fixture f;
    gpt2(&f);
    assert_ok(frit_meta_add_bool(&f.meta, "tokenizer.ggml.add_bos_token", true));
    REFUSED(f, 0, FRIT_E_FORMAT, "add_bos_token is true, but");
}

static void merges_that_name_no_tokens_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *const merges[3];
        const char *part;
    } bad[] = {
        {{"a b", "a c", NULL}, "merge 1, 'a c', needs the token 'c'"},
        {{"x a", NULL}, "merge 0, 'x a', needs the token 'x'"},
        {{"b a", NULL}, "needs the token 'ba'"},
        {{"ab", NULL}, "merge 0, 'ab', lacks the space"},
        {{"", NULL}, "lacks the space"},
        {{" ", NULL}, "lacks the space"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        fixture f;
        begin(&f, "gpt2");
        add_tokens(&f, letters);
        add_merges(&f, bad[i].merges);
        REFUSED(f, 0, FRIT_E_FORMAT, bad[i].part);
    }
    fixture f;
    begin(&f, "gpt2");
    add_tokens(&f, letters);
    REFUSED(f, 0, FRIT_E_FORMAT, "tokenizer.ggml.merges is missing");
}

static void unknown_kinds_are_refused(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "abacus");
    REFUSED(f, 0, FRIT_E_UNSUPPORTED, "tokenizer.ggml.model is 'abacus'");
    begin(&f, "gpt2");
    f.meta.pairs[1].value.text = frit_str_of("abacus-bpe");
    REFUSED(f, 0, FRIT_E_UNSUPPORTED, "tokenizer.ggml.pre is 'abacus-bpe'");
}

static void a_special_token_of_absurd_length_is_refused(void **state)
{
    (void)state;
    static char piece[FRIT_SPECIAL_PIECE_BYTES + 2];
    memset(piece, 'x', sizeof piece - 1);
    const char *pieces[] = {"a", "b", "ab", piece, NULL};
    fixture f;
    begin(&f, "gpt2");
    add_tokens(&f, pieces);
    add_merges(&f, one_merge);
    f.types[3] = FRIT_TOKEN_USER;
    add_types(&f, 4);
    REFUSED(f, 0, FRIT_E_FORMAT, "special token 3 is 1025 bytes long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocabulary_is_read),
        cmocka_unit_test(a_model_without_text_has_as_many_tokens_as_its_embedding),
        cmocka_unit_test(llama_has_its_usual_ids_where_the_file_is_silent),
        cmocka_unit_test(equal_pieces_warn_and_the_first_is_found),
        cmocka_unit_test(end_in_a_format_with_channels_does_not_end_the_answer),
        cmocka_unit_test(a_bad_padding_id_is_only_a_warning),
        cmocka_unit_test(tokens_of_the_wrong_type_are_refused),
        cmocka_unit_test(missing_and_empty_vocabularies_are_refused),
        cmocka_unit_test(a_vocabulary_that_is_not_as_long_as_the_embedding_is_refused),
        cmocka_unit_test(arrays_of_another_length_are_refused),
        cmocka_unit_test(unknown_token_types_are_refused),
        cmocka_unit_test(scores_that_are_no_numbers_are_refused),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(asking_for_a_bos_that_does_not_exist_is_refused),
        cmocka_unit_test(merges_that_name_no_tokens_are_refused),
        cmocka_unit_test(unknown_kinds_are_refused),
        cmocka_unit_test(a_special_token_of_absurd_length_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
