// SPDX-License-Identifier: MIT
// Numbers as languages of decimal texts: bounds are compared digit by digit, multiples by remainders.
#include "grammar/schema/schema.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_DIGITS = 340, MAX_REMAINDERS = 4000 };

typedef struct decimal {
    bool negative;
    char whole[MAX_DIGITS + 1], fraction[MAX_DIGITS + 1];   // without leading and trailing zeros; whole is at least "0"
} decimal;

// Writes the shortest text that is read as the same number, as digits before and after the point.
static bool read_decimal(json_t *number, decimal *out)
{
    char text[64] = "", digits[32];
    int exponent = 0, n = 0;
    *out = (decimal){0};
    if (json_is_integer(number)) {
        frit_format(text, sizeof text, "%lld", (long long)json_integer_value(number));
    } else {
        const double value = json_real_value(number);
        double again = 0;
        for (int precision = 15; precision <= 17; precision++) {
            frit_format(text, sizeof text, "%.*e", precision - 1, value);
            frit_parse_double(text, strlen(text), &again);
            if (again == value) break;
        }
    }
    const char *at = text;
    out->negative = *at == '-';
    at += out->negative;
    int point = -1;
    for (; *at && *at != 'e' && n < 31; at++) {
        if (*at == '.')
            point = n;
        else
            digits[n++] = *at;
    }
    if (*at == 'e') exponent = (int)strtol(at + 1, NULL, 10);
    const int n_whole = (point < 0 ? n : point) + exponent;   // digits before the point
    if (n_whole > MAX_DIGITS || n - n_whole > MAX_DIGITS) return false;
    int w = 0, f = 0;
    for (int i = 0; i < n_whole; i++) {
        const char d = i < n ? digits[i] : '0';
        if (w > 0 || d != '0') out->whole[w++] = d;
    }
    for (int i = n_whole; i < n; i++) out->fraction[f++] = i < 0 ? '0' : digits[i];
    while (f > 0 && out->fraction[f - 1] == '0') out->fraction[--f] = 0;
    if (w == 0) out->whole[0] = '0';
    if (w == 0 && f == 0) out->negative = false;
    return true;
}

// ------------------------------------------------------------------------------------- parts

static frit_fragment digits(frit_nfa *nfa, char low, int32_t min, int32_t max)
{
    return frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, (unsigned char)low, '9'), min, max);
}

static frit_fragment maybe(frit_nfa *nfa, frit_fragment part)
{
    return frit_nfa_repeat(nfa, part, 0, 1);
}

static frit_fragment point(frit_nfa *nfa)
{
    return frit_nfa_bytes(nfa, '.', '.');
}

static frit_fragment digits_of_zero(frit_nfa *nfa, int32_t min)
{
    return frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '0'), min, FRIT_NO_LIMIT);
}

static frit_fragment any_fraction(frit_nfa *nfa)
{
    const frit_fragment dot = point(nfa);
    return maybe(nfa, frit_nfa_seq(nfa, dot, digits(nfa, '0', 1, FRIT_NO_LIMIT)));
}

// Makes 0, or digits that do not begin with 0.
static frit_fragment whole(frit_nfa *nfa, int32_t max)
{
    const frit_fragment all = frit_nfa_none(nfa);
    frit_nfa_or(nfa, all, frit_nfa_bytes(nfa, '0', '0'));
    const frit_fragment first = frit_nfa_bytes(nfa, '1', '9');
    return frit_nfa_or(nfa, all, frit_nfa_seq(nfa, first, digits(nfa, '0', 0, max == FRIT_NO_LIMIT ? max : max - 1)));
}

static frit_fragment sign(frit_nfa *nfa)
{
    return maybe(nfa, frit_nfa_bytes(nfa, '-', '-'));
}

static frit_status finish(frit_nfa *nfa, frit_fragment part, frit_dfa *out)
{
    const frit_status status = frit_dfa_new(out, nfa, part);
    frit_nfa_free(nfa);
    return status;
}

frit_status frit_number_universe(frit_budget *budget, frit_dfa *out)
{
    frit_nfa nfa = {.budget = budget};
    frit_fragment part = sign(&nfa);
    part = frit_nfa_seq(&nfa, part, whole(&nfa, FRIT_NO_LIMIT));
    part = frit_nfa_seq(&nfa, part, any_fraction(&nfa));
    return finish(&nfa, part, out);
}

frit_status frit_number_integers(frit_budget *budget, frit_dfa *out)
{
    frit_nfa nfa = {.budget = budget};
    frit_fragment part = sign(&nfa);
    part = frit_nfa_seq(&nfa, part, whole(&nfa, FRIT_NO_LIMIT));
    frit_fragment zeros = point(&nfa);
    zeros = frit_nfa_seq(&nfa, zeros, digits_of_zero(&nfa, 1));
    part = frit_nfa_seq(&nfa, part, maybe(&nfa, zeros));
    return finish(&nfa, part, out);
}

