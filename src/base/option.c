// SPDX-License-Identifier: MIT
// Sets fields of structs from text.
#include "base/option.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static frit_status refuse(const frit_option *row, const char *text, const char *allowed)
{
    return frit_fail(FRIT_E_INVALID, "option %s: '%s' is not %s", row->name, text, allowed);
}

static bool has_limits(const frit_option *row)
{
    return row->min != 0 || row->max != 0;
}

static frit_status set_flag(const frit_option *row, bool *field, const char *text)
{
    static const char *const words[2][4] = {{"false", "0", "no", "off"}, {"true", "1", "yes", "on"}};
    for (int value = 0; value < 2; value++)
        for (size_t i = 0; i < FRIT_COUNT(words[0]); i++)
            if (strcmp(text, words[value][i]) == 0) {
                *field = value != 0;
                return FRIT_OK;
            }
    return refuse(row, text, "true or false");
}

// Reads decimal digits only; false without digits, for other characters, or for too large a number.
static bool parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static frit_status set_int(const frit_option *row, int32_t *field, const char *text)
{
    double min = has_limits(row) ? row->min : INT32_MIN, max = has_limits(row) ? row->max : INT32_MAX;
    bool negative = text[0] == '-';
    uint64_t size = 0;
    bool good = parse_u64(text + (negative || text[0] == '+'), &size) && size <= UINT64_C(1) << 31;
    double value = negative ? -(double)size : (double)size;
    if (!good || value < min || value > max || value > INT32_MAX) {
        char allowed[96];
        snprintf(allowed, sizeof allowed, "a whole number from %.0f to %.0f", min, max);
        return refuse(row, text, allowed);
    }
    *field = (int32_t)value;
    return FRIT_OK;
}

static frit_status set_seed(const frit_option *row, uint64_t *field, const char *text)
{
    if (strcmp(text, "-1") == 0) {
        *field = UINT64_MAX;
        return FRIT_OK;
    }
    uint64_t value;
    if (!parse_u64(text, &value)) return refuse(row, text, "a whole number from 0 to 18446744073709551615, or -1");
    *field = value;
    return FRIT_OK;
}

static frit_status set_float(const frit_option *row, float *field, const char *text)
{
    double value;
    const size_t n = strlen(text);
    bool good = n > 0 && frit_parse_double(text, n, &value) == n && isfinite((float)value);
    if (good && has_limits(row)) good = value >= row->min && value <= row->max;
    if (!good) {
        char allowed[96] = "a number";
        if (has_limits(row)) frit_format(allowed, sizeof allowed, "a number from %g to %g", row->min, row->max);
        return refuse(row, text, allowed);
    }
    *field = (float)value;
    return FRIT_OK;
}

static frit_status set_choice(const frit_option *row, const char **field, const char *text)
{
    size_t n = strlen(text);
    for (const char *at = row->choices; at && n > 0;) {
        size_t n_word = strcspn(at, "|");
        if (n_word == n && memcmp(at, text, n) == 0) {
            *field = text;
            return FRIT_OK;
        }
        at = at[n_word] ? at + n_word + 1 : NULL;
    }
    return frit_fail(FRIT_E_INVALID, "option %s: '%s' is not one of %s", row->name, text,
                     row->choices ? row->choices : "");
}

frit_status frit_option_set(const frit_option *row, void *target, const char *text)
{
    FRIT_REQUIRE(row);
    FRIT_REQUIRE(target);
    FRIT_REQUIRE(text);
    void *field = (char *)target + row->offset;
    switch (row->type) {
    case FRIT_OPTION_FLAG:
        return set_flag(row, field, text);
    case FRIT_OPTION_INT:
        return set_int(row, field, text);
    case FRIT_OPTION_SEED:
        return set_seed(row, field, text);
    case FRIT_OPTION_FLOAT:
        return set_float(row, field, text);
    case FRIT_OPTION_TEXT:
        *(const char **)field = text;
        return FRIT_OK;
    case FRIT_OPTION_CHOICE:
        return set_choice(row, field, text);
    case FRIT_OPTION_LIST:
        break;
    }
    return frit_fail(FRIT_E_INVALID, "option %s: takes a list, which cannot be set from one text", row->name);
}

static frit_status check_number(const frit_option *row, double value)
{
    if (value == 0 || !has_limits(row) || (value >= row->min && value <= row->max)) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "option %s: is %g, expected %g to %g", row->name, value, row->min, row->max);
}

frit_status frit_options_check(const frit_option *rows, size_t n_rows, const void *options)
{
    for (const frit_option *row = rows; row < rows + n_rows; row++) {
        const void *field = (const char *)options + row->offset;
        const char *text = NULL;
        if (row->type == FRIT_OPTION_INT) {
            FRIT_TRY(check_number(row, *(const int32_t *)field));
        } else if (row->type == FRIT_OPTION_FLOAT) {
            FRIT_TRY(check_number(row, (double)*(const float *)field));
        } else if (row->type == FRIT_OPTION_CHOICE && (text = *(const char *const *)field) != NULL) {
            const char *parsed;
            FRIT_TRY(set_choice(row, &parsed, text));
        }
    }
    return FRIT_OK;
}
