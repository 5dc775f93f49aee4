// SPDX-License-Identifier: MIT
// The filters of `x | ...` for numbers, text and JSON, and the table of all filters. Filters over sequences are in
// sequences.c.
#include "text/template/filters.h"

#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

// ------------------------------------------------------------------------------------- arguments

value frit_filter_option(const call *c, size_t i, const char *name, value fallback)
{
    value v;
    return frit_call_argument(c, i, name, &v) ? v : fallback;
}

frit_status frit_filter_int(run *r, const call *c, size_t i, const char *name, int64_t fallback, int64_t *out)
{
    value v = frit_filter_option(c, i, name, frit_var_int(fallback));
    if (!frit_var_is_integral(v))
        return frit_run_fail(r, "the argument '%s' must be an integer, not %s", name, frit_var_type_name(v));
    *out = frit_var_as_int(v);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- any value

static frit_status filter_default(run *r, value v, const call *c, value *out)
{
    (void)r;
    bool absent = v.type == VALUE_UNDEFINED || v.type == VALUE_FORBIDDEN;
    if (frit_var_is_true(frit_filter_option(c, 1, "boolean", frit_var_bool(false))))
        absent = absent || !frit_var_is_true(v);
    *out = absent ? frit_filter_option(c, 0, "default_value", frit_var_text(frit_str_of(""))) : v;
    return FRIT_OK;
}

static frit_status filter_string(run *r, value v, const call *c, value *out)
{
    (void)c;
    return frit_var_to_text(r, v, out);
}

static frit_status filter_safe(run *r, value v, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_to_text(r, v, out));
    out->safe = true;
    return FRIT_OK;
}

static frit_status filter_escape(run *r, value v, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_to_text(r, v, out));
    if (!out->safe) {
        writer escaped = {.r = r};
        frit_print_escaped(out->text, &escaped);
        FRIT_TRY(frit_writer_take(&escaped, out));
    }
    out->safe = true;
    return FRIT_OK;
}

// Escapes text even if it is marked as safe.
static frit_status filter_forceescape(run *r, value v, const call *c, value *out)
{
    v.safe = false;
    return filter_escape(r, v, c, out);
}

static frit_status filter_attr(run *r, value v, const call *c, value *out)
{
    value name;
    if (!frit_call_argument(c, 0, "name", &name) || name.type != VALUE_TEXT)
        return frit_run_fail(r, "attr takes a name");
    if (v.type == VALUE_DICT && !frit_method_find(v, name.text)) {   // attributes only, no items
        *out = frit_var_undefined("an attribute");
        return FRIT_OK;
    }
    return frit_var_attribute(r, v, name.text, out);
}

// ------------------------------------------------------------------------------------- JSON

static frit_status read_separators(run *r, value separators, json_style *style)
{
    if (separators.type == VALUE_NONE) return FRIT_OK;
    bool pair = frit_var_is_list(separators) && separators.list->n == 2 &&
                separators.list->items[0].type == VALUE_TEXT && separators.list->items[1].type == VALUE_TEXT;
    if (!pair) return frit_run_fail(r, "tojson: separators must be two strings");
    style->item_separator = separators.list->items[0].text;
    style->key_separator = separators.list->items[1].text;
    return FRIT_OK;
}

static frit_status filter_tojson(run *r, value v, const call *c, value *out)
{
    value indent = frit_filter_option(c, 1, "indent", frit_var_none());
    json_style style = {.ascii = frit_var_is_true(frit_filter_option(c, 0, "ensure_ascii", frit_var_bool(false))),
                        .sort_keys = frit_var_is_true(frit_filter_option(c, 3, "sort_keys", frit_var_bool(false))),
                        .item_separator = frit_str_of(indent.type == VALUE_NONE ? ", " : ","),
                        .key_separator = frit_str_of(": ")};
    if (frit_var_is_integral(indent)) {
        static const char spaces[] = "                                ";
        int64_t n = frit_var_as_int(indent);
        if (n > (int64_t)sizeof spaces - 1)
            return frit_run_fail(r, "tojson: an indent of more than %zu", sizeof spaces - 1);
        style.indent = (frit_str){spaces, n < 0 ? 0 : (size_t)n};
    } else if (indent.type == VALUE_TEXT) {
        style.indent = indent.text;
    } else if (indent.type != VALUE_NONE) {
        return frit_run_fail(r, "tojson: indent must be an integer or a string");
    }
    FRIT_TRY(read_separators(r, frit_filter_option(c, 2, "separators", frit_var_none()), &style));
    writer json = {.r = r};
    frit_status status = frit_var_to_json(r, v, &style, &json);
    if (status == FRIT_OK) return frit_writer_take(&json, out);
    frit_writer_free(&json);
    return status;
}

