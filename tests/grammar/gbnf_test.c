// SPDX-License-Identifier: MIT
// GBNF: texts that match, refusals with their errors, and grammars made to be slow.
#include "grammar/check.h"

#include "base/time.h"

typedef struct match_case {
    const char *grammar;
    const char *good[8], *bad[8];   // whole texts
} match_case;

static const match_case cases[] = {
    {"root ::= \"abc\"", {"abc"}, {"", "ab", "abcd", "abd"}},
    {"root ::= \"a\" | \"bc\" |\n \"d\"", {"a", "bc", "d"}, {"", "b", "abc"}},
    {"root ::= \"a\"\n  | \"b\"\n\n# more\nx ::= \"c\"", {"a", "b"}, {"c"}},
    {"root ::= [a-c]+ [^0-9x]*", {"a", "abc?", "c\xc3\xa9\xe2\x82\xac"}, {"", "a0", "ax", "a\xc3", "a\xff"}},
    {"root ::= [-a] [x-]?", {"-", "a", "-x", "a-"}, {"", "x"}},
    {"root ::= [\\x41-\\u0043\\n\\\\\\]]", {"A", "C", "\n", "\\", "]"}, {"D", "n"}},
    {"root ::= \"\\u00e9\\U0001F600\\x41\\t\\\"\"",
     {"\xc3\xa9\xf0\x9f\x98\x80"
      "A\t\""},
     {"\xc3\xa9"}},
    {"root ::= . .", {"ab", "\xc3\xa9\n", "\xf0\x9f\x98\x80z"}, {"a", "abc", "\xed\xa0\x80z", "\xc0\x80z"}},
    {"root ::= \"a\"{2,3} \"b\"{2} (\"c\" \"d\"){,1} \"e\"{1,}",
     {"aabbe", "aaabbcde", "aabbee"},
     {"abbe", "aaaabbe", "aabbcdcde", "aabb"}},
    {"root ::= (\"a\"* \"b\"?)* \"c\"", {"c", "abc", "bbabaac"}, {"", "ab", "cc"}},
    {"root ::= ((\"\")* \"a\"?)* # nothing and again nothing\n", {"", "a", "aaa"}, {"b"}},
    {"root ::= x y\nx ::= \"a\" x | \"\"\ny ::= x \"b\" y?", {"b", "ab", "aabab", "bb"}, {"", "a", "ba"}},
    {"root ::= \"(\" root \")\" root | \"\"", {"", "()", "(()())()"}, {"(", ")", "())"}},
    {"root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"z\"", {"z", "azx", "aazxy", "aazyx"}, {"a", "azxx", "xz"}},
    {"root ::= e\ne ::= t (\"+\" t)*\nt ::= \"1\" | \"(\" e \")\"", {"1", "1+1", "(1+(1))+1"}, {"", "1+", "(1"}},
    {"root ::= a | \"ab\" \"c\"\na ::= \"a\" | dead\ndead ::= \"x\" dead", {"a", "abc"}, {"x", "ab"}},
    {"root ::= s{0,2} \"e\"\ns ::= \"s\" | \"st\"", {"e", "se", "sste", "stste"}, {"s", "ssse"}},
    {"ws ::= [ \\t]*\nroot ::= ws \"a\" ws root-2\nroot-2 ::= \"b\"", {"ab", " a b"}, {"a", "a b "}},
};

static void texts_match_as_the_rules_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_automaton *a = NULL;
        assert_ok(frit_gbnf_compile(&a, frit_str_of(cases[i].grammar), NULL));
        for (size_t k = 0; k < 8 && cases[i].good[k]; k++) assert_matches(a, cases[i].grammar, cases[i].good[k], 1);
        for (size_t k = 0; k < 8 && cases[i].bad[k]; k++)
            if (match_text(a, frit_str_of(cases[i].bad[k])) == 1)
                fail_msg("%s: '%s' matches", cases[i].grammar, cases[i].bad[k]);
        frit_automaton_free(a);
    }
}

