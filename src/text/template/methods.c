// SPDX-License-Identifier: MIT
// Methods of dictionaries, lists and `loop`, as tables; text_methods.c has those of text. Methods that change a list or
// dictionary are forbidden, except append and pop if the template may use them (frit_template_allow_changes).
#include "text/template/node.h"

// ------------------------------------------------------------------------------------- arguments

value frit_call_optional(const call *c, size_t i, const char *name, value fallback)
{
    value v;
    return frit_call_argument(c, i, name, &v) ? v : fallback;
}

frit_status frit_call_text(run *r, const call *c, size_t i, const char *name, frit_str *out)
{
    value v;
    if (!frit_call_argument(c, i, name, &v)) return frit_run_fail(r, "an argument is missing: a string is expected");
    if (v.type != VALUE_TEXT) return frit_run_fail(r, "a string is expected, not %s", frit_var_type_name(v));
    *out = v.text;
    return FRIT_OK;
}

frit_status frit_call_int(run *r, const call *c, size_t i, const char *name, int64_t fallback, int64_t *out)
{
    value v = frit_call_optional(c, i, name, frit_var_int(fallback));
    if (!frit_var_is_integral(v)) return frit_run_fail(r, "an integer is expected, not %s", frit_var_type_name(v));
    *out = frit_var_as_int(v);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- dictionaries

static frit_status dict_get(run *r, value self, const call *c, value *out)
{
    value key, *found;
    if (!frit_call_argument(c, 0, "key", &key)) return frit_run_fail(r, "get takes a key");
    if (key.type == VALUE_LIST || key.type == VALUE_DICT)
        return frit_run_fail(r, "unhashable type: '%s'", frit_var_type_name(key));
    FRIT_TRY(frit_dict_find(r, self.dict, key, &found));
    *out = found ? *found : frit_call_optional(c, 1, "default", frit_var_none());
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
    FRIT_TRY(frit_call_int(r, c, 0, "", -1, &at));
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
    if (self.type == VALUE_TEXT) return frit_text_method_find(name);
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
