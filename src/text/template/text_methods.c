// SPDX-License-Identifier: MIT
// Methods of text, as a table.
#include "text/template/node.h"

#include "base/utf8.h"

#include <utf8proc.h>

// ------------------------------------------------------------------------------------- case and strip

#define CASE_METHOD(name, how)                                             \
    static frit_status name(run *r, value self, const call *c, value *out) \
    {                                                                      \
        (void)c;                                                           \
        return frit_text_case(r, self.text, how, out);                     \
    }
CASE_METHOD(str_lower, CASE_LOWER)
CASE_METHOD(str_upper, CASE_UPPER)
CASE_METHOD(str_title, CASE_TITLE)
CASE_METHOD(str_capitalize, CASE_CAPITALIZE)
CASE_METHOD(str_swapcase, CASE_SWAP)

#define STRIP_METHOD(name, left, right)                                                                        \
    static frit_status name(run *r, value self, const call *c, value *out)                                     \
    {                                                                                                          \
        return frit_text_strip(r, self, frit_call_optional(c, 0, "chars", frit_var_none()), left, right, out); \
    }
STRIP_METHOD(str_strip, true, true)
STRIP_METHOD(str_lstrip, true, false)
STRIP_METHOD(str_rstrip, false, true)

// ------------------------------------------------------------------------------------- search

static bool matches_at(frit_str text, frit_str part, bool end)
{
    return part.len <= text.len && memcmp(text.ptr + (end ? text.len - part.len : 0), part.ptr, part.len) == 0;
}

// startswith and endswith take one text or a tuple of them, and bounds.
static frit_status str_match(run *r, value self, const call *c, bool end, value *out)
{
    if (c->n == 0) return frit_run_fail(r, "an argument is missing: a string is expected");
    value start = frit_call_optional(c, 1, "", frit_var_none()), stop = frit_call_optional(c, 2, "", frit_var_none());
    FRIT_TRY(frit_var_slice(r, self, start, stop, frit_var_none(), &self));
    value what = c->positional[0];
    bool found = false;
    if (what.type == VALUE_TUPLE) {
        for (size_t i = 0; i < what.list->n; i++)
            found = found ||
                    (what.list->items[i].type == VALUE_TEXT && matches_at(self.text, what.list->items[i].text, end));
    } else if (what.type == VALUE_TEXT) {
        found = matches_at(self.text, what.text, end);
    } else {
        return frit_run_fail(r, "a string or a tuple of strings is expected, not %s", frit_var_type_name(what));
    }
    *out = frit_var_bool(found);
    return FRIT_OK;
}

static frit_status str_startswith(run *r, value self, const call *c, value *out)
{
    return str_match(r, self, c, false, out);
}

static frit_status str_endswith(run *r, value self, const call *c, value *out)
{
    return str_match(r, self, c, true, out);
}

// Counts the steps of a search: in the worst case every character of the text is compared with the whole part.
static frit_status charge_search(run *r, frit_str text, frit_str part)
{
    return frit_run_step(r, (text.len / 16) * (part.len / 16 + 1));
}

static size_t find_last(frit_str text, frit_str part)
{
    for (size_t i = text.len + 1; i-- > 0;)
        if (i + part.len <= text.len && memcmp(text.ptr + i, part.ptr, part.len) == 0) return i;
    return text.len + 1;
}

static frit_status str_search(run *r, value self, const call *c, bool last, int64_t *out)
{
    frit_str part;
    value whole = self;
    FRIT_TRY(frit_call_text(r, c, 0, "", &part));
    value start = frit_call_optional(c, 1, "", frit_var_none()), stop = frit_call_optional(c, 2, "", frit_var_none());
    FRIT_TRY(frit_var_slice(r, self, start, stop, frit_var_none(), &self));
    FRIT_TRY(charge_search(r, self.text, part));
    size_t at = last ? find_last(self.text, part) : frit_text_find(self.text, part, 0);
    *out = -1;
    if (at <= self.text.len)
        *out = (int64_t)frit_text_length((frit_str){whole.text.ptr, (size_t)(self.text.ptr - whole.text.ptr) + at});
    return FRIT_OK;
}

static frit_status str_find(run *r, value self, const call *c, value *out)
{
    int64_t at;
    FRIT_TRY(str_search(r, self, c, false, &at));
    *out = frit_var_int(at);
    return FRIT_OK;
}