// ------------------------------------------------------------------------------------- numbers

// Reads "inf", "-Infinity", "NaN".
static bool parse_word(char *text, double *out)
{
    for (char *at = text; *at; at++)
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at + 'a' - 'A');
    const bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    const bool infinite = strcmp(text, "inf") == 0 || strcmp(text, "infinity") == 0;
    *out = infinite ? negative ? -INFINITY : INFINITY : NAN;
    return infinite || strcmp(text, "nan") == 0;
}

// Reads a whole text as a number; spaces around it are allowed.
static bool parse_float(frit_str text, double *out)
{
    char digits[64];
    while (text.len > 0 && strchr(" \t\n\r\f\v", text.ptr[0])) text.ptr++, text.len--;
    while (text.len > 0 && strchr(" \t\n\r\f\v", text.ptr[text.len - 1])) text.len--;
    if (text.len == 0 || text.len >= sizeof digits || memchr(text.ptr, 'x', text.len) ||
        memchr(text.ptr, 'X', text.len))
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = 0;
    return frit_parse_double(digits, text.len, out) == text.len || parse_word(digits, out);
}

static bool parse_int(frit_str text, int base, int64_t *out)
{
    char digits[80];
    while (text.len > 0 && strchr(" \t\n\r\f\v", text.ptr[0])) text.ptr++, text.len--;
    while (text.len > 0 && strchr(" \t\n\r\f\v", text.ptr[text.len - 1])) text.len--;
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len > 0 && strchr("+-", text.ptr[0])) text.ptr++, text.len--;
    const char *prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : NULL;
    if (prefix && text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 0x20) == prefix[1]) text.ptr += 2, text.len -= 2;
    if (text.len == 0 || text.len + 2 > sizeof digits || strchr("+- ", text.ptr[0])) return false;
    digits[0] = negative ? '-' : '+';
    memcpy(digits + 1, text.ptr, text.len);
    digits[text.len + 1] = 0;
    char *end;
    *out = strtoll(digits, &end, base);
    return *end == 0 && *out != INT64_MAX && *out != INT64_MIN;
}

