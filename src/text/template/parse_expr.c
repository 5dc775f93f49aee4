// SPDX-License-Identifier: MIT
// Expressions, by recursive descent. From loose to tight:
//
//     a if b else c   or   and   not   == < in ...   + -   ~   * / // %   **   - +   .x [x] (...)   |filter is test
#include "text/template/node.h"

enum { MAX_PARSE_DEPTH = 200 };

frit_status frit_parse_enter(parser *p)
{
    if (++p->depth <= MAX_PARSE_DEPTH) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "chat template, line %d: nested more than %d levels deep", p->at->line,
                     MAX_PARSE_DEPTH);
}

// ------------------------------------------------------------------------------------- helpers

static bool is_operator(const parser *p, const char *text)
{
    return frit_parse_is(p, TOKEN_OPERATOR, text);
}

static frit_status make(parser *p, node_kind kind, node **out)
{
    *out = frit_parse_node(p, kind);
    return *out ? FRIT_OK : frit_fail_memory(sizeof **out, "the tree of a template");
}

static frit_status make_binary(parser *p, operator_kind op, node *a, node *b, node **out)
{
    FRIT_TRY(make(p, NODE_BINARY, out));
    (*out)->op = op;
    (*out)->a = a;
    (*out)->b = b;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- primaries

static frit_status parse_text(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_CONST, out));
    frit_buf joined = {0};
    for (; frit_parse_is(p, TOKEN_STRING, NULL); p->at++) frit_buf_append(&joined, p->at->text.ptr, p->at->text.len);
    const char *copy = joined.failed ? NULL : frit_arena_text(p->arena, joined.data ? joined.data : "", joined.len);
    (*out)->constant = frit_var_text((frit_str){copy, joined.len});
    frit_buf_free(&joined);
    return copy ? FRIT_OK : frit_fail_memory(joined.len, "a text of a template");
}

static frit_status parse_name(parser *p, node **out)
{
    frit_str name = p->at->text;
    bool yes = frit_str_is(name, "true") || frit_str_is(name, "True");
    bool no = frit_str_is(name, "false") || frit_str_is(name, "False");
    bool none = frit_str_is(name, "none") || frit_str_is(name, "None");
    FRIT_TRY(make(p, yes || no || none ? NODE_CONST : NODE_NAME, out));
    (*out)->constant = none ? frit_var_none() : frit_var_bool(yes);
    (*out)->text = name;
    p->at++;
    return (*out)->kind == NODE_NAME ? frit_parse_symbol(p, name, &(*out)->symbol) : FRIT_OK;
}

static frit_status parse_list(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_LIST, out));
    p->at++;
    while (!is_operator(p, "]")) {
        if ((*out)->n > 0) FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ","));
        if (is_operator(p, "]")) break;
        node *item;
        FRIT_TRY(frit_parse_expression(p, &item));
        FRIT_TRY(frit_parse_push(p, *out, item));
    }
    p->at++;
    return FRIT_OK;
}

static frit_status parse_dict(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_DICT, out));
    p->at++;
    while (!is_operator(p, "}")) {
        if ((*out)->n > 0) FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ","));
        if (is_operator(p, "}")) break;
        node *key, *item;
        FRIT_TRY(frit_parse_expression(p, &key));
        FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ":"));
        FRIT_TRY(frit_parse_expression(p, &item));
        FRIT_TRY(frit_parse_push(p, *out, key));
        FRIT_TRY(frit_parse_push(p, *out, item));
    }
    p->at++;
    return FRIT_OK;
}

static frit_status parse_primary(parser *p, node **out)
{
    switch (p->at->type) {
    case TOKEN_NAME:
        return parse_name(p, out);
    case TOKEN_STRING:
        return parse_text(p, out);
    case TOKEN_INT:
    case TOKEN_FLOAT:
        FRIT_TRY(make(p, NODE_CONST, out));
        (*out)->constant = p->at->type == TOKEN_INT ? frit_var_int(p->at->i) : frit_var_float(p->at->f);
        p->at++;
        return FRIT_OK;
    default:
        break;
    }
    if (is_operator(p, "[")) return parse_list(p, out);
    if (is_operator(p, "{")) return parse_dict(p, out);
    if (!frit_parse_skip(p, TOKEN_OPERATOR, "(")) return frit_parse_fail(p, "an expression is expected");
    FRIT_TRY(frit_parse_tuple(p, true, true, out));
    return frit_parse_expect(p, TOKEN_OPERATOR, ")");
}

