// SPDX-License-Identifier: MIT
// Constructs, compares and iterates values; checks the limits of a run.
#include "text/template/value.h"

#include "base/number.h"
#include "base/utf8.h"
#include "text/template/node.h"

#include <math.h>
#include <stdio.h>

// ------------------------------------------------------------------------------------- limits

frit_status frit_run_step(run *r, size_t n)
{
    r->n_steps += n > MAX_STEPS ? MAX_STEPS : (int64_t)n;
    if (r->n_steps <= r->max_steps) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "chat template, line %d: takes more than %lld steps", r->at ? r->at->line : 0,
                     (long long)r->max_steps);
}

frit_status frit_run_enter(run *r)
{
    if (++r->depth <= MAX_DEPTH) return frit_run_step(r, 1);
    return frit_fail(FRIT_E_LIMIT, "chat template, line %d: nested more than %d levels deep", r->at ? r->at->line : 0,
                     MAX_DEPTH);
}

void frit_run_fail_say(const run *r, const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    frit_vformat(reason, sizeof reason, format, args);
    va_end(args);
    frit_fail_say("chat template, line %d: %s", r->at ? r->at->line : 0, reason);
}

void *frit_run_alloc(run *r, size_t n, size_t size)
{
    if (size != 0 && n > MAX_BYTES / size) return NULL;
    if (r->arena.n_bytes > MAX_BYTES - n * size) return NULL;
    return frit_arena_alloc(&r->arena, n, size);
}

frit_status frit_run_memory(run *r)
{
    return frit_fail(frit_arena_failed(&r->arena) ? FRIT_E_MEMORY : FRIT_E_LIMIT,
                     "chat template, line %d: needs more than %d MiB of memory", r->at ? r->at->line : 0,
                     MAX_BYTES >> 20);
}

// ------------------------------------------------------------------------------------- building

frit_status frit_var_new_list(run *r, value_type type, value *out)
{
    *out = (value){.type = type, .list = frit_run_alloc(r, 1, sizeof(list))};
    return out->list ? FRIT_OK : frit_run_memory(r);
}

frit_status frit_var_new_dict(run *r, value_type type, value *out)
{
    *out = (value){.type = type, .dict = frit_run_alloc(r, 1, sizeof(dict))};
    return out->dict ? FRIT_OK : frit_run_memory(r);
}

// Copies an array into a larger one; the arena keeps the old one.
static value *enlarge(run *r, const value *items, size_t n, size_t capacity)
{
    value *larger = frit_run_alloc(r, capacity, sizeof *larger);
    if (larger && n > 0) memcpy(larger, items, n * sizeof *larger);
    return larger;
}

frit_status frit_list_push(run *r, list *items, value item)
{
    if (items->n == items->capacity) {
        size_t capacity = items->capacity ? items->capacity * 2 : 4;
        value *larger = enlarge(r, items->items, items->n, capacity);
        if (!larger) return frit_run_memory(r);
        items->items = larger;
        items->capacity = capacity;
    }
    items->items[items->n++] = item;
    return FRIT_OK;
}

static bool is_hashable(value v)
{
    return v.type != VALUE_LIST && v.type != VALUE_DICT;
}

frit_status frit_dict_put(run *r, dict *d, value key, value item)
{
    if (!is_hashable(key)) return frit_run_fail(r, "unhashable type: '%s'", frit_var_type_name(key));
    value *found;
    FRIT_TRY(frit_dict_find(r, d, key, &found));
    if (found) {
        *found = item;
        return FRIT_OK;
    }
    if (d->n == d->capacity) {
        size_t capacity = d->capacity ? d->capacity * 2 : 4;
        value *keys = enlarge(r, d->keys, d->n, capacity);
        value *values = keys ? enlarge(r, d->values, d->n, capacity) : NULL;
        if (!values) return frit_run_memory(r);
        d->keys = keys;
        d->values = values;
        d->capacity = capacity;
    }
    d->keys[d->n] = key;
    d->values[d->n++] = item;
    return FRIT_OK;
}

