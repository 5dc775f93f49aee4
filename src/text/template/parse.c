// SPDX-License-Identifier: MIT
// Statements, and the template as a whole.
#include "text/template/node.h"

#include <stdio.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------------- helpers

bool frit_parse_is(const parser *p, token_type type, const char *text)
{
    return p->at->type == type && (!text || frit_str_is(p->at->text, text));
}

bool frit_parse_skip(parser *p, token_type type, const char *text)
{
    if (!frit_parse_is(p, type, text)) return false;
    p->at++;
    return true;
}

frit_status frit_parse_fail(const parser *p, const char *what)
{
    frit_str found = p->at->text;
    return frit_fail(FRIT_E_FORMAT, "chat template, line %d: %s, found '%.*s'", p->at->line, what,
                     (int)(found.len < 40 ? found.len : 40), found.ptr);
}

frit_status frit_parse_expect(parser *p, token_type type, const char *text)
{
    if (frit_parse_skip(p, type, text)) return FRIT_OK;
    char what[64];
    snprintf(what, sizeof what, text ? "'%s' is expected" : "a name is expected", text);
    return frit_parse_fail(p, what);
}

node *frit_parse_node(parser *p, node_kind kind)
{
    node *n = frit_arena_new(p->arena, node, 1);
    if (n) {
        n->kind = kind;
        n->line = p->at->line;
    }
    return n;
}

frit_status frit_parse_push(parser *p, node *into, node *item)
{
    // Grown by doubling at powers of two; the arena keeps the old copies.
    if ((into->n & (into->n - 1)) == 0) {
        size_t capacity = into->n ? into->n * 2 : 1;
        node **items = frit_arena_new(p->arena, node *, capacity);
        if (!items) return frit_fail_memory(capacity * sizeof *items, "the tree of a template");
        if (into->n > 0) memcpy(items, into->items, into->n * sizeof *items);
        into->items = items;
    }
    into->items[into->n++] = item;
    return FRIT_OK;
}

frit_status frit_parse_symbol(parser *p, frit_str name, int *symbol)
{
    struct frit_template *t = p->template;
    int64_t found;
    if (frit_map_get(&t->symbols, name, &found)) {
        *symbol = (int)found;
        return FRIT_OK;
    }
    *symbol = t->n_symbols++;
    const char *copy = frit_arena_text(p->arena, name.ptr, name.len);
    if (!copy || !frit_map_put(&t->symbols, (frit_str){copy, name.len}, *symbol))
        return frit_fail_memory(name.len, "the names of a template");
    return FRIT_OK;
}

static frit_status make(parser *p, node_kind kind, node **out)
{
    *out = frit_parse_node(p, kind);
    return *out ? FRIT_OK : frit_fail_memory(sizeof **out, "the tree of a template");
}

// ------------------------------------------------------------------------------------- statements

static frit_status parse_body(parser *p, const char *const *ends, node **body);

// Parses the rest of an opening tag, and the body up to {% end... %}, whose name is left as the next token.
static frit_status parse_block_body(parser *p, const char *const *ends, node **body)
{
    frit_parse_skip(p, TOKEN_OPERATOR, ":");
    FRIT_TRY(frit_parse_expect(p, TOKEN_CLOSE_BLOCK, "%}"));
    FRIT_TRY(frit_parse_enter(p));
    FRIT_TRY(parse_body(p, ends, body));
    p->depth--;
    return FRIT_OK;
}

static frit_status parse_simple_body(parser *p, const char *end, node **body)
{
    const char *const ends[] = {end, NULL};
    FRIT_TRY(parse_block_body(p, ends, body));
    p->at++;
    return FRIT_OK;
}

static frit_status parse_if(parser *p, node **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    FRIT_TRY(make(p, NODE_IF, out));
    node *n = *out;
    for (;;) {
        FRIT_TRY(frit_parse_tuple(p, false, false, &n->a));
        FRIT_TRY(parse_block_body(p, ends, &n->body));
        if (!frit_parse_skip(p, TOKEN_NAME, "elif")) break;
        FRIT_TRY(make(p, NODE_IF, &n->otherwise));
        n = n->otherwise;
    }
    if (frit_parse_skip(p, TOKEN_NAME, "else")) return parse_simple_body(p, "endif", &n->otherwise);
    p->at++;
    return FRIT_OK;
}