// ------------------------------------------------------------------------------------- calls and subscripts

static frit_status push_named(parser *p, arguments *args, frit_str name, node *item)
{
    // Grown by doubling at powers of two; the arena keeps the old copies.
    if ((args->n_named & (args->n_named - 1)) == 0) {
        size_t capacity = args->n_named ? args->n_named * 2 : 1;
        frit_str *names = frit_arena_new(p->arena, frit_str, capacity);
        node **named = frit_arena_new(p->arena, node *, capacity);
        if (!names || !named) return frit_fail_memory(capacity * sizeof *names, "the tree of a template");
        for (size_t i = 0; i < args->n_named; i++) names[i] = args->names[i], named[i] = args->named[i];
        args->names = names;
        args->named = named;
    }
    args->names[args->n_named] = name;
    args->named[args->n_named++] = item;
    return FRIT_OK;
}

static frit_status parse_argument(parser *p, arguments *args, node *positional)
{
    node *item;
    if (is_operator(p, "*") && !args->star && !args->double_star) {
        p->at++;
        return frit_parse_expression(p, &args->star);
    }
    if (is_operator(p, "**") && !args->double_star) {
        p->at++;
        return frit_parse_expression(p, &args->double_star);
    }
    if (frit_parse_is(p, TOKEN_NAME, NULL) && p->at[1].type == TOKEN_OPERATOR && frit_str_is(p->at[1].text, "=")) {
        frit_str name = p->at->text;
        p->at += 2;
        FRIT_TRY(frit_parse_expression(p, &item));
        return push_named(p, args, name, item);
    }
    if (args->n_named > 0 || args->star || args->double_star)
        return frit_parse_fail(p, "a positional argument follows a named one");
    FRIT_TRY(frit_parse_expression(p, &item));
    return frit_parse_push(p, positional, item);
}

static frit_status parse_arguments(parser *p, arguments **out)
{
    node *positional;
    FRIT_TRY(make(p, NODE_LIST, &positional));
    arguments *args = *out = frit_arena_new(p->arena, arguments, 1);
    if (!args) return frit_fail_memory(sizeof *args, "the tree of a template");
    FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, "("));
    bool first = true;
    while (!is_operator(p, ")")) {
        if (!first) FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ","));
        if (is_operator(p, ")")) break;
        FRIT_TRY(parse_argument(p, args, positional));
        first = false;
    }
    p->at++;
    args->positional = positional->items;
    args->n = positional->n;
    return FRIT_OK;
}

static frit_status parse_call(parser *p, node *callee, node **out)
{
    FRIT_TRY(make(p, NODE_CALL, out));
    (*out)->a = callee;
    return parse_arguments(p, &(*out)->args);
}

// Parses the inside of brackets: x or x:y:z, in which every part may be left out.
static frit_status parse_subscript(parser *p, node *of, node **out)
{
    node *start = NULL;
    if (!is_operator(p, ":")) {
        FRIT_TRY(frit_parse_tuple(p, true, false, &start));
        if (!is_operator(p, ":")) {
            FRIT_TRY(make(p, NODE_ITEM, out));
            (*out)->a = of;
            (*out)->b = start;
            return FRIT_OK;
        }
    }
    FRIT_TRY(make(p, NODE_SLICE, out));
    (*out)->a = of;
    (*out)->b = start;
    p->at++;
    if (!is_operator(p, ":") && !is_operator(p, "]")) FRIT_TRY(frit_parse_expression(p, &(*out)->c));
    if (frit_parse_skip(p, TOKEN_OPERATOR, ":") && !is_operator(p, "]")) FRIT_TRY(frit_parse_expression(p, &(*out)->d));
    return FRIT_OK;
}

static frit_status parse_dot(parser *p, node *of, node **out)
{
    if (frit_parse_is(p, TOKEN_INT, NULL)) {
        FRIT_TRY(make(p, NODE_ITEM, out));
        (*out)->a = of;
        return parse_primary(p, &(*out)->b);
    }
    if (!frit_parse_is(p, TOKEN_NAME, NULL)) return frit_parse_fail(p, "a name is expected after the dot");
    FRIT_TRY(make(p, NODE_ATTRIBUTE, out));
    (*out)->a = of;
    (*out)->text = p->at++->text;
    return FRIT_OK;
}

