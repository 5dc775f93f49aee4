// SPDX-License-Identifier: MIT
// Regexes over long texts: those of the table take linear time, regexes of files end with an error if they do not, and
// a search in steps finds the same matches as a single search.
#include "support/growth.h"
#include "support/support.h"

#include "base/time.h"
#include "text/tokenizer/pretok.h"

static char *repeat(const char *unit, size_t n_bytes)
{
    size_t len = strlen(unit);
    char *text = malloc(n_bytes + len);
    assert_non_null(text);
    for (size_t i = 0; i < n_bytes; i += len) memcpy(text + i, unit, len);
    return text;
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(frit_time_thread_ns() - start_ns) * 1e-9;
}

// ------------------------------------------------------------------------------------- the table

typedef struct cutting {
    const frit_pipeline *pipeline;
    const char *text;
} cutting;

static void cut(void *ctx, size_t n)
{
    const cutting *c = ctx;
    frit_flow flow;
    const frit_words *words;
    assert_ok(frit_flow_init(&flow));
    assert_ok(frit_pipeline_cut(c->pipeline, (frit_str){c->text, n}, true, &flow, &words));
    assert_true(words->n > 0 && words->items[words->n - 1].end == n);
    frit_flow_deinit(&flow);
}

static void every_pre_tokenizer_cuts_long_runs_of_one_character_in_linear_time(void **state)
{
    (void)state;
    static const char *const units[] = {"a", " ", "7", "\xf0\x9f\x98\x80"};
    double most = 0;
    char *texts[FRIT_COUNT(units)];
    for (size_t u = 0; u < FRIT_COUNT(units); u++) texts[u] = repeat(units[u], 1 << 18);
    for (size_t i = 0; i < frit_pretok_n_rows; i++) {
        frit_cut cuts[FRIT_PRETOK_MAX_REGEXES] = {0};
        frit_pipeline pipeline = {.cuts = cuts};
        assert_ok(frit_pretok_add(&frit_pretok_rows[i], &pipeline));
        for (size_t u = 0; u < FRIT_COUNT(units); u++) {
            const double times = growth_of(cut, &(cutting){&pipeline, texts[u]}, 1 << 15);
            if (times > GROWTH_LIMIT)
                fail_msg("%s: 8 times '%s' takes %.0f times as long", frit_pretok_rows[i].names, units[u], times);
            if (times > most) most = times;
        }
        frit_pipeline_deinit(&pipeline);
    }
    print_message("%zu rows, 4 texts: 8 times the text takes %.1f times as long at most\n", frit_pretok_n_rows, most);
    for (size_t u = 0; u < FRIT_COUNT(units); u++) free(texts[u]);
}

// ------------------------------------------------------------------------------------- regexes of files

// Matches from the start to the end of the text, or to the first failure; *allowed_s is the time limit.
static frit_status match_all(const frit_regex *regex, frit_str text, size_t *n_matches, double *allowed_s)
{
    frit_matcher matcher;
    size_t at = 0, start, end;
    bool found = true;
    *n_matches = 0;
    FRIT_TRY(frit_matcher_init(&matcher));
    frit_matcher_allow(&matcher, text.len);
    *allowed_s = (double)matcher.may_take_ns * 1e-9;
    frit_status status = FRIT_OK;
    while (status == FRIT_OK && found && at < text.len) {
        status = frit_matcher_next(&matcher, regex, text, at, &start, &end, &found);
        if (status != FRIT_OK || !found) break;
        assert_true(start >= at && end > start && end <= text.len);
        at = end;
        ++*n_matches;
    }
    frit_matcher_deinit(&matcher);
    return status;
}