static frit_status str_rfind(run *r, value self, const call *c, value *out)
{
    int64_t at;
    FRIT_TRY(str_search(r, self, c, true, &at));
    *out = frit_var_int(at);
    return FRIT_OK;
}

static frit_status str_index(run *r, value self, const call *c, value *out)
{
    int64_t at;
    FRIT_TRY(str_search(r, self, c, false, &at));
    *out = frit_var_int(at);
    return at < 0 ? frit_run_fail(r, "substring not found") : FRIT_OK;
}

static frit_status str_count(run *r, value self, const call *c, value *out)
{
    frit_str part;
    FRIT_TRY(frit_call_text(r, c, 0, "", &part));
    FRIT_TRY(charge_search(r, self.text, part));
    int64_t n = part.len == 0 ? (int64_t)frit_text_length(self.text) + 1 : 0;
    for (size_t at = 0; part.len > 0 && (at = frit_text_find(self.text, part, at)) <= self.text.len; at += part.len)
        n++;
    *out = frit_var_int(n);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- cut and join

static frit_status push_part(run *r, value *out, frit_str text, size_t begin, size_t end)
{
    return frit_list_push(r, out->list, frit_var_text((frit_str){text.ptr + begin, end - begin}));
}

// Splits at white space. A sequence of white space is one separator; white space at the ends is ignored.
static frit_status split_spaces(run *r, frit_str text, int64_t most, value *out)
{
    size_t i = 0, len = 0;
    while (i < text.len && frit_is_space_at(text, i, &len)) i += len;
    while (i < text.len) {
        size_t begin = i, end = i;
        if (most-- == 0) return push_part(r, out, text, i, text.len);
        while (end < text.len && !frit_is_space_at(text, end, &len)) end++;
        FRIT_TRY(push_part(r, out, text, begin, end));
        for (i = end; i < text.len && frit_is_space_at(text, i, &len);) i += len;
    }
    return FRIT_OK;
}

static frit_status str_split(run *r, value self, const call *c, value *out)
{
    int64_t most;
    value at = frit_call_optional(c, 0, "sep", frit_var_none());
    FRIT_TRY(frit_call_int(r, c, 1, "maxsplit", -1, &most));
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    FRIT_TRY(frit_run_step(r, self.text.len / 16));
    if (at.type == VALUE_NONE) return split_spaces(r, self.text, most, out);
    if (at.type != VALUE_TEXT || at.text.len == 0)
        return frit_run_fail(r, "split needs a separator that is a string and not empty");
    FRIT_TRY(charge_search(r, self.text, at.text));
    size_t begin = 0, end;
    for (; most != 0 && (end = frit_text_find(self.text, at.text, begin)) <= self.text.len; most--) {
        FRIT_TRY(push_part(r, out, self.text, begin, end));
        begin = end + at.text.len;
    }
    return push_part(r, out, self.text, begin, self.text.len);
}

static frit_status reverse(run *r, const list *items, value *out)
{
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    for (size_t i = items->n; i-- > 0;) FRIT_TRY(frit_list_push(r, out->list, items->items[i]));
    return FRIT_OK;
}

static frit_status str_rsplit(run *r, value self, const call *c, value *out)
{
    int64_t most;
    value at = frit_call_optional(c, 0, "sep", frit_var_none());
    FRIT_TRY(frit_call_int(r, c, 1, "maxsplit", -1, &most));
    if (most < 0) return str_split(r, self, c, out);
    if (at.type != VALUE_TEXT || at.text.len == 0) return frit_run_fail(r, "rsplit with a limit needs a separator");
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    frit_str rest = self.text;
    for (; most > 0; most--) {
        FRIT_TRY(charge_search(r, rest, at.text));
        size_t begin = find_last(rest, at.text);
        if (begin > rest.len) break;
        FRIT_TRY(push_part(r, out, rest, begin + at.text.len, rest.len));
        rest.len = begin;
    }
    FRIT_TRY(frit_list_push(r, out->list, frit_var_text(rest)));
    return reverse(r, out->list, out);
}

static frit_status partition(run *r, value self, const call *c, bool last, value *out)
{
    frit_str at;
    FRIT_TRY(frit_call_text(r, c, 0, "", &at));
    if (at.len == 0) return frit_run_fail(r, "empty separator");
    FRIT_TRY(charge_search(r, self.text, at));
    FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, out));
    size_t n = self.text.len, begin = last ? find_last(self.text, at) : frit_text_find(self.text, at, 0);
    bool found = begin <= n;
    size_t head = found ? begin : last ? 0 : n, middle = found ? begin + at.len : head;
    FRIT_TRY(push_part(r, out, self.text, 0, head));
    FRIT_TRY(push_part(r, out, self.text, head, middle));
    return push_part(r, out, self.text, middle, n);
}

