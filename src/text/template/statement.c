// SPDX-License-Identifier: MIT
// Statements: output, conditions, loops, macros; and a render from start to end.
//
// Scopes follow Jinja: a loop's body, a macro and a block get a scope of their own, an `if` does not. Names that are
// set inside a scope are not visible outside; namespaces exist for this purpose.
#include "text/template/node.h"

// ------------------------------------------------------------------------------------- scopes

// Makes a scope in the arena, because a macro may keep the scope in which it was defined.
static scope *scope_new(run *r, scope *parent)
{
    scope *s = frit_run_alloc(r, 1, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

// A scope has few names, which are found by linear search; with many names a search costs steps.
enum { NAMES_A_STEP = 32 };

bool frit_scope_get(run *r, const scope *s, int symbol, value *out)
{
    for (; s; s = s->parent) {
        r->n_steps += (int64_t)(s->n / NAMES_A_STEP);
        for (size_t i = s->n; i-- > 0;) {
            if (s->variables[i].symbol != symbol) continue;
            *out = s->variables[i].value;
            return true;
        }
    }
    return false;
}

frit_status frit_scope_set(run *r, scope *s, int symbol, value v)
{
    FRIT_TRY(frit_run_step(r, s->n / NAMES_A_STEP));
    for (size_t i = 0; i < s->n; i++) {
        if (s->variables[i].symbol != symbol) continue;
        s->variables[i].value = v;
        return FRIT_OK;
    }
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 4;
        struct variable *larger = frit_run_alloc(r, capacity, sizeof *larger);
        if (!larger) return frit_run_memory(r);
        if (s->n > 0) memcpy(larger, s->variables, s->n * sizeof *larger);
        s->variables = larger;
        s->capacity = capacity;
    }
    s->variables[s->n++] = (struct variable){symbol, v};
    return FRIT_OK;
}

static frit_status assign_items(run *r, const node *target, value v, scope *s)
{
    list *items;
    FRIT_TRY(frit_var_iterate(r, v, &items));
    if (items->n != target->n)
        return frit_run_fail(r, "%zu values are expected to unpack, there are %zu", target->n, items->n);
    for (size_t i = 0; i < target->n; i++) FRIT_TRY(frit_assign(r, target->items[i], items->items[i], s));
    return FRIT_OK;
}

frit_status frit_assign(run *r, const node *target, value v, scope *s)
{
    if (target->kind == NODE_TUPLE) return assign_items(r, target, v, s);
    if (target->kind == NODE_NAME) return frit_scope_set(r, s, target->symbol, v);
    value space;
    if (!frit_scope_get(r, s, target->symbol, &space) || space.type != VALUE_NAMESPACE)
        return frit_run_fail(r, "cannot assign attribute on non-namespace object");
    return frit_dict_put(r, space.dict, frit_var_text(target->text), v);
}

// ------------------------------------------------------------------------------------- output

static frit_status check_output(run *r)
{
    const frit_buf *text = &r->out->buf;
    if (text->failed) return frit_fail_memory(text->len, "the rendered chat");
    if (text->len > MAX_OUTPUT)
        return frit_fail(FRIT_E_LIMIT, "chat template, line %d: writes more than %d MiB", r->at ? r->at->line : 0,
                         MAX_OUTPUT >> 20);
    return FRIT_OK;
}

frit_status frit_run_captured(run *r, const node *body, scope *s, value *out)
{
    scope *inner = scope_new(r, s);
    if (!inner) return frit_run_memory(r);
    writer *saved = r->out, captured = {.r = r};
    r->out = &captured;
    frit_status status = frit_run_body(r, body, inner);
    r->out = saved;
    if (status == FRIT_OK) return frit_writer_take(&captured, out);
    frit_writer_free(&captured);
    return status;
}

// ------------------------------------------------------------------------------------- loops

frit_status frit_loop_attribute(run *r, const loop *l, frit_str name, value *out)
{
    static const char *const names[] = {"index", "index0", "revindex", "revindex0", "first",
                                        "last",  "length", "depth",    "depth0"};
    const int64_t n = (int64_t)l->items->n, i = (int64_t)l->index;
    const int64_t values[] = {i + 1, i, n - i, n - i - 1, i == 0, i == n - 1, n, l->depth + 1, l->depth};
    for (size_t k = 0; k < FRIT_COUNT(names); k++) {
        if (!frit_str_is(name, names[k])) continue;
        bool flag = k == 4 || k == 5;
        *out = flag ? frit_var_bool(values[k] != 0) : frit_var_int(values[k]);
        return FRIT_OK;
    }
    if (frit_str_is(name, "previtem")) {
        *out = i > 0 ? l->items->items[i - 1] : frit_var_undefined("there is no previous item: it");
    } else if (frit_str_is(name, "nextitem")) {
        *out = i + 1 < n ? l->items->items[i + 1] : frit_var_undefined("there is no next item: it");
    } else {
        const method_row *row = frit_method_find((value){.type = VALUE_LOOP}, name);
        method *bound = row ? frit_run_alloc(r, 1, sizeof *bound) : NULL;
        if (row && !bound) return frit_run_memory(r);
        *out = frit_var_undefined("an attribute of 'loop'");
        if (row) {
            *bound = (method){row, {.type = VALUE_LOOP, .loop = (loop *)l}};
            *out = (value){.type = VALUE_METHOD, .method = bound};
        }
    }
    return FRIT_OK;
}

// Returns the items for which the loop's condition is true.
static frit_status select_items(run *r, const node *n, scope *outer, list *items, list **out)
{
    *out = items;
    if (!n->c) return FRIT_OK;
    value kept;
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, &kept));
    *out = kept.list;
    for (size_t i = 0; i < items->n; i++) {
        scope *inner = scope_new(r, outer);
        value holds;
        if (!inner) return frit_run_memory(r);
        FRIT_TRY(frit_assign(r, n->a, items->items[i], inner));
        FRIT_TRY(frit_eval(r, n->c, inner, &holds));
        if (frit_var_is_true(holds)) FRIT_TRY(frit_list_push(r, kept.list, items->items[i]));
    }
    return FRIT_OK;
}