static frit_status filter_int_of(run *r, value v, const call *c, value *out)
{
    int64_t base, whole;
    double number = 0;
    FRIT_TRY(frit_filter_int(r, c, 1, "base", 10, &base));
    if (v.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    *out = frit_filter_option(c, 0, "default", frit_var_int(0));
    if (frit_var_is_integral(v)) {
        *out = frit_var_int(frit_var_as_int(v));
        return FRIT_OK;
    }
    if (v.type == VALUE_TEXT && base >= 2 && base <= 36 && parse_int(v.text, (int)base, &whole)) {
        *out = frit_var_int(whole);
        return FRIT_OK;
    }
    bool found = v.type == VALUE_FLOAT || (v.type == VALUE_TEXT && parse_float(v.text, &number));
    if (v.type == VALUE_FLOAT) number = v.f;
    if (found && fabs(number) < 9.2e18) *out = frit_var_int((int64_t)number);
    return FRIT_OK;
}

static frit_status filter_float_of(run *r, value v, const call *c, value *out)
{
    double number;
    if (v.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    *out = frit_filter_option(c, 0, "default", frit_var_float(0));
    if (frit_var_is_number(v)) *out = frit_var_float(frit_var_as_float(v));
    if (v.type == VALUE_TEXT && parse_float(v.text, &number)) *out = frit_var_float(number);
    return FRIT_OK;
}

static frit_status filter_abs(run *r, value v, const call *c, value *out)
{
    (void)c;
    if (!frit_var_is_number(v)) return frit_run_fail(r, "bad operand type for abs(): '%s'", frit_var_type_name(v));
    *out = v.type == VALUE_FLOAT ? frit_var_float(fabs(v.f)) : frit_var_int(frit_var_as_int(v));
    if (v.type != VALUE_FLOAT && frit_var_as_int(v) < 0) return frit_eval_binary(r, OP_SUB, frit_var_int(0), v, out);
    return FRIT_OK;
}

static frit_status filter_round(run *r, value v, const call *c, value *out)
{
    int64_t precision;
    FRIT_TRY(frit_filter_int(r, c, 0, "precision", 0, &precision));
    value how = frit_filter_option(c, 1, "method", frit_var_text(frit_str_of("common")));
    if (!frit_var_is_number(v)) return frit_run_fail(r, "type %s cannot be rounded", frit_var_type_name(v));
    if (how.type != VALUE_TEXT || precision < -300 || precision > 300) return frit_run_fail(r, "round: bad arguments");
    double scale = pow(10, (double)precision), number = frit_var_as_float(v);
    *out = v.type == VALUE_BOOL ? frit_var_int(v.b) : v;
    if (frit_str_is(how.text, "ceil"))
        *out = frit_var_float(ceil(number * scale) / scale);
    else if (frit_str_is(how.text, "floor"))
        *out = frit_var_float(floor(number * scale) / scale);
    else if (!frit_str_is(how.text, "common"))
        return frit_run_fail(r, "round: method must be common, ceil or floor");
    else if (v.type == VALUE_FLOAT && precision >= 0 && fabs(number) < 1e16) {
        char text[400];   // printf rounds the exact value half to even, as Python does
        const int n = frit_format(text, sizeof text, "%.*f", (int)precision, number);
        frit_parse_double(text, (size_t)n, &number);
        *out = frit_var_float(number);
    } else if (precision < 0) {
        double rounded = nearbyint(number * scale) / scale;
        *out = v.type == VALUE_FLOAT ? frit_var_float(rounded) : frit_var_int((int64_t)rounded);
    }
    return FRIT_OK;
}

// Writes 13 kB, 4.1 MB; or 13 KiB.
static frit_status filter_filesizeformat(run *r, value v, const call *c, value *out)
{
    bool binary = frit_var_is_true(frit_filter_option(c, 0, "binary", frit_var_bool(false)));
    double base = binary ? 1024 : 1000, size = frit_var_is_number(v) ? frit_var_as_float(v) : 0, unit = base;
    if (!frit_var_is_number(v) && (v.type != VALUE_TEXT || !parse_float(v.text, &size)))
        return frit_run_fail(r, "a file size must be a number, not %s", frit_var_type_name(v));
    static const char prefixes[] = "kMGTPEZY";
    size_t i = 0;
    writer text = {.r = r};
    while (size >= unit * base && prefixes[i + 1]) unit *= base, i++;
    if (size == 1)
        frit_write_text(&text, "1 Byte");
    else if (size < base)
        frit_write_printf(&text, "%.0f Bytes", trunc(size));
    else
        frit_write_printf(&text, "%.1f %c%s", size / unit, binary && i == 0 ? 'K' : prefixes[i], binary ? "iB" : "B");
    return frit_writer_take(&text, out);
}

// ------------------------------------------------------------------------------------- text

#define CASE_FILTER(name, how)                                          \
    static frit_status name(run *r, value v, const call *c, value *out) \
    {                                                                   \
        (void)c;                                                        \
        FRIT_TRY(frit_var_to_text(r, v, &v));                           \
        return frit_text_case(r, v.text, how, out);                     \
    }
CASE_FILTER(filter_lower, CASE_LOWER)
CASE_FILTER(filter_upper, CASE_UPPER)
CASE_FILTER(filter_title, CASE_WORDS)
CASE_FILTER(filter_capitalize, CASE_CAPITALIZE)

static frit_status filter_trim(run *r, value v, const call *c, value *out)
{
    FRIT_TRY(frit_var_to_text(r, v, &v));
    return frit_text_strip(r, v, frit_filter_option(c, 0, "chars", frit_var_none()), true, true, out);
}

static frit_status filter_replace(run *r, value v, const call *c, value *out)
{
    value from, to, count = frit_filter_option(c, 2, "count", frit_var_int(-1));
    FRIT_TRY(frit_var_to_text(r, v, &v));
    if (!frit_call_argument(c, 0, "old", &from) || !frit_call_argument(c, 1, "new", &to) || from.type != VALUE_TEXT ||
        to.type != VALUE_TEXT)
        return frit_run_fail(r, "replace takes two strings");
    return frit_text_replace(r, v.text, from.text, to.text, frit_var_is_integral(count) ? frit_var_as_int(count) : -1,
                             out);
}

static frit_status filter_indent(run *r, value v, const call *c, value *out)
{
    value width = frit_filter_option(c, 0, "width", frit_var_int(4)), lines;
    bool first = frit_var_is_true(frit_filter_option(c, 1, "first", frit_var_bool(false)));
    bool blank = frit_var_is_true(frit_filter_option(c, 2, "blank", frit_var_bool(false)));
    if (frit_var_is_integral(width))
        FRIT_TRY(frit_eval_binary(r, OP_MUL, frit_var_text(frit_str_of(" ")), width, &width));
    if (width.type != VALUE_TEXT) return frit_run_fail(r, "indent: width must be an integer or a string");
    FRIT_TRY(frit_eval_binary(r, OP_ADD, v, frit_var_text(frit_str_of("\n")),
                              &v));   // the last line counts even if it is empty
    FRIT_TRY(frit_text_lines(r, v.text, false, &lines));
    writer text = {.r = r};
    for (size_t i = 0; i < lines.list->n; i++) {
        frit_str line = lines.list->items[i].text;
        if (i > 0) frit_write_char(&text, '\n');
        if (i > 0 ? blank || line.len > 0 : first) frit_write(&text, width.text.ptr, width.text.len);
        frit_write(&text, line.ptr, line.len);
        if (text.buf.len > MAX_OUTPUT) break;
    }
    return frit_writer_take(&text, out);
}

static frit_status filter_center(run *r, value v, const call *c, value *out)
{
    int64_t width;
    FRIT_TRY(frit_filter_int(r, c, 0, "width", 80, &width));
    FRIT_TRY(frit_var_to_text(r, v, &v));
    return frit_text_pad(r, v.text, width, 'c', frit_str_of(" "), out);
}

static frit_status filter_format(run *r, value v, const call *c, value *out)
{
    value operands;
    FRIT_TRY(frit_var_to_text(r, v, &v));
    if (c->n_named > 0) {
        FRIT_TRY(frit_var_new_dict(r, VALUE_DICT, &operands));
        for (size_t i = 0; i < c->n_named; i++)
            FRIT_TRY(frit_dict_put(r, operands.dict, frit_var_text(c->names[i]), c->named[i]));
        return frit_text_percent(r, v.text, operands, out);
    }
    FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, &operands));
    for (size_t i = 0; i < c->n; i++) FRIT_TRY(frit_list_push(r, operands.list, c->positional[i]));
    return frit_text_percent(r, v.text, operands, out);
}