frit_status frit_number_nice(frit_budget *budget, frit_dfa *out)
{
    frit_nfa nfa = {.budget = budget};
    const frit_fragment all = frit_nfa_none(&nfa);
    for (int negative = 0; negative < 2; negative++) {
        frit_fragment part = frit_nfa_text(&nfa, frit_str_of(negative ? "-" : ""));
        frit_fragment value = frit_nfa_none(&nfa);
        for (int zero = 0; zero < 2; zero++) {
            frit_fragment one = zero ? frit_nfa_bytes(&nfa, '0', '0') : frit_nfa_bytes(&nfa, '1', '9');
            if (!zero) one = frit_nfa_seq(&nfa, one, digits(&nfa, '0', 0, 14));
            frit_fragment fraction = point(&nfa);
            fraction = frit_nfa_seq(&nfa, fraction, digits(&nfa, '0', 0, 9));
            fraction = frit_nfa_seq(&nfa, fraction, frit_nfa_bytes(&nfa, '1', '9'));
            if (!zero || !negative) fraction = maybe(&nfa, fraction);
            value = frit_nfa_or(&nfa, value, frit_nfa_seq(&nfa, one, fraction));
        }
        frit_nfa_or(&nfa, all, frit_nfa_seq(&nfa, part, value));
    }
    return finish(&nfa, all, out);
}

// ------------------------------------------------------------------------------------- bounds

// Makes fractions, with the point, of at least (or more than) 0.f; also the empty fraction if it is large enough.
static frit_fragment fraction_from(frit_nfa *nfa, const char *f, bool more)
{
    const frit_fragment all = frit_nfa_none(nfa);
    const size_t n = strlen(f);
    if (n == 0 && !more) return frit_nfa_or(nfa, all, any_fraction(nfa));
    for (size_t i = 0; i < n; i++) {   // equal up to i, then larger
        if (f[i] == '9') continue;
        frit_fragment part = point(nfa);
        part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, (frit_str){f, i}));
        part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, (unsigned char)(f[i] + 1), '9'));
        frit_nfa_or(nfa, all, frit_nfa_seq(nfa, part, digits(nfa, '0', 0, FRIT_NO_LIMIT)));
    }
    frit_fragment part = point(nfa);
    part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, (frit_str){f, n}));
    part = frit_nfa_seq(nfa, part, digits(nfa, '0', 0, FRIT_NO_LIMIT));
    if (more) {
        part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, '1', '9'));
        part = frit_nfa_seq(nfa, part, digits(nfa, '0', 0, FRIT_NO_LIMIT));
    }
    return frit_nfa_or(nfa, all, part);
}

// Makes magnitudes of at least (or more than) a decimal.
static frit_fragment magnitude_from(frit_nfa *nfa, const decimal *d, bool more)
{
    const frit_fragment all = frit_nfa_none(nfa);
    const int32_t n = (int32_t)strlen(d->whole);
    frit_fragment part = frit_nfa_bytes(nfa, '1', '9');   // longer numbers
    part = frit_nfa_seq(nfa, part, digits(nfa, '0', n, FRIT_NO_LIMIT));
    frit_nfa_or(nfa, all, frit_nfa_seq(nfa, part, any_fraction(nfa)));
    for (int32_t i = 0; i < n; i++) {   // equal up to i, then larger
        if (d->whole[i] == '9') continue;
        part = frit_nfa_text(nfa, (frit_str){d->whole, (size_t)i});
        part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, (unsigned char)(d->whole[i] + 1), '9'));
        part = frit_nfa_seq(nfa, part, digits(nfa, '0', n - i - 1, n - i - 1));
        frit_nfa_or(nfa, all, frit_nfa_seq(nfa, part, any_fraction(nfa)));
    }
    part = frit_nfa_text(nfa, frit_str_of(d->whole));
    return frit_nfa_or(nfa, all, frit_nfa_seq(nfa, part, fraction_from(nfa, d->fraction, more)));
}

static frit_status magnitudes(frit_budget *budget, const decimal *d, bool more, bool negative, frit_dfa *out)
{
    frit_nfa nfa = {.budget = budget};
    frit_fragment part = frit_nfa_text(&nfa, frit_str_of(negative ? "-" : ""));
    part = frit_nfa_seq(&nfa, part, magnitude_from(&nfa, d, more));
    return finish(&nfa, part, out);
}

frit_status frit_number_from(frit_budget *budget, json_t *bound, bool more, frit_dfa *out)
{
    decimal d;
    if (!read_decimal(bound, &d))
        return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: a bound of numbers has more than %d digits", MAX_DIGITS);
    frit_dfa far = {0}, universe = {0};
    if (d.negative) {   // all but negative numbers whose magnitude is larger
        frit_status status = magnitudes(budget, &d, !more, true, &far);
        if (status == FRIT_OK) status = frit_number_universe(budget, &universe);
        if (status == FRIT_OK) status = frit_dfa_combine(out, &universe, FRIT_DFA_MINUS, &far);
        frit_dfa_free(&far);
        frit_dfa_free(&universe);
        return status;
    }
    const bool zero = d.whole[0] == '0' && d.fraction[0] == 0;
    frit_nfa nfa = {.budget = budget};
    frit_fragment part = frit_nfa_none(&nfa);
    frit_nfa_or(&nfa, part, magnitude_from(&nfa, &d, more));
    if (zero && !more) {   // -0, -0.0
        frit_fragment minus = frit_nfa_text(&nfa, frit_str_of("-0"));
        frit_fragment zeros = point(&nfa);
        zeros = frit_nfa_seq(&nfa, zeros, digits_of_zero(&nfa, 1));
        part = frit_nfa_or(&nfa, part, frit_nfa_seq(&nfa, minus, maybe(&nfa, zeros)));
    }
    return finish(&nfa, part, out);
}