static void a_regex_that_takes_quadratic_time_is_given_up(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "(?=a*b)a",       // looks ahead over the whole text from every position, and finds nothing
        "a(?=a*[^b]?)",   // as above, but finds a match everywhere
        "(?=a*[bc])a|x",
        "(?:(?=a*)a)*[bc]",   // looks ahead in every step of a loop
        "(a+)+[bc]",          // backtracks over all ways to cut the text
        "(?:a|a|aa)*c",     "(?:(?:a+)*)*d", "(a*)\\1*(a*)\\2*e", "\\s*[\\r\\n]+|a+?(?=a*$)x",
    };
    enum { N = 1 << 18 };
    char *text = repeat("a", N);
    for (size_t i = 0; i < FRIT_COUNT(sources); i++) {
        frit_regex *regex;
        size_t n_matches;
        double allowed = 0;
        uint64_t start = frit_time_thread_ns();
        assert_ok(frit_regex_new(&regex, frit_str_of(sources[i]), FRIT_DIALECT_ONIGURUMA));
        frit_status status = match_all(regex, (frit_str){text, N}, &n_matches, &allowed);
        double seconds = seconds_since(start);
        print_message("%-28s %.2f s: %s\n", sources[i], seconds, status == FRIT_OK ? "done" : frit_error());
        assert_true(status == FRIT_OK || status == FRIT_E_TIMEOUT);
        // The library's own limit of this thread's time; a call that has begun is not interrupted.
        if (seconds > 1.5 * allowed) fail_msg("%s: %.2f s, allowed are %.2f", sources[i], seconds, allowed);
        frit_regex_free(regex);
    }
    free(text);
}

static void a_match_is_found_however_far_it_is(void **state)
{
    (void)state;
    static const char *const fillers[] = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80", "a\xf0\x9f\x98\x80"};
    frit_regex *regex;
    assert_ok(frit_regex_new(&regex, frit_str_of("(?<=a|\\x{E9}|\\p{Han}|\\x{1F600}|^)b+"), FRIT_DIALECT_PLAIN));
    for (size_t f = 0; f < FRIT_COUNT(fillers); f++) {
        for (size_t n = 0; n < 300; n++) {
            frit_buf text = {0};
            for (size_t i = 0; i < n; i++) frit_buf_text(&text, fillers[f]);
            size_t at = text.len, start = 0, end = 0;
            frit_buf_text(&text, "bbb");
            frit_buf_text(&text, fillers[f]);
            bool found = false;
            frit_matcher matcher;
            assert_ok(frit_matcher_init(&matcher));
            frit_str whole = {text.data, text.len};
            assert_ok(frit_matcher_next(&matcher, regex, whole, 0, &start, &end, &found));
            assert_true(found && start == at && end == at + 3);
            assert_ok(frit_matcher_next(&matcher, regex, whole, end, &start, &end, &found));
            assert_false(found);
            frit_matcher_deinit(&matcher);
            frit_buf_free(&text);
        }
    }
    frit_regex_free(regex);
}

static void words_are_those_of_oniguruma(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_word;
    } cases[] = {
        {"a", true},        {"_", true},        {"\xc2\xbd", true}, {"\xc2\xb2", true},      {"\xe2\x85\xa7", true},
        {"\xcc\x81", true}, {"\xd9\xa3", true}, {"$", false},       {"\xe0\xa7\xb4", false}, {"\xc2\xb4", false},
    };
    frit_regex *regex;
    assert_ok(frit_regex_new(&regex, frit_str_of("\\w+$"), FRIT_DIALECT_ONIGURUMA));
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        size_t n_matches;
        double allowed;
        assert_ok(match_all(regex, frit_str_of(cases[i].text), &n_matches, &allowed));
        if ((n_matches == 1) != cases[i].is_word) fail_msg("'%s' is%s a word", cases[i].text, n_matches ? "" : " not");
    }
    frit_regex_free(regex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pre_tokenizer_cuts_long_runs_of_one_character_in_linear_time),
        cmocka_unit_test(a_regex_that_takes_quadratic_time_is_given_up),
        cmocka_unit_test(a_match_is_found_however_far_it_is),
        cmocka_unit_test(words_are_those_of_oniguruma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