frit_status frit_run_loop(run *r, const node *n, scope *outer, value over, int depth)
{
    list *items;
    FRIT_TRY(frit_var_iterate(r, over, &items));
    FRIT_TRY(select_items(r, n, outer, items, &items));
    loop *state = frit_run_alloc(r, 1, sizeof *state);
    if (!state) return frit_run_memory(r);
    *state = (loop){.items = items, .depth = depth, .node = n, .outer = outer};
    for (; state->index < items->n; state->index++) {
        scope *inner = scope_new(r, outer);
        if (!inner) return frit_run_memory(r);
        FRIT_TRY(frit_run_step(r, 1));
        FRIT_TRY(frit_scope_set(r, inner, r->template->loop, (value){.type = VALUE_LOOP, .loop = state}));
        FRIT_TRY(frit_assign(r, n->a, items->items[state->index], inner));
        FRIT_TRY(frit_run_body(r, n->body, inner));
        bool stop = r->breaks;
        r->breaks = r->continues = false;
        if (stop) break;
    }
    scope *inner = scope_new(r, outer);
    if (!inner) return frit_run_memory(r);
    return items->n == 0 ? frit_run_body(r, n->otherwise, inner) : FRIT_OK;
}

// ------------------------------------------------------------------------------------- macros

static frit_status new_macro(run *r, const node *n, scope *s, value *out)
{
    macro *m = frit_run_alloc(r, 1, sizeof *m);
    if (!m) return frit_run_memory(r);
    *m = (macro){.node = n, .name = n->text, .outer = s, .caller = frit_var_undefined("'caller'")};
    *out = (value){.type = VALUE_MACRO, .macro = m};
    return FRIT_OK;
}

static frit_status bind_rest(run *r, const macro *m, const call *c, scope *inner)
{
    value varargs, kwargs;
    size_t n_parameters = m->node->n / 2;
    FRIT_TRY(frit_run_step(r, n_parameters * c->n_named / NAMES_A_STEP));
    FRIT_TRY(frit_var_new_list(r, VALUE_TUPLE, &varargs));
    FRIT_TRY(frit_var_new_dict(r, VALUE_DICT, &kwargs));
    for (size_t i = n_parameters; i < c->n; i++) FRIT_TRY(frit_list_push(r, varargs.list, c->positional[i]));
    for (size_t i = 0; i < c->n_named; i++) {
        bool known = frit_str_is(c->names[i], "caller");
        for (size_t k = 0; k < n_parameters; k++) {
            frit_str name = m->node->items[2 * k]->text;
            known = known || (name.len == c->names[i].len && memcmp(name.ptr, c->names[i].ptr, name.len) == 0);
        }
        if (!known) FRIT_TRY(frit_dict_put(r, kwargs.dict, frit_var_text(c->names[i]), c->named[i]));
    }
    FRIT_TRY(frit_scope_set(r, inner, r->template->varargs, varargs));
    return frit_scope_set(r, inner, r->template->kwargs, kwargs);
}

