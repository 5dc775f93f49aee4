// SPDX-License-Identifier: MIT
// Answers of messages with headers (text/answer/parts_channels.c). The prompt ends within the first header.
#include "grammar/answer_parts.h"

#include "grammar/marked.h"

#include <stdlib.h>

typedef struct channels {
    answer_rules *a;
    frit_str end;         // mark that no body contains
    int32_t text;         // rule of a body and `end`
    int32_t format;       // rule, or -1
    int32_t *arguments;   // rules, [tools]
} channels;

static frit_fragment then_text(frit_nfa *nfa, frit_fragment before, const char *text)
{
    return frit_nfa_seq(nfa, before, frit_nfa_text(nfa, frit_str_of(text)));
}

static frit_fragment then_call(frit_nfa *nfa, frit_fragment before, int32_t rule)
{
    return frit_nfa_seq(nfa, before, frit_nfa_call(nfa, rule));
}

// Makes a call, from its header on; the prompt or `end` precedes it.
static frit_fragment call_part(const channels *c, frit_nfa *nfa, const char *name, int32_t arguments)
{
    if (c->a->o->format->recipient_only)
        return then_call(nfa, then_text(nfa, frit_nfa_text(nfa, frit_str_of(name)), "\n"), arguments);
    frit_fragment part = frit_nfa_text(nfa, frit_str_of("<|channel|>commentary to=functions."));
    part = then_text(nfa, part, name);
    const frit_fragment constrain = frit_nfa_text(nfa, frit_str_of(" <|constrain|>json"));
    frit_nfa_add(nfa, constrain.in, FRIT_EPSILON, FRIT_EPSILON, constrain.out);
    part = then_text(nfa, frit_nfa_seq(nfa, part, constrain), "<|message|>");
    return then_call(nfa, part, arguments);
}

static void add_calls(const channels *c, frit_nfa *nfa, frit_fragment all)
{
    const char *name;
    if (!c->a->o->tools) return;
    const frit_fragment calls = frit_nfa_none(nfa);
    for (size_t i = 0; frit_answer_tool(c->a, &i, &name); i++)
        frit_nfa_or(nfa, calls, call_part(c, nfa, name, c->arguments[i]));
    frit_nfa_or(nfa, all, calls);
    if (!c->a->o->format->recipient_only || c->a->o->one_call) return;
    const frit_fragment again = frit_nfa_text(nfa, c->end);
    frit_nfa_add(nfa, calls.out, FRIT_EPSILON, FRIT_EPSILON, again.in);
    frit_nfa_add(nfa, again.out, FRIT_EPSILON, FRIT_EPSILON, calls.in);
}

// Adds the answer for the user: the format, or any text.
static frit_status body_part(const channels *c, frit_nfa *nfa, frit_fragment before, frit_fragment *out)
{
    frit_dfa text;
    if (c->format >= 0) {
        *out = then_call(nfa, before, c->format);
        return FRIT_OK;
    }
    FRIT_TRY(frit_text_without(&c->a->builder->budget, &text, &c->end, 1));
    *out = frit_nfa_seq(nfa, before, frit_nfa_dfa(nfa, &text));
    frit_dfa_free(&text);
    return FRIT_OK;
}

// Adds the messages before the answer: reasoning, and text if no format or call is required.
static void add_before(const channels *c, frit_nfa *nfa, frit_fragment all)
{
    const bool is_free = !c->a->o->must_call && c->format < 0;
    if (c->a->o->format->recipient_only) {
        if (!is_free) return;
        frit_fragment part = then_call(nfa, frit_nfa_text(nfa, frit_str_of("all\n")), c->text);
        frit_nfa_add(nfa, all.in, FRIT_EPSILON, FRIT_EPSILON, part.in);
        frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, all.in);
        return;
    }
    static const char *const names[] = {"<|channel|>analysis<|message|>", "<|channel|>commentary<|message|>"};
    for (int i = 0; i < 1 + is_free; i++) {
        frit_fragment part = then_call(nfa, frit_nfa_text(nfa, frit_str_of(names[i])), c->text);
        part = then_text(nfa, part, "end|><|start|>assistant");
        frit_nfa_add(nfa, all.in, FRIT_EPSILON, FRIT_EPSILON, part.in);
        frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, all.in);
    }
}

static frit_status add_root(const channels *c)
{
    const frit_answer_grammar *o = c->a->o;
    frit_nfa *nfa = frit_builder_nfa(c->a->builder, c->a->root);
    const frit_fragment all = frit_nfa_none(nfa);
    frit_fragment body;
    if (o->continues) {
        FRIT_TRY(body_part(c, nfa, frit_nfa_empty(nfa), &body));
        frit_nfa_or(nfa, all, body);
    } else {
        add_before(c, nfa, all);
        add_calls(c, nfa, all);
        if (!o->must_call) {
            frit_fragment head =
                frit_nfa_text(nfa, frit_str_of(o->format->recipient_only ? "all" : "<|channel|>final"));
            if (!o->format->recipient_only && c->format >= 0) {
                const frit_fragment constrain = frit_nfa_text(nfa, frit_str_of(" <|constrain|>json"));
                frit_nfa_add(nfa, constrain.in, FRIT_EPSILON, FRIT_EPSILON, constrain.out);
                head = frit_nfa_seq(nfa, head, constrain);
            }
            head = frit_nfa_seq(nfa, head, frit_nfa_text(nfa, o->format->header_close));
            FRIT_TRY(body_part(c, nfa, head, &body));
            frit_nfa_or(nfa, all, body);
        }
    }
    frit_builder_define(c->a->builder, c->a->root, all);
    return frit_nfa_check(nfa);
}

frit_status frit_answer_add_channels(answer_rules *a)
{
    const frit_answer_grammar *o = a->o;
    channels c = {.a = a, .end = frit_str_of(o->format->recipient_only ? o->format->body_ends[0] : "<|"), .format = -1};
    const frit_schema_form form = {.without = &c.end, .n_without = 1};
    const char *name;
    frit_dfa until;
    if (o->add_format && !o->must_call) FRIT_TRY(o->add_format(o->ctx, a->builder, &form, &c.format));
    FRIT_TRY(
        frit_answer_rule_dfa(a->builder, frit_text_until(&a->builder->budget, &until, &c.end, 1), &until, &c.text));
    c.arguments = calloc(json_array_size(o->tools) + 1, sizeof *c.arguments);
    frit_status status = c.arguments ? FRIT_OK : frit_fail_memory(sizeof *c.arguments, "the tools of an answer");
    for (size_t i = 0; status == FRIT_OK && o->tools && frit_answer_tool(a, &i, &name); i++) {
        const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
        status =
            n > 0 && !name[n] && strcmp(name, "all") != 0
                ? frit_answer_add_arguments(a, i, &form, &c.arguments[i])
                : frit_fail_at(FRIT_E_UNSUPPORTED, frit_field_name("tools[%zu].function.name", i).text,
                               FRIT_CODE_UNSUPPORTED_VALUE, "'%.64s' cannot be written in this model's calls", name);
    }
    a->root = status == FRIT_OK ? frit_builder_rule_new(a->builder, "an answer") : 0;
    if (a->root < 0) status = a->builder->failed;
    if (status == FRIT_OK) status = add_root(&c);
    free(c.arguments);
    return status;
}
