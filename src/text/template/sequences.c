// SPDX-License-Identifier: MIT
// Filters over lists, dictionaries and other iterable values.
#include "text/template/filters.h"

// ------------------------------------------------------------------------------------- attributes by path

// Follows "a.b.0", or an index, from an item; returns the item itself without a path. An absent item becomes the
// fallback, if there is one.
static frit_status follow_or(run *r, value item, value path, value fallback, value *out)
{
    *out = item;
    if (path.type == VALUE_NONE) return FRIT_OK;
    if (frit_var_is_integral(path)) {
        FRIT_TRY(frit_var_item(r, item, path, out));
        if (out->type == VALUE_UNDEFINED && fallback.type != VALUE_NONE) *out = fallback;
        return FRIT_OK;
    }
    if (path.type != VALUE_TEXT)
        return frit_run_fail(r, "an attribute must be a string or an integer, not %s", frit_var_type_name(path));
    frit_str rest = path.text;
    for (;;) {
        size_t dot = frit_text_find(rest, frit_str_of("."), 0);
        frit_str part = {rest.ptr, dot < rest.len ? dot : rest.len};
        int64_t number = 0;
        bool digits = part.len > 0 && part.len < 10;
        for (size_t i = 0; digits && i < part.len; i++) {
            digits = part.ptr[i] >= '0' && part.ptr[i] <= '9';
            number = number * 10 + (part.ptr[i] - '0');
        }
        FRIT_TRY(frit_var_item(r, *out, digits ? frit_var_int(number) : frit_var_text(part), out));
        if (out->type == VALUE_UNDEFINED && fallback.type != VALUE_NONE) *out = fallback;
        if (dot >= rest.len) return FRIT_OK;
        rest = (frit_str){rest.ptr + dot + 1, rest.len - dot - 1};
    }
}

static frit_status follow(run *r, value item, value path, value *out)
{
    return follow_or(r, item, path, frit_var_none(), out);
}

// The value by which an item is compared.
static frit_status sort_key(run *r, value item, value path, bool case_sensitive, value *out)
{
    FRIT_TRY(follow(r, item, path, out));
    return out->type == VALUE_TEXT && !case_sensitive ? frit_text_case(r, out->text, CASE_LOWER, out) : FRIT_OK;
}

// The value by which `sort` compares: a tuple of the values of several paths, which are separated by commas.
static frit_status sort_keys(run *r, value item, value paths, bool case_sensitive, value *out)
{
    FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, out));
    frit_str rest = paths.text;
    value key;
    for (size_t comma; paths.type == VALUE_TEXT && (comma = frit_text_find(rest, frit_str_of(","), 0)) < rest.len;) {
        FRIT_TRY(sort_key(r, item, frit_var_text((frit_str){rest.ptr, comma}), case_sensitive, &key));
        FRIT_TRY(frit_list_push(r, out->list, key));
        rest = (frit_str){rest.ptr + comma + 1, rest.len - comma - 1};
    }
    FRIT_TRY(sort_key(r, item, paths.type == VALUE_TEXT ? frit_var_text(rest) : paths, case_sensitive, &key));
    return frit_list_push(r, out->list, key);
}

// ------------------------------------------------------------------------------------- sorting

typedef struct keyed {
    value key, item;
} keyed;

// Merges two sorted halves. On equal keys the left item goes first, in both directions.
static frit_status merge_halves(run *r, const keyed *from, keyed *to, size_t begin, size_t middle, size_t end,
                                bool reverse)
{
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++) {
        bool take_right = left == middle;
        if (left < middle && right < end)
            FRIT_TRY(reverse ? frit_var_less(r, from[left].key, from[right].key, &take_right)
                             : frit_var_less(r, from[right].key, from[left].key, &take_right));
        to[i] = from[take_right ? right++ : left++];
    }
    return FRIT_OK;
}

static frit_status sort_keyed(run *r, keyed **items, size_t n, bool reverse)
{
    keyed *other = frit_run_alloc(r, n, sizeof *other);
    if (!other) return frit_run_memory(r);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
            FRIT_TRY(merge_halves(r, *items, other, begin, middle, end, reverse));
        }
        keyed *swap = *items;
        *items = other;
        other = swap;
    }
    return FRIT_OK;
}