// True for roles of messages, which count as the template's own text because some templates write "<|" + role + "|>".
static bool is_known_role(frit_str key, frit_str text)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    bool known = false;
    for (size_t i = 0; i < FRIT_COUNT(roles) && frit_str_is(key, "role"); i++)
        known = known || frit_str_is(text, roles[i]);
    return known;
}

// Without origins texts are borrowed.
static frit_status text_from_json(run *r, frit_str key, frit_str text, value *out)
{
    if (r->origin.on && !is_known_role(key, text)) return frit_origin_copy(r, text, out);
    *out = frit_var_text(text);
    return FRIT_OK;
}

static frit_status dict_from_json(run *r, const json_t *json, value *out)
{
    FRIT_TRY(frit_var_new_dict(r, VALUE_DICT, out));
    dict *d = out->dict;
    d->capacity = json_object_size(json);
    d->keys = frit_run_alloc(r, d->capacity, sizeof *d->keys);
    d->values = frit_run_alloc(r, d->capacity, sizeof *d->values);
    if (!d->keys || !d->values) return frit_run_memory(r);
    for (void *it = json_object_iter((json_t *)json); it; it = json_object_iter_next((json_t *)json, it)) {
        const frit_str key = {json_object_iter_key(it), json_object_iter_key_len(it)};
        FRIT_TRY(text_from_json(r, (frit_str){"", 0}, key, &d->keys[d->n]));   // JSON objects have no equal keys
        FRIT_TRY(frit_var_from_json(r, key, json_object_iter_value(it), &d->values[d->n]));
        d->n++;
    }
    return FRIT_OK;
}

static frit_status convert_json(run *r, frit_str key, const json_t *json, value *out)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return dict_from_json(r, json, out);
    case JSON_ARRAY:
        FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
        for (size_t i = 0; i < json_array_size(json); i++) {
            value item;
            FRIT_TRY(frit_var_from_json(r, (frit_str){"", 0}, json_array_get(json, i), &item));
            FRIT_TRY(frit_list_push(r, out->list, item));
        }
        return FRIT_OK;
    case JSON_STRING:
        return text_from_json(r, key, (frit_str){json_string_value(json), json_string_length(json)}, out);
    case JSON_INTEGER:
        *out = frit_var_int(json_integer_value(json));
        return FRIT_OK;
    case JSON_REAL:
        *out = frit_var_float(json_real_value(json));
        return FRIT_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = frit_var_bool(json_is_true(json));
        return FRIT_OK;
    case JSON_NULL:
        break;
    }
    *out = frit_var_none();
    return FRIT_OK;
}

frit_status frit_var_from_json(run *r, frit_str key, const json_t *json, value *out)
{
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = convert_json(r, key, json, out);
    r->depth--;
    return status;
}

// ------------------------------------------------------------------------------------- questions

const char *frit_var_type_name(value v)
{
    static const char *const names[] = {"Undefined",   "NoneType", "bool",      "int",       "float",    "str",
                                        "list",        "tuple",    "dict view", "generator", "dict",     "Namespace",
                                        "LoopContext", "Cycler",   "Macro",     "method",    "function", "Undefined"};
    return names[v.type];
}

bool frit_var_is_true(value v)
{
    switch (v.type) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
    case VALUE_FORBIDDEN:
        return false;
    case VALUE_BOOL:
        return v.b;
    case VALUE_INT:
        return v.i != 0;
    case VALUE_FLOAT:
        return v.f != 0;
    case VALUE_TEXT:
        return v.text.len > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        return v.list->n > 0;
    case VALUE_DICT:
        return v.dict->n > 0;
    default:
        return true;
    }
}

int64_t frit_var_as_int(value v)
{
    return v.type == VALUE_BOOL ? v.b : v.i;
}

double frit_var_as_float(value v)
{
    return v.type == VALUE_FLOAT ? v.f : (double)frit_var_as_int(v);
}

static bool is_undefined(value v)
{
    return v.type == VALUE_UNDEFINED || v.type == VALUE_FORBIDDEN;
}

