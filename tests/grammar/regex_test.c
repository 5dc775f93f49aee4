// SPDX-License-Identifier: MIT
// Regular expressions: matches of whole texts and in a search, and refusals.
#include "grammar/check.h"

#include "grammar/regex.h"

typedef struct regex_case {
    const char *pattern;
    bool search;
    const char *good[6], *bad[6];
} regex_case;

static const regex_case cases[] = {
    {"a+b?|c", false, {"a", "aab", "c"}, {"", "b", "ac"}},
    {"[a-c&&d]\\d{2,3}", false, {"b12", "&123"}, {"b1", "d1234", "z12"}},
    {
        "\\w+\\s\\W",
        false,
        {"ab_1 -", "x\xc2\xa0."},
        {"ab x", "-- -"},
    },
    {".*", false, {"", "\xc3\xa9!"}, {"a\nb"}},
    {"(?:a|(?<name>b))*", false, {"", "abba"}, {"c"}},
    {"\\p{Lu}\\p{L}*", false, {"\xc3\x89t\xc3\xa9"}, {"\xc3\xa9", "1"}},
    {"\\u00e9\\x41\\u{1F600}\\/\\.",
     false,
     {"\xc3\xa9"
      "A\xf0\x9f\x98\x80/."},
     {"e"}},
    {"a{,2}", false, {"a{,2}"}, {"aa"}},
    {"^a$", false, {"a"}, {"aa", ""}},
    {"b", true, {"abc", "b"}, {"", "ac"}},
    {"^ab|cd$", true, {"abx", "xcd", "ab"}, {"xab", "cdx"}},
    {"(^|x)a", true, {"a", "bxa", "ab"}, {"ba"}},
    {"^[^0-9]*$", true, {"", "abc\xe2\x82\xac"}, {"a1"}},
    {"", true, {"", "x"}, {NULL}},
};

static void texts_match_as_the_expressions_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_dfa dfa;
        assert_ok(frit_regex_language(NULL, &dfa, frit_str_of(cases[i].pattern), cases[i].search));
        for (size_t k = 0; k < 6 && cases[i].good[k]; k++)
            if (!frit_dfa_accepts(&dfa, frit_str_of(cases[i].good[k])))
                fail_msg("%s: '%s' does not match", cases[i].pattern, cases[i].good[k]);
        for (size_t k = 0; k < 6 && cases[i].bad[k]; k++)
            if (frit_dfa_accepts(&dfa, frit_str_of(cases[i].bad[k])))
                fail_msg("%s: '%s' matches", cases[i].pattern, cases[i].bad[k]);
        frit_dfa_free(&dfa);
    }
}

static void each_bad_expression_has_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *sentence;
    } bad[] = {
        {"(a", "expected a closing )"},
        {"a)", "expected the end"},
        {"[a", "expected a closing ]"},
        {"[b-a]", "expected a range"},
        {"*a", "position 1: found '*a'; expected something to repeat"},
        {"a**", "expected something to repeat"},
        {"a{3,2}", "expected a largest number"},
        {"a{0,100000}", "expected at most 10000 repetitions"},
        {"(a{0,10000}){0,10000}", "more than 1048576 states"},
        {"(?=a)b", "expected no lookahead"},
        {"(?<!a)b", "expected no lookahead or lookbehind"},
        {"(a)\\1", "expected no back reference"},
        {"\\bword", "expected no word boundary"},
        {"(?i)a", "without flags"},
        {"a++", "expected no possessive quantifier"},
        {"\\p{Nonsense}", "expected the name of a general category"},
        {"\\q", "expected a known escape"},
        {"\\", "expected a character after \\"},
        {"\xff", "expected a character in UTF-8"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        frit_automaton *a = NULL;
        const frit_status status = frit_regex_compile(&a, frit_str_of(bad[i].pattern));
        if (status == FRIT_OK || a || !strstr(frit_error(), bad[i].sentence))
            fail_msg("%s: %d \"%s\", expected \"%s\"", bad[i].pattern, status, frit_error(), bad[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_match_as_the_expressions_say),
        cmocka_unit_test(each_bad_expression_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
