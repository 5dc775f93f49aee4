// SPDX-License-Identifier: MIT
// Masks against the definition: a token may be next if its bytes fit. With --bench MODEL: times of grammars and masks,
// which peers.py compares.
#include "grammar/check.h"

#include "base/arena.h"
#include "base/time.h"
#include "grammar/mask.h"

typedef struct words {
    frit_arena arena;
    frit_str *pieces;
    int32_t n;
    frit_token_trie *trie;
    uint64_t trie_ns;
} words;

static const char json_grammar[] =
    "root ::= object\n"
    "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\" ws\n"
    "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n"
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

// Makes texts of letters that grammars use, single bytes, and texts that occur in every vocabulary.
static void make_words(words *w, int32_t n, uint64_t seed)
{
    static const char *const parts[] = {
        "{",    "}",    "[",     "]",   "\"", "\":", ",",   ", ", ": ",  " ",    "\n", "  ",   "a",    "b",
        "name", "true", "null",  "1",   "23", ".",   "-",   "\\", "\\u", "00e9", "e",  "\xc3", "\xa9", "\xe2\x82\xac",
        "the",  " of",  "\",\"", "\"}", "]]", "}}",  "\"\""};
    frit_rng rng;
    frit_rng_init(&rng, seed);
    *w = (words){.n = n};
    w->pieces = frit_arena_new(&w->arena, frit_str, (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        char text[64];
        size_t len = 0;
        if (i < 256) text[len++] = (char)i;
        for (int k = i < 256 ? 0 : (int)random_between(&rng, 1, 5); k > 0; k--) {
            const char *part = parts[random_between(&rng, 0, (int64_t)FRIT_COUNT(parts) - 1)];
            memcpy(text + len, part, strlen(part));
            len += strlen(part);
        }
        w->pieces[i] = (frit_str){frit_arena_text(&w->arena, text, len), len};
    }
    w->pieces[300] = w->pieces[301] = (frit_str){"", 0};   // no text
    assert_ok(frit_token_trie_new(&w->trie, w->pieces, n, &(frit_token){300}, 1));
}

static void free_words(words *w)
{
    frit_token_trie_free(w->trie);
    frit_arena_free(&w->arena);
}

static bool has(const uint32_t *mask, int32_t t)
{
    return mask[t / 32] >> (t % 32) & 1;
}

static void check_mask(const words *w, frit_match *match, const uint32_t *mask, const char *about)
{
    for (int32_t t = 0; t < w->n; t++) {
        bool fits;
        assert_ok(frit_match_push_token(match, t, w->pieces[t], &fits));
        if (fits) assert_ok(frit_match_pop(match, 1));
        fits = t == 300 ? frit_match_is_final(match) : fits && w->pieces[t].len > 0;
        if (fits != has(mask, t))
            fail_msg("%s: token %d '%.*s' %s", about, t, (int)w->pieces[t].len, w->pieces[t].ptr,
                     fits ? "fits, but the mask forbids it" : "does not fit, but the mask allows it");
    }
}

static const char *find_id(const void *ctx, frit_str text, int32_t *id)
{
    const words *w = ctx;
    return text.len == 0 && *id < w->n ? NULL : "the id of a word";
}

// Follows a random path of tokens that masks allow and compares each mask. Grammars that begin with a bracket are
// schemas.
static void walk(const words *w, const char *grammar, int n_steps, uint64_t seed)
{
    frit_automaton *a = NULL;
    frit_masks *masks = NULL;
    frit_match match;
    frit_rng rng;
    frit_rng_init(&rng, seed);
    uint32_t *mask = malloc((size_t)frit_mask_words(w->n) * sizeof *mask);
    const frit_token_names names = {w, find_id};
    assert_ok(grammar[0] == '{' ? frit_schema_compile(&a, frit_str_of(grammar), NULL)
                                : frit_gbnf_compile(&a, frit_str_of(grammar), &names));
    assert_ok(frit_masks_new(&masks, a, w->trie, seed % 2 * 1000000000));
    assert_ok(frit_match_init(&match, a, 1));
    for (int i = 0; i < n_steps; i++) {
        assert_ok(frit_masks_get(masks, &match, mask));
        check_mask(w, &match, mask, grammar);
        int32_t t = (int32_t)random_between(&rng, 0, w->n - 1);
        for (int k = 0; k < w->n && (!has(mask, t) || t == 300); k++) t = (t + 1) % w->n;
        bool fits;
        if (!has(mask, t) || t == 300 || random_between(&rng, 0, 60) == 0) {
            assert_ok(frit_match_reset(&match));
            continue;
        }
        assert_ok(frit_match_push_token(&match, t, w->pieces[t], &fits));
        assert_true(fits);
    }
    frit_match_deinit(&match);
    frit_masks_free(masks);
    frit_automaton_free(a);
    free(mask);
}

static void masks_allow_the_tokens_that_fit(void **state)
{
    (void)state;
    words w;
    make_words(&w, 2000, 7);
    static const char *const grammars[] = {
        json_grammar,
        "root ::= \"a\" root \"b\" | \"a\" root \"}\" | \"[\" root | \"\"",
        "root ::= item{0,3} \"]\"\nitem ::= \"a\" | \"aname\" | \"na\" | \"true\" item?",
        "root ::= x | y\nx ::= \"{\" x \"}\" | \"{}\"\ny ::= \"{\" y \"}}\" | \"{}\" | [^a]{2,7}",
        "root ::= .* \"null\" .{0,3}",
        "root ::= (\"[\" x \"]\")*\nx ::= <[50]> .{0,9} | !<[98]>{1,3} \"a\" | \"a\" x? \"}\" | <[700]> x",
        "root ::= \"[\" (x | y) \"]\"\nx ::= \"a\" .{0,9} \"\\\"\"\ny ::= \"b\" .{0,5} \"\\\"\" | \"n\" [a-z]{0,7} "
        "[a-z ]{2}",
        "{\"type\": \"array\", \"items\": {\"anyOf\": [{\"type\": \"string\", \"maxLength\": 3}, {\"type\": \"array\", "
        "\"items\": {\"type\": \"string\", \"minLength\": 2, \"maxLength\": 30}}]}}",
        "{\"type\": \"array\", \"minItems\": 9, \"items\": {\"type\": \"string\", \"minLength\": 4, \"maxLength\": 6}}",
        "{\"type\": \"object\", \"required\": [\"name\", \"a\"], \"properties\": {\"name\": {\"type\": \"string\", "
        "\"minLength\": 3}, \"a\": {\"type\": \"string\"}}, \"additionalProperties\": {\"type\": \"string\", "
        "\"maxLength\": 0}}",
    };
    for (size_t i = 0; i < FRIT_COUNT(grammars); i++)
        for (uint64_t seed = 1; seed <= 2; seed++) walk(&w, grammars[i], 150 / FRIT_TEST_STRIDE, seed);
    free_words(&w);
}

// ------------------------------------------------------------------------------------- how long masks take

enum { N_BENCH = 128000 };   // tokens

// `lengths`: strings have a maximum length.
static void make_schema(frit_buf *out, bool lengths)
{
    static const char *const types[] = {"{\"type\": \"string\"}", "{\"type\": \"integer\"}", "{\"type\": \"boolean\"}",
                                        "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}",
                                        "{\"enum\": [\"red\", \"green\", \"blue\"]}"};
    frit_buf_text(out, "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {");
    for (int i = 0; i < 50; i++) {
        frit_buf_printf(out, "%s\"property_%d\": ", i ? ", " : "", i);
        if (i % 5 == 0 && lengths)
            frit_buf_printf(out, "{\"type\": \"string\", \"maxLength\": %d}", 20 + 4 * i);
        else
            frit_buf_text(out, types[i % 5]);
    }
    frit_buf_text(out, "}}");
}

// Reads the vocabulary of a model, with pairs of its pieces up to n tokens. Token 0 is the end.
static void read_words(words *w, const char *path, int32_t n)
{
    frit_model *model = NULL;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.vocab_only = true}));
    frit_model_info info;
    assert_ok(frit_model_get_info(model, &info));
    *w = (words){.n = n};
    w->pieces = frit_arena_new(&w->arena, frit_str, (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        frit_buf text = {0};
        for (int k = 0; k < (i < info.n_vocab ? 1 : 2); k++) {
            size_t n_bytes;
            const frit_token t = i < info.n_vocab ? i : (frit_token)random_between(&rng, 0, info.n_vocab - 1);
            const char *piece = frit_token_piece(model, t, &n_bytes);
            if (i > 0) frit_buf_append(&text, piece, n_bytes);
        }
        w->pieces[i] = (frit_str){frit_arena_text(&w->arena, text.data ? text.data : "", text.len), text.len};
        frit_buf_free(&text);
    }
    frit_model_free(model);
    const uint64_t start = frit_time_thread_ns();
    assert_ok(frit_token_trie_new(&w->trie, w->pieces, n, &(frit_token){0}, 1));
    w->trie_ns = frit_time_thread_ns() - start;
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Prints the median time of compilations, without and with the tables for masks.
static void bench_compile(const words *w, frit_str schema)
{
    enum { ROUNDS = 41 };
    uint64_t compile[ROUNDS], begin[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        frit_automaton *a = NULL;
        frit_masks *masks = NULL;
        const uint64_t start = frit_time_thread_ns();
        assert_ok(frit_schema_compile(&a, schema, NULL));
        const uint64_t compiled = frit_time_thread_ns();
        assert_ok(frit_masks_new(&masks, a, w->trie, 50000000));
        begin[i] = frit_time_thread_ns() - compiled;
        compile[i] = compiled - start;
        if (i == 0) printf("first: %.2f + %.2f ms, ", (double)compile[0] * 1e-6, (double)begin[0] * 1e-6);
        frit_masks_free(masks);
        frit_automaton_free(a);
    }
    qsort(compile, ROUNDS, sizeof *compile, compare_times);
    qsort(begin, ROUNDS, sizeof *begin, compare_times);
    printf("later: compiled in %.2f ms, tables begun in %.2f ms; ", (double)compile[ROUNDS / 2] * 1e-6,
           (double)begin[ROUNDS / 2] * 1e-6);
}

// Times masks along random answers.
static void bench_masks(const words *w, frit_str schema)
{
    frit_automaton *a = NULL;
    frit_masks *masks = NULL;
    frit_match match;
    frit_rng rng;
    frit_rng_init(&rng, 1);
    uint32_t *mask = malloc((size_t)frit_mask_words(w->n) * sizeof *mask);
    assert_ok(frit_schema_compile(&a, schema, NULL));
    assert_ok(frit_masks_new(&masks, a, w->trie, 50000000));
    assert_ok(frit_match_init(&match, a, 0));
    uint64_t sum = 0, most = 0;
    int n_masks = 0;
    while (n_masks < 20000) {
        const uint64_t before = frit_time_thread_ns();
        assert_ok(frit_masks_get(masks, &match, mask));
        const uint64_t took = frit_time_thread_ns() - before;
        sum += took;
        most = took > most ? took : most;
        n_masks++;
        int32_t t = (int32_t)random_between(&rng, 0, w->n - 1);
        for (int k = 0; k < w->n && (!has(mask, t) || t == 0); k++) t = (t + 1) % w->n;
        size_t n_read;
        if (!has(mask, t) || t == 0)
            assert_ok(frit_match_reset(&match));
        else
            assert_ok(frit_match_push(&match, w->pieces[t].ptr, w->pieces[t].len, &n_read));
    }
    printf("masks: %.2f us on average, %.1f us at most\n", (double)sum / n_masks * 1e-3, (double)most * 1e-3);
    frit_match_deinit(&match);
    frit_masks_free(masks);
    frit_automaton_free(a);
    free(mask);
}

// Writes files for peers.py: the schemas, and the pieces in hexadecimal digits.
static void write_words(const char *path, int32_t n)
{
    words w;
    read_words(&w, path, n);
    for (int lengths = 0; lengths < 2; lengths++) {
        frit_buf schema = {0};
        make_schema(&schema, lengths);
        puts(schema.data);
        frit_buf_free(&schema);
    }
    for (int32_t i = 0; i < n; i++) {
        putchar('x');
        for (size_t k = 0; k < w.pieces[i].len; k++) printf("%02x", (unsigned char)w.pieces[i].ptr[k]);
        putchar('\n');
    }
    free_words(&w);
}

static void bench(const char *path, int32_t n)
{
    words w;
    read_words(&w, path, n);
    printf("the trie of %d tokens: %.1f ms\n", n, (double)w.trie_ns * 1e-6);
    for (int lengths = 0; lengths < 2; lengths++) {
        frit_buf schema = {0};
        make_schema(&schema, lengths);
        printf("%d tokens%s: ", n, lengths ? ", strings with maxLength" : "");
        bench_compile(&w, (frit_str){schema.data, schema.len});
        bench_masks(&w, (frit_str){schema.data, schema.len});
        frit_buf_free(&schema);
    }
    free_words(&w);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--bench") == 0) {
        bench(argv[2], N_BENCH);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "--words") == 0) {
        write_words(argv[2], N_BENCH);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_allow_the_tokens_that_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
