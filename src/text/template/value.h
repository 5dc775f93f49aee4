// SPDX-License-Identifier: MIT
// text/template/value.h: the values of a running template. They behave and print like Python's values.
//
// Values are small and copied. Data that they point to lives in the arena of the render and does not change once a
// template can see it (except in namespaces). Text is UTF-8; indices count characters.
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "text/template/writer.h"

#include <jansson.h>
#include <time.h>

typedef enum value_type {
    VALUE_UNDEFINED,   // text: the name of the undefined value, for messages
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_VIEW,        // keys, values or items of a dictionary: may be iterated and counted
    VALUE_GENERATOR,   // the result of map, select and similar filters: may only be iterated
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_LOOP,
    VALUE_CYCLER,
    VALUE_MACRO,
    VALUE_METHOD,
    VALUE_FUNCTION,
    VALUE_FORBIDDEN,   // an attribute that the sandbox hides; text: its name
} value_type;

typedef struct value {
    value_type type;
    bool safe;   // text that needs no HTML escapes; text that is joined to it is escaped
    union {
        bool b;
        int64_t i;
        double f;
        frit_str text;
        struct list *list;
        struct dict *dict;   // also for a namespace
        struct loop *loop;
        struct cycler *cycler;
        const struct macro *macro;
        const struct method *method;
        const struct function *function;
    };
} value;

typedef struct list {
    value *items;
    size_t n, capacity;
    const char *view;     // "dict_items", ...
    const char *fields;   // names of a tuple's items, separated by spaces; or NULL
} list;

typedef struct dict {   // in the order of insertion
    value *keys, *values;
    size_t n, capacity;
} dict;

// One run of a template: memory, limits, and the state of loop controls.
typedef struct run {
    frit_arena arena;
    const struct node *at;   // the node that is evaluated, for messages
    int64_t n_steps, max_steps;
    int depth;
    const struct tm *now;
    struct scope *globals;
    writer *out;
    origin origin;
    const struct frit_template *template;
    bool breaks, continues;   // a loop control that has not reached its loop yet
} run;

// The limits together refuse a template within a second and 100 MB (tests/text/limits_test.c).
enum {
    MAX_STEPS = 20 * 1000 * 1000,
    MAX_DEPTH = 600,
    MAX_BYTES = 56 << 20,    // of the arena
    MAX_OUTPUT = 16 << 20,   // and of any intermediate text
    MAX_RANGE = 100000,
    MAX_SOURCE = 2 << 20,   // published templates have 40 KB at most
    MAX_TOKENS = 500000,
};

// Counts steps. Every loop over a value that a template made calls it.
frit_status frit_run_step(run *r, size_t n);
frit_status frit_run_enter(run *r);   // one level deeper; the caller undoes it by `r->depth--`, also after a failure
void frit_run_fail_say(const run *r, const char *format, ...) FRIT_PRINTF(2, 3);
#define frit_run_fail(r, ...) (frit_run_fail_say((r), __VA_ARGS__), FRIT_E_INVALID)
void *frit_run_alloc(run *r, size_t n, size_t size);   // NULL beyond the limits
frit_status frit_run_memory(run *r);                   // the failure after a NULL of frit_run_alloc

// Constructors.
static inline value frit_var_undefined(const char *what)
{
    return (value){.type = VALUE_UNDEFINED, .text = frit_str_of(what)};
}

static inline value frit_var_none(void)
{
    return (value){.type = VALUE_NONE};
}

static inline value frit_var_bool(bool b)
{
    return (value){.type = VALUE_BOOL, .b = b};
}

static inline value frit_var_int(int64_t i)
{
    return (value){.type = VALUE_INT, .i = i};
}

static inline value frit_var_float(double f)
{
    return (value){.type = VALUE_FLOAT, .f = f};
}

static inline value frit_var_text(frit_str text)   // borrows
{
    return (value){.type = VALUE_TEXT, .text = text};
}

frit_status frit_var_new_list(run *r, value_type type, value *out);
frit_status frit_var_new_dict(run *r, value_type type, value *out);
frit_status frit_list_push(run *r, list *items, value item);
frit_status frit_dict_put(run *r, dict *d, value key, value item);   // replaces an equal key's value
// `key` is the name of the variable or member; empty in lists. Texts are borrowed, or copied if origins are on.
frit_status frit_var_from_json(run *r, frit_str key, const json_t *json, value *out);

// Queries.
const char *frit_var_type_name(value v);   // Python's: "str", "dict", ...
bool frit_var_is_true(value v);
static inline bool frit_var_is_list(value v)
{
    return v.type == VALUE_LIST || v.type == VALUE_TUPLE || v.type == VALUE_VIEW || v.type == VALUE_GENERATOR;
}
static inline bool frit_var_is_number(value v)
{
    return v.type == VALUE_INT || v.type == VALUE_FLOAT || v.type == VALUE_BOOL;
}
static inline bool frit_var_is_integral(value v)
{
    return v.type == VALUE_INT || v.type == VALUE_BOOL;
}
int64_t frit_var_as_int(value v);    // of an INT or BOOL
double frit_var_as_float(value v);   // of a number
frit_status frit_var_equal(run *r, value a, value b, bool *equal);
frit_status frit_var_less(run *r, value a, value b, bool *less);
frit_status frit_var_contains(run *r, value container, value item, bool *found);
frit_status frit_var_length(run *r, value v, int64_t *length);
// The items that a loop iterates over: items of lists, keys of dicts, characters of text; nothing for undefined.
frit_status frit_var_iterate(run *r, value v, list **items);
frit_status frit_dict_find(run *r, const dict *d, value key, value **found);   // *found = NULL if absent
value *frit_dict_find_text(const dict *d, frit_str key);

// Python's attribute and item access, with the sandbox's rules. An absent attribute or item is undefined, not a
// failure.
frit_status frit_var_attribute(run *r, value v, frit_str name, value *out);
frit_status frit_var_item(run *r, value v, value key, value *out);
frit_status frit_var_slice(run *r, value v, value start, value stop, value step, value *out);

// Text (print.c, json.c).
frit_status frit_var_print(run *r, value v, writer *out);    // str()
frit_status frit_var_repr(run *r, value v, writer *out);     // repr()
frit_status frit_var_to_text(run *r, value v, value *out);   // str() as a value; text stays unchanged
void frit_print_float(double f, writer *out);
void frit_print_escaped(frit_str text, writer *out);   // & < > " ' become HTML entities
typedef struct json_style {
    bool ascii, sort_keys;
    frit_str indent;   // ptr NULL: one line
    frit_str item_separator, key_separator;
} json_style;
frit_status frit_var_to_json(run *r, value v, const json_style *style, writer *out);

// Characters of a text.
size_t frit_text_length(frit_str text);
size_t frit_text_offset(frit_str text, size_t n_characters);    // of the n-th character
bool frit_is_space_at(frit_str text, size_t at, size_t *len);   // true for white space of any script; *len: its bytes