static frit_status bind_parameters(run *r, const macro *m, const call *c, scope *inner)
{
    FRIT_TRY(frit_run_step(r, m->node->n / 2 * c->n_named / NAMES_A_STEP));
    for (size_t i = 0; i < m->node->n / 2; i++) {
        const node *name = m->node->items[2 * i], *fallback = m->node->items[2 * i + 1];
        value v;
        bool given = i < c->n;
        if (given) v = c->positional[i];
        for (size_t k = 0; !given && k < c->n_named; k++) {
            given = c->names[k].len == name->text.len && memcmp(c->names[k].ptr, name->text.ptr, name->text.len) == 0;
            if (given) v = c->named[k];
        }
        if (!given && fallback)
            FRIT_TRY(frit_eval(r, fallback, inner, &v));
        else if (!given)
            v = frit_var_undefined("an argument that was not given");
        FRIT_TRY(frit_scope_set(r, inner, name->symbol, v));
    }
    value caller = m->caller;
    for (size_t k = 0; k < c->n_named; k++)
        if (frit_str_is(c->names[k], "caller")) caller = c->named[k];
    FRIT_TRY(frit_scope_set(r, inner, r->template->caller, caller));
    return bind_rest(r, m, c, inner);
}

frit_status frit_run_macro(run *r, const macro *m, const call *c, value *out)
{
    frit_status status = frit_run_enter(r);
    scope *inner = scope_new(r, m->outer);
    if (status == FRIT_OK && !inner) status = frit_run_memory(r);
    if (status == FRIT_OK) status = bind_parameters(r, m, c, inner);
    if (status == FRIT_OK) status = frit_run_captured(r, m->node->body, inner, out);
    r->depth--;
    return status;
}

static frit_status run_call_block(run *r, const node *n, scope *s)
{
    value callee, caller, result;
    call c;
    FRIT_TRY(new_macro(r, n, s, &caller));
    FRIT_TRY(frit_eval(r, n->a->a, s, &callee));
    FRIT_TRY(frit_eval_arguments(r, n->a->args, s, &c));
    frit_str *names = frit_run_alloc(r, c.n_named + 1, sizeof *names);
    value *named = frit_run_alloc(r, c.n_named + 1, sizeof *named);
    if (!names || !named) return frit_run_memory(r);
    for (size_t i = 0; i < c.n_named; i++) names[i] = c.names[i], named[i] = c.named[i];
    names[c.n_named] = frit_str_of("caller");
    named[c.n_named++] = caller;
    c.names = names;
    c.named = named;
    FRIT_TRY(frit_eval_call(r, callee, &c, &result));
    return frit_var_print(r, result, r->out);
}

// ------------------------------------------------------------------------------------- the others

static frit_status run_if(run *r, const node *n, scope *s)
{
    for (;;) {
        value holds;
        FRIT_TRY(frit_eval(r, n->a, s, &holds));
        if (frit_var_is_true(holds)) return frit_run_body(r, n->body, s);
        const node *rest = n->otherwise;   // an elif is a single `if` in this list
        if (!rest || rest->kind != NODE_IF || rest->next) return frit_run_body(r, rest, s);
        n = rest;
    }
}

static frit_status run_with(run *r, const node *n, scope *s)
{
    scope *inner = scope_new(r, s);
    if (!inner) return frit_run_memory(r);
    for (size_t i = 0; i + 1 < n->n; i += 2) {
        value v;
        FRIT_TRY(frit_eval(r, n->items[i + 1], s, &v));
        FRIT_TRY(frit_assign(r, n->items[i], v, inner));
    }
    return frit_run_body(r, n->body, inner);
}

static frit_status run_set(run *r, const node *n, scope *s)
{
    value v;
    if (n->kind == NODE_SET) {
        FRIT_TRY(frit_eval(r, n->b, s, &v));
    } else {
        FRIT_TRY(frit_run_captured(r, n->body, s, &v));
        if (n->b) FRIT_TRY(frit_eval_filters(r, n->b, v, s, &v));
    }
    return frit_assign(r, n->a, v, s);
}