static frit_status parse_postfix(parser *p, node **n)
{
    for (;;) {
        if (frit_parse_skip(p, TOKEN_OPERATOR, ".")) {
            FRIT_TRY(parse_dot(p, *n, n));
        } else if (frit_parse_skip(p, TOKEN_OPERATOR, "[")) {
            FRIT_TRY(parse_subscript(p, *n, n));
            FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, "]"));
        } else if (is_operator(p, "(")) {
            FRIT_TRY(parse_call(p, *n, n));
        } else {
            return FRIT_OK;
        }
    }
}

// ------------------------------------------------------------------------------------- filters and tests

static frit_status parse_filter(parser *p, node *input, node **out)
{
    FRIT_TRY(make(p, NODE_FILTER, out));
    (*out)->a = input;
    (*out)->text = p->at->text;
    FRIT_TRY(frit_parse_expect(p, TOKEN_NAME, NULL));
    (*out)->callee = frit_filter_find((*out)->text);
    return is_operator(p, "(") ? parse_arguments(p, &(*out)->args) : FRIT_OK;
}

frit_status frit_parse_filters(parser *p, node *input, bool bare, node **out)
{
    *out = input;
    if (bare) FRIT_TRY(parse_filter(p, input, out));
    while (frit_parse_skip(p, TOKEN_OPERATOR, "|")) FRIT_TRY(parse_filter(p, *out, out));
    return FRIT_OK;
}

static bool starts_argument(const parser *p)
{
    switch (p->at->type) {
    case TOKEN_NAME:
        return !frit_parse_is(p, TOKEN_NAME, "else") && !frit_parse_is(p, TOKEN_NAME, "or") &&
               !frit_parse_is(p, TOKEN_NAME, "and");
    case TOKEN_STRING:
    case TOKEN_INT:
    case TOKEN_FLOAT:
        return true;
    default:
        return is_operator(p, "[") || is_operator(p, "{");
    }
}

// Parses the text after `is`: "defined", "not none", "divisibleby(3)", "sameas other".
static frit_status parse_test(parser *p, node *input, node **out)
{
    bool negated = frit_parse_skip(p, TOKEN_NAME, "not");
    node *n;
    FRIT_TRY(make(p, NODE_TEST, &n));
    n->a = input;
    n->text = p->at->text;
    FRIT_TRY(frit_parse_expect(p, TOKEN_NAME, NULL));
    n->callee = frit_test_find(n->text);
    if (!n->callee) return frit_parse_fail(p, "an unknown test");
    if (is_operator(p, "(")) {
        FRIT_TRY(parse_arguments(p, &n->args));
    } else if (starts_argument(p)) {
        if (frit_parse_is(p, TOKEN_NAME, "is")) return frit_parse_fail(p, "tests cannot be chained");
        node *argument, *items;
        FRIT_TRY(parse_primary(p, &argument));
        FRIT_TRY(parse_postfix(p, &argument));
        FRIT_TRY(make(p, NODE_LIST, &items));
        FRIT_TRY(frit_parse_push(p, items, argument));
        n->args = frit_arena_new(p->arena, arguments, 1);
        if (!n->args) return frit_fail_memory(sizeof *n->args, "the tree of a template");
        n->args->positional = items->items;
        n->args->n = 1;
    }
    *out = n;
    if (!negated) return FRIT_OK;
    FRIT_TRY(make(p, NODE_NOT, out));
    (*out)->a = n;
    return FRIT_OK;
}

static frit_status parse_tail(parser *p, node **n)
{
    for (;;) {
        if (is_operator(p, "|")) {
            FRIT_TRY(frit_parse_filters(p, *n, false, n));
        } else if (frit_parse_skip(p, TOKEN_NAME, "is")) {
            FRIT_TRY(parse_test(p, *n, n));
        } else if (is_operator(p, "(")) {
            FRIT_TRY(parse_call(p, *n, n));
        } else {
            return FRIT_OK;
        }
    }
}

// ------------------------------------------------------------------------------------- operators

static frit_status parse_unary(parser *p, bool with_filters, node **out)
{
    FRIT_TRY(frit_parse_enter(p));
    bool minus = is_operator(p, "-");
    if (minus || is_operator(p, "+")) {
        node *n;
        FRIT_TRY(make(p, minus ? NODE_NEGATE : NODE_PLUS, &n));
        p->at++;
        FRIT_TRY(parse_unary(p, false, &n->a));
        *out = n;
    } else {
        FRIT_TRY(parse_primary(p, out));
    }
    FRIT_TRY(parse_postfix(p, out));
    p->depth--;
    return with_filters ? parse_tail(p, out) : FRIT_OK;
}

