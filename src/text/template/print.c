// SPDX-License-Identifier: MIT
// Values as Python prints them: str(), repr(), json.dumps().
#include "text/template/value.h"

#include "base/number.h"
#include "base/utf8.h"
#include "text/template/node.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

// ------------------------------------------------------------------------------------- numbers

// Writes the shortest digits that read back as the same number, in Python's form: 1e+16, 0.0001, 1e-05, 3.0.
void frit_print_float(double f, writer *out)
{
    if (isnan(f) || isinf(f)) {
        frit_write_text(out, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    char text[40];
    int precision = 0;
    double back = f;
    do frit_parse_double(text, (size_t)frit_format(text, sizeof text, "%.*e", precision, f), &back);
    while (back != f && ++precision < 17);
    char digits[24];
    size_t n = 0;
    for (const char *at = text; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') digits[n++] = *at;
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (text[0] == '-') frit_write_char(out, '-');
    if (exponent < -4 || exponent >= 16) {
        frit_write_char(out, digits[0]);
        if (n > 1) frit_write_char(out, '.');
        frit_write(out, digits + 1, n - 1);
        frit_write_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) frit_write_text(out, "0.");
    for (int i = -1; i > exponent; i--) frit_write_char(out, '0');
    for (int i = 0; i < (int)n || i <= exponent; i++) {
        frit_write_char(out, i < (int)n ? digits[i] : '0');
        if (i == exponent) frit_write_text(out, i + 1 < (int)n ? "." : ".0");
    }
}

// ------------------------------------------------------------------------------------- repr of text

static bool is_printable(uint32_t c)
{
    if (c == ' ') return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

static void repr_character(frit_str text, size_t *i, char quote, writer *out)
{
    uint32_t c;
    int n = frit_utf8_decode(text.ptr + *i, text.len - *i, &c);
    if (n < 1) {
        c = (unsigned char)text.ptr[*i];
        n = 1;
    }
    if (c == (uint32_t)quote || c == '\\')
        frit_write_printf(out, "\\%c", (char)c);
    else if (c == '\n')
        frit_write_text(out, "\\n");
    else if (c == '\r')
        frit_write_text(out, "\\r");
    else if (c == '\t')
        frit_write_text(out, "\\t");
    else if (is_printable(c))
        frit_write(out, text.ptr + *i, (size_t)n);
    else if (c < 0x100)
        frit_write_printf(out, "\\x%02x", (unsigned)c);
    else if (c < 0x10000)
        frit_write_printf(out, "\\u%04x", (unsigned)c);
    else
        frit_write_printf(out, "\\U%08x", (unsigned)c);
    *i += (size_t)n;
}

static void repr_text(frit_str text, writer *out)
{
    bool has_single = memchr(text.ptr, '\'', text.len) != NULL, has_double = memchr(text.ptr, '"', text.len) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    frit_write_char(out, quote);
    const bool taints = out->taints;
    for (size_t i = 0; i < text.len;) {
        out->taints = taints || frit_origin_is_untrusted(out->r, text.ptr + i);
        repr_character(text, &i, quote, out);
    }
    out->taints = taints;
    frit_write_char(out, quote);
}

// ------------------------------------------------------------------------------------- str and repr

static frit_status check_size(const run *r, const writer *out)
{
    if (out->buf.failed) return frit_fail_memory(out->buf.len, "a printed value");
    if (out->buf.len <= MAX_OUTPUT) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "chat template, line %d: a text of more than %d MiB", r->at ? r->at->line : 0,
                     MAX_OUTPUT >> 20);
}

static frit_status repr_items(run *r, value v, writer *out)
{
    frit_write_char(out, v.type == VALUE_LIST ? '[' : '(');
    for (size_t i = 0; i < v.list->n; i++) {
        if (i > 0) frit_write_text(out, ", ");
        FRIT_TRY(frit_var_repr(r, v.list->items[i], out));
    }
    if (v.type == VALUE_TUPLE && v.list->n == 1) frit_write_char(out, ',');
    frit_write_char(out, v.type == VALUE_LIST ? ']' : ')');
    return FRIT_OK;
}

static frit_status repr_dict(run *r, const dict *d, writer *out)
{
    frit_write_char(out, '{');
    for (size_t i = 0; i < d->n; i++) {
        if (i > 0) frit_write_text(out, ", ");
        FRIT_TRY(frit_var_repr(r, d->keys[i], out));
        frit_write_text(out, ": ");
        FRIT_TRY(frit_var_repr(r, d->values[i], out));
    }
    frit_write_char(out, '}');
    return FRIT_OK;
}

static frit_status repr_any(run *r, value v, writer *out)
{
    switch (v.type) {
    case VALUE_UNDEFINED:
    case VALUE_FORBIDDEN:
        frit_write_text(out, "Undefined");
        break;
    case VALUE_NONE:
        frit_write_text(out, "None");
        break;
    case VALUE_BOOL:
        frit_write_text(out, v.b ? "True" : "False");
        break;
    case VALUE_INT:
        frit_write_printf(out, "%lld", (long long)v.i);
        break;
    case VALUE_FLOAT:
        frit_print_float(v.f, out);
        break;
    case VALUE_TEXT:
        FRIT_TRY(frit_run_step(r, v.text.len / 16));
        repr_text(v.text, out);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        FRIT_TRY(repr_items(r, v, out));
        break;
    case VALUE_DICT:
        FRIT_TRY(repr_dict(r, v.dict, out));
        break;
    case VALUE_NAMESPACE:
        frit_write_text(out, "<Namespace ");
        FRIT_TRY(repr_dict(r, v.dict, out));
        frit_write_char(out, '>');
        break;
    case VALUE_VIEW:
        frit_write_printf(out, "%s(", v.list->view);
        v.type = VALUE_LIST;
        FRIT_TRY(repr_items(r, v, out));
        frit_write_char(out, ')');
        break;
    default:
        frit_write_printf(out, "<%s>", frit_var_type_name(v));
    }
    return check_size(r, out);
}

frit_status frit_var_repr(run *r, value v, writer *out)
{
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = repr_any(r, v, out);
    r->depth--;
    return status;
}

frit_status frit_var_print(run *r, value v, writer *out)
{
    if (v.type == VALUE_UNDEFINED || v.type == VALUE_FORBIDDEN) return FRIT_OK;
    if (v.type != VALUE_TEXT) return frit_var_repr(r, v, out);
    frit_write(out, v.text.ptr, v.text.len);
    FRIT_TRY(frit_run_step(r, v.text.len / 64));
    return check_size(r, out);
}

frit_status frit_var_to_text(run *r, value v, value *out)
{
    if (v.type == VALUE_TEXT) {
        *out = v;
        return FRIT_OK;
    }
    writer text = {.r = r};
    frit_status status = frit_var_print(r, v, &text);
    if (status == FRIT_OK) return frit_writer_take(&text, out);
    frit_writer_free(&text);
    return status;
}

void frit_print_escaped(frit_str text, writer *out)
{
    static const char characters[] = "&<>\"'";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    const bool taints = out->taints;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.ptr[i] ? strchr(characters, text.ptr[i]) : NULL;
        out->taints = taints || frit_origin_is_untrusted(out->r, text.ptr + i);
        if (at)
            frit_write_text(out, escapes[at - characters]);
        else
            frit_write_char(out, text.ptr[i]);
    }
    out->taints = taints;
}

// ------------------------------------------------------------------------------------- JSON

static void json_code(uint32_t c, writer *out)
{
    if (c >= 0x10000) {
        json_code(0xd800 + ((c - 0x10000) >> 10), out);
        c = 0xdc00 + ((c - 0x10000) & 0x3ff);
    }
    frit_write_printf(out, "\\u%04x", (unsigned)c);
}

static void json_text(frit_str text, bool ascii, writer *out)
{
    static const char characters[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    frit_write_char(out, '"');
    const bool taints = out->taints;
    for (size_t i = 0; i < text.len;) {
        unsigned char byte = (unsigned char)text.ptr[i];
        const char *at = byte ? strchr(characters, byte) : NULL;
        uint32_t c = byte;
        int n = byte < 0x80 ? 1 : frit_utf8_decode(text.ptr + i, text.len - i, &c);
        if (n < 1) n = 1;
        out->taints = taints || frit_origin_is_untrusted(out->r, text.ptr + i);
        if (at)
            frit_write_printf(out, "\\%c", letters[at - characters]);
        else if (c < 0x20 || (c >= 0x80 && ascii))
            json_code(c, out);
        else
            frit_write(out, text.ptr + i, (size_t)n);
        i += (size_t)n;
    }
    out->taints = taints;
    frit_write_char(out, '"');
}

static void json_line(const json_style *style, int level, writer *out)
{
    if (!style->indent.ptr) return;
    frit_write_char(out, '\n');
    for (int i = 0; i < level; i++) frit_write(out, style->indent.ptr, style->indent.len);
}

static frit_status json_any(run *r, value v, const json_style *style, int level, writer *out);

static frit_status json_list(run *r, const list *items, const json_style *style, int level, writer *out)
{
    frit_write_char(out, '[');
    for (size_t i = 0; i < items->n; i++) {
        if (i > 0) frit_write(out, style->item_separator.ptr, style->item_separator.len);
        json_line(style, level + 1, out);
        FRIT_TRY(json_any(r, items->items[i], style, level + 1, out));
    }
    if (items->n > 0) json_line(style, level, out);
    frit_write_char(out, ']');
    return FRIT_OK;
}

static frit_status json_key(run *r, value key, const json_style *style, writer *out)
{
    if (key.type == VALUE_TEXT) {
        json_text(key.text, style->ascii, out);
    } else if (frit_var_is_number(key) || key.type == VALUE_NONE) {
        frit_write_char(out, '"');
        FRIT_TRY(json_any(r, key, style, 0, out));
        frit_write_char(out, '"');
    } else {
        return frit_run_fail(r, "keys must be str, int, float, bool or None, not %s", frit_var_type_name(key));
    }
    frit_write(out, style->key_separator.ptr, style->key_separator.len);
    return FRIT_OK;
}

// The order in which the entries of a dictionary are written.
static frit_status json_order(run *r, const dict *d, bool sorted, size_t **order)
{
    *order = frit_run_alloc(r, d->n, sizeof **order);
    if (!*order) return frit_run_memory(r);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = i;
        bool less = sorted;
        for (; less && at > 0; at -= less) {
            FRIT_TRY(frit_var_less(r, d->keys[i], d->keys[(*order)[at - 1]], &less));
            if (less) (*order)[at] = (*order)[at - 1];
        }
        (*order)[at] = i;
    }
    return FRIT_OK;
}

static frit_status json_dict(run *r, const dict *d, const json_style *style, int level, writer *out)
{
    size_t *order;
    FRIT_TRY(json_order(r, d, style->sort_keys, &order));
    frit_write_char(out, '{');
    for (size_t i = 0; i < d->n; i++) {
        if (i > 0) frit_write(out, style->item_separator.ptr, style->item_separator.len);
        json_line(style, level + 1, out);
        FRIT_TRY(json_key(r, d->keys[order[i]], style, out));
        FRIT_TRY(json_any(r, d->values[order[i]], style, level + 1, out));
    }
    if (d->n > 0) json_line(style, level, out);
    frit_write_char(out, '}');
    return FRIT_OK;
}

static frit_status json_one(run *r, value v, const json_style *style, int level, writer *out)
{
    switch (v.type) {
    case VALUE_NONE:
        frit_write_text(out, "null");
        break;
    case VALUE_BOOL:
        frit_write_text(out, v.b ? "true" : "false");
        break;
    case VALUE_INT:
        frit_write_printf(out, "%lld", (long long)v.i);
        break;
    case VALUE_FLOAT:
        if (isnan(v.f) || isinf(v.f))
            frit_write_text(out, isnan(v.f) ? "NaN" : v.f > 0 ? "Infinity" : "-Infinity");
        else
            frit_print_float(v.f, out);
        break;
    case VALUE_TEXT:
        FRIT_TRY(frit_run_step(r, v.text.len / 16));
        json_text(v.text, style->ascii, out);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        FRIT_TRY(json_list(r, v.list, style, level, out));
        break;
    case VALUE_DICT:
        FRIT_TRY(json_dict(r, v.dict, style, level, out));
        break;
    default:
        return frit_run_fail(r, "Object of type %s is not JSON serializable", frit_var_type_name(v));
    }
    return check_size(r, out);
}

static frit_status json_any(run *r, value v, const json_style *style, int level, writer *out)
{
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = check_size(r, out);   // the indent before the end may be long
    if (status == FRIT_OK) status = json_one(r, v, style, level, out);
    r->depth--;
    return status;
}

frit_status frit_var_to_json(run *r, value v, const json_style *style, writer *out)
{
    return json_any(r, v, style, 0, out);
}