static frit_status run_statement(run *r, const node *n, scope *s)
{
    value v;
    switch (n->kind) {
    case NODE_TEXT:
        frit_write(r->out, n->text.ptr, n->text.len);
        return check_output(r);
    case NODE_OUTPUT:
        FRIT_TRY(frit_eval(r, n->a, s, &v));
        FRIT_TRY(frit_var_print(r, v, r->out));
        return check_output(r);
    case NODE_IF:
        return run_if(r, n, s);
    case NODE_FOR:
        FRIT_TRY(frit_eval(r, n->b, s, &v));
        return frit_run_loop(r, n, s, v, 0);
    case NODE_SET:
    case NODE_SET_BLOCK:
        return run_set(r, n, s);
    case NODE_MACRO:
        FRIT_TRY(new_macro(r, n, s, &v));
        return frit_scope_set(r, s, n->symbol, v);
    case NODE_CALL_BLOCK:
        return run_call_block(r, n, s);
    case NODE_FILTER_BLOCK:
        FRIT_TRY(frit_run_captured(r, n->body, s, &v));
        FRIT_TRY(frit_eval_filters(r, n->a, v, s, &v));
        return frit_var_print(r, v, r->out);
    case NODE_WITH:
        return run_with(r, n, s);
    case NODE_SCOPE:
        FRIT_TRY(frit_run_captured(r, n->body, s, &v));
        return frit_var_print(r, v, r->out);
    case NODE_BREAK:
        r->breaks = true;
        return FRIT_OK;
    case NODE_CONTINUE:
        r->continues = true;
        return FRIT_OK;
    default:
        return frit_run_fail(r, "an expression stands where a statement belongs");
    }
}

frit_status frit_run_body(run *r, const node *body, scope *s)
{
    frit_status status = frit_run_enter(r);
    for (const node *n = body; n && status == FRIT_OK && !r->breaks && !r->continues; n = n->next) {
        r->at = n;
        status = run_statement(r, n, s);
        if (status == FRIT_OK) status = frit_run_step(r, 1);
    }
    r->depth--;
    return status;
}

// ------------------------------------------------------------------------------------- a render

static frit_status render(run *r, const json_t *variables)
{
    scope globals = {0}, top = {.parent = &globals};
    r->globals = &globals;
    FRIT_TRY(frit_functions_define(r, &globals));
    for (void *it = json_object_iter((json_t *)variables); it; it = json_object_iter_next((json_t *)variables, it)) {
        frit_str name = {json_object_iter_key(it), json_object_iter_key_len(it)};
        int64_t symbol;
        value v;
        if (!frit_map_get(&r->template->symbols, name, &symbol)) continue;   // the template never uses the name
        const json_t *json = json_object_iter_value(it);
        if (json_is_string(json) && (frit_str_is(name, "bos_token") || frit_str_is(name, "eos_token")))
            v = frit_var_text((frit_str){json_string_value(json), json_string_length(json)});
        else
            FRIT_TRY(frit_var_from_json(r, name, json, &v));
        FRIT_TRY(frit_scope_set(r, &globals, (int)symbol, v));
    }
    FRIT_TRY(frit_run_body(r, r->template->body, &top));
    return check_output(r);
}

frit_status frit_template_render_within(const frit_template *template, const json_t *variables, const struct tm *now,
                                        frit_buf *out, frit_spans *untrusted, int64_t *n_steps)
{
    writer text = {.buf = *out};
    run r = {.template = template, .now = now, .out = &text, .origin.on = untrusted != NULL, .max_steps = *n_steps};
    text.r = &r;
    frit_status status = render(&r, variables);
    if (status == FRIT_OK && text.untrusted.failed) status = frit_fail_memory(text.buf.len, "the rendered chat");
    *n_steps = r.n_steps;
    frit_origin_free(&r.origin);
    frit_arena_free(&r.arena);
    *out = text.buf;
    if (untrusted)
        *untrusted = text.untrusted;
    else
        frit_spans_free(&text.untrusted);
    return status;
}

frit_status frit_template_render(const frit_template *template, const json_t *variables, const struct tm *now,
                                 frit_buf *out, frit_spans *untrusted)
{
    int64_t n_steps = MAX_STEPS;
    return frit_template_render_within(template, variables, now, out, untrusted, &n_steps);
}
