// SPDX-License-Identifier: MIT
// Methods of text, dictionaries, lists and `loop`, as tables. Methods that change a list or dictionary are forbidden,
// except append and pop if the template may use them (frit_template_allow_changes).
#include "text/template/node.h"

#include "base/utf8.h"

#include <utf8proc.h>

// ------------------------------------------------------------------------------------- arguments

static value optional(const call *c, size_t i, const char *name, value fallback)
{
    value v;
    return frit_call_argument(c, i, name, &v) ? v : fallback;
}

static frit_status get_text(run *r, const call *c, size_t i, const char *name, frit_str *out)
{
    value v;
    if (!frit_call_argument(c, i, name, &v)) return frit_run_fail(r, "an argument is missing: a string is expected");
    if (v.type != VALUE_TEXT) return frit_run_fail(r, "a string is expected, not %s", frit_var_type_name(v));
    *out = v.text;
    return FRIT_OK;
}

static frit_status get_int(run *r, const call *c, size_t i, const char *name, int64_t fallback, int64_t *out)
{
    value v = optional(c, i, name, frit_var_int(fallback));
    if (!frit_var_is_integral(v)) return frit_run_fail(r, "an integer is expected, not %s", frit_var_type_name(v));
    *out = frit_var_as_int(v);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- text: case and strip

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

#define STRIP_METHOD(name, left, right)                                                              \
    static frit_status name(run *r, value self, const call *c, value *out)                           \
    {                                                                                                \
        return frit_text_strip(r, self, optional(c, 0, "chars", frit_var_none()), left, right, out); \
    }
STRIP_METHOD(str_strip, true, true)
STRIP_METHOD(str_lstrip, true, false)
STRIP_METHOD(str_rstrip, false, true)

// ------------------------------------------------------------------------------------- text: search

static bool matches_at(frit_str text, frit_str part, bool end)
{
    return part.len <= text.len && memcmp(text.ptr + (end ? text.len - part.len : 0), part.ptr, part.len) == 0;
}

// startswith and endswith take one text or a tuple of them, and bounds.
static frit_status str_match(run *r, value self, const call *c, bool end, value *out)
{
    if (c->n == 0) return frit_run_fail(r, "an argument is missing: a string is expected");
    value start = optional(c, 1, "", frit_var_none()), stop = optional(c, 2, "", frit_var_none());
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
    FRIT_TRY(get_text(r, c, 0, "", &part));
    value start = optional(c, 1, "", frit_var_none()), stop = optional(c, 2, "", frit_var_none());
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
    FRIT_TRY(get_text(r, c, 0, "", &part));
    FRIT_TRY(charge_search(r, self.text, part));
    int64_t n = part.len == 0 ? (int64_t)frit_text_length(self.text) + 1 : 0;
    for (size_t at = 0; part.len > 0 && (at = frit_text_find(self.text, part, at)) <= self.text.len; at += part.len)
        n++;
    *out = frit_var_int(n);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- text: cut and join

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
    value at = optional(c, 0, "sep", frit_var_none());
    FRIT_TRY(get_int(r, c, 1, "maxsplit", -1, &most));
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
    value at = optional(c, 0, "sep", frit_var_none());
    FRIT_TRY(get_int(r, c, 1, "maxsplit", -1, &most));
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
    FRIT_TRY(get_text(r, c, 0, "", &at));
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
    return frit_text_lines(r, self.text, frit_var_is_true(optional(c, 0, "keepends", frit_var_bool(false))), out);
}

static frit_status str_join(run *r, value self, const call *c, value *out)
{
    list *items;
    if (c->n != 1) return frit_run_fail(r, "join takes one argument");
    FRIT_TRY(frit_var_iterate(r, c->positional[0], &items));
    return frit_text_join(r, self.text, items, true, out);
}

// ------------------------------------------------------------------------------------- text: change

static frit_status str_replace(run *r, value self, const call *c, value *out)
{
    frit_str from, to;
    int64_t most;
    FRIT_TRY(get_text(r, c, 0, "old", &from));
    FRIT_TRY(get_text(r, c, 1, "new", &to));
    FRIT_TRY(get_int(r, c, 2, "count", -1, &most));
    return frit_text_replace(r, self.text, from, to, most, out);
}

static frit_status str_removeprefix(run *r, value self, const call *c, value *out)
{
    frit_str part;
    FRIT_TRY(get_text(r, c, 0, "", &part));
    size_t n = matches_at(self.text, part, false) ? part.len : 0;
    *out = frit_var_text((frit_str){self.text.ptr + n, self.text.len - n});
    return FRIT_OK;
}

static frit_status str_removesuffix(run *r, value self, const call *c, value *out)
{
    frit_str part;
    FRIT_TRY(get_text(r, c, 0, "", &part));
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
    value fill = optional(c, 1, "fillchar", frit_var_text(frit_str_of(" ")));
    FRIT_TRY(get_int(r, c, 0, "width", 0, &width));
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
    FRIT_TRY(get_int(r, c, 0, "width", 0, &width));
    bool sign = self.text.len > 0 && strchr("+-", self.text.ptr[0]);
    value digits;
    frit_str rest = {self.text.ptr + sign, self.text.len - sign};
    FRIT_TRY(frit_text_pad(r, rest, width - sign, '>', frit_str_of("0"), &digits));
    return frit_eval_binary(r, OP_ADD, frit_var_text((frit_str){self.text.ptr, sign}), digits, out);
}

// ------------------------------------------------------------------------------------- text: questions

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

// ------------------------------------------------------------------------------------- dictionaries

static frit_status dict_get(run *r, value self, const call *c, value *out)
{
    value key, *found;
    if (!frit_call_argument(c, 0, "key", &key)) return frit_run_fail(r, "get takes a key");
    if (key.type == VALUE_LIST || key.type == VALUE_DICT)
        return frit_run_fail(r, "unhashable type: '%s'", frit_var_type_name(key));
    FRIT_TRY(frit_dict_find(r, self.dict, key, &found));
    *out = found ? *found : optional(c, 1, "default", frit_var_none());
    return FRIT_OK;
}

static frit_status dict_keys(run *r, value self, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_new_list(r, VALUE_VIEW, out));
    out->list->view = "dict_keys";
    for (size_t i = 0; i < self.dict->n; i++) FRIT_TRY(frit_list_push(r, out->list, self.dict->keys[i]));
    return frit_run_step(r, self.dict->n);
}

