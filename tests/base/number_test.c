// SPDX-License-Identifier: MIT
// base/number.h: reading gives the same bits as strtod in the C locale; the locale changes nothing.
#include "base/number.h"
#include "support/locale.h"
#include "support/support.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_number(const char *text)
{
    char *end;
    const double expected = strtod(text, &end);
    double found = 0;
    const size_t n = frit_parse_double(text, strlen(text), &found);
    if (n != (size_t)(end - text) || bits_of(found) != bits_of(expected))
        fail_msg("'%.60s': %zu bytes, %.17g; expected %zu bytes, %.17g", text, n, found, (size_t)(end - text),
                 expected);
}

static void numbers_are_read_as_strtod_reads_them(void **state)
{
    (void)state;
    const char *texts[] = {"0",
                           "-0",
                           "+0.1",
                           ".5",
                           "-.5",
                           "2.",
                           "1e-3",
                           "-1.5E+2",
                           "3.4028235e38",
                           "1e-45",
                           "0e999",
                           "1e22",
                           "1e23",
                           "123456789012345678",
                           "9007199254740993",
                           "9007199254740992.5",
                           "1e308",
                           "1.7976931348623158e308",
                           "1.7976931348623159e308",
                           "1e309",
                           "-1e999999999999999999999",
                           "4.9e-324",
                           "2.4703282292062328e-324",
                           "2.4703282292062327e-324",
                           "1e-999999999999999999999",
                           "2.2250738585072011e-308",
                           "1e",
                           "1e+",
                           "1ex",
                           "1.2.3",
                           "1,5",
                           "7 8",
                           "0.000000000000000000000001e24"};
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) check_number(texts[i]);
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        uint64_t bits = frit_rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        if (i % 2) value = ldexp(value < 0 ? -0.7 : 0.7, (int)random_between(&rng, -60, 60)) * frit_rng_double(&rng);
        snprintf(text, sizeof text, "%.*g", (int)random_between(&rng, 1, 20), value);
        check_number(text);
    }
}

// Halfway between two doubles the last of hundreds of digits decides.
static void no_digit_is_too_far_behind_to_count(void **state)
{
    (void)state;
    static char text[4000];
    for (int exponent = -1074; exponent < 1000; exponent += 37) {
        const double low = ldexp(1, exponent), high = nextafter(low, INFINITY);
        const long double middle = ((long double)low + high) / 2;   // exact: it has one more bit
        int n = snprintf(text, 2000, "%.1100Lf", middle);
        for (int change = 0; change < 3; change++) {
            strcpy(text + n, change == 0 ? "" : change == 1 ? "0000000000000000000000000001" : "0");
            check_number(text);
        }
    }
    memset(text, '1', 2000);
    strcpy(text + 2000, "e-1990");
    check_number(text);
    memset(text, '0', 2000);
    text[1] = '.';
    strcpy(text + 2000, "17e1999");
    check_number(text);
}

static void what_is_no_number_takes_no_bytes(void **state)
{
    (void)state;
    const char *bad[] = {"", "-", "+", ".", "-.", "e5", ".e5", "x", " 1", "inf", "nan", "--1", ",5"};
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        double value = 42;
        if (frit_parse_double(bad[i], strlen(bad[i]), &value) != 0 || value != 42) fail_msg("'%s' was taken", bad[i]);
    }
    double value = 0;
    assert_int_equal(frit_parse_double("0x10", 4, &value), 1);
    assert_int_equal(frit_parse_double("12345", 2, &value), 2);   // bytes past n are not read
    assert_true(value == 12);
    assert_int_equal(frit_parse_double("1e5", 2, &value), 1);
    assert_int_equal(frit_parse_double("1.5", 2, &value), 2);
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    enter_comma_locale();
    char text[64], theirs[64];
    double value = 0, longer = 0, none = 1;
    snprintf(theirs, sizeof theirs, "%g", 0.5);
    const double cut = strtod("0.75", NULL);
    const int n = frit_format(text, sizeof text, "%d %g %.2f %s", 1234567, 0.5, 1234.5, "a,b");
    const size_t used = frit_parse_double("0.75", 4, &value);
    const size_t used_longer = frit_parse_double("1.23456789012345678901e-30", 26, &longer);
    const size_t used_none = frit_parse_double("0,75", 4, &none);
    frit_fail_say("found %g", 2.5);
    const char *still = localeconv()->decimal_point;
    const bool stays = strcmp(still, ",") == 0;
    leave_comma_locale();
    assert_string_equal(theirs, "0,5");   // otherwise this test would prove nothing
    assert_true(cut == 0);
    assert_string_equal(text, "1234567 0.5 1234.50 a,b");
    assert_int_equal(n, 23);
    assert_int_equal(used, 4);
    assert_true(value == 0.75);
    assert_int_equal(used_longer, 26);
    assert_true(longer == 1.23456789012345678901e-30);
    assert_int_equal(used_none, 1);
    assert_true(none == 0);
    assert_string_equal(frit_error(), "found 2.5");
    assert_true(stays);   // the host's locale is unchanged
}

static void errors_of_the_system_have_words(void **state)
{
    (void)state;
    char text[FRIT_ERRNO_BYTES];
    assert_string_equal(frit_errno_text(2, text), strerror(2));
    assert_true(strlen(frit_errno_text(123456, text)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_strtod_reads_them), cmocka_unit_test(no_digit_is_too_far_behind_to_count),
        cmocka_unit_test(what_is_no_number_takes_no_bytes),      cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(errors_of_the_system_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