static frit_status sort_items(run *r, const list *items, value path, bool single, bool case_sensitive, bool reverse,
                              value *out)
{
    keyed *sorted = frit_run_alloc(r, items->n, sizeof *sorted);
    if (!sorted) return frit_run_memory(r);
    for (size_t i = 0; i < items->n; i++) {
        sorted[i].item = items->items[i];
        FRIT_TRY(single ? sort_key(r, items->items[i], path, case_sensitive, &sorted[i].key)
                        : sort_keys(r, items->items[i], path, case_sensitive, &sorted[i].key));
    }
    FRIT_TRY(sort_keyed(r, &sorted, items->n, reverse));
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    for (size_t i = 0; i < items->n; i++) FRIT_TRY(frit_list_push(r, out->list, sorted[i].item));
    return FRIT_OK;
}

// Returns (grouper, list) for every sequence of items with equal keys.
static frit_status group(run *r, const keyed *sorted, size_t n, value path, value fallback, bool case_sensitive,
                         value *out)
{
    value pair, members = {0};
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    for (size_t i = 0; i < n; i++) {
        bool equal = false;
        if (i > 0) FRIT_TRY(frit_var_equal(r, sorted[i - 1].key, sorted[i].key, &equal));
        if (!equal) {
            value name = sorted[i].key;
            if (!case_sensitive) FRIT_TRY(follow_or(r, sorted[i].item, path, fallback, &name));
            FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, &pair));
            FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &members));
            pair.list->fields = "grouper list";
            FRIT_TRY(frit_list_push(r, pair.list, name));
            FRIT_TRY(frit_list_push(r, pair.list, members));
            FRIT_TRY(frit_list_push(r, out->list, pair));
        }
        FRIT_TRY(frit_list_push(r, members.list, sorted[i].item));
    }
    return FRIT_OK;
}

frit_status frit_filter_groupby(run *r, value v, const call *c, value *out)
{
    list *items;
    value path, fallback = frit_filter_option(c, 1, "default", frit_var_none());
    bool case_sensitive = frit_var_is_true(frit_filter_option(c, 2, "case_sensitive", frit_var_bool(false)));
    if (!frit_call_argument(c, 0, "attribute", &path)) return frit_run_fail(r, "groupby takes an attribute");
    FRIT_TRY(frit_var_iterate(r, v, &items));
    keyed *sorted = frit_run_alloc(r, items->n, sizeof *sorted);
    if (!sorted) return frit_run_memory(r);
    for (size_t i = 0; i < items->n; i++) {
        value *key = &sorted[i].key;
        sorted[i].item = items->items[i];
        FRIT_TRY(follow_or(r, items->items[i], path, fallback, key));
        if (key->type == VALUE_TEXT && !case_sensitive) FRIT_TRY(frit_text_case(r, key->text, CASE_LOWER, key));
    }
    FRIT_TRY(sort_keyed(r, &sorted, items->n, false));
    return group(r, sorted, items->n, path, fallback, case_sensitive, out);
}

static bool flag(const call *c, size_t i, const char *name)
{
    return frit_var_is_true(frit_filter_option(c, i, name, frit_var_bool(false)));
}

frit_status frit_filter_sort(run *r, value v, const call *c, value *out)
{
    list *items;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    return sort_items(r, items, frit_filter_option(c, 2, "attribute", frit_var_none()), false,
                      flag(c, 1, "case_sensitive"), flag(c, 0, "reverse"), out);
}

static frit_status dict_pairs(run *r, value v, value *out)
{
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    if (v.type == VALUE_UNDEFINED) return FRIT_OK;
    if (v.type != VALUE_DICT) return frit_run_fail(r, "Can only get item pairs from a mapping.");
    call none = {0};
    return frit_method_find(v, frit_str_of("items"))->call(r, v, &none, out);
}

frit_status frit_filter_items(run *r, value v, const call *c, value *out)
{
    (void)c;
    FRIT_TRY(dict_pairs(r, v, out));
    out->type = VALUE_GENERATOR;
    return FRIT_OK;
}

