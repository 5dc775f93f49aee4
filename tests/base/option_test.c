// SPDX-License-Identifier: MIT
// Option rows: every type, its limits, and the errors for values that are not allowed.
#include "support/locale.h"
#include "support/support.h"

#include "base/option.h"

#include <math.h>

typedef struct sample {
    bool flag;
    int32_t top_k, any;
    uint64_t seed;
    float temp, bias;
    const char *model, *format;
    frit_option_list stop;
} sample;

enum { FLAG, TOP_K, ANY, SEED, TEMP, BIAS, MODEL, FORMAT, STOP };

static const frit_option rows[] = {
    [FLAG] = FRIT_OPTION(sample, flag, .name = "flag", .type = FRIT_OPTION_FLAG),
    [TOP_K] = FRIT_OPTION(sample, top_k, .name = "top-k", .type = FRIT_OPTION_INT, .min = 0, .max = 65536),
    [ANY] = FRIT_OPTION(sample, any, .name = "any", .type = FRIT_OPTION_INT),
    [SEED] = FRIT_OPTION(sample, seed, .name = "seed", .type = FRIT_OPTION_SEED),
    [TEMP] = FRIT_OPTION(sample, temp, .name = "temp", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 2.5),
    [BIAS] = FRIT_OPTION(sample, bias, .name = "bias", .type = FRIT_OPTION_FLOAT),
    [MODEL] = FRIT_OPTION(sample, model, .name = "model", .type = FRIT_OPTION_TEXT),
    [FORMAT] = FRIT_OPTION(sample, format, .name = "format", .type = FRIT_OPTION_CHOICE, .choices = "md|json|csv"),
    [STOP] = FRIT_OPTION(sample, stop, .name = "stop", .type = FRIT_OPTION_LIST),
};

static void refused(int row, const char *text, const char *sentence)
{
    sample before, s;
    memset(&before, 0x5a, sizeof before);
    memcpy(&s, &before, sizeof s);
    assert_int_equal(frit_option_set(&rows[row], &s, text), FRIT_E_INVALID);
    assert_string_equal(frit_error(), sentence);
    assert_memory_equal(&s, &before, sizeof s);
}

static void flags_know_four_pairs_of_words(void **state)
{
    (void)state;
    const char *yes[] = {"true", "1", "yes", "on"}, *no[] = {"false", "0", "no", "off"};
    for (int i = 0; i < 4; i++) {
        sample s = {0};
        assert_ok(frit_option_set(&rows[FLAG], &s, yes[i]));
        assert_true(s.flag);
        assert_ok(frit_option_set(&rows[FLAG], &s, no[i]));
        assert_false(s.flag);
    }
    refused(FLAG, "maybe", "option flag: 'maybe' is not true or false");
    refused(FLAG, "", "option flag: '' is not true or false");
}

static void whole_numbers_keep_their_range(void **state)
{
    (void)state;
    sample s = {0};
    assert_ok(frit_option_set(&rows[TOP_K], &s, "40"));
    assert_int_equal(s.top_k, 40);
    assert_ok(frit_option_set(&rows[TOP_K], &s, "65536"));
    assert_ok(frit_option_set(&rows[TOP_K], &s, "0"));
    assert_ok(frit_option_set(&rows[ANY], &s, "-2147483648"));
    assert_int_equal(s.any, INT32_MIN);
    assert_ok(frit_option_set(&rows[ANY], &s, "2147483647"));
    assert_int_equal(s.any, INT32_MAX);
    refused(TOP_K, "65537", "option top-k: '65537' is not a whole number from 0 to 65536");
    refused(TOP_K, "-1", "option top-k: '-1' is not a whole number from 0 to 65536");
    refused(TOP_K, "4x", "option top-k: '4x' is not a whole number from 0 to 65536");
    refused(TOP_K, "", "option top-k: '' is not a whole number from 0 to 65536");
    refused(TOP_K, " 4", "option top-k: ' 4' is not a whole number from 0 to 65536");
    refused(TOP_K, "1e3", "option top-k: '1e3' is not a whole number from 0 to 65536");
    refused(ANY, "2147483648", "option any: '2147483648' is not a whole number from -2147483648 to 2147483647");
    refused(ANY, "-", "option any: '-' is not a whole number from -2147483648 to 2147483647");
    refused(ANY, "99999999999999999999999",
            "option any: '99999999999999999999999' is not a whole number from -2147483648 to 2147483647");
}

static void seeds_use_all_64_bits(void **state)
{
    (void)state;
    sample s = {0};
    assert_ok(frit_option_set(&rows[SEED], &s, "18446744073709551614"));
    assert_true(s.seed == UINT64_MAX - 1);
    assert_ok(frit_option_set(&rows[SEED], &s, "-1"));
    assert_true(s.seed == UINT64_MAX);
    refused(SEED, "18446744073709551616",
            "option seed: '18446744073709551616' is not a whole number from 0 to 18446744073709551615, or -1");
    refused(SEED, "-2", "option seed: '-2' is not a whole number from 0 to 18446744073709551615, or -1");
}