frit_fragment frit_number_zeros(frit_nfa *nfa)
{
    const frit_fragment dot = point(nfa);
    return maybe(nfa, frit_nfa_seq(nfa, dot, digits_of_zero(nfa, 1)));
}

frit_status frit_number_equal(json_t *number, frit_nfa *nfa, frit_fragment any, frit_fragment zeros)
{
    decimal d;
    if (!read_decimal(number, &d))
        return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: a number has more than %d digits", MAX_DIGITS);
    const bool zero = d.whole[0] == '0' && d.fraction[0] == 0;
    frit_fragment part = zero ? sign(nfa) : frit_nfa_text(nfa, frit_str_of(d.negative ? "-" : ""));
    part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, frit_str_of(d.whole)));
    frit_nfa_add(nfa, any.in, FRIT_EPSILON, FRIT_EPSILON, part.in);
    if (d.fraction[0]) {
        part = frit_nfa_seq(nfa, part, point(nfa));
        part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, frit_str_of(d.fraction)));
        part = frit_nfa_seq(nfa, part, digits_of_zero(nfa, 0));
    }
    frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, d.fraction[0] ? any.out : zeros.in);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- multiples

// Adds edges between states (digits after the point, remainder), which are numbered from `base`.
static void add_remainders(frit_nfa *nfa, int32_t base, int32_t m, int32_t places, int32_t out)
{
    for (int32_t place = 0; place <= places; place++) {
        for (int32_t r = 0; r < m; r++) {
            const int32_t at = base + place * 2 * m + r;   // the second half of the states is before the point
            int64_t rest = r;
            for (int32_t i = place; i < places; i++) rest = rest * 10 % m;
            if (place == 0) {
                const int32_t before = base + m + r;
                for (int32_t d = 0; d < 10; d++)
                    frit_nfa_add(nfa, before, '0' + d, '0' + d, base + m + (int32_t)(((int64_t)r * 10 + d) % m));
                frit_nfa_add(nfa, before, '.', '.', at);
                if (rest == 0) frit_nfa_add(nfa, before, FRIT_EPSILON, FRIT_EPSILON, out);
            }
            if (rest == 0) frit_nfa_add(nfa, at, FRIT_EPSILON, FRIT_EPSILON, out);
            for (int32_t d = 0; d < 10; d++) {
                if (place < places)
                    frit_nfa_add(nfa, at, '0' + d, '0' + d,
                                 base + (place + 1) * 2 * m + (int32_t)(((int64_t)r * 10 + d) % m));
                else if (d == 0)
                    frit_nfa_add(nfa, at, '0', '0', at);
            }
        }
    }
}

frit_status frit_number_multiples(frit_budget *budget, json_t *divisor, frit_dfa *out)
{
    decimal d;
    if (!read_decimal(divisor, &d) || d.negative || (d.whole[0] == '0' && d.fraction[0] == 0))
        return frit_fail(FRIT_E_INVALID, "JSON schema: multipleOf is not a number above 0");
    const int32_t places = (int32_t)strlen(d.fraction);
    int64_t m = 0;
    for (const char *at = d.whole; *at && m <= MAX_REMAINDERS; at++) m = m * 10 + (*at - '0');
    for (const char *at = d.fraction; *at && m <= MAX_REMAINDERS; at++) m = m * 10 + (*at - '0');
    if (m > MAX_REMAINDERS || places > 20)
        return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: multipleOf needs more than %d states", MAX_REMAINDERS);
    frit_nfa nfa = {.budget = budget};
    frit_fragment part = sign(&nfa);
    const frit_fragment body = frit_nfa_none(&nfa);
    const int32_t base = nfa.n_states;
    for (int32_t i = 0; i < (places + 1) * 2 * m; i++) frit_nfa_state(&nfa);
    frit_nfa_add(&nfa, body.in, FRIT_EPSILON, FRIT_EPSILON, base + (int32_t)m);
    if (nfa.failed == FRIT_OK) add_remainders(&nfa, base, (int32_t)m, places, body.out);
    part = frit_nfa_seq(&nfa, part, body);
    frit_dfa rough = {0}, universe = {0};
    frit_status status = finish(&nfa, part, &rough);
    if (status == FRIT_OK) status = frit_number_universe(budget, &universe);
    if (status == FRIT_OK) status = frit_dfa_combine(out, &rough, FRIT_DFA_AND, &universe);
    frit_dfa_free(&rough);
    frit_dfa_free(&universe);
    return status;
}