static frit_status str_partition(run *r, value self, const call *c, value *out)
{
    return partition(r, self, c, false, out);
}

static frit_status str_rpartition(run *r, value self, const call *c, value *out)
{
    return partition(r, self, c, true, out);
}

static frit_status str_splitlines(run *r, value self, const call *c, value *out)
{
    return frit_text_lines(r, self.text, frit_var_is_true(frit_call_optional(c, 0, "keepends", frit_var_bool(false))),
                           out);
}

static frit_status str_join(run *r, value self, const call *c, value *out)
{
    list *items;
    if (c->n != 1) return frit_run_fail(r, "join takes one argument");
    FRIT_TRY(frit_var_iterate(r, c->positional[0], &items));
    return frit_text_join(r, self.text, items, true, out);
}

// ------------------------------------------------------------------------------------- change

static frit_status str_replace(run *r, value self, const call *c, value *out)
{
    frit_str from, to;
    int64_t most;
    FRIT_TRY(frit_call_text(r, c, 0, "old", &from));
    FRIT_TRY(frit_call_text(r, c, 1, "new", &to));
    FRIT_TRY(frit_call_int(r, c, 2, "count", -1, &most));
    return frit_text_replace(r, self.text, from, to, most, out);
}

static frit_status str_removeprefix(run *r, value self, const call *c, value *out)
{
    frit_str part;
    FRIT_TRY(frit_call_text(r, c, 0, "", &part));
    size_t n = matches_at(self.text, part, false) ? part.len : 0;
    *out = frit_var_text((frit_str){self.text.ptr + n, self.text.len - n});
    return FRIT_OK;
}

static frit_status str_removesuffix(run *r, value self, const call *c, value *out)
{
    frit_str part;
    FRIT_TRY(frit_call_text(r, c, 0, "", &part));
    size_t n = matches_at(self.text, part, true) ? part.len : 0;
    *out = frit_var_text((frit_str){self.text.ptr, self.text.len - n});
    return FRIT_OK;
}

static frit_status str_format(run *r, value self, const call *c, value *out)
{
    return frit_text_format(r, self.text, c, out);
}

static frit_status pad(run *r, value self, const call *c, char how, value *out)
{
    int64_t width;
    value fill = frit_call_optional(c, 1, "fillchar", frit_var_text(frit_str_of(" ")));
    FRIT_TRY(frit_call_int(r, c, 0, "width", 0, &width));
    if (fill.type != VALUE_TEXT || fill.text.len > 4 || frit_text_length(fill.text) != 1)
        return frit_run_fail(r, "the fill character must be one character");
    return frit_text_pad(r, self.text, width, how, fill.text, out);
}

static frit_status str_ljust(run *r, value self, const call *c, value *out)
{
    return pad(r, self, c, '<', out);
}

static frit_status str_rjust(run *r, value self, const call *c, value *out)
{
    return pad(r, self, c, '>', out);
}

static frit_status str_center(run *r, value self, const call *c, value *out)
{
    return pad(r, self, c, 'c', out);
}

static frit_status str_zfill(run *r, value self, const call *c, value *out)
{
    int64_t width;
    FRIT_TRY(frit_call_int(r, c, 0, "width", 0, &width));
    bool sign = self.text.len > 0 && strchr("+-", self.text.ptr[0]);
    value digits;
    frit_str rest = {self.text.ptr + sign, self.text.len - sign};
    FRIT_TRY(frit_text_pad(r, rest, width - sign, '>', frit_str_of("0"), &digits));
    return frit_eval_binary(r, OP_ADD, frit_var_text((frit_str){self.text.ptr, sign}), digits, out);
}

