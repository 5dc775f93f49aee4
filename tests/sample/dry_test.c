// SPDX-License-Identifier: MIT
// The stage DRY against a second, plain implementation of its formula.
#include "sample/samplers_of.h"
#include "support/support.h"

#include "base/philox.h"
#include "frit_tools.h"
#include "sample/sampler.h"
#include "text/vocab/vocab.h"

#include <math.h>

enum { MAX = 300 };
enum { LETTERS = 6 };

// Token t is the text of letter t; the last token is "a\n", the one before it ": ".
static const frit_str pieces[LETTERS] = {{"x", 1}, {"y", 1}, {"zz", 2}, {"-", 1}, {": ", 2}, {"a\n", 2}};
static const frit_vocab six = {.n = LETTERS};
static const frit_sampler_texts texts6 = {&six, pieces};

// Counts tokens after the last one in which a breaker ends, by searching for breakers in the whole text.
static int count_unbroken(const frit_token *tokens, int n, const char *const *breakers, int n_breakers)
{
    char text[4 * MAX] = "";
    int n_unbroken = n;
    size_t length = 0;
    for (int i = 0; i < n; i++) {
        const size_t begin = length;
        memcpy(text + length, pieces[tokens[i]].ptr, pieces[tokens[i]].len + 1);
        length += pieces[tokens[i]].len;
        text[length] = 0;
        for (int b = 0; b < n_breakers; b++)
            for (const char *at = text; (at = strstr(at, breakers[b])) != NULL; at++)
                if ((size_t)(at - text) + strlen(breakers[b]) > begin) n_unbroken = n - 1 - i;
    }
    return n_unbroken;
}

// Finds the longest n for which the last n tokens also precede an earlier `next`.
static int count_repeated(const frit_token *tokens, int n, frit_token next)
{
    int longest = 0;
    for (int at = 1; at < n; at++) {
        int k = 0;
        if (tokens[at] != next) continue;
        while (k < at && tokens[at - 1 - k] == tokens[n - 1 - k]) k++;
        longest = k > longest ? k : longest;
    }
    return longest;
}

static void check_dry(frit_rng *rng, const char *const *breakers, int n_breakers)
{
    const int window = (int)random_between(rng, 0, 2) ? (int)random_between(rng, 2, 40) : -1;
    const int allowed = (int)random_between(rng, 1, 4), n = (int)random_between(rng, 1, MAX - 1);
    char text[128];
    snprintf(text, sizeof text, "dry-multiplier=0.5 dry-base=1.25 dry-allowed-length=%d dry-penalty-last-n=%d", allowed,
             window);
    frit_sampler_options options = options_of(text);
    options.dry_breakers = (frit_option_list){breakers, (size_t)n_breakers};
    frit_sampler *sampler;
    assert_ok(frit_sampler_create_with(&sampler, LETTERS, &texts6, &options));
    frit_token tokens[MAX];
    const int64_t n_letters = random_between(rng, 1, LETTERS);
    for (int i = 0; i < n; i++) {
        tokens[i] = (frit_token)random_between(rng, 0, n_letters - 1);
        assert_ok(frit_sampler_accept(sampler, tokens[i]));
    }
    const int n_seen = window > 0 && n > window ? window : n;
    const frit_token *seen = tokens + n - n_seen;
    const int unbroken = count_unbroken(tokens, n, breakers, n_breakers);
    frit_candidate items[LETTERS];
    for (int t = 0; t < LETTERS; t++) items[t] = (frit_candidate){t, 1};
    frit_candidates candidates = {.items = items, .n = LETTERS};
    frit_dry_apply(sampler, &candidates);
    for (frit_token t = 0; t < LETTERS; t++) {
        int length = count_repeated(seen, n_seen, t);
        if (length > unbroken) length = unbroken;
        for (int b = 0; b < n_breakers; b++)
            if (strstr(pieces[t].ptr, breakers[b])) length = 0;
        const double penalty = length >= allowed && n_seen > allowed ? 0.5 * pow(1.25, length - allowed) : 0;
        assert_true(fabs((double)items[t].logit - (1 - penalty)) < 1e-5 * (1 + penalty));
    }
    frit_sampler_free(sampler);
}

static void dry_lowers_what_goes_on_with_a_repetition(void **state)
{
    (void)state;
    static const char *const none[] = {"none"}, *const usual[] = {"\n", ":"}, *const across[] = {"y-", "xzzx", "zza"};
    frit_rng rng;
    frit_rng_init(&rng, 11);
    for (int round = 0; round < 600; round++) {
        if (round % 3 == 0) check_dry(&rng, usual, 2);
        if (round % 3 == 1) check_dry(&rng, across, 3);
        if (round % 3 == 2) check_dry(&rng, none, 1);   // "none" occurs in no text, so it works like a breaker
    }
}

static void dry_stops_a_loop(void **state)
{
    (void)state;
    const float logits[LETTERS] = {3, 2.9f, 1, 0, -5, -5};
    frit_sampler *sampler = make(LETTERS, NULL, "dry-multiplier=1");
    int longest = 0, run = 0;
    for (int i = 0; i < 60; i++) {
        const frit_token token = sample(sampler, logits);
        run = token == 0 ? run + 1 : 0;
        longest = run > longest ? run : longest;
        assert_ok(frit_sampler_accept(sampler, token));
    }
    assert_in_range(longest, 2, 6);
    frit_sampler_free(sampler);
}

static void bad_breakers_are_refused(void **state)
{
    (void)state;
    static char long_text[200];
    static const char *many[65];
    static const char *const empty[] = {"a", ""}, *const one[] = {long_text};
    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t i = 0; i < FRIT_COUNT(many); i++) many[i] = "x";
    frit_sampler *sampler;
    frit_sampler_options options = options_of("dry-multiplier=1");
    options.dry_breakers = (frit_option_list){empty, 2};
    assert_fails(frit_sampler_create_with(&sampler, LETTERS, &texts6, &options), FRIT_E_INVALID, "an empty text");
    options.dry_breakers = (frit_option_list){one, 1};
    assert_fails(frit_sampler_create_with(&sampler, LETTERS, &texts6, &options), FRIT_E_INVALID,
                 "a text of 199 bytes; expected 1 to 128");
    options.dry_breakers = (frit_option_list){many, 65};
    assert_fails(frit_sampler_create_with(&sampler, LETTERS, &texts6, &options), FRIT_E_INVALID,
                 "65 texts; expected at most 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dry_lowers_what_goes_on_with_a_repetition),
        cmocka_unit_test(dry_stops_a_loop),
        cmocka_unit_test(bad_breakers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