// Writes the items of a mapping as XML attributes.
frit_status frit_filter_xmlattr(run *r, value v, const call *c, value *out)
{
    if (v.type != VALUE_DICT) return frit_run_fail(r, "xmlattr takes a mapping, not %s", frit_var_type_name(v));
    bool space = frit_var_is_true(frit_filter_option(c, 0, "autospace", frit_var_bool(true)));
    writer text = {.r = r};
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < v.dict->n && status == FRIT_OK; i++) {
        value item = v.dict->values[i], name = {0};
        if (item.type == VALUE_NONE || item.type == VALUE_UNDEFINED) continue;
        status = frit_var_to_text(r, v.dict->keys[i], &name);
        for (size_t k = 0; status == FRIT_OK && k < name.text.len; k++)
            if (name.text.ptr[k] && strchr(" \t\n\r\f\v/>=", name.text.ptr[k]))
                status = frit_run_fail(r, "Invalid character in attribute name: '%.*s'",
                                       (int)(name.text.len < 100 ? name.text.len : 100), name.text.ptr);
        if (status == FRIT_OK) status = frit_var_to_text(r, item, &item);
        if (status != FRIT_OK) break;
        if (space || text.buf.len > 0) frit_write_char(&text, ' ');
        frit_print_escaped(name.text, &text);
        frit_write_text(&text, "=\"");
        if (item.safe)
            frit_write(&text, item.text.ptr, item.text.len);
        else
            frit_print_escaped(item.text, &text);
        frit_write_char(&text, '"');
    }
    if (status == FRIT_OK) return frit_writer_take(&text, out);
    frit_writer_free(&text);
    return status;
}

frit_status frit_filter_dictsort(run *r, value v, const call *c, value *out)
{
    value pairs, by = frit_filter_option(c, 1, "by", frit_var_text(frit_str_of("key")));
    if (v.type != VALUE_DICT) return frit_run_fail(r, "dictsort takes a mapping, not %s", frit_var_type_name(v));
    bool by_value = by.type == VALUE_TEXT && frit_str_is(by.text, "value");
    if (!by_value && (by.type != VALUE_TEXT || !frit_str_is(by.text, "key")))
        return frit_run_fail(r, "dictsort goes by 'key' or 'value'");
    FRIT_TRY(dict_pairs(r, v, &pairs));
    return sort_items(r, pairs.list, frit_var_int(by_value), true, flag(c, 0, "case_sensitive"), flag(c, 2, "reverse"),
                      out);
}

static frit_status extreme(run *r, value v, const call *c, bool largest, value *out)
{
    list *items;
    value path = frit_filter_option(c, 1, "attribute", frit_var_none()), best, key;
    bool case_sensitive = flag(c, 0, "case_sensitive");
    FRIT_TRY(frit_var_iterate(r, v, &items));
    *out = frit_var_undefined("the largest or smallest item of nothing");
    for (size_t i = 0; i < items->n; i++) {
        bool better = i == 0;
        FRIT_TRY(sort_key(r, items->items[i], path, case_sensitive, &key));
        if (i > 0) FRIT_TRY(largest ? frit_var_less(r, best, key, &better) : frit_var_less(r, key, best, &better));
        if (!better) continue;
        best = key;
        *out = items->items[i];
    }
    return FRIT_OK;
}

frit_status frit_filter_min(run *r, value v, const call *c, value *out)
{
    return extreme(r, v, c, false, out);
}

frit_status frit_filter_max(run *r, value v, const call *c, value *out)
{
    return extreme(r, v, c, true, out);
}

frit_status frit_filter_unique(run *r, value v, const call *c, value *out)
{
    list *items;
    value path = frit_filter_option(c, 1, "attribute", frit_var_none()), keys;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &keys));
    for (size_t i = 0; i < items->n; i++) {
        value key;
        bool seen = false;
        FRIT_TRY(sort_key(r, items->items[i], path, flag(c, 0, "case_sensitive"), &key));
        if (key.type == VALUE_LIST || key.type == VALUE_DICT)
            return frit_run_fail(r, "unhashable type: '%s'", frit_var_type_name(key));
        FRIT_TRY(frit_var_contains(r, keys, key, &seen));
        if (seen) continue;
        FRIT_TRY(frit_list_push(r, keys.list, key));
        FRIT_TRY(frit_list_push(r, out->list, items->items[i]));
    }
    return FRIT_OK;
}