static frit_status filter_truncate(run *r, value v, const call *c, value *out)
{
    int64_t length, leeway, n;
    value end = frit_filter_option(c, 2, "end", frit_var_text(frit_str_of("...")));
    FRIT_TRY(frit_filter_int(r, c, 0, "length", 255, &length));
    FRIT_TRY(frit_filter_int(r, c, 3, "leeway", 5, &leeway));
    FRIT_TRY(frit_var_length(r, v, &n));
    FRIT_TRY(frit_var_to_text(r, v, &v));
    if (end.type != VALUE_TEXT || leeway < 0) return frit_run_fail(r, "truncate: bad arguments");
    FRIT_TRY(frit_run_step(r, end.text.len / 64));
    int64_t kept = length - (int64_t)frit_text_length(end.text);
    if (kept < 0) return frit_run_fail(r, "truncate: the length is shorter than the end");
    *out = v;
    if (n <= length + leeway) return FRIT_OK;
    frit_str text = {v.text.ptr, frit_text_offset(v.text, (size_t)kept)};
    if (!frit_var_is_true(frit_filter_option(c, 1, "killwords", frit_var_bool(false)))) {
        size_t cut = text.len;
        while (cut > 0 && text.ptr[cut - 1] != ' ') cut--;
        if (cut > 0) text.len = cut - 1;
    }
    return frit_eval_binary(r, OP_ADD, frit_var_text(text), end, out);
}

static bool is_word_at(frit_str text, size_t at, size_t *len)
{
    uint32_t c;
    int n = frit_utf8_decode(text.ptr + at, text.len - at, &c);
    *len = n > 0 ? (size_t)n : 1;
    utf8proc_category_t category = n > 0 ? utf8proc_category((utf8proc_int32_t)c) : UTF8PROC_CATEGORY_CN;
    return c == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static frit_status filter_wordcount(run *r, value v, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_to_text(r, v, &v));
    FRIT_TRY(frit_run_step(r, v.text.len / 16));
    int64_t n = 0;
    bool inside = false;
    for (size_t i = 0, len = 1; i < v.text.len; i += len) {
        bool word = is_word_at(v.text, i, &len);
        n += word && !inside;
        inside = word;
    }
    *out = frit_var_int(n);
    return FRIT_OK;
}