static frit_status lists_equal(run *r, const list *a, const list *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n; i++) FRIT_TRY(frit_var_equal(r, a->items[i], b->items[i], equal));
    return FRIT_OK;
}

static frit_status dicts_equal(run *r, const dict *a, const dict *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n; i++) {
        value *other;
        FRIT_TRY(frit_dict_find(r, b, a->keys[i], &other));
        *equal = other != NULL;
        if (other) FRIT_TRY(frit_var_equal(r, a->values[i], *other, equal));
    }
    return FRIT_OK;
}

static frit_status compare_equal(run *r, value a, value b, bool *equal)
{
    *equal = false;
    if (frit_var_is_number(a) && frit_var_is_number(b)) {
        *equal = frit_var_is_integral(a) && frit_var_is_integral(b) ? frit_var_as_int(a) == frit_var_as_int(b)
                                                                    : frit_var_as_float(a) == frit_var_as_float(b);
        return FRIT_OK;
    }
    if (is_undefined(a) || is_undefined(b)) {
        *equal = is_undefined(a) && is_undefined(b);
        return FRIT_OK;
    }
    if (a.type != b.type) return FRIT_OK;
    switch (a.type) {
    case VALUE_NONE:
        *equal = true;
        return FRIT_OK;
    case VALUE_TEXT:
        *equal = a.text.len == b.text.len && memcmp(a.text.ptr, b.text.ptr, a.text.len) == 0;
        return frit_run_step(r, a.text.len / 64);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return lists_equal(r, a.list, b.list, equal);
    case VALUE_DICT:
        return dicts_equal(r, a.dict, b.dict, equal);
    default:
        *equal = a.list == b.list;   // all other types: identical objects are equal
        return FRIT_OK;
    }
}

frit_status frit_var_equal(run *r, value a, value b, bool *equal)
{
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = compare_equal(r, a, b, equal);
    r->depth--;
    return status;
}

static bool text_less(frit_str a, frit_str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order < 0 || (order == 0 && a.len < b.len);
}

static frit_status compare_less(run *r, value a, value b, bool *less)
{
    if (frit_var_is_number(a) && frit_var_is_number(b)) {
        *less = frit_var_is_integral(a) && frit_var_is_integral(b) ? frit_var_as_int(a) < frit_var_as_int(b)
                                                                   : frit_var_as_float(a) < frit_var_as_float(b);
        return FRIT_OK;
    }
    if (a.type == VALUE_TEXT && b.type == VALUE_TEXT) {
        *less = text_less(a.text, b.text);
        return frit_run_step(r, a.text.len / 64);
    }
    if (a.type == b.type && (a.type == VALUE_LIST || a.type == VALUE_TUPLE)) {
        for (size_t i = 0; i < a.list->n && i < b.list->n; i++) {
            bool equal = false;
            FRIT_TRY(frit_var_equal(r, a.list->items[i], b.list->items[i], &equal));
            if (!equal) return frit_var_less(r, a.list->items[i], b.list->items[i], less);
        }
        *less = a.list->n < b.list->n;
        return FRIT_OK;
    }
    if (is_undefined(a) || is_undefined(b))
        return frit_run_fail(r, "%.*s is undefined", (int)(is_undefined(a) ? a : b).text.len,
                             (is_undefined(a) ? a : b).text.ptr);
    return frit_run_fail(r, "'<' not supported between instances of '%s' and '%s'", frit_var_type_name(a),
                         frit_var_type_name(b));
}

frit_status frit_var_less(run *r, value a, value b, bool *less)
{
    frit_status status = frit_run_enter(r);
    if (status == FRIT_OK) status = compare_less(r, a, b, less);
    r->depth--;
    return status;
}

value *frit_dict_find_text(const dict *d, frit_str key)
{
    for (size_t i = 0; i < d->n; i++) {
        const value *k = &d->keys[i];
        if (k->type == VALUE_TEXT && k->text.len == key.len && memcmp(k->text.ptr, key.ptr, key.len) == 0)
            return &d->values[i];
    }
    return NULL;
}