frit_status frit_filter_sum(run *r, value v, const call *c, value *out)
{
    list *items;
    value path = frit_filter_option(c, 0, "attribute", frit_var_none()), item;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    *out = frit_filter_option(c, 1, "start", frit_var_int(0));
    for (size_t i = 0; i < items->n; i++) {
        FRIT_TRY(follow(r, items->items[i], path, &item));
        FRIT_TRY(frit_eval_binary(r, OP_ADD, *out, item, out));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- simple ones

frit_status frit_filter_length(run *r, value v, const call *c, value *out)
{
    (void)c;
    int64_t n;
    FRIT_TRY(frit_var_length(r, v, &n));
    *out = frit_var_int(n);
    return FRIT_OK;
}

frit_status frit_filter_first(run *r, value v, const call *c, value *out)
{
    (void)c;
    list *items;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    *out = items->n > 0 ? items->items[0] : frit_var_undefined("the first item of nothing");
    return FRIT_OK;
}

frit_status frit_filter_last(run *r, value v, const call *c, value *out)
{
    (void)c;
    list *items;
    if (v.type == VALUE_GENERATOR) return frit_run_fail(r, "'generator' object is not reversible");
    FRIT_TRY(frit_var_iterate(r, v, &items));
    *out = items->n > 0 ? items->items[items->n - 1] : frit_var_undefined("the last item of nothing");
    return FRIT_OK;
}

frit_status frit_filter_list(run *r, value v, const call *c, value *out)
{
    (void)c;
    list *items;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    *out = (value){.type = VALUE_LIST, .list = items};
    return FRIT_OK;
}

frit_status frit_filter_reverse(run *r, value v, const call *c, value *out)
{
    (void)c;
    if (v.type == VALUE_TEXT) return frit_var_slice(r, v, frit_var_none(), frit_var_none(), frit_var_int(-1), out);
    list *items;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    for (size_t i = items->n; i-- > 0;) FRIT_TRY(frit_list_push(r, out->list, items->items[i]));
    return FRIT_OK;
}

frit_status frit_filter_join(run *r, value v, const call *c, value *out)
{
    list *items;
    value glue = frit_filter_option(c, 0, "d", frit_var_text(frit_str_of(""))),
          path = frit_filter_option(c, 1, "attribute", frit_var_none()), parts;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    FRIT_TRY(frit_var_to_text(r, glue, &glue));
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &parts));
    for (size_t i = 0; i < items->n; i++) {
        value part;
        FRIT_TRY(follow(r, items->items[i], path, &part));
        FRIT_TRY(frit_list_push(r, parts.list, part));
    }
    return frit_text_join(r, glue.text, parts.list, false, out);
}

frit_status frit_filter_batch(run *r, value v, const call *c, value *out)
{
    list *items;
    int64_t n;
    value fill = frit_filter_option(c, 1, "fill_with", frit_var_none()), row = {0};
    FRIT_TRY(frit_filter_int(r, c, 0, "linecount", 0, &n));
    if (n < 1 || n > MAX_RANGE) return frit_run_fail(r, "batch takes a number of items");
    FRIT_TRY(frit_var_iterate(r, v, &items));
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    for (size_t i = 0; i < items->n; i++) {
        if (i % (size_t)n == 0) {
            FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &row));
            FRIT_TRY(frit_list_push(r, out->list, row));
        }
        FRIT_TRY(frit_list_push(r, row.list, items->items[i]));
    }
    while (fill.type != VALUE_NONE && row.list && row.list->n < (size_t)n) FRIT_TRY(frit_list_push(r, row.list, fill));
    return FRIT_OK;
}

// Splits into a given number of lists; the first ones are longer by one if the items do not divide evenly.
frit_status frit_filter_slice(run *r, value v, const call *c, value *out)
{
    list *items;
    int64_t n;
    value fill = frit_filter_option(c, 1, "fill_with", frit_var_none());
    FRIT_TRY(frit_filter_int(r, c, 0, "slices", 0, &n));
    if (n < 1 || n > MAX_RANGE) return frit_run_fail(r, "slice takes a number of lists");
    FRIT_TRY(frit_var_iterate(r, v, &items));
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    size_t each = items->n / (size_t)n, longer = items->n % (size_t)n, at = 0;
    for (size_t i = 0; i < (size_t)n; i++) {
        value part;
        FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &part));
        for (size_t k = 0; k < each + (i < longer); k++) FRIT_TRY(frit_list_push(r, part.list, items->items[at++]));
        if (fill.type != VALUE_NONE && i >= longer) FRIT_TRY(frit_list_push(r, part.list, fill));
        FRIT_TRY(frit_list_push(r, out->list, part));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- map and select