static void each_bad_grammar_has_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *grammar, *sentence;
    } bad[] = {
        {"", "'root' is used, but not defined"},
        {"x ::= \"a\"", "'root' is used, but not defined"},
        {"root ::= x", "'x' is used, but not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: found 'root'; expected rules that are defined once"},
        {"root = \"a\"", "column 6: found '='; expected ::="},
        {"root ::= \"a", "expected a closing \""},
        {"root ::= \"\\q\"", "expected one of x u U t r n"},
        {"root ::= \"\\x4\"", "expected 2 hexadecimal digits"},
        {"root ::= \"\\ud800\"", "expected a Unicode character that is no surrogate"},
        {"root ::= \"\\U00110000\"", "expected a Unicode character"},
        {"root ::= \"\xff\"", "expected a character in UTF-8"},
        {"root ::= [a", "expected a closing ]"},
        {"root ::= [z-a]", "expected a range whose end is not before its start"},
        {"root ::= (\"a\"", "expected a closing )"},
        {"root ::= \"a\")", "found ')'; expected the end of the line"},
        {"root ::= *", "found '*'; expected a \"literal\""},
        {"root ::= \"a\"{", "expected a number of repetitions"},
        {"root ::= \"a\"{2,1}", "expected a largest number of repetitions"},
        {"root ::= \"a\"{1", "expected a closing }"},
        {"root ::= \"a\"{0,1000000000}", "expected at most 100000 repetitions"},
        {"root ::= (\"a\"{0,10000}){0,10000}", "more than 1048576 states"},
        {"root ::= <[12]>", "there is no vocabulary whose tokens could be named"},
        {"root ::= root \"a\" | \"b\"", "left-recursive (root -> root)"},
        {"root ::= \"x\" a\na ::= b? c\nb ::= \"b\"\nc ::= \"\" a \"c\" | \"d\"", "left-recursive (a -> c -> a)"},
        {"root ::= \"x\" root", "matches no text"},
        {"root ::= []", "matches no text"},
        {"root ::= \"\"", "matches only the empty text"},
        {"?", "found '?'; expected the name of a rule"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        frit_automaton *a = NULL;
        const frit_status status = frit_gbnf_compile(&a, frit_str_of(bad[i].grammar), NULL);
        if ((status != FRIT_E_INVALID && status != FRIT_E_LIMIT) || a || !strstr(frit_error(), bad[i].sentence))
            fail_msg("%s: %d \"%s\", expected \"%s\"", bad[i].grammar, status, frit_error(), bad[i].sentence);
    }
}

// ------------------------------------------------------------------------------------- matches

static void pushes_can_be_taken_back(void **state)
{
    (void)state;
    frit_automaton *a = NULL;
    assert_ok(frit_gbnf_compile(&a, frit_str_of("root ::= \"[\" (root (\",\" root)*)? \"]\""), NULL));
    frit_match match;
    assert_ok(frit_match_init(&match, a, 4));
    static const char *const parts[] = {"[", "[]", ",[", "[", "]", "]", "]"};
    size_t n_read;
    for (int round = 0; round < 50; round++) {
        assert_ok(frit_match_reset(&match));
        for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
            assert_ok(frit_match_push(&match, parts[i], strlen(parts[i]), &n_read));
            assert_int_equal(n_read, strlen(parts[i]));
        }
        assert_true(frit_match_is_over(&match));
        assert_ok(frit_match_push(&match, "]", 1, &n_read));
        assert_int_equal(n_read, 0);   // and the match is unchanged
        assert_ok(frit_match_pop(&match, 4));
        assert_false(frit_match_is_final(&match));
        for (size_t i = 3; i < FRIT_COUNT(parts); i++) {
            assert_ok(frit_match_push(&match, parts[i], strlen(parts[i]), &n_read));
            assert_int_equal(n_read, strlen(parts[i]));
        }
        assert_true(frit_match_is_over(&match));
    }
    assert_fails(frit_match_pop(&match, 100), FRIT_E_INVALID, "taken back");
    frit_match_deinit(&match);
    frit_automaton_free(a);
}

static void text_that_must_follow_is_known(void **state)
{
    (void)state;
    frit_automaton *a = NULL;
    assert_ok(
        frit_gbnf_compile(&a, frit_str_of("root ::= \"{\\\"name\\\": \" [0-9]+ \", \\\"x\\\": 1}\" \"!\"?"), NULL));
    frit_match match;
    assert_ok(frit_match_init(&match, a, 0));
    frit_buf text = {0};
    assert_ok(frit_match_forced(&match, 100, &text));
    assert_string_equal(text.data, "{\"name\": ");
    size_t n_read;
    assert_ok(frit_match_push(&match, text.data, text.len, &n_read));
    assert_ok(frit_match_push(&match, "5,", 2, &n_read));
    frit_buf_clear(&text);
    assert_ok(frit_match_forced(&match, 4, &text));
    assert_string_equal(text.data, " \"x\"");
    frit_buf_clear(&text);
    assert_ok(frit_match_forced(&match, 100, &text));
    assert_string_equal(text.data, " \"x\": 1}");   // nothing must follow where the text may end
    frit_buf_free(&text);
    frit_match_deinit(&match);
    frit_automaton_free(a);
}

// ------------------------------------------------------------------------------------- bombs

static void append_many(frit_buf *text, const char *part, int n)
{
    for (int i = 0; i < n; i++) frit_buf_text(text, part);
}

