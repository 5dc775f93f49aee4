// SPDX-License-Identifier: MIT
// Expressions to values: names, operators, calls, attributes and items.
#include "text/template/node.h"

#include "base/check.h"

#include <math.h>

// ------------------------------------------------------------------------------------- arguments

bool frit_call_argument(const call *c, size_t i, const char *name, value *out)
{
    if (i < c->n) {
        *out = c->positional[i];
        return true;
    }
    for (size_t k = 0; k < c->n_named; k++) {
        if (!frit_str_is(c->names[k], name)) continue;
        *out = c->named[k];
        return true;
    }
    return false;
}

static bool is_among(const char *names, frit_str name)
{
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t n = strcspn(at, " ");
        if (n == name.len && memcmp(at, name.ptr, n) == 0) return true;
    }
    return false;
}

frit_status frit_call_check(run *r, const char *callee, const call *c, size_t most, const char *names)
{
    if (c->n > most) return frit_run_fail(r, "%s takes at most %zu arguments, found %zu", callee, most, c->n);
    for (size_t i = 0; i < c->n_named; i++)
        if (!is_among(names, c->names[i]))
            return frit_run_fail(r, "%s has no argument '%.*s'", callee, (int)c->names[i].len, c->names[i].ptr);
    return FRIT_OK;
}

static frit_status spread_list(run *r, const node *star, scope *s, list *positional)
{
    value v;
    list *items;
    FRIT_TRY(frit_eval(r, star, s, &v));
    FRIT_TRY(frit_var_iterate(r, v, &items));
    for (size_t i = 0; i < items->n; i++) FRIT_TRY(frit_list_push(r, positional, items->items[i]));
    return FRIT_OK;
}

static frit_status spread_dict(run *r, const node *double_star, scope *s, call *out)
{
    value v;
    FRIT_TRY(frit_eval(r, double_star, s, &v));
    if (v.type != VALUE_DICT)
        return frit_run_fail(r, "an argument after ** must be a mapping, not %s", frit_var_type_name(v));
    frit_str *names = frit_run_alloc(r, out->n_named + v.dict->n, sizeof *names);
    value *named = frit_run_alloc(r, out->n_named + v.dict->n, sizeof *named);
    if (!names || !named) return frit_run_memory(r);
    for (size_t i = 0; i < out->n_named; i++) names[i] = out->names[i], named[i] = out->named[i];
    for (size_t i = 0; i < v.dict->n; i++) {
        if (v.dict->keys[i].type != VALUE_TEXT) return frit_run_fail(r, "keywords must be strings");
        names[out->n_named + i] = v.dict->keys[i].text;
        named[out->n_named + i] = v.dict->values[i];
    }
    out->names = names;
    out->named = named;
    out->n_named += v.dict->n;
    return FRIT_OK;
}

frit_status frit_eval_arguments(run *r, const arguments *args, scope *s, call *out)
{
    *out = (call){.scope = s};
    if (!args) return FRIT_OK;
    value positional;
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &positional));
    for (size_t i = 0; i < args->n; i++) {
        value v;
        FRIT_TRY(frit_eval(r, args->positional[i], s, &v));
        FRIT_TRY(frit_list_push(r, positional.list, v));
    }
    if (args->star) FRIT_TRY(spread_list(r, args->star, s, positional.list));
    out->positional = positional.list->items;
    out->n = positional.list->n;
    out->names = args->names;
    out->n_named = args->n_named;
    out->named = frit_run_alloc(r, args->n_named, sizeof *out->named);
    if (!out->named) return frit_run_memory(r);
    for (size_t i = 0; i < args->n_named; i++) FRIT_TRY(frit_eval(r, args->named[i], s, &out->named[i]));
    return args->double_star ? spread_dict(r, args->double_star, s, out) : FRIT_OK;
}