static frit_status filter_urlencode(run *r, value v, const call *c, value *out)
{
    (void)c;
    if (v.type == VALUE_DICT || frit_var_is_list(v))
        return frit_run_fail(r, "urlencode takes a string, not %s", frit_var_type_name(v));
    FRIT_TRY(frit_var_to_text(r, v, &v));
    FRIT_TRY(frit_run_step(r, v.text.len / 16));
    writer text = {.r = r};
    for (size_t i = 0; i < v.text.len; i++) {
        unsigned char b = (unsigned char)v.text.ptr[i];
        bool plain =
            (b >= '0' && b <= '9') || (b < 0x80 && (b | 0x20) >= 'a' && (b | 0x20) <= 'z') || (b && strchr("_.-~/", b));
        text.taints = frit_origin_is_untrusted(r, v.text.ptr + i);
        if (plain)
            frit_write_char(&text, (char)b);
        else
            frit_write_printf(&text, "%%%02X", b);
    }
    return frit_writer_take(&text, out);
}

// ------------------------------------------------------------------------------------- the table

static const filter filters[] = {
    {"default", filter_default, "default_value boolean", 2},
    {"d", filter_default, "default_value boolean", 2},
    {"string", filter_string, "", 0},
    {"safe", filter_safe, "", 0},
    {"escape", filter_escape, "", 0},
    {"e", filter_escape, "", 0},
    {"attr", filter_attr, "name", 1},
    {"tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 4},
    {"int", filter_int_of, "default base", 2},
    {"float", filter_float_of, "default", 1},
    {"abs", filter_abs, "", 0},
    {"round", filter_round, "precision method", 2},
    {"lower", filter_lower, "", 0},
    {"upper", filter_upper, "", 0},
    {"title", filter_title, "", 0},
    {"capitalize", filter_capitalize, "", 0},
    {"trim", filter_trim, "chars", 1},
    {"replace", filter_replace, "old new count", 3},
    {"indent", filter_indent, "width first blank", 3},
    {"center", filter_center, "width", 1},
    {"format", filter_format, "", -1},
    {"truncate", filter_truncate, "length killwords end leeway", 4},
    {"wordcount", filter_wordcount, "", 0},
    {"urlencode", filter_urlencode, "", 0},
    {"filesizeformat", filter_filesizeformat, "binary", 1},
    {"forceescape", filter_forceescape, "", 0},
    {"wordwrap", frit_filter_wordwrap, "width break_long_words wrapstring break_on_hyphens", 4},
    {"xmlattr", frit_filter_xmlattr, "autospace", 1},
    {"groupby", frit_filter_groupby, "attribute default case_sensitive", 3},
    {"length", frit_filter_length, "", 0},
    {"count", frit_filter_length, "", 0},
    {"first", frit_filter_first, "", 0},
    {"last", frit_filter_last, "", 0},
    {"list", frit_filter_list, "", 0},
    {"join", frit_filter_join, "d attribute", 2},
    {"reverse", frit_filter_reverse, "", 0},
    {"items", frit_filter_items, "", 0},
    {"dictsort", frit_filter_dictsort, "case_sensitive by reverse", 3},
    {"sort", frit_filter_sort, "reverse case_sensitive attribute", 3},
    {"unique", frit_filter_unique, "case_sensitive attribute", 2},
    {"min", frit_filter_min, "case_sensitive attribute", 2},
    {"max", frit_filter_max, "case_sensitive attribute", 2},
    {"sum", frit_filter_sum, "attribute start", 2},
    {"batch", frit_filter_batch, "linecount fill_with", 2},
    {"slice", frit_filter_slice, "slices fill_with", 2},
    {"map", frit_filter_map, "", -1},
    {"select", frit_filter_select, "", -1},
    {"reject", frit_filter_reject, "", -1},
    {"selectattr", frit_filter_selectattr, "", -1},
    {"rejectattr", frit_filter_rejectattr, "", -1},
};

const filter *frit_filter_find(frit_str name)
{
    for (size_t i = 0; i < FRIT_COUNT(filters); i++)
        if (frit_str_is(name, filters[i].name)) return &filters[i];
    return NULL;
}