static frit_status dict_values(run *r, value self, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_new_list(r, VALUE_VIEW, out));
    out->list->view = "dict_values";
    for (size_t i = 0; i < self.dict->n; i++) FRIT_TRY(frit_list_push(r, out->list, self.dict->values[i]));
    return frit_run_step(r, self.dict->n);
}

static frit_status dict_items(run *r, value self, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_new_list(r, VALUE_VIEW, out));
    out->list->view = "dict_items";
    for (size_t i = 0; i < self.dict->n; i++) {
        value pair;
        FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, &pair));
        FRIT_TRY(frit_list_push(r, pair.list, self.dict->keys[i]));
        FRIT_TRY(frit_list_push(r, pair.list, self.dict->values[i]));
        FRIT_TRY(frit_list_push(r, out->list, pair));
    }
    return frit_run_step(r, self.dict->n);
}

static frit_status dict_copy(run *r, value self, const call *c, value *out)
{
    (void)r, (void)c;
    *out = self;   // nothing can change either of the two
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- lists

static frit_status list_count(run *r, value self, const call *c, value *out)
{
    int64_t n = 0;
    if (c->n != 1) return frit_run_fail(r, "count takes one argument");
    for (size_t i = 0; i < self.list->n; i++) {
        bool equal = false;
        FRIT_TRY(frit_var_equal(r, self.list->items[i], c->positional[0], &equal));
        n += equal;
    }
    *out = frit_var_int(n);
    return FRIT_OK;
}

static frit_status list_index(run *r, value self, const call *c, value *out)
{
    if (c->n != 1) return frit_run_fail(r, "index takes one argument");
    for (size_t i = 0; i < self.list->n; i++) {
        bool equal = false;
        FRIT_TRY(frit_var_equal(r, self.list->items[i], c->positional[0], &equal));
        *out = frit_var_int((int64_t)i);
        if (equal) return FRIT_OK;
    }
    return frit_run_fail(r, "the value is not in the list");
}

static frit_status list_copy(run *r, value self, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(frit_var_new_list(r, self.type, out));
    for (size_t i = 0; i < self.list->n; i++) FRIT_TRY(frit_list_push(r, out->list, self.list->items[i]));
    return frit_run_step(r, self.list->n);
}

static frit_status list_append(run *r, value self, const call *c, value *out)
{
    if (c->n != 1) return frit_run_fail(r, "append takes one argument");
    value item = c->positional[0];
    // Lists that contain each other would have no end.
    if (frit_var_is_list(item) || item.type == VALUE_DICT)
        return frit_run_fail(r, "append takes no %s here", frit_var_type_name(item));
    *out = frit_var_none();
    return frit_list_push(r, self.list, item);
}

static frit_status list_pop(run *r, value self, const call *c, value *out)
{
    int64_t at, n = (int64_t)self.list->n;
    FRIT_TRY(get_int(r, c, 0, "", -1, &at));
    if (at < 0) at += n;
    if (at < 0 || at >= n) return frit_run_fail(r, n == 0 ? "pop from empty list" : "pop index out of range");
    value *items = self.list->items;
    *out = items[at];
    for (int64_t i = at; i + 1 < n; i++) items[i] = items[i + 1];
    self.list->n--;
    return frit_run_step(r, self.list->n / 16);
}

// ------------------------------------------------------------------------------------- loop

static frit_status loop_cycle(run *r, value self, const call *c, value *out)
{
    if (c->n == 0) return frit_run_fail(r, "no items for cycling given");
    *out = c->positional[self.loop->index % c->n];
    return FRIT_OK;
}

static frit_status loop_changed(run *r, value self, const call *c, value *out)
{
    value now;
    bool equal = false;
    FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, &now));
    for (size_t i = 0; i < c->n; i++) FRIT_TRY(frit_list_push(r, now.list, c->positional[i]));
    if (self.loop->last_changed.type == VALUE_TUPLE) FRIT_TRY(frit_var_equal(r, self.loop->last_changed, now, &equal));
    self.loop->last_changed = now;
    *out = frit_var_bool(!equal);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- cycler and joiner

