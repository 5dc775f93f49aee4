// SPDX-License-Identifier: MIT
// text/template/node.h: tokens, the syntax tree, and how the parts of the interpreter call each other.
//
// Names are numbered when they are parsed (symbols), so that scopes compare integers.
#pragma once
#include "base/map.h"
#include "text/template/template.h"
#include "text/template/value.h"

// ------------------------------------------------------------------------------------- tokens

typedef enum token_type {
    TOKEN_TEXT,          // between tags, white space already trimmed
    TOKEN_OPEN_OUTPUT,   // {{
    TOKEN_CLOSE_OUTPUT,
    TOKEN_OPEN_BLOCK,   // {%
    TOKEN_CLOSE_BLOCK,
    TOKEN_NAME,
    TOKEN_STRING,   // text: unescaped
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OPERATOR,   // text: one of the operators
    TOKEN_END,
} token_type;

typedef struct token {
    token_type type;
    int line;
    frit_str text;
    int64_t i;
    double f;
} token;

typedef struct tokens {
    token *items;
    size_t n, capacity;
} tokens;

// Splits the source into tokens. Texts point into `source`, which has \n for every line end, or into the arena.
frit_status frit_template_lex(frit_str source, frit_arena *arena, tokens *out);

// ------------------------------------------------------------------------------------- nodes

typedef enum node_kind {
    // expressions
    NODE_CONST,       // value
    NODE_NAME,        // symbol
    NODE_LIST,        // items
    NODE_TUPLE,       // items
    NODE_DICT,        // items: key, value, key, value ...
    NODE_CONDITION,   // a if b else c (c may be NULL)
    NODE_OR,          // a, b
    NODE_AND,         // a, b
    NODE_NOT,         // a
    NODE_COMPARE,     // a, then items[i] by ops[i]
    NODE_BINARY,      // a op b
    NODE_NEGATE,      // -a
    NODE_PLUS,        // +a
    NODE_CONCAT,      // items
    NODE_FILTER,      // a | text(args); a is NULL in a filter block
    NODE_TEST,        // a is text(args)
    NODE_ATTRIBUTE,   // a.text
    NODE_ITEM,        // a[b]
    NODE_SLICE,       // a[b:c:d]
    NODE_CALL,        // a(args)
    NODE_NS_TARGET,   // symbol.text on the left of `set`
    // statements
    NODE_TEXT,           // text
    NODE_OUTPUT,         // a
    NODE_IF,             // a: test; body; otherwise
    NODE_FOR,            // for a in b if c; body; otherwise
    NODE_SET,            // a = b
    NODE_SET_BLOCK,      // a = body through the filters b (may be NULL)
    NODE_MACRO,          // symbol(parameters); body
    NODE_CALL_BLOCK,     // a: the call; body: a macro that the call gets as `caller`
    NODE_FILTER_BLOCK,   // body, through the filters a
    NODE_WITH,           // items: target, value, target, value ...; body
    NODE_SCOPE,          // body, with a scope of its own
    NODE_BREAK,
    NODE_CONTINUE,
} node_kind;

typedef enum operator_kind {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOOR_DIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
} operator_kind;

typedef struct node node;

typedef struct arguments {   // arguments as written
    node **positional;
    size_t n;
    frit_str *names;
    node **named;
    size_t n_named;
    node *star, *double_star;
} arguments;

struct node {
    node_kind kind;
    int line;
    node *next;   // next statement of a list
    node *a, *b, *c, *d;
    node **items;
    size_t n;
    operator_kind op;
    operator_kind *ops;
    int symbol;
    frit_str text;
    value constant;
    arguments *args;
    const void *callee;   // the filter or test, looked up once; NULL if unknown
    node *body, *otherwise;
    bool recursive;
};

struct frit_template {
    frit_arena arena;
    node *body;
    frit_map symbols;   // name -> number
    int n_symbols;
    int loop, caller, varargs, kwargs;   // symbols that the language itself sets
    bool may_change;                     // append and pop may change lists
};

// ------------------------------------------------------------------------------------- parsing

typedef struct parser {
    struct frit_template *template;
    frit_arena *arena;
    const token *at;
    int depth;
} parser;

frit_status frit_parse_expression(parser *p, node **out);
frit_status frit_parse_tuple(parser *p, bool with_condition, bool parenthesized,
                             node **out);   // an expression, or several with commas
frit_status frit_parse_filters(parser *p, node *input, bool bare, node **out);   // `bare`: the first filter has no |
                                                                                 // before it
frit_status frit_parse_target(parser *p, bool with_namespace, node **out);
frit_status frit_parse_symbol(parser *p, frit_str name, int *symbol);
frit_status frit_parse_fail(const parser *p, const char *what);           // "..., found 'x'"
node *frit_parse_node(parser *p, node_kind kind);                         // NULL: out of memory
frit_status frit_parse_push(parser *p, node *into, node *item);           // appends to into->items
bool frit_parse_is(const parser *p, token_type type, const char *text);   // text NULL: any
bool frit_parse_skip(parser *p, token_type type, const char *text);
frit_status frit_parse_expect(parser *p, token_type type, const char *text);
frit_status frit_parse_enter(parser *p);   // the caller undoes it by `p->depth--`