static frit_status parse_power(parser *p, node **out)
{
    FRIT_TRY(parse_unary(p, true, out));
    while (frit_parse_skip(p, TOKEN_OPERATOR, "**")) {
        node *right;
        FRIT_TRY(parse_unary(p, true, &right));
        FRIT_TRY(make_binary(p, OP_POW, *out, right, out));
    }
    return FRIT_OK;
}

static frit_status parse_product(parser *p, node **out)
{
    static const char *const texts[] = {"*", "/", "//", "%"};
    static const operator_kind ops[] = {OP_MUL, OP_DIV, OP_FLOOR_DIV, OP_MOD};
    FRIT_TRY(parse_power(p, out));
    for (;;) {
        size_t i = 0;
        while (i < FRIT_COUNT(texts) && !is_operator(p, texts[i])) i++;
        if (i == FRIT_COUNT(texts)) return FRIT_OK;
        p->at++;
        node *right;
        FRIT_TRY(parse_power(p, &right));
        FRIT_TRY(make_binary(p, ops[i], *out, right, out));
    }
}

static frit_status parse_concat(parser *p, node **out)
{
    FRIT_TRY(parse_product(p, out));
    if (!is_operator(p, "~")) return FRIT_OK;
    node *n, *item = *out;
    FRIT_TRY(make(p, NODE_CONCAT, &n));
    FRIT_TRY(frit_parse_push(p, n, item));
    while (frit_parse_skip(p, TOKEN_OPERATOR, "~")) {
        FRIT_TRY(parse_product(p, &item));
        FRIT_TRY(frit_parse_push(p, n, item));
    }
    *out = n;
    return FRIT_OK;
}

static frit_status parse_sum(parser *p, node **out)
{
    FRIT_TRY(parse_concat(p, out));
    while (is_operator(p, "+") || is_operator(p, "-")) {
        operator_kind op = is_operator(p, "+") ? OP_ADD : OP_SUB;
        p->at++;
        node *right;
        FRIT_TRY(parse_concat(p, &right));
        FRIT_TRY(make_binary(p, op, *out, right, out));
    }
    return FRIT_OK;
}

static bool skip_comparison(parser *p, operator_kind *op)
{
    static const char *const texts[] = {"==", "!=", "<", "<=", ">", ">="};
    static const operator_kind ops[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        *op = ops[i];
        if (frit_parse_skip(p, TOKEN_OPERATOR, texts[i])) return true;
    }
    *op = OP_IN;
    if (frit_parse_skip(p, TOKEN_NAME, "in")) return true;
    *op = OP_NOT_IN;
    if (!frit_parse_is(p, TOKEN_NAME, "not") || p->at[1].type != TOKEN_NAME || !frit_str_is(p->at[1].text, "in"))
        return false;
    p->at += 2;
    return true;
}

static frit_status parse_comparison(parser *p, node **out)
{
    FRIT_TRY(parse_sum(p, out));
    operator_kind ops[32], op;
    node *n = NULL;
    while (skip_comparison(p, &op)) {
        if (!n) {
            FRIT_TRY(make(p, NODE_COMPARE, &n));
            n->a = *out;
            *out = n;
        }
        if (n->n == FRIT_COUNT(ops)) return frit_parse_fail(p, "too many comparisons in a row");
        ops[n->n] = op;
        node *right;
        FRIT_TRY(parse_sum(p, &right));
        FRIT_TRY(frit_parse_push(p, n, right));
    }
    if (!n) return FRIT_OK;
    n->ops = frit_arena_new(p->arena, operator_kind, n->n);
    if (!n->ops) return frit_fail_memory(n->n * sizeof *n->ops, "the tree of a template");
    memcpy(n->ops, ops, n->n * sizeof *ops);
    return FRIT_OK;
}

static frit_status parse_not(parser *p, node **out)
{
    if (!frit_parse_skip(p, TOKEN_NAME, "not")) return parse_comparison(p, out);
    FRIT_TRY(frit_parse_enter(p));
    node *n;
    FRIT_TRY(make(p, NODE_NOT, &n));
    FRIT_TRY(parse_not(p, &n->a));
    p->depth--;
    *out = n;
    return FRIT_OK;
}

static frit_status parse_and(parser *p, node **out)
{
    FRIT_TRY(parse_not(p, out));
    while (frit_parse_skip(p, TOKEN_NAME, "and")) {
        node *n;
        FRIT_TRY(make(p, NODE_AND, &n));
        n->a = *out;
        FRIT_TRY(parse_not(p, &n->b));
        *out = n;
    }
    return FRIT_OK;
}