static frit_status cycler_next(run *r, value self, const call *c, value *out)
{
    (void)r, (void)c;
    cycler *turn = self.cycler;
    *out = turn->items->items[turn->at];
    turn->at = (turn->at + 1) % turn->items->n;
    return FRIT_OK;
}

static frit_status cycler_reset(run *r, value self, const call *c, value *out)
{
    (void)r, (void)c;
    self.cycler->at = 0;
    *out = frit_var_none();
    return FRIT_OK;
}

static frit_status joiner_next(run *r, value self, const call *c, value *out)
{
    (void)r, (void)c;
    *out = self.list->items[1];
    self.list->items[1] = self.list->items[0];
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- tables

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

static const method_row dict_methods[] = {
    {"get", dict_get, 2, NULL},     {"keys", dict_keys, 0, NULL}, {"values", dict_values, 0, NULL},
    {"items", dict_items, 0, NULL}, {"copy", dict_copy, 0, NULL}, {"clear", NULL, 0, NULL},
    {"pop", NULL, 0, NULL},         {"popitem", NULL, 0, NULL},   {"setdefault", NULL, 0, NULL},
    {"update", NULL, 0, NULL},
};

static const method_row list_methods[] = {
    {"count", list_count, 1, NULL}, {"index", list_index, 1, NULL}, {"copy", list_copy, 0, NULL},
    {"append", NULL, 0, NULL},      {"clear", NULL, 0, NULL},       {"extend", NULL, 0, NULL},
    {"insert", NULL, 0, NULL},      {"pop", NULL, 0, NULL},         {"remove", NULL, 0, NULL},
    {"reverse", NULL, 0, NULL},     {"sort", NULL, 0, NULL},
};

static const method_row changing_list_methods[] = {
    {"append", list_append, 1, NULL},
    {"pop", list_pop, 1, NULL},
};

// Tuples have no methods that change them, not even forbidden ones.
static const method_row tuple_methods[] = {
    {"count", list_count, 1, NULL},
    {"index", list_index, 1, NULL},
};

static const method_row cycler_methods[] = {
    {"next", cycler_next, 0, NULL},
    {"reset", cycler_reset, 0, NULL},
};

// Not looked up by name: joiner() returns this method, bound to a list of the separator and the next text.
const method_row frit_joiner_method = {"joiner", joiner_next, 0, NULL};

static const method_row loop_methods[] = {
    {"cycle", loop_cycle, 1000, NULL},
    {"changed", loop_changed, 1000, NULL},
};

const method_row *frit_method_find(value self, frit_str name)
{
    const method_row *rows = NULL;
    size_t n = 0;
    if (self.type == VALUE_TEXT) rows = text_methods, n = FRIT_COUNT(text_methods);
    if (self.type == VALUE_DICT) rows = dict_methods, n = FRIT_COUNT(dict_methods);
    if (self.type == VALUE_LIST) rows = list_methods, n = FRIT_COUNT(list_methods);
    if (self.type == VALUE_TUPLE) rows = tuple_methods, n = FRIT_COUNT(tuple_methods);
    if (self.type == VALUE_LOOP) rows = loop_methods, n = FRIT_COUNT(loop_methods);
    if (self.type == VALUE_CYCLER) rows = cycler_methods, n = FRIT_COUNT(cycler_methods);
    for (size_t i = 0; i < n; i++)
        if (frit_str_is(name, rows[i].name)) return &rows[i];
    return NULL;
}

const method_row *frit_method_find_changing(value self, frit_str name)
{
    for (size_t i = 0; self.type == VALUE_LIST && i < FRIT_COUNT(changing_list_methods); i++)
        if (frit_str_is(name, changing_list_methods[i].name)) return &changing_list_methods[i];
    return NULL;
}