frit_status frit_dict_find(run *r, const dict *d, value key, value **found)
{
    *found = NULL;
    FRIT_TRY(frit_run_step(r, d->n / 4));
    if (key.type == VALUE_TEXT) {
        *found = frit_dict_find_text(d, key.text);
        return FRIT_OK;
    }
    for (size_t i = 0; i < d->n; i++) {
        bool equal = false;
        FRIT_TRY(frit_var_equal(r, d->keys[i], key, &equal));
        if (!equal) continue;
        *found = &d->values[i];
        return FRIT_OK;
    }
    return FRIT_OK;
}

frit_status frit_var_contains(run *r, value container, value item, bool *found)
{
    *found = false;
    if (container.type == VALUE_TEXT) {
        if (item.type != VALUE_TEXT)
            return frit_run_fail(r, "'in <string>' requires string as left operand, not %s", frit_var_type_name(item));
        FRIT_TRY(frit_run_step(r, (container.text.len / 16) * (item.text.len / 16 + 1)));
        *found = frit_text_find(container.text, item.text, 0) <= container.text.len;
        return FRIT_OK;
    }
    if (container.type == VALUE_DICT) {
        if (!is_hashable(item)) return frit_run_fail(r, "unhashable type: '%s'", frit_var_type_name(item));
        value *at;
        FRIT_TRY(frit_dict_find(r, container.dict, item, &at));
        *found = at != NULL;
        return FRIT_OK;
    }
    if (frit_var_is_list(container)) {
        for (size_t i = 0; !*found && i < container.list->n; i++)
            FRIT_TRY(frit_var_equal(r, container.list->items[i], item, found));
        return FRIT_OK;
    }
    if (container.type == VALUE_UNDEFINED) return FRIT_OK;
    return frit_run_fail(r, "argument of type '%s' is not iterable", frit_var_type_name(container));
}

frit_status frit_var_length(run *r, value v, int64_t *length)
{
    switch (v.type) {
    case VALUE_TEXT:
        *length = (int64_t)frit_text_length(v.text);
        return frit_run_step(r, v.text.len / 64);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        *length = (int64_t)v.list->n;
        return FRIT_OK;
    case VALUE_DICT:
        *length = (int64_t)v.dict->n;
        return FRIT_OK;
    case VALUE_UNDEFINED:
        *length = 0;
        return FRIT_OK;
    default:
        return frit_run_fail(r, "object of type '%s' has no len()", frit_var_type_name(v));
    }
}

static frit_status characters(run *r, frit_str text, list *items)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        if (n < 1) n = 1;
        FRIT_TRY(frit_list_push(r, items, frit_var_text((frit_str){text.ptr + i, (size_t)n})));
        i += (size_t)n;
    }
    return frit_run_step(r, text.len);
}

frit_status frit_var_iterate(run *r, value v, list **items)
{
    if (frit_var_is_list(v)) {
        *items = v.list;
        return frit_run_step(r, v.list->n);
    }
    value made;
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &made));
    *items = made.list;
    if (v.type == VALUE_DICT) {
        for (size_t i = 0; i < v.dict->n; i++) FRIT_TRY(frit_list_push(r, made.list, v.dict->keys[i]));
        return frit_run_step(r, v.dict->n);
    }
    if (v.type == VALUE_TEXT) return characters(r, v.text, made.list);
    if (v.type == VALUE_UNDEFINED) return FRIT_OK;
    return frit_run_fail(r, "'%s' object is not iterable", frit_var_type_name(v));
}

// ------------------------------------------------------------------------------------- characters

size_t frit_text_length(frit_str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

size_t frit_text_offset(frit_str text, size_t n_characters)
{
    size_t i = 0;
    for (; i < text.len; i++) {
        if (((unsigned char)text.ptr[i] & 0xc0) == 0x80) continue;
        if (n_characters-- == 0) break;
    }
    return i;
}

bool frit_is_space_at(frit_str text, size_t at, size_t *len)
{
    uint32_t c;
    int n = frit_utf8_decode(text.ptr + at, text.len - at, &c);
    if (n < 1) return false;
    *len = (size_t)n;
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