frit_status frit_eval_call(run *r, value callee, const call *c, value *out)
{
    switch (callee.type) {
    case VALUE_FUNCTION:
        return callee.function->call(r, c, out);
    case VALUE_MACRO:
        return frit_run_macro(r, callee.macro, c, out);
    case VALUE_METHOD: {
        const method_row *row = callee.method->row;
        if (row->most >= 0)
            FRIT_TRY(frit_call_check(r, row->name, c, (size_t)row->most, row->arguments ? row->arguments : ""));
        return row->call(r, callee.method->self, c, out);
    }
    case VALUE_LOOP: {
        if (!callee.loop->node->recursive) return frit_run_fail(r, "only a loop that is 'recursive' may be called");
        if (c->n != 1) return frit_run_fail(r, "loop takes one argument");
        writer *saved = r->out, captured = {.r = r};
        r->out = &captured;
        frit_status status =
            frit_run_loop(r, callee.loop->node, callee.loop->outer, c->positional[0], callee.loop->depth + 1);
        r->out = saved;
        if (status == FRIT_OK) return frit_writer_take(&captured, out);
        frit_writer_free(&captured);
        return status;
    }
    case VALUE_UNDEFINED:
        return frit_run_fail(r, "%.*s is undefined", (int)callee.text.len, callee.text.ptr);
    case VALUE_FORBIDDEN:
        return frit_run_fail(r, "access to '%.*s' is not allowed", (int)callee.text.len, callee.text.ptr);
    default:
        return frit_run_fail(r, "'%s' object is not callable", frit_var_type_name(callee));
    }
}

// ------------------------------------------------------------------------------------- arithmetic

static frit_status fail_operands(const run *r, const char *op, value a, value b)
{
    if (a.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)a.text.len, a.text.ptr);
    if (b.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)b.text.len, b.text.ptr);
    return frit_run_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", op, frit_var_type_name(a),
                         frit_var_type_name(b));
}

static frit_status add_text(run *r, value a, value b, value *out)
{
    bool safe = a.safe || b.safe;
    writer joined = {.r = r};
    if (safe && !a.safe)
        frit_print_escaped(a.text, &joined);
    else
        frit_write(&joined, a.text.ptr, a.text.len);
    if (safe && !b.safe)
        frit_print_escaped(b.text, &joined);
    else
        frit_write(&joined, b.text.ptr, b.text.len);
    FRIT_TRY(frit_writer_take(&joined, out));
    out->safe = safe;
    return FRIT_OK;
}

static frit_status add_lists(run *r, value a, value b, value *out)
{
    FRIT_TRY(frit_run_step(r, a.list->n + b.list->n));
    FRIT_TRY(frit_var_new_list(r, a.type, out));
    for (size_t i = 0; i < a.list->n; i++) FRIT_TRY(frit_list_push(r, out->list, a.list->items[i]));
    for (size_t i = 0; i < b.list->n; i++) FRIT_TRY(frit_list_push(r, out->list, b.list->items[i]));
    return FRIT_OK;
}

static frit_status repeat(run *r, value what, int64_t times, value *out)
{
    if (times < 0) times = 0;
    if (what.type == VALUE_TEXT) {
        uint64_t n;
        if (!frit_mul_u64(what.text.len, (uint64_t)times, &n) || n >= MAX_BYTES) return frit_run_memory(r);
        if (what.text.len == 0) times = 0;
        FRIT_TRY(frit_run_step(r, (size_t)times));
        writer repeated = {.r = r};
        for (int64_t k = 0; k < times; k++) frit_write(&repeated, what.text.ptr, what.text.len);
        return frit_writer_take(&repeated, out);
    }
    FRIT_TRY(frit_var_new_list(r, what.type, out));
    for (int64_t k = 0; what.list->n > 0 && k < times; k++) {
        FRIT_TRY(frit_run_step(r, what.list->n));
        for (size_t i = 0; i < what.list->n; i++) FRIT_TRY(frit_list_push(r, out->list, what.list->items[i]));
    }
    return FRIT_OK;
}

static frit_status integer_power(run *r, int64_t base, int64_t exponent, value *out)
{
    int64_t result = 1;
    for (int64_t i = 0; i < exponent; i++) {
        if (__builtin_mul_overflow(result, base, &result)) return frit_run_fail(r, "an integer is too large");
        if (result == 0 || result == 1) {
            if (base == 0 || base == 1) break;
        }
        FRIT_TRY(frit_run_step(r, 1));
    }
    *out = frit_var_int(result);
    return FRIT_OK;
}

