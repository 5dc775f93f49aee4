// SPDX-License-Identifier: MIT
// Normal forms, repair, and classes of characters.
#include "text/unicode.h"

#include "base/check.h"
#include "base/grow.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

void frit_unicode_put(uint32_t c, frit_buf *out)
{
    char utf8[4];
    if (c < 0x80)
        frit_buf_char(out, (char)c);
    else
        frit_buf_append(out, utf8, (size_t)frit_utf8_encode(c, utf8));
}

size_t frit_unicode_next(frit_str text, size_t at, uint32_t *c)
{
    int n = frit_utf8_decode(text.ptr + at, text.len - at, c);
    if (n > 0) return (size_t)n;
    *c = 0xfffd;
    return 1;
}

// ------------------------------------------------------------------------------------- normal forms

typedef struct points {
    utf8proc_int32_t *items;
    size_t n, capacity;
} points;

enum { MOST_PARTS = 32 };   // of one character; the longest in Unicode has 18

static bool reserve(points *p, size_t n_more)
{
    return FRIT_GROW(p->items, p->capacity, p->n + n_more, "code points") == FRIT_OK;
}

static int class_of(utf8proc_int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

// Sorts marks by their class, stably. Texts may consist of marks, so long sequences are sorted by counting.
static bool sort_marks(utf8proc_int32_t *marks, size_t n)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t mark = marks[i];
            size_t k = i;
            for (; k > 0 && class_of(marks[k - 1]) > class_of(mark); k--) marks[k] = marks[k - 1];
            marks[k] = mark;
        }
        return true;
    }
    size_t starts[257] = {0};
    utf8proc_int32_t *copy = malloc(n * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, marks, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) starts[class_of(marks[i]) + 1]++;
    for (int c = 0; c < 256; c++) starts[c + 1] += starts[c];
    for (size_t i = 0; i < n; i++) marks[starts[class_of(copy[i])]++] = copy[i];
    free(copy);
    return true;
}

static bool order(points *p)
{
    for (size_t i = 0; i < p->n;) {
        size_t end = i;
        while (end < p->n && class_of(p->items[end]) != 0) end++;
        if (end - i > 1 && !sort_marks(p->items + i, end - i)) return false;
        i = end + 1;
    }
    return true;
}

static bool decompose(frit_str text, utf8proc_option_t options, points *p)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        if (!reserve(p, MOST_PARTS)) return false;
        int last = 0;
        utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, p->items + p->n, MOST_PARTS, options, &last);
        if (n < 1 || n > MOST_PARTS) {
            p->items[p->n] = (utf8proc_int32_t)c;
            n = 1;
        }
        p->n += (size_t)n;
    }
    return order(p);
}

static bool is_ascii(frit_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] >= 0x80) return false;
    return true;
}

frit_status frit_unicode_normalize(frit_str text, frit_form form, frit_buf *out)
{
    if (is_ascii(text)) {
        frit_buf_append(out, text.ptr, text.len);
        return FRIT_OK;
    }
    bool compat = form == FRIT_FORM_NFKC || form == FRIT_FORM_NFKD;
    bool composed = form == FRIT_FORM_NFC || form == FRIT_FORM_NFKC;
    points p = {0};
    bool ok = decompose(text, UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0), &p);
    if (ok && composed) {
        utf8proc_ssize_t n =
            utf8proc_normalize_utf32(p.items, (utf8proc_ssize_t)p.n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (n >= 0) p.n = (size_t)n;
    }
    for (size_t i = 0; ok && i < p.n; i++) frit_unicode_put((uint32_t)p.items[i], out);
    free(p.items);
    return ok && !out->failed ? FRIT_OK : frit_fail_memory(text.len, "a normalized text");
}

uint32_t frit_unicode_lower_of(uint32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

void frit_unicode_lower(frit_str text, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        if (c == 0x130)   // the only letter that becomes two
            frit_buf_text(out, "i\xcc\x87");
        else
            frit_unicode_put(frit_unicode_lower_of(c), out);
    }
}

void frit_unicode_repair(frit_str text, frit_repair how, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = frit_utf8_valid_prefix(text.ptr + i, text.len - i);
        frit_buf_append(out, text.ptr + i, n);
        i += n;
        if (i == text.len) break;
        uint32_t c;
        int bad = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        frit_buf_text(out, "\xef\xbf\xbd");
        i += how == FRIT_REPAIR_BYTES ? 1 : bad == 0 ? text.len - i : (size_t)-bad;
    }
}

// ------------------------------------------------------------------------------------- classes

static utf8proc_category_t category_of(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool frit_unicode_is_space(uint32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    utf8proc_category_t category = category_of(c);
    return c == 0x85 || (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

bool frit_unicode_is_mark(uint32_t c)
{
    utf8proc_category_t category = category_of(c);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool frit_unicode_is_nonspacing(uint32_t c)
{
    return c >= 0x80 && category_of(c) == UTF8PROC_CATEGORY_MN;
}

bool frit_unicode_is_punctuation(uint32_t c)
{
    utf8proc_category_t category = category_of(c);
    bool ascii_symbol = c < 0x7f && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
    return ascii_symbol || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

bool frit_unicode_is_control(uint32_t c)
{
    return category_of(c) >= UTF8PROC_CATEGORY_CC;
}

bool frit_unicode_is_unassigned(uint32_t c)
{
    return category_of(c) == UTF8PROC_CATEGORY_CN;
}

bool frit_unicode_is_word(uint32_t c)
{
    utf8proc_category_t category = category_of(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME) || category == UTF8PROC_CATEGORY_ND ||
           category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC;
}

bool frit_unicode_is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

size_t frit_unicode_grapheme(frit_str text)
{
    uint32_t before, c;
    utf8proc_int32_t state = 0;
    size_t at = frit_unicode_next(text, 0, &before);
    while (at < text.len) {
        size_t n = frit_unicode_next(text, at, &c);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, &state)) break;
        before = c;
        at += n;
    }
    return at;
}