static void numbers_are_read_as_strtof_reads_them(void **state)
{
    (void)state;
    const char *texts[] = {"0",           "0.8",     ".5",           "2.",          "1e-3",
                           "-1.5E+2",     "+0.1",    "3.4028235e38", "1e-45",       "0e999",
                           "0.000000001", "1234567", "16777217",     "0.333333343", "123456789.123456789"};
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        double value = (frit_rng_double(&rng) - 0.5) * pow(10, (double)random_between(&rng, -30, 30));
        snprintf(text, sizeof text, "%.*g", (int)random_between(&rng, 1, 12), value);
        sample s = {0};
        const char *one = i < (int)FRIT_COUNT(texts) ? texts[i] : text;
        assert_ok(frit_option_set(&rows[BIAS], &s, one));
        if (s.bias != strtof(one, NULL)) fail_msg("%s: %.9g, expected %.9g", one, s.bias, strtof(one, NULL));
    }
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    enter_comma_locale();
    sample s = {0}, other = {0};
    char error[FRIT_ERROR_BYTES];
    const bool needless = strtof("0.75", NULL) == 0.75f;   // then the test would prove nothing
    const frit_status good = frit_option_set(&rows[TEMP], &s, "0.75");
    const frit_status bad = frit_option_set(&rows[TEMP], &other, "0,75");
    snprintf(error, sizeof error, "%s", frit_error());
    leave_comma_locale();
    assert_false(needless);
    assert_int_equal(good, FRIT_OK);
    assert_true(s.temp == 0.75f);
    assert_int_equal(bad, FRIT_E_INVALID);
    assert_string_equal(error, "option temp: '0,75' is not a number from 0 to 2.5");
}

static void numbers_keep_their_range(void **state)
{
    (void)state;
    const char *bad[] = {"2.6", "-0.1", "nan", "inf", "", ".", "-", "1e", "1e+", "0x1", "1.2.3", "1 ", "--1"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "option temp: '%s' is not a number from 0 to 2.5", bad[i]);
        refused(TEMP, bad[i], sentence);
    }
    refused(BIAS, "1e39", "option bias: '1e39' is not a number");
    refused(BIAS, "1e99999999999999999999", "option bias: '1e99999999999999999999' is not a number");
}

static void choices_are_whole_words(void **state)
{
    (void)state;
    sample s = {0};
    const char *words[] = {"md", "json", "csv"};
    for (int i = 0; i < 3; i++) {
        assert_ok(frit_option_set(&rows[FORMAT], &s, words[i]));
        assert_ptr_equal(s.format, words[i]);
    }
    const char *bad[] = {"", "m", "js", "jsonx", "md|json", "CSV"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "option format: '%s' is not one of md|json|csv", bad[i]);
        refused(FORMAT, bad[i], sentence);
    }
}

static void text_is_borrowed(void **state)
{
    (void)state;
    sample s = {0};
    const char *path = "a model.gguf";
    assert_ok(frit_option_set(&rows[MODEL], &s, path));
    assert_ptr_equal(s.model, path);
}

static void lists_and_missing_values_are_refused(void **state)
{
    (void)state;
    refused(STOP, "x", "option stop: takes a list, which cannot be set from one text");
    refused(TOP_K, NULL, "frit_option_set: 'text' is NULL; expected a text");
}

static void structs_filled_by_programs_are_held_to_their_rows(void **state)
{
    (void)state;
    const sample good[] = {{0}, {.top_k = 65536, .any = INT32_MIN, .temp = 2.5f, .bias = -1e30f, .format = "csv"}};
    for (size_t i = 0; i < FRIT_COUNT(good); i++) assert_ok(frit_options_check(rows, FRIT_COUNT(rows), &good[i]));
    const sample bad[] = {{.top_k = -1}, {.top_k = 65537}, {.temp = -0.5f}, {.temp = NAN}, {.format = "xml"}};
    const char *sentences[] = {"option top-k: is -1, expected 0 to 65536", "top-k: is 65537", "temp: is -0.5",
                               "temp: is", "'xml' is not one of md|json|csv"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++)
        assert_fails(frit_options_check(rows, FRIT_COUNT(rows), &bad[i]), FRIT_E_INVALID, sentences[i]);
}

static void a_mistyped_name_has_a_nearest_candidate(void **state)
{
    (void)state;
    static const char *const names[] = {"top-k", "top-p", "temp", "seed"};
    assert_string_equal(frit_name_nearest("topk", names, FRIT_COUNT(names)), "top-k");
    assert_string_equal(frit_name_nearest("tmep", names, FRIT_COUNT(names)), "temp");
    assert_string_equal(frit_name_nearest("seed", names, FRIT_COUNT(names)), "seed");
    assert_null(frit_name_nearest("ctx-size", names, FRIT_COUNT(names)));
    assert_null(frit_name_nearest("top-k", names, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistyped_name_has_a_nearest_candidate),
        cmocka_unit_test(flags_know_four_pairs_of_words),
        cmocka_unit_test(whole_numbers_keep_their_range),
        cmocka_unit_test(seeds_use_all_64_bits),
        cmocka_unit_test(numbers_are_read_as_strtof_reads_them),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(numbers_keep_their_range),
        cmocka_unit_test(choices_are_whole_words),
        cmocka_unit_test(text_is_borrowed),
        cmocka_unit_test(lists_and_missing_values_are_refused),
        cmocka_unit_test(structs_filled_by_programs_are_held_to_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
