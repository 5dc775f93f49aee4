// SPDX-License-Identifier: MIT
// The functions that every template sees.
#include "text/template/node.h"

static frit_status call_raise(run *r, const call *c, value *out)
{
    value message, text;
    (void)out;
    FRIT_TRY(frit_call_check(r, "raise_exception", c, 1, "message"));
    if (!frit_call_argument(c, 0, "message", &message)) return frit_run_fail(r, "raise_exception takes a message");
    FRIT_TRY(frit_var_to_text(r, message, &text));
    return frit_fail(FRIT_E_INVALID, "%.*s", (int)(text.text.len < FRIT_ERROR_BYTES ? text.text.len : FRIT_ERROR_BYTES),
                     text.text.ptr);
}

static frit_status call_range(run *r, const call *c, value *out)
{
    int64_t bounds[3] = {0, 0, 1};
    FRIT_TRY(frit_call_check(r, "range", c, 3, ""));
    if (c->n == 0) return frit_run_fail(r, "range takes at least one argument");
    for (size_t i = 0; i < c->n; i++) {
        if (!frit_var_is_integral(c->positional[i]))
            return frit_run_fail(r, "'%s' object cannot be interpreted as an integer",
                                 frit_var_type_name(c->positional[i]));
        bounds[c->n == 1 ? 1 : i] = frit_var_as_int(c->positional[i]);
    }
    if (bounds[2] == 0) return frit_run_fail(r, "range() arg 3 must not be zero");
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
        if (out->list->n == MAX_RANGE)
            return frit_fail(FRIT_E_LIMIT, "chat template, line %d: a range of more than %d numbers",
                             r->at ? r->at->line : 0, MAX_RANGE);
        FRIT_TRY(frit_list_push(r, out->list, frit_var_int(i)));
        FRIT_TRY(frit_run_step(r, 1));
        if (__builtin_add_overflow(i, bounds[2], &i)) break;
    }
    return FRIT_OK;
}

static frit_status put_named(run *r, const call *c, dict *d)
{
    for (size_t i = 0; i < c->n_named; i++) FRIT_TRY(frit_dict_put(r, d, frit_var_text(c->names[i]), c->named[i]));
    return FRIT_OK;
}

// namespace(a=1), dict(a=1); a mapping or pairs may be given as initial contents.
static frit_status make_dict(run *r, const char *name, value_type type, const call *c, value *out)
{
    if (c->n > 1) return frit_run_fail(r, "%s takes at most one positional argument", name);
    FRIT_TRY(frit_var_new_dict(r, type, out));
    if (c->n == 1 && c->positional[0].type == VALUE_DICT) {
        const dict *from = c->positional[0].dict;
        for (size_t i = 0; i < from->n; i++) FRIT_TRY(frit_dict_put(r, out->dict, from->keys[i], from->values[i]));
    } else if (c->n == 1) {
        list *pairs, *pair;
        FRIT_TRY(frit_var_iterate(r, c->positional[0], &pairs));
        for (size_t i = 0; i < pairs->n; i++) {
            FRIT_TRY(frit_var_iterate(r, pairs->items[i], &pair));
            if (pair->n != 2) return frit_run_fail(r, "%s takes a mapping, or pairs", name);
            FRIT_TRY(frit_dict_put(r, out->dict, pair->items[0], pair->items[1]));
        }
    }
    return put_named(r, c, out->dict);
}

static frit_status call_namespace(run *r, const call *c, value *out)
{
    return make_dict(r, "namespace", VALUE_NAMESPACE, c, out);
}

static frit_status call_dict(run *r, const call *c, value *out)
{
    return make_dict(r, "dict", VALUE_DICT, c, out);
}

static frit_status call_strftime_now(run *r, const call *c, value *out)
{
    value format;
    FRIT_TRY(frit_call_check(r, "strftime_now", c, 1, "format"));
    if (!frit_call_argument(c, 0, "format", &format) || format.type != VALUE_TEXT)
        return frit_run_fail(r, "strftime_now takes a format");
    value zero;   // the format, zero-terminated
    writer copy = {.r = r}, day = {.r = r};
    frit_write(&copy, format.text.ptr, format.text.len);
    day.taints = copy.untrusted.n > 0;
    FRIT_TRY(frit_writer_take(&copy, &zero));
    char text[512];
    size_t n = format.text.len > 0 ? strftime(text, sizeof text, zero.text.ptr, r->now) : 0;
    frit_write_made(&day, text, n);
    return frit_writer_take(&day, out);
}

static frit_status call_cycler(run *r, const call *c, value *out)
{
    FRIT_TRY(frit_call_check(r, "cycler", c, SIZE_MAX, ""));
    if (c->n == 0) return frit_run_fail(r, "at least one item has to be provided");
    value items;
    cycler *turn = frit_run_alloc(r, 1, sizeof *turn);
    if (!turn) return frit_run_memory(r);
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &items));
    for (size_t i = 0; i < c->n; i++) FRIT_TRY(frit_list_push(r, items.list, c->positional[i]));
    turn->items = items.list;
    *out = (value){.type = VALUE_CYCLER, .cycler = turn};
    return FRIT_OK;
}

static frit_status call_joiner(run *r, const call *c, value *out)
{
    value between = frit_var_text(frit_str_of(", ")), state;
    FRIT_TRY(frit_call_check(r, "joiner", c, 1, "sep"));
    frit_call_argument(c, 0, "sep", &between);
    method *next = frit_run_alloc(r, 1, sizeof *next);
    if (!next) return frit_run_memory(r);
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &state));
    FRIT_TRY(frit_list_push(r, state.list, between));
    FRIT_TRY(frit_list_push(r, state.list, frit_var_text(frit_str_of(""))));
    *next = (method){&frit_joiner_method, state};
    *out = (value){.type = VALUE_METHOD, .method = next};
    return FRIT_OK;
}

static const function functions[] = {
    {"raise_exception", call_raise},     {"range", call_range},   {"namespace", call_namespace}, {"dict", call_dict},
    {"strftime_now", call_strftime_now}, {"cycler", call_cycler}, {"joiner", call_joiner},
};

frit_status frit_functions_define(run *r, scope *s)
{
    for (size_t i = 0; i < FRIT_COUNT(functions); i++) {
        int64_t symbol;
        if (!frit_map_get(&r->template->symbols, frit_str_of(functions[i].name), &symbol)) continue;
        FRIT_TRY(frit_scope_set(r, s, (int)symbol, (value){.type = VALUE_FUNCTION, .function = &functions[i]}));
    }
    return FRIT_OK;
}