// Python rounds quotients down.
static int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static frit_status integer_arithmetic(run *r, operator_kind op, int64_t a, int64_t b, value *out)
{
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
    case OP_ADD:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUB:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MUL:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_FLOOR_DIV:
    case OP_MOD:
        if (b == 0) return frit_run_fail(r, "integer division or modulo by zero");
        overflow = a == INT64_MIN && b == -1;
        if (!overflow) result = op == OP_MOD ? a - floor_divide(a, b) * b : floor_divide(a, b);
        break;
    default:
        return integer_power(r, a, b, out);
    }
    if (overflow) return frit_run_fail(r, "an integer is too large");
    *out = frit_var_int(result);
    return FRIT_OK;
}

static frit_status float_arithmetic(run *r, operator_kind op, double a, double b, value *out)
{
    if ((op == OP_DIV || op == OP_FLOOR_DIV || op == OP_MOD) && b == 0) return frit_run_fail(r, "division by zero");
    double m;
    switch (op) {
    case OP_ADD:
        *out = frit_var_float(a + b);
        return FRIT_OK;
    case OP_SUB:
        *out = frit_var_float(a - b);
        return FRIT_OK;
    case OP_MUL:
        *out = frit_var_float(a * b);
        return FRIT_OK;
    case OP_DIV:
        *out = frit_var_float(a / b);
        return FRIT_OK;
    case OP_FLOOR_DIV:
        *out = frit_var_float(floor(a / b));
        return FRIT_OK;
    case OP_MOD:
        m = fmod(a, b);
        *out = frit_var_float(m != 0 && (m < 0) != (b < 0) ? m + b : m);
        return FRIT_OK;
    default:
        *out = frit_var_float(pow(a, b));
        return FRIT_OK;
    }
}

frit_status frit_eval_binary(run *r, operator_kind op, value a, value b, value *out)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (frit_var_is_number(a) && frit_var_is_number(b)) {
        bool whole = frit_var_is_integral(a) && frit_var_is_integral(b) && op != OP_DIV;
        if (op == OP_POW && whole && frit_var_as_int(b) < 0) whole = false;
        return whole ? integer_arithmetic(r, op, frit_var_as_int(a), frit_var_as_int(b), out)
                     : float_arithmetic(r, op, frit_var_as_float(a), frit_var_as_float(b), out);
    }
    bool text = a.type == VALUE_TEXT && b.type == VALUE_TEXT;
    bool lists = a.type == b.type && (a.type == VALUE_LIST || a.type == VALUE_TUPLE);
    if (op == OP_ADD && text) return add_text(r, a, b, out);
    if (op == OP_ADD && lists) return add_lists(r, a, b, out);
    if (op == OP_MOD && a.type == VALUE_TEXT) return frit_text_percent(r, a.text, b, out);
    bool a_repeats = a.type == VALUE_TEXT || a.type == VALUE_LIST || a.type == VALUE_TUPLE;
    bool b_repeats = b.type == VALUE_TEXT || b.type == VALUE_LIST || b.type == VALUE_TUPLE;
    if (op == OP_MUL && a_repeats && frit_var_is_integral(b)) return repeat(r, a, frit_var_as_int(b), out);
    if (op == OP_MUL && b_repeats && frit_var_is_integral(a)) return repeat(r, b, frit_var_as_int(a), out);
    return fail_operands(r, names[op], a, b);
}