// Compiles the grammar in `text` and, if it is accepted, pushes `part` n times. Steps are counted. The limit of
// processor time suits a busy machine, and detects work that is not counted.
static void explode(frit_buf *text, const char *part, int n)
{
    const uint64_t start = frit_time_thread_ns();
    frit_automaton *a = NULL;
    frit_rule_builder builder = {0};
    int32_t root = 0;
    frit_status status = frit_gbnf_add(&builder, (frit_str){text->data, text->len}, NULL, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(&a, &builder, root);
    assert_in_range(builder.budget.steps, 0, FRIT_BUDGET_STEPS + FRIT_BUDGET_STEPS / 16);
    frit_builder_free(&builder);
    if (status == FRIT_OK) {
        frit_match match;
        size_t n_read;
        const frit_status begun = frit_match_init(&match, a, 8);
        if (begun != FRIT_OK) assert_int_equal(begun, FRIT_E_LIMIT);
        for (int i = 0; i < n && begun == FRIT_OK; i++)
            if (frit_match_push(&match, part, strlen(part), &n_read) != FRIT_OK) break;
        frit_match_deinit(&match);
    }
    frit_automaton_free(a);
    const double seconds = (double)(frit_time_thread_ns() - start) * 1e-9;
    if (seconds > 20 * FRIT_TEST_STRIDE) fail_msg("%.60s...: %.1f seconds", text->data, seconds);
    frit_buf_clear(text);
}

static void bombs_end_soon(void **state)
{
    (void)state;
    frit_buf text = {0};
    frit_buf_text(&text, "root ::= ");
    append_many(&text, "(", 60000);
    explode(&text, "", 0);
    frit_buf_text(&text, "root ::= ");
    append_many(&text, "(\"a\"* ", 150);
    append_many(&text, ")*", 150);
    explode(&text, "a", 1000);
    frit_buf_text(&text, "root ::= \"[\" root \"]\" | \"x\"");
    explode(&text, "[", 10000);
    frit_buf_text(&text, "root ::= \"a\" root \"b\" | \"aa\" root \"b\" | \"aaa\" root \"bb\" | \"\"");
    explode(&text, "a", 3000);
    frit_buf_text(&text, "root ::= \"a\" root root | \"a\" | \"\"");
    explode(&text, "a", 3000);
    frit_buf_text(&text, "root ::= [ab]* \"a\" [ab]{100}");   // 2^100 states if made deterministic
    explode(&text, "ab", 1000);
    frit_buf_text(&text, "root ::= (\"a\" | \"b\" | \"ab\"){0,3000}");
    explode(&text, "ab", 1000);
    for (int i = 0; i < 30000; i++) frit_buf_printf(&text, "%s ::= r%d? r%d\n", i ? "" : "root", i, i);
    explode(&text, "a", 10);
    frit_buf_text(&text, "root ::= r0\n");
    for (int i = 0; i < 30000; i++) frit_buf_printf(&text, "r%d ::= r%d | \"a\"?\n", i, i + 1);
    frit_buf_text(&text, "r30000 ::= \"b\"?\n");
    explode(&text, "a", 10);
    frit_buf_text(&text, "root ::= ");
    for (int i = 0; i < 20000; i++) frit_buf_printf(&text, "\"%d\" r%d | ", i, i);
    frit_buf_text(&text, "\"x\"\n");
    for (int i = 0; i < 20000; i++) frit_buf_printf(&text, "r%d ::= r%d | \"a\" root\n", i, (i * 7 + 1) % 20000);
    explode(&text, "1a", 100);
    frit_buf_free(&text);
}

// A long text of a recursive grammar that is not nested needs no more memory than a short one.
static void lists_written_as_recursions_do_not_grow(void **state)
{
    (void)state;
    frit_automaton *a = NULL;
    assert_ok(frit_gbnf_compile(&a, frit_str_of("root ::= item root | \"\"\nitem ::= [a-z] item | \";\""), NULL));
    frit_match match;
    assert_ok(frit_match_init(&match, a, 0));
    size_t n_read;
    int32_t n_frames = 0;
    for (int i = 0; i < 5000; i++) {
        assert_ok(frit_match_push(&match, "abc;", 4, &n_read));
        assert_int_equal(n_read, 4);
        if (i == 10) n_frames = match.frames.n;
    }
    assert_int_equal(match.frames.n, n_frames);
    frit_match_deinit(&match);
    frit_automaton_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_match_as_the_rules_say),
        cmocka_unit_test(each_bad_grammar_has_a_sentence),
        cmocka_unit_test(pushes_can_be_taken_back),
        cmocka_unit_test(text_that_must_follow_is_known),
        cmocka_unit_test(bombs_end_soon),
        cmocka_unit_test(lists_written_as_recursions_do_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