static frit_status parse_for(parser *p, node **out)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    FRIT_TRY(make(p, NODE_FOR, out));
    node *n = *out;
    FRIT_TRY(frit_parse_target(p, false, &n->a));
    FRIT_TRY(frit_parse_expect(p, TOKEN_NAME, "in"));
    FRIT_TRY(frit_parse_tuple(p, false, false, &n->b));
    if (frit_parse_skip(p, TOKEN_NAME, "if")) FRIT_TRY(frit_parse_expression(p, &n->c));
    n->recursive = frit_parse_skip(p, TOKEN_NAME, "recursive");
    FRIT_TRY(parse_block_body(p, ends, &n->body));
    if (frit_parse_skip(p, TOKEN_NAME, "else")) return parse_simple_body(p, "endfor", &n->otherwise);
    p->at++;
    return FRIT_OK;
}

static frit_status parse_set(parser *p, node **out)
{
    node *target;
    FRIT_TRY(frit_parse_target(p, true, &target));
    bool block = !frit_parse_skip(p, TOKEN_OPERATOR, "=");
    FRIT_TRY(make(p, block ? NODE_SET_BLOCK : NODE_SET, out));
    (*out)->a = target;
    if (!block) return frit_parse_tuple(p, true, false, &(*out)->b);
    FRIT_TRY(frit_parse_filters(p, NULL, false, &(*out)->b));
    return parse_simple_body(p, "endset", &(*out)->body);
}

// Parses (a, b=1) into items of `into`, name and default alternating.
static frit_status parse_parameters(parser *p, node *into)
{
    FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, "("));
    bool defaults = false;
    while (!frit_parse_is(p, TOKEN_OPERATOR, ")")) {
        if (into->n > 0) FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ","));
        node *name, *fallback = NULL;
        FRIT_TRY(make(p, NODE_NAME, &name));
        name->text = p->at->text;
        FRIT_TRY(frit_parse_expect(p, TOKEN_NAME, NULL));
        FRIT_TRY(frit_parse_symbol(p, name->text, &name->symbol));
        if (frit_parse_skip(p, TOKEN_OPERATOR, "="))
            FRIT_TRY(frit_parse_expression(p, &fallback));
        else if (defaults)
            return frit_parse_fail(p, "a parameter without a default follows one with a default");
        defaults = fallback != NULL;
        FRIT_TRY(frit_parse_push(p, into, name));
        FRIT_TRY(frit_parse_push(p, into, fallback));
    }
    p->at++;
    return FRIT_OK;
}

static frit_status parse_macro(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_MACRO, out));
    (*out)->text = p->at->text;
    FRIT_TRY(frit_parse_expect(p, TOKEN_NAME, NULL));
    FRIT_TRY(frit_parse_symbol(p, (*out)->text, &(*out)->symbol));
    FRIT_TRY(parse_parameters(p, *out));
    return parse_simple_body(p, "endmacro", &(*out)->body);
}

static frit_status parse_call_block(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_CALL_BLOCK, out));
    (*out)->text = frit_str_of("caller");
    if (frit_parse_is(p, TOKEN_OPERATOR, "(")) FRIT_TRY(parse_parameters(p, *out));
    FRIT_TRY(frit_parse_expression(p, &(*out)->a));
    if ((*out)->a->kind != NODE_CALL) return frit_parse_fail(p, "a call is expected");
    return parse_simple_body(p, "endcall", &(*out)->body);
}

static frit_status parse_with(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_WITH, out));
    while (p->at->type != TOKEN_CLOSE_BLOCK) {
        if ((*out)->n > 0) FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, ","));
        node *target, *item;
        FRIT_TRY(frit_parse_target(p, false, &target));
        FRIT_TRY(frit_parse_expect(p, TOKEN_OPERATOR, "="));
        FRIT_TRY(frit_parse_expression(p, &item));
        FRIT_TRY(frit_parse_push(p, *out, target));
        FRIT_TRY(frit_parse_push(p, *out, item));
    }
    return parse_simple_body(p, "endwith", &(*out)->body);
}

static frit_status parse_filter_block(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_FILTER_BLOCK, out));
    FRIT_TRY(frit_parse_filters(p, NULL, true, &(*out)->a));
    return parse_simple_body(p, "endfilter", &(*out)->body);
}

static frit_status parse_generation(parser *p, node **out)
{
    FRIT_TRY(make(p, NODE_SCOPE, out));
    return parse_simple_body(p, "endgeneration", &(*out)->body);
}

static frit_status parse_break(parser *p, node **out)
{
    return make(p, NODE_BREAK, out);
}

