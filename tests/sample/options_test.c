// SPDX-License-Identifier: MIT
// Options of samplers: by name, their defaults, and what is refused.
#include "support/support.h"

#include "base/time.h"
#include "frit_tools.h"
#include "sample/sampler.h"

#include <math.h>

static void bad_options_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char *const far[] = {"10=1"}, *const word[] = {"abc"}, *const nan[] = {"1=nan"},
                             *const open[] = {"1="};
    static const struct {
        frit_sampler_options options;
        const char *part;
    } cases[] = {
        {{.temp = -1}, "temp: is -1, expected 0 to 1000"},
        {{.temp = NAN}, "temp"},
        {{.top_k = -1}, "top-k"},
        {{.top_p = 1.5f}, "top-p: is 1.5"},
        {{.min_p = -0.1f}, "min-p"},
        {{.repeat_penalty = -2}, "repeat-penalty"},
        {{.frequency_penalty = INFINITY}, "frequency-penalty"},
        {{.repeat_last_n = -2}, "repeat-last-n"},
        {{.samplers = "top-k,typo"}, "'typo' is not the name of a stage"},
        {{.samplers = "top-k,temp,top-k"}, "'top-k' occurs twice"},
        {{.samplers = "temp,"}, "given once: logit-bias,penalties,"},
        {{.logit_bias = {far, 1}}, "0 to 9"},
        {{.logit_bias = {word, 1}}, "expected ID=BIAS"},
        {{.logit_bias = {nan, 1}}, "logit-bias"},
        {{.logit_bias = {open, 1}}, "logit-bias"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_sampler *sampler = (frit_sampler *)&cases;
        assert_fails(frit_sampler_create(&sampler, 10, &cases[i].options), FRIT_E_INVALID, cases[i].part);
        assert_null(sampler);
    }
    frit_sampler *sampler;
    assert_fails(frit_sampler_create(&sampler, 0, NULL), FRIT_E_INVALID, "vocabulary");
    frit_sampler_free(NULL);
}

static void options_are_set_by_name(void **state)
{
    (void)state;
    frit_sampler_options options = {0};
    assert_ok(frit_sampler_set_option(&options, "temp", "0.5"));
    assert_ok(frit_sampler_set_option(&options, "top-k", "7"));
    assert_ok(frit_sampler_set_option(&options, "seed", "18446744073709551615"));
    assert_ok(frit_sampler_set_option(&options, "samplers", "top-k,temp"));
    assert_true(options.temp == 0.5f && options.top_k == 7 && options.seed == UINT64_MAX);
    assert_string_equal(options.samplers, "top-k,temp");
    const frit_sampler_options before = options;
    assert_fails(frit_sampler_set_option(&options, "top-m", "7"), FRIT_E_INVALID,
                 "unknown option 'top-m' of samplers; the nearest are top-");
    assert_fails(frit_sampler_set_option(&options, "", "7"), FRIT_E_INVALID, "unknown option ''");
    assert_fails(frit_sampler_set_option(&options, "top-k", "many"), FRIT_E_INVALID, "top-k");
    assert_fails(frit_sampler_set_option(&options, "top-n-sigma", "-1"), FRIT_E_INVALID, "top-n-sigma");
    assert_fails(frit_sampler_set_option(&options, "logit-bias", "5=1"), FRIT_E_INVALID, "list");
    assert_memory_equal(&options, &before, sizeof options);
}

static void every_option_has_a_place_of_its_own(void **state)
{
    (void)state;
    static const size_t sizes[] = {[FRIT_OPTION_FLAG] = sizeof(bool),
                                   [FRIT_OPTION_INT] = 4,
                                   [FRIT_OPTION_FLOAT] = 4,
                                   [FRIT_OPTION_SEED] = 8,
                                   [FRIT_OPTION_TEXT] = sizeof(char *),
                                   [FRIT_OPTION_LIST] = sizeof(frit_option_list)};
    bool taken[sizeof(frit_sampler_options)] = {false};
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        assert_true(rows[i].type < FRIT_COUNT(sizes) && sizes[rows[i].type] > 0);
        for (size_t k = 0; k < sizes[rows[i].type]; k++) {
            assert_true(rows[i].offset + k < sizeof taken && !taken[rows[i].offset + k]);
            taken[rows[i].offset + k] = true;
        }
    }
}

static void the_help_of_the_order_lists_all_stages(void **state)
{
    (void)state;
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows), *order = &rows[n_rows - 1];
    assert_string_equal(order->name, "samplers");
    char list[256];
    snprintf(list, sizeof list, "%s", strstr(order->help, "logit-bias"));
    for (char *at = list; *at; at++) *at = *at == ' ' ? ',' : *at;
    // The list is a valid order of all stages; one more name is too many.
    frit_sampler_options all = {.temp = 0.5f, .samplers = list};
    frit_sampler *sampler = NULL;
    assert_fails(frit_sampler_create(&sampler, 10, &all), FRIT_E_INVALID, "'infill' needs a vocabulary");
    assert_fails(frit_sampler_create(&sampler, 10, &(frit_sampler_options){.samplers = "?"}), FRIT_E_INVALID, list);
}

static void option_rows_have_defaults_that_parse(void **state)
{
    (void)state;
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    frit_sampler_options options = {0};
    for (size_t i = 0; i < n_rows; i++) {
        assert_non_null(rows[i].help);
        if (rows[i].fallback) assert_ok(frit_option_set(&rows[i], &options, rows[i].fallback));
    }
    assert_true(options.temp == 0.8f && options.top_k == 40 && options.top_p == 0.95f && options.min_p == 0.05f);
    assert_true(options.repeat_penalty == 1 && options.repeat_last_n == 64);
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, 10, &options));
    assert_int_equal(sampler->n_stages, 4);
    frit_sampler_free(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_options_are_refused_with_a_sentence),
        cmocka_unit_test(options_are_set_by_name),
        cmocka_unit_test(every_option_has_a_place_of_its_own),
        cmocka_unit_test(the_help_of_the_order_lists_all_stages),
        cmocka_unit_test(option_rows_have_defaults_that_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