static frit_status parse_or(parser *p, node **out)
{
    FRIT_TRY(parse_and(p, out));
    while (frit_parse_skip(p, TOKEN_NAME, "or")) {
        node *n;
        FRIT_TRY(make(p, NODE_OR, &n));
        n->a = *out;
        FRIT_TRY(parse_and(p, &n->b));
        *out = n;
    }
    return FRIT_OK;
}

static frit_status parse_condition(parser *p, node **out)
{
    FRIT_TRY(parse_or(p, out));
    while (frit_parse_skip(p, TOKEN_NAME, "if")) {
        node *n;
        FRIT_TRY(make(p, NODE_CONDITION, &n));
        n->a = *out;
        FRIT_TRY(parse_or(p, &n->b));
        if (frit_parse_skip(p, TOKEN_NAME, "else")) {
            FRIT_TRY(frit_parse_enter(p));
            FRIT_TRY(parse_condition(p, &n->c));
            p->depth--;
        }
        *out = n;
    }
    return FRIT_OK;
}

frit_status frit_parse_expression(parser *p, node **out)
{
    FRIT_TRY(frit_parse_enter(p));
    FRIT_TRY(parse_condition(p, out));
    p->depth--;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- tuples and targets

static bool ends_tuple(const parser *p, bool in_loop)
{
    return p->at->type == TOKEN_CLOSE_OUTPUT || p->at->type == TOKEN_CLOSE_BLOCK || is_operator(p, ")") ||
           (in_loop && frit_parse_is(p, TOKEN_NAME, "recursive"));
}

frit_status frit_parse_tuple(parser *p, bool with_condition, bool parenthesized, node **out)
{
    FRIT_TRY(frit_parse_enter(p));
    node *several = NULL;
    *out = NULL;
    do {
        if (ends_tuple(p, !with_condition)) break;
        node *item;
        FRIT_TRY(with_condition ? parse_condition(p, &item) : parse_or(p, &item));
        if (!several && is_operator(p, ",")) FRIT_TRY(make(p, NODE_TUPLE, &several));
        if (several) FRIT_TRY(frit_parse_push(p, several, item));
        if (!*out) *out = item;
    } while (frit_parse_skip(p, TOKEN_OPERATOR, ","));
    p->depth--;
    if (!*out && !parenthesized) return frit_parse_fail(p, "an expression is expected");
    if (!*out) return make(p, NODE_TUPLE, out);
    if (several) *out = several;
    return FRIT_OK;
}

static frit_status parse_one_target(parser *p, bool with_namespace, node **out)
{
    if (frit_parse_is(p, TOKEN_OPERATOR, "(")) {
        FRIT_TRY(frit_parse_enter(p));
        p->at++;
        FRIT_TRY(frit_parse_target(p, with_namespace, out));
        p->depth--;
        return frit_parse_expect(p, TOKEN_OPERATOR, ")");
    }
    if (!frit_parse_is(p, TOKEN_NAME, NULL)) return frit_parse_fail(p, "a name to assign to is expected");
    FRIT_TRY(parse_name(p, out));
    if ((*out)->kind != NODE_NAME) return frit_parse_fail(p, "a constant cannot be assigned to");
    if (!with_namespace || !frit_parse_skip(p, TOKEN_OPERATOR, ".")) return FRIT_OK;
    (*out)->kind = NODE_NS_TARGET;
    (*out)->text = p->at->text;
    return frit_parse_expect(p, TOKEN_NAME, NULL);
}

frit_status frit_parse_target(parser *p, bool with_namespace, node **out)
{
    FRIT_TRY(parse_one_target(p, with_namespace, out));
    if (!is_operator(p, ",")) return FRIT_OK;
    node *several, *item = *out;
    FRIT_TRY(make(p, NODE_TUPLE, &several));
    FRIT_TRY(frit_parse_push(p, several, item));
    while (frit_parse_skip(p, TOKEN_OPERATOR, ",") &&
           (is_operator(p, "(") || (frit_parse_is(p, TOKEN_NAME, NULL) && !frit_parse_is(p, TOKEN_NAME, "in")))) {
        FRIT_TRY(parse_one_target(p, with_namespace, &item));
        FRIT_TRY(frit_parse_push(p, several, item));
    }
    *out = several;
    return FRIT_OK;
}