static frit_status parse_continue(parser *p, node **out)
{
    return make(p, NODE_CONTINUE, out);
}

static const struct {
    const char *name;
    frit_status (*parse)(parser *p, node **out);
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"with", parse_with},
    {"filter", parse_filter_block},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
};

static frit_status parse_statement(parser *p, node **out)
{
    if (p->at->type != TOKEN_NAME) return frit_parse_fail(p, "the name of a block is expected");
    for (size_t i = 0; i < FRIT_COUNT(statements); i++) {
        if (!frit_str_is(p->at->text, statements[i].name)) continue;
        p->at++;
        FRIT_TRY(statements[i].parse(p, out));
        return frit_parse_expect(p, TOKEN_CLOSE_BLOCK, "%}");
    }
    return frit_parse_fail(p, "an unknown block");
}

static bool is_end(const parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (frit_parse_is(p, TOKEN_NAME, *ends)) return true;
    return false;
}

// Parses statements up to a block whose name is in `ends`, or to the end of the template if `ends` is NULL.
static frit_status parse_body(parser *p, const char *const *ends, node **body)
{
    node **link = body;
    *body = NULL;
    while (p->at->type != TOKEN_END) {
        if (p->at->type == TOKEN_TEXT) {
            FRIT_TRY(make(p, NODE_TEXT, link));
            (*link)->text = p->at++->text;
        } else if (frit_parse_skip(p, TOKEN_OPEN_OUTPUT, NULL)) {
            FRIT_TRY(make(p, NODE_OUTPUT, link));
            FRIT_TRY(frit_parse_tuple(p, true, false, &(*link)->a));
            FRIT_TRY(frit_parse_expect(p, TOKEN_CLOSE_OUTPUT, "}}"));
        } else {
            p->at++;   // {%
            if (is_end(p, ends)) return FRIT_OK;
            FRIT_TRY(parse_statement(p, link));
        }
        link = &(*link)->next;
    }
    return ends ? frit_parse_fail(p, "a block is not closed") : FRIT_OK;
}

// ------------------------------------------------------------------------------------- the template

// Copies the source with \n for every line end, without the last one.
static frit_status normalize(frit_str source, frit_arena *arena, frit_str *out)
{
    char *copy = frit_arena_alloc(arena, source.len + 1, 1);
    if (!copy) return frit_fail_memory(source.len, "the template");
    size_t n = 0;
    for (size_t i = 0; i < source.len; i++) {
        bool pair = source.ptr[i] == '\r' && i + 1 < source.len && source.ptr[i + 1] == '\n';
        if (!pair) copy[n++] = source.ptr[i] == '\r' ? '\n' : source.ptr[i];
    }
    if (n > 0 && copy[n - 1] == '\n') n--;
    *out = (frit_str){copy, n};
    return FRIT_OK;
}

static frit_status parse(struct frit_template *t, frit_str source)
{
    if (source.len > MAX_SOURCE)
        return frit_fail(FRIT_E_LIMIT, "the chat template has %zu bytes, expected at most %d", source.len, MAX_SOURCE);
    frit_str text;
    tokens lexed = {0};
    FRIT_TRY(normalize(source, &t->arena, &text));
    FRIT_TRY(frit_template_lex(text, &t->arena, &lexed));
    parser p = {.template = t, .arena = &t->arena, .at = lexed.items};
    FRIT_TRY(frit_parse_symbol(&p, frit_str_of("loop"), &t->loop));
    FRIT_TRY(frit_parse_symbol(&p, frit_str_of("caller"), &t->caller));
    FRIT_TRY(frit_parse_symbol(&p, frit_str_of("varargs"), &t->varargs));
    FRIT_TRY(frit_parse_symbol(&p, frit_str_of("kwargs"), &t->kwargs));
    return parse_body(&p, NULL, &t->body);
}

frit_status frit_template_new(frit_template **out, frit_str source)
{
    *out = NULL;
    struct frit_template *t = calloc(1, sizeof *t);
    if (!t) return frit_fail_memory(sizeof *t, "the template");
    frit_status status = parse(t, source);
    if (status != FRIT_OK) {
        frit_template_free(t);
        return status;
    }
    *out = t;
    return FRIT_OK;
}

void frit_template_allow_changes(frit_template *template)
{
    template->may_change = true;
}

void frit_template_free(frit_template *template)
{
    if (!template) return;
    frit_map_free(&template->symbols);
    frit_arena_free(&template->arena);
    free(template);
}