// ------------------------------------------------------------------------------------- running

typedef struct scope {   // names that a part of a template sees
    struct scope *parent;
    struct variable {
        int symbol;
        value value;
    } * variables;
    size_t n, capacity;
} scope;

typedef struct loop {
    list *items;
    size_t index;
    int depth;
    const node *node;   // for loop(...) of a recursive loop
    scope *outer;
    value last_changed;
} loop;

typedef struct cycler {
    list *items;
    size_t at;
} cycler;

typedef struct macro {
    const node *node;   // parameters: items, name and default alternating (default may be NULL)
    frit_str name;
    scope *outer;
    value caller;   // of a call block's body: undefined
} macro;

typedef struct call {   // a call with its arguments evaluated
    value *positional;
    size_t n;
    frit_str *names;
    value *named;
    size_t n_named;
    scope *scope;   // the scope of the caller
} call;

// Argument i, or the argument with this name; false if it is not given.
bool frit_call_argument(const call *c, size_t i, const char *name, value *out);
// Fails if there are more positional arguments than `most`, or a name that is not in `names` (separated by spaces).
frit_status frit_call_check(run *r, const char *callee, const call *c, size_t most, const char *names);

frit_status frit_eval(run *r, const node *n, scope *s, value *out);
frit_status frit_eval_arguments(run *r, const arguments *args, scope *s, call *out);
frit_status frit_eval_call(run *r, value callee, const call *c, value *out);
frit_status frit_eval_filters(run *r, const node *filter, value input, scope *s, value *out);
frit_status frit_eval_binary(run *r, operator_kind op, value a, value b, value *out);
frit_status frit_eval_compare(run *r, operator_kind op, value a, value b, bool *out);
frit_status frit_run_body(run *r, const node *body, scope *s);
frit_status frit_run_captured(run *r, const node *body, scope *s, value *out);   // the output of the body as text
frit_status frit_run_macro(run *r, const macro *m, const call *c, value *out);
frit_status frit_run_loop(run *r, const node *n, scope *outer, value items, int depth);
frit_status frit_assign(run *r, const node *target, value v, scope *s);
frit_status frit_scope_set(run *r, scope *s, int symbol, value v);
bool frit_scope_get(run *r, const scope *s, int symbol, value *out);
frit_status frit_loop_attribute(run *r, const loop *l, frit_str name, value *out);

// Filters, tests, methods and functions that templates may call: rows of tables.
typedef struct filter {
    const char *name;
    frit_status (*apply)(run *r, value input, const call *c, value *out);
    const char *arguments;   // names in order, separated by spaces
    int most;                // positional arguments; -1: the filter checks them itself
} filter;
typedef struct test {
    const char *name;
    frit_status (*holds)(run *r, value input, const call *c, bool *out);
    int n_arguments;
} test;
typedef struct function {
    const char *name;
    frit_status (*call)(run *r, const call *c, value *out);
} function;
typedef struct method_row {
    const char *name;
    frit_status (*call)(run *r, value self, const call *c,
                        value *out);   // NULL: forbidden, because it would change self
    int most;
    const char *arguments;
} method_row;
typedef struct method {   // a method bound to its object
    const method_row *row;
    value self;
} method;

const filter *frit_filter_find(frit_str name);
const test *frit_test_find(frit_str name);
frit_status frit_functions_define(run *r, scope *s);   // the globals
// methods.c: arguments of methods, by position or name. Optional ones have a fallback.
value frit_call_optional(const call *c, size_t i, const char *name, value fallback);
frit_status frit_call_text(run *r, const call *c, size_t i, const char *name, frit_str *out);
frit_status frit_call_int(run *r, const call *c, size_t i, const char *name, int64_t fallback, int64_t *out);
const method_row *frit_text_method_find(frit_str name);   // text_methods.c
const method_row *frit_method_find(value self, frit_str name);
const method_row *frit_method_find_changing(value self, frit_str name);   // of the methods that may_change allows
extern const method_row frit_joiner_method;

frit_status frit_apply_filter(run *r, const filter *f, value input, const call *c, value *out);
frit_status frit_apply_test(run *r, const test *t, value input, const call *c, bool *out);
frit_status frit_text_format(run *r, frit_str format, const call *c, value *out);      // str.format
frit_status frit_text_percent(run *r, frit_str format, value arguments, value *out);   // str % arguments
frit_status frit_text_strip(run *r, value text, value characters, bool left, bool right, value *out);
frit_status frit_text_replace(run *r, frit_str text, frit_str from, frit_str to, int64_t most, value *out);
frit_status frit_text_case(run *r, frit_str text, int how, value *out);   // one of CASE_*
enum { CASE_LOWER, CASE_UPPER, CASE_TITLE, CASE_CAPITALIZE, CASE_SWAP, CASE_WORDS };
frit_status frit_text_lines(run *r, frit_str text, bool keep_ends, value *out);   // str.splitlines
size_t frit_text_find(frit_str text, frit_str part, size_t from);                 // text.len + 1 if not found
frit_status frit_text_pad(run *r, frit_str text, int64_t width, char how, frit_str fill,
                          value *out);   // how: '<', '>', '^'
frit_status frit_text_join(run *r, frit_str glue, const list *items, bool only_text, value *out);