// The call without its first n positional arguments.
static call shifted(const call *c, size_t n)
{
    call rest = *c;
    if (n > 0) rest.positional += n;   // without arguments the pointer is NULL
    rest.n -= n;
    return rest;
}

static frit_status map_attribute(run *r, const list *items, const call *c, value *out)
{
    value path, fallback = frit_filter_option(c, SIZE_MAX, "default", frit_var_none());
    FRIT_TRY(frit_call_check(r, "map", c, 0, "attribute default"));
    frit_call_argument(c, SIZE_MAX, "attribute", &path);
    for (size_t i = 0; i < items->n; i++) {
        value item;
        FRIT_TRY(follow_or(r, items->items[i], path, fallback, &item));
        FRIT_TRY(frit_list_push(r, out->list, item));
    }
    return FRIT_OK;
}

frit_status frit_filter_map(run *r, value v, const call *c, value *out)
{
    list *items;
    value path;
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    if (!frit_var_is_true(v)) return FRIT_OK;   // no items; none is allowed too
    FRIT_TRY(frit_var_iterate(r, v, &items));
    if (c->n == 0 && frit_call_argument(c, SIZE_MAX, "attribute", &path)) return map_attribute(r, items, c, out);
    if (c->n == 0 || c->positional[0].type != VALUE_TEXT) return frit_run_fail(r, "map requires a filter argument");
    const filter *f = frit_filter_find(c->positional[0].text);
    if (!f)
        return frit_run_fail(r, "there is no filter '%.*s'", (int)c->positional[0].text.len, c->positional[0].text.ptr);
    call rest = shifted(c, 1);
    for (size_t i = 0; i < items->n; i++) {
        value item;
        FRIT_TRY(frit_run_enter(r));
        frit_status status = frit_apply_filter(r, f, items->items[i], &rest, &item);
        r->depth--;
        FRIT_TRY(status);
        FRIT_TRY(frit_list_push(r, out->list, item));
    }
    return FRIT_OK;
}

// Keeps the items whose test, or truth without a test, gives `wanted`. The test may apply to an attribute.
static frit_status select_items(run *r, value v, const call *c, bool by_attribute, bool wanted, value *out)
{
    list *items;
    FRIT_TRY(frit_var_new_list(r, VALUE_GENERATOR, out));
    if (by_attribute && c->n == 0) return frit_run_fail(r, "Missing parameter for attribute name");
    value path = by_attribute ? c->positional[0] : frit_var_none();
    call rest = shifted(c, by_attribute);
    const test *t = NULL;
    if (rest.n > 0) {
        t = rest.positional[0].type == VALUE_TEXT ? frit_test_find(rest.positional[0].text) : NULL;
        if (!t) return frit_run_fail(r, "an unknown test");
        rest = shifted(&rest, 1);
    }
    if (!frit_var_is_true(v)) return FRIT_OK;   // no items; none is allowed too
    FRIT_TRY(frit_var_iterate(r, v, &items));
    for (size_t i = 0; i < items->n; i++) {
        value item;
        FRIT_TRY(follow(r, items->items[i], path, &item));
        bool holds = frit_var_is_true(item);
        if (t) FRIT_TRY(frit_apply_test(r, t, item, &rest, &holds));
        if (holds == wanted) FRIT_TRY(frit_list_push(r, out->list, items->items[i]));
    }
    return FRIT_OK;
}

frit_status frit_filter_select(run *r, value v, const call *c, value *out)
{
    return select_items(r, v, c, false, true, out);
}

frit_status frit_filter_reject(run *r, value v, const call *c, value *out)
{
    return select_items(r, v, c, false, false, out);
}

frit_status frit_filter_selectattr(run *r, value v, const call *c, value *out)
{
    return select_items(r, v, c, true, true, out);
}

frit_status frit_filter_rejectattr(run *r, value v, const call *c, value *out)
{
    return select_items(r, v, c, true, false, out);
}
