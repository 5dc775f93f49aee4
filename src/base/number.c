// SPDX-License-Identifier: MIT
// Decimal numbers independent of the locale. strtod does the rounding; its input has no decimal point.
#include "base/number.h"

#include <string.h>

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

// A number halfway between two doubles has at most 767 significant digits. Further digits only matter if one of them is
// not zero.
enum { MAX_DIGITS = 800, MAX_EXPONENT = 1 << 20 };

typedef struct decimal {
    char digits[MAX_DIGITS + 24];   // significant digits; "e", an exponent and a zero follow
    size_t n_digits;
    int64_t exponent;   // of the last digit
    uint64_t value;     // of the digits, if there are at most 19
    bool negative, inexact;
} decimal;

static void add_digit(decimal *d, char digit, bool fraction)
{
    if (d->n_digits == 0 && digit == '0') {
        d->exponent -= fraction;
    } else if (d->n_digits < MAX_DIGITS) {
        d->digits[d->n_digits++] = digit;
        d->exponent -= fraction;
        if (d->n_digits <= 19) d->value = d->value * 10 + (uint64_t)(digit - '0');
    } else {
        d->exponent += !fraction;
        d->inexact |= digit != '0';
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Reads the exponent at text[at], which is an 'e'; returns where it ends, or `at` if no digit follows.
static size_t read_exponent(const char *text, size_t n, size_t at, int64_t *exponent)
{
    size_t i = at + 1;
    const bool negative = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+')) i++;
    if (i == n || !is_digit(text[i])) return at;
    int64_t e = 0;
    for (; i < n && is_digit(text[i]); i++)
        if (e < INT64_C(1) << 50) e = e * 10 + (text[i] - '0');
    *exponent += negative ? -e : e;
    return i;
}

static size_t read_decimal(const char *text, size_t n, decimal *d)
{
    size_t i = 0, n_read = 0;
    if (n > 0 && (text[0] == '-' || text[0] == '+')) i++, d->negative = text[0] == '-';
    for (; i < n && is_digit(text[i]); i++, n_read++) add_digit(d, text[i], false);
    if (i < n && text[i] == '.' && (n_read > 0 || (i + 1 < n && is_digit(text[i + 1])))) {
        for (i++; i < n && is_digit(text[i]); i++, n_read++) add_digit(d, text[i], true);
    }
    if (n_read == 0) return 0;
    if (i < n && (text[i] == 'e' || text[i] == 'E')) i = read_exponent(text, n, i, &d->exponent);
    return i;
}

static double convert(decimal *d)
{
    // Integers below 2^53 and powers of ten up to 10^22 are doubles: one operation rounds once.
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->n_digits == 0) return 0;
    const bool exact = d->n_digits <= 19 && d->value <= UINT64_C(1) << 53;
    if (exact && d->exponent >= 0 && d->exponent <= 22) return (double)d->value * powers[d->exponent];
    if (exact && d->exponent < 0 && d->exponent >= -22) return (double)d->value / powers[-d->exponent];
    if (d->inexact) d->digits[d->n_digits++] = '1', d->exponent--;
    int64_t exponent = d->exponent;
    if (exponent > MAX_EXPONENT) exponent = MAX_EXPONENT;
    if (exponent < -MAX_EXPONENT) exponent = -MAX_EXPONENT;
    snprintf(d->digits + d->n_digits, sizeof d->digits - d->n_digits, "e%d", (int)exponent);
    return strtod(d->digits, NULL);
}

size_t frit_parse_double(const char *text, size_t n, double *out)
{
    decimal d;
    d.n_digits = 0, d.exponent = 0, d.value = 0, d.negative = d.inexact = false;   // value lacks some digits
    const size_t used = read_decimal(text, n, &d);
    if (used == 0) return 0;
    const double size = convert(&d);
    *out = d.negative ? -size : size;
    return used;
}

// ------------------------------------------------------------------------------------------------ printing

#if defined(_WIN32)

int frit_vformat(char *out, size_t size, const char *format, va_list args)
{
    const int before = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    char *name = _strdup(setlocale(LC_NUMERIC, NULL));
    setlocale(LC_NUMERIC, "C");
    const int n = vsnprintf(out, size, format, args);
    if (name) setlocale(LC_NUMERIC, name);
    free(name);
    _configthreadlocale(before);
    return n;
}

#else

int frit_vformat(char *out, size_t size, const char *format, va_list args)
{
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    const int n = vsnprintf(out, size, format, args);
    uselocale(before);
    if (plain) freelocale(plain);
    return n;
}

#endif

int frit_format(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = frit_vformat(out, size, format, args);
    va_end(args);
    return n;
}

bool frit_parse_size(const char *text, uint64_t *out)
{
    double n = 0;
    const char *end = text + frit_parse_double(text, strlen(text), &n);
    const double unit = *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    if (end == text || !(n > 0) || n * unit > 1e18 || (*end && (!strchr("KMG", *end) || end[1]))) return false;
    *out = n * unit < 1 ? 1 : (uint64_t)(n * unit);
    return true;
}