static frit_status eval_sign(run *r, bool minus, value v, value *out)
{
    if (v.type == VALUE_FLOAT) {
        *out = frit_var_float(minus ? -v.f : v.f);
    } else if (frit_var_is_integral(v)) {
        if (minus && frit_var_as_int(v) == INT64_MIN) return frit_run_fail(r, "an integer is too large");
        *out = frit_var_int(minus ? -frit_var_as_int(v) : frit_var_as_int(v));
    } else if (v.type == VALUE_UNDEFINED) {
        return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    } else {
        return frit_run_fail(r, "bad operand type for unary %c: '%s'", minus ? '-' : '+', frit_var_type_name(v));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- comparisons

frit_status frit_eval_compare(run *r, operator_kind op, value a, value b, bool *out)
{
    bool result = false;
    switch (op) {
    case OP_EQ:
    case OP_NE:
        FRIT_TRY(frit_var_equal(r, a, b, &result));
        *out = result == (op == OP_EQ);
        return FRIT_OK;
    case OP_LT:
        return frit_var_less(r, a, b, out);
    case OP_GT:
        return frit_var_less(r, b, a, out);
    case OP_LE:
    case OP_GE:
        FRIT_TRY(op == OP_LE ? frit_var_less(r, a, b, out) : frit_var_less(r, b, a, out));
        if (!*out) FRIT_TRY(frit_var_equal(r, a, b, out));
        return FRIT_OK;
    default:
        FRIT_TRY(frit_var_contains(r, b, a, &result));
        *out = result == (op == OP_IN);
        return FRIT_OK;
    }
}

static frit_status eval_comparison(run *r, const node *n, scope *s, value *out)
{
    value left, right;
    bool holds = true;
    FRIT_TRY(frit_eval(r, n->a, s, &left));
    for (size_t i = 0; holds && i < n->n; i++) {
        FRIT_TRY(frit_eval(r, n->items[i], s, &right));
        FRIT_TRY(frit_eval_compare(r, n->ops[i], left, right, &holds));
        left = right;
    }
    *out = frit_var_bool(holds);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- attributes and items

// An item of a tuple whose items have names.
static const value *find_field(const list *items, frit_str name)
{
    const char *at = items->fields;
    for (size_t i = 0; i < items->n && *at; i++) {
        size_t n = strcspn(at, " ");
        if (n == name.len && memcmp(at, name.ptr, n) == 0) return &items->items[i];
        at += n;
        at += *at == ' ';
    }
    return NULL;
}

frit_status frit_var_attribute(run *r, value v, frit_str name, value *out)
{
    if (v.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    if (v.type == VALUE_LOOP) return frit_loop_attribute(r, v.loop, name, out);
    const bool has_members = v.type == VALUE_DICT || v.type == VALUE_NAMESPACE;
    if (has_members) FRIT_TRY(frit_run_step(r, v.dict->n / 4));
    value *found = has_members ? frit_dict_find_text(v.dict, name) : NULL;
    const method_row *row = frit_method_find(v, name);
    if (row && !row->call && r->template->may_change && frit_method_find_changing(v, name))
        row = frit_method_find_changing(v, name);
    if (row && row->call) {
        method *bound = frit_run_alloc(r, 1, sizeof *bound);
        if (!bound) return frit_run_memory(r);
        *bound = (method){row, v};
        *out = (value){.type = VALUE_METHOD, .method = bound};
    } else if (row) {
        *out = (value){.type = VALUE_FORBIDDEN, .text = name};
    } else if (found) {
        *out = *found;
    } else if (v.type == VALUE_MACRO && frit_str_is(name, "name")) {
        *out = frit_var_text(v.macro->name);
    } else if (v.type == VALUE_CYCLER && frit_str_is(name, "current")) {
        *out = v.cycler->items->items[v.cycler->at];
    } else if (v.type == VALUE_TUPLE && v.list->fields && find_field(v.list, name)) {
        *out = *find_field(v.list, name);
    } else {
        writer what = {.r = r};
        frit_write_printf(&what, "'%s object' has no attribute '%.*s', which", frit_var_type_name(v), (int)name.len,
                          name.ptr);
        value text;
        FRIT_TRY(frit_writer_take(&what, &text));
        *out = (value){.type = VALUE_UNDEFINED, .text = text.text};
    }
    return FRIT_OK;
}

// A position from the front, or SIZE_MAX if it is outside.
static size_t position(int64_t i, size_t n)
{
    if (i < 0) i += (int64_t)n;
    return i < 0 || (uint64_t)i >= n ? SIZE_MAX : (size_t)i;
}

static frit_status text_item(run *r, frit_str text, int64_t i, value *out)
{
    FRIT_TRY(frit_run_step(r, text.len / 64));
    size_t at = position(i, frit_text_length(text));
    if (at == SIZE_MAX) {
        *out = frit_var_undefined("a character outside the string");
        return FRIT_OK;
    }
    size_t begin = frit_text_offset(text, at);
    frit_str rest = {text.ptr + begin, text.len - begin};
    *out = frit_var_text((frit_str){rest.ptr, frit_text_offset(rest, 1)});
    return FRIT_OK;
}

frit_status frit_var_item(run *r, value v, value key, value *out)
{
    if (v.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    if (v.type == VALUE_DICT && key.type != VALUE_LIST && key.type != VALUE_DICT) {
        value *found;
        FRIT_TRY(frit_dict_find(r, v.dict, key, &found));
        if (found) {
            *out = *found;
            return FRIT_OK;
        }
    }
    if (frit_var_is_integral(key) && v.type == VALUE_TEXT) return text_item(r, v.text, frit_var_as_int(key), out);
    if (frit_var_is_integral(key) && (v.type == VALUE_LIST || v.type == VALUE_TUPLE)) {
        size_t at = position(frit_var_as_int(key), v.list->n);
        *out = at == SIZE_MAX ? frit_var_undefined("an item outside the list") : v.list->items[at];
        return FRIT_OK;
    }
    if (key.type == VALUE_TEXT) return frit_var_attribute(r, v, key.text, out);
    *out = frit_var_undefined("an item that does not exist");
    return FRIT_OK;
}

static frit_status slice_bound(run *r, value v, int64_t n, int64_t low, int64_t high, int64_t fallback, int64_t *out)
{
    if (v.type == VALUE_NONE) {
        *out = fallback;
        return FRIT_OK;
    }
    if (!frit_var_is_integral(v)) return frit_run_fail(r, "slice indices must be integers or None");
    int64_t i = frit_var_as_int(v);
    if (i < 0) i = i < -n ? low : i + n;
    *out = i < low ? low : i > high ? high : i;
    return FRIT_OK;
}

static frit_status slice_list(run *r, value v, int64_t start, int64_t stop, int64_t step, value *out)
{
    FRIT_TRY(frit_var_new_list(r, v.type, out));
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
        FRIT_TRY(frit_list_push(r, out->list, v.list->items[i]));
        FRIT_TRY(frit_run_step(r, 1));
    }
    return FRIT_OK;
}

static frit_status slice_text(run *r, frit_str text, int64_t start, int64_t stop, int64_t step, value *out)
{
    FRIT_TRY(frit_run_step(r, text.len / 16));
    if (step == 1) {
        size_t begin = frit_text_offset(text, (size_t)start),
               end = frit_text_offset(text, (size_t)(stop > start ? stop : start));
        *out = frit_var_text((frit_str){text.ptr + begin, end - begin});
        return FRIT_OK;
    }
    list *characters;
    FRIT_TRY(frit_var_iterate(r, frit_var_text(text), &characters));
    writer joined = {.r = r};
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
        frit_write(&joined, characters->items[i].text.ptr, characters->items[i].text.len);
    return frit_writer_take(&joined, out);
}

frit_status frit_var_slice(run *r, value v, value start, value stop, value step, value *out)
{
    if (v.type == VALUE_UNDEFINED) return frit_run_fail(r, "%.*s is undefined", (int)v.text.len, v.text.ptr);
    if (v.type != VALUE_TEXT && v.type != VALUE_LIST && v.type != VALUE_TUPLE)
        return frit_run_fail(r, "'%s' object cannot be sliced", frit_var_type_name(v));
    int64_t n, first, last, by = 1;
    FRIT_TRY(frit_var_length(r, v, &n));
    if (step.type != VALUE_NONE) {
        if (!frit_var_is_integral(step) || frit_var_as_int(step) == 0)
            return frit_run_fail(r, "slice step must be an integer other than zero");
        by = frit_var_as_int(step);
        if (by > n + 1) by = n + 1;
        if (by < -n - 1) by = -n - 1;
    }
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    FRIT_TRY(slice_bound(r, start, n, low, high, by > 0 ? 0 : n - 1, &first));
    FRIT_TRY(slice_bound(r, stop, n, low, high, by > 0 ? n : -1, &last));
    return v.type == VALUE_TEXT ? slice_text(r, v.text, first, last, by, out) : slice_list(r, v, first, last, by, out);
}

// ------------------------------------------------------------------------------------- filters and tests

frit_status frit_apply_filter(run *r, const filter *f, value input, const call *c, value *out)
{
    if (f->most >= 0) FRIT_TRY(frit_call_check(r, f->name, c, (size_t)f->most, f->arguments));
    return f->apply(r, input, c, out);
}

frit_status frit_apply_test(run *r, const test *t, value input, const call *c, bool *out)
{
    if ((int)(c->n + c->n_named) != t->n_arguments)
        return frit_run_fail(r, "the test '%s' takes %d arguments", t->name, t->n_arguments);
    return t->holds(r, input, c, out);
}

frit_status frit_eval_filters(run *r, const node *n, value input, scope *s, value *out)
{
    if (n->a && n->a->kind == NODE_FILTER) FRIT_TRY(frit_eval_filters(r, n->a, input, s, &input));
    if (!n->callee) return frit_run_fail(r, "there is no filter '%.*s'", (int)n->text.len, n->text.ptr);
    call c;
    FRIT_TRY(frit_eval_arguments(r, n->args, s, &c));
    return frit_apply_filter(r, n->callee, input, &c, out);
}

static frit_status eval_filter(run *r, const node *n, scope *s, value *out)
{
    value input;
    if (!n->callee) return frit_run_fail(r, "there is no filter '%.*s'", (int)n->text.len, n->text.ptr);
    FRIT_TRY(frit_eval(r, n->a, s, &input));
    call c;
    FRIT_TRY(frit_eval_arguments(r, n->args, s, &c));
    return frit_apply_filter(r, n->callee, input, &c, out);
}

static frit_status eval_test(run *r, const node *n, scope *s, value *out)
{
    value input;
    call c;
    bool holds = false;
    FRIT_TRY(frit_eval(r, n->a, s, &input));
    FRIT_TRY(frit_eval_arguments(r, n->args, s, &c));
    FRIT_TRY(frit_apply_test(r, n->callee, input, &c, &holds));
    *out = frit_var_bool(holds);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- nodes

static frit_status eval_name(run *r, const node *n, scope *s, value *out)
{
    if (frit_scope_get(r, s, n->symbol, out)) return FRIT_OK;
    writer what = {.r = r};
    frit_write_printf(&what, "'%.*s'", (int)n->text.len, n->text.ptr);
    FRIT_TRY(frit_writer_take(&what, out));
    out->type = VALUE_UNDEFINED;
    return FRIT_OK;
}

static frit_status eval_items(run *r, const node *n, scope *s, value *out)
{
    FRIT_TRY(frit_var_new_list(r, n->kind == NODE_TUPLE ? VALUE_TUPLE : VALUE_LIST, out));
    for (size_t i = 0; i < n->n; i++) {
        value item;
        FRIT_TRY(frit_eval(r, n->items[i], s, &item));
        FRIT_TRY(frit_list_push(r, out->list, item));
    }
    return FRIT_OK;
}

static frit_status eval_dict(run *r, const node *n, scope *s, value *out)
{
    FRIT_TRY(frit_var_new_dict(r, VALUE_DICT, out));
    for (size_t i = 0; i + 1 < n->n; i += 2) {
        value key, item;
        FRIT_TRY(frit_eval(r, n->items[i], s, &key));
        FRIT_TRY(frit_eval(r, n->items[i + 1], s, &item));
        FRIT_TRY(frit_dict_put(r, out->dict, key, item));
    }
    return FRIT_OK;
}

static frit_status eval_concat(run *r, const node *n, scope *s, value *out)
{
    writer joined = {.r = r};
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n->n && status == FRIT_OK; i++) {
        value item;
        status = frit_eval(r, n->items[i], s, &item);
        if (status == FRIT_OK) status = frit_var_print(r, item, &joined);
    }
    if (status == FRIT_OK) return frit_writer_take(&joined, out);
    frit_writer_free(&joined);
    return status;
}

static frit_status eval_logic(run *r, const node *n, scope *s, value *out)
{
    FRIT_TRY(frit_eval(r, n->a, s, out));
    bool yes = frit_var_is_true(*out);
    if (n->kind == NODE_NOT)
        *out = frit_var_bool(!yes);
    else if (yes == (n->kind == NODE_AND))
        return frit_eval(r, n->b, s, out);
    return FRIT_OK;
}

static frit_status eval_condition(run *r, const node *n, scope *s, value *out)
{
    value condition;
    FRIT_TRY(frit_eval(r, n->b, s, &condition));
    if (frit_var_is_true(condition)) return frit_eval(r, n->a, s, out);
    if (n->c) return frit_eval(r, n->c, s, out);
    *out = frit_var_undefined("the value of an 'if' without 'else'");
    return FRIT_OK;
}

static frit_status eval_slice(run *r, const node *n, scope *s, value *out)
{
    value v, start = frit_var_none(), stop = frit_var_none(), step = frit_var_none();
    FRIT_TRY(frit_eval(r, n->a, s, &v));
    if (n->b) FRIT_TRY(frit_eval(r, n->b, s, &start));
    if (n->c) FRIT_TRY(frit_eval(r, n->c, s, &stop));
    if (n->d) FRIT_TRY(frit_eval(r, n->d, s, &step));
    return frit_var_slice(r, v, start, stop, step, out);
}

static frit_status eval_pair(run *r, const node *n, scope *s, value *out)
{
    value a, b;
    FRIT_TRY(frit_eval(r, n->a, s, &a));
    FRIT_TRY(frit_eval(r, n->b, s, &b));
    return n->kind == NODE_ITEM ? frit_var_item(r, a, b, out) : frit_eval_binary(r, n->op, a, b, out);
}

static frit_status eval_node(run *r, const node *n, scope *s, value *out)
{
    value v;
    switch (n->kind) {
    case NODE_CONST:
        *out = n->constant;
        return FRIT_OK;
    case NODE_NAME:
        return eval_name(r, n, s, out);
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_items(r, n, s, out);
    case NODE_DICT:
        return eval_dict(r, n, s, out);
    case NODE_CONDITION:
        return eval_condition(r, n, s, out);
    case NODE_OR:
    case NODE_AND:
    case NODE_NOT:
        return eval_logic(r, n, s, out);
    case NODE_COMPARE:
        return eval_comparison(r, n, s, out);
    case NODE_BINARY:
    case NODE_ITEM:
        return eval_pair(r, n, s, out);
    case NODE_NEGATE:
    case NODE_PLUS:
        FRIT_TRY(frit_eval(r, n->a, s, &v));
        return eval_sign(r, n->kind == NODE_NEGATE, v, out);
    case NODE_CONCAT:
        return eval_concat(r, n, s, out);
    case NODE_FILTER:
        return eval_filter(r, n, s, out);
    case NODE_TEST:
        return eval_test(r, n, s, out);
    case NODE_ATTRIBUTE:
        FRIT_TRY(frit_eval(r, n->a, s, &v));
        return frit_var_attribute(r, v, n->text, out);
    case NODE_SLICE:
        return eval_slice(r, n, s, out);
    case NODE_CALL: {
        call c;
        FRIT_TRY(frit_eval(r, n->a, s, &v));
        FRIT_TRY(frit_eval_arguments(r, n->args, s, &c));
        return frit_eval_call(r, v, &c, out);
    }
    default:
        return frit_run_fail(r, "a statement stands where an expression belongs");
    }
}

frit_status frit_eval(run *r, const node *n, scope *s, value *out)
{
    const node *before = r->at;
    r->at = n;
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = eval_node(r, n, s, out);
    r->depth--;
    r->at = before;
    return status;
}