// ------------------------------------------------------------------------------------- questions

static bool is_category(uint32_t c, char what)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
    bool digit = category == UTF8PROC_CATEGORY_ND;
    return what == 'a'   ? letter
           : what == 'd' ? digit
           : what == 'n' ? letter || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
                         : c < 0x80;
}

// True if there are characters and all are of the category.
static frit_status all_are(run *r, frit_str text, char what, value *out)
{
    bool all = text.len > 0 || what == '7';
    for (size_t i = 0; all && i < text.len;) {
        uint32_t c = 0;
        size_t len = 1;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        all = n > 0 && (what == 's' ? frit_is_space_at(text, i, &len) : is_category(c, what));
        i += n > 0 ? (size_t)n : 1;
    }
    *out = frit_var_bool(all);
    return frit_run_step(r, text.len / 16);
}

#define ALL_METHOD(name, what)                                             \
    static frit_status name(run *r, value self, const call *c, value *out) \
    {                                                                      \
        (void)c;                                                           \
        return all_are(r, self.text, what, out);                           \
    }
ALL_METHOD(str_isalpha, 'a')
ALL_METHOD(str_isdigit, 'd')
ALL_METHOD(str_isalnum, 'n')
ALL_METHOD(str_isspace, 's')
ALL_METHOD(str_isascii, '7')

static frit_status str_test(run *r, value self, const char *name, value *out)
{
    bool holds = false;
    call none = {0};
    FRIT_TRY(frit_apply_test(r, frit_test_find(frit_str_of(name)), self, &none, &holds));
    *out = frit_var_bool(holds);
    return FRIT_OK;
}

static frit_status str_islower(run *r, value self, const call *c, value *out)
{
    (void)c;
    return str_test(r, self, "lower", out);
}

static frit_status str_isupper(run *r, value self, const call *c, value *out)
{
    (void)c;
    return str_test(r, self, "upper", out);
}

// ------------------------------------------------------------------------------------- table

static const method_row text_methods[] = {
    {"strip", str_strip, 1, NULL},
    {"lstrip", str_lstrip, 1, NULL},
    {"rstrip", str_rstrip, 1, NULL},
    {"split", str_split, 2, "sep maxsplit"},
    {"rsplit", str_rsplit, 2, "sep maxsplit"},
    {"splitlines", str_splitlines, 1, "keepends"},
    {"partition", str_partition, 1, NULL},
    {"rpartition", str_rpartition, 1, NULL},
    {"join", str_join, 1, NULL},
    {"replace", str_replace, 3, NULL},
    {"startswith", str_startswith, 3, NULL},
    {"endswith", str_endswith, 3, NULL},
    {"removeprefix", str_removeprefix, 1, NULL},
    {"removesuffix", str_removesuffix, 1, NULL},
    {"find", str_find, 3, NULL},
    {"rfind", str_rfind, 3, NULL},
    {"index", str_index, 3, NULL},
    {"count", str_count, 1, NULL},
    {"lower", str_lower, 0, NULL},
    {"upper", str_upper, 0, NULL},
    {"title", str_title, 0, NULL},
    {"capitalize", str_capitalize, 0, NULL},
    {"swapcase", str_swapcase, 0, NULL},
    {"casefold", str_lower, 0, NULL},
    {"format", str_format, -1, NULL},
    {"ljust", str_ljust, 2, NULL},
    {"rjust", str_rjust, 2, NULL},
    {"center", str_center, 2, NULL},
    {"zfill", str_zfill, 1, NULL},
    {"isalpha", str_isalpha, 0, NULL},
    {"isdigit", str_isdigit, 0, NULL},
    {"isdecimal", str_isdigit, 0, NULL},
    {"isnumeric", str_isdigit, 0, NULL},
    {"isalnum", str_isalnum, 0, NULL},
    {"isspace", str_isspace, 0, NULL},
    {"isascii", str_isascii, 0, NULL},
    {"islower", str_islower, 0, NULL},
    {"isupper", str_isupper, 0, NULL},
};

const method_row *frit_text_method_find(frit_str name)
{
    for (size_t i = 0; i < FRIT_COUNT(text_methods); i++)
        if (frit_str_is(name, text_methods[i].name)) return &text_methods[i];
    return NULL;
}
