// SPDX-License-Identifier: MIT
// Grammars of chat answers: reasoning, text, and calls in the styles that have marks. answer_calls.c has the calls
// themselves.
#include "grammar/answer_parts.h"

#include "grammar/marked.h"

#include <stdlib.h>

bool frit_answer_has_strict(const json_t *tools)
{
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (json_is_true(json_object_get(json_object_get(json_array_get(tools, i), "function"), "strict"))) return true;
    return false;
}

// ------------------------------------------------------------------------------------- small rules

static frit_status end_rule(frit_rule_builder *builder, int32_t rule, frit_fragment part)
{
    frit_builder_define(builder, rule, part);
    return frit_nfa_check(frit_builder_nfa(builder, rule));
}

frit_status frit_answer_rule_dfa(frit_rule_builder *builder, frit_status made, frit_dfa *dfa, int32_t *rule)
{
    FRIT_TRY(made);
    *rule = frit_builder_rule_new(builder, "a text");
    frit_status status = builder->failed;
    if (*rule >= 0) status = end_rule(builder, *rule, frit_nfa_dfa(frit_builder_nfa(builder, *rule), dfa));
    frit_dfa_free(dfa);
    return status;
}

// White space between the parts of an answer: nothing, or up to two characters.
static frit_status add_gap(answer_rules *a)
{
    a->gap = frit_builder_rule_new(a->builder, "a gap");
    if (a->gap < 0) return a->builder->failed;
    frit_nfa *nfa = frit_builder_nfa(a->builder, a->gap);
    const frit_fragment one = frit_nfa_none(nfa);
    frit_nfa_or(nfa, one, frit_nfa_bytes(nfa, ' ', ' '));
    frit_nfa_or(nfa, one, frit_nfa_bytes(nfa, '\n', '\n'));
    return end_rule(a->builder, a->gap, frit_nfa_repeat(nfa, one, 0, 2));
}

// Adds texts up to the first mark, and the mark. The text contains no `other`.
static frit_status add_until(answer_rules *a, frit_str mark, frit_str other, int32_t *rule)
{
    frit_dfa until, without, both;
    frit_status status = frit_text_until(&a->builder->budget, &until, &mark, 1);
    if (status != FRIT_OK || other.len == 0) return frit_answer_rule_dfa(a->builder, status, &until, rule);
    status = frit_text_without(&a->builder->budget, &without, &other, 1);
    if (status == FRIT_OK) {
        status = frit_dfa_combine(&both, &until, FRIT_DFA_AND, &without);
        frit_dfa_free(&without);
    }
    frit_dfa_free(&until);
    return frit_answer_rule_dfa(a->builder, status, &both, rule);
}

// ------------------------------------------------------------------------------------- answers without channels

typedef struct marks {
    frit_str first, other;   // words that begin calls; `first` is the one that the grammar writes
} marks;

static frit_str first_word(frit_str mark)
{
    size_t n = 0;
    while (n < mark.len && mark.ptr[n] != ' ' && mark.ptr[n] != '\n' && mark.ptr[n] != '\t') n++;
    return (frit_str){mark.ptr, n};
}

static bool starts_with(frit_str text, frit_str part)
{
    return text.len >= part.len && memcmp(text.ptr, part.ptr, part.len) == 0;
}

// The marks that the parser searches for within text (list_begins in parts.c).
static marks marks_of(const answer_format *f)
{
    marks m = {first_word(f->section_open.len > 0 ? f->section_open : f->call_open), {"", 0}};
    const frit_str open = first_word(f->call_open);
    const bool is_begin = open.len > 3 && open.ptr[0] == '<';
    if (f->section_open.len > 0 && is_begin && !starts_with(m.first, open) && !starts_with(open, m.first))
        m.other = open;
    return m;
}

static frit_status add_reasoning(answer_rules *a)
{
    const answer_format *f = a->o->format;
    a->reasoning = -1;
    if (a->o->thinking == FRIT_THINKING_NOT || f->think_close.len == 0) return FRIT_OK;
    return add_until(a, f->think_close, (frit_str){"", 0}, &a->reasoning);
}

// Makes the reasoning before the answer, from the start of the rule on.
static frit_fragment reasoning_part(const answer_rules *a, frit_nfa *nfa)
{
    const answer_format *f = a->o->format;
    frit_fragment part = frit_nfa_empty(nfa);
    if (a->reasoning >= 0) {
        const frit_fragment all = frit_nfa_none(nfa);
        if (a->o->thinking == FRIT_THINKING_MAYBE) frit_nfa_or(nfa, all, frit_nfa_empty(nfa));
        frit_fragment thought = frit_nfa_empty(nfa);
        if (a->o->thinking == FRIT_THINKING_MAYBE) {
            thought = frit_nfa_seq(nfa, thought, frit_nfa_call(nfa, a->gap));
            thought = frit_nfa_seq(nfa, thought, frit_nfa_text(nfa, f->think_open));
        }
        thought = frit_nfa_seq(nfa, thought, frit_nfa_call(nfa, a->reasoning));
        thought = frit_nfa_seq(nfa, thought, frit_nfa_call(nfa, a->gap));
        frit_nfa_or(nfa, all, thought);
        part = frit_nfa_seq(nfa, part, all);
    }
    return part;
}

// Makes texts that contain no beginning of a call, to the end.
static frit_status add_plain_text(answer_rules *a, marks m, frit_dfa *out)
{
    const frit_str all[] = {m.first, m.other};
    const bool bare = a->o->tools && a->o->format->bare && !a->o->continues;
    const int n = !a->o->tools || m.first.len == 0 ? 0 : m.other.len > 0 ? 2 : 1;
    FRIT_TRY(frit_text_without(&a->builder->budget, out, all, n));
    if (!bare) return FRIT_OK;
    // If calls have no mark, a bracket begins one.
    frit_dfa first, both = {0};
    frit_nfa nfa = {.budget = &a->builder->budget};
    static const frit_range starts[] = {{1, 8}, {0xb, 0xc}, {0xe, 0x1f}, {'!', 'Z'}, {'\\', 'z'}, {'|', 0x10ffff}},
                            any = {1, 0x10ffff};
    const frit_fragment text = frit_nfa_none(&nfa);
    frit_nfa_or(&nfa, text, frit_nfa_empty(&nfa));
    const frit_fragment start = frit_nfa_chars(&nfa, starts, FRIT_COUNT(starts));
    frit_nfa_or(&nfa, text,
                frit_nfa_seq(&nfa, start, frit_nfa_repeat(&nfa, frit_nfa_chars(&nfa, &any, 1), 0, FRIT_NO_LIMIT)));
    frit_status status = frit_dfa_new(&first, &nfa, text);
    frit_nfa_free(&nfa);
    if (status == FRIT_OK) {
        status = frit_dfa_combine(&both, out, FRIT_DFA_AND, &first);
        frit_dfa_free(&first);
    }
    frit_dfa_free(out);
    *out = both;
    return status;
}

// Adds text with calls in it. The text is part of the root rule, whose end needs no check of callers (mask.c).
static frit_status add_free(answer_rules *a, marks m, int32_t rest)
{
    int32_t until = -1;
    frit_dfa plain;
    if (rest >= 0 && m.first.len > 0) FRIT_TRY(add_until(a, m.first, m.other, &until));
    FRIT_TRY(add_plain_text(a, m, &plain));
    frit_nfa *nfa = frit_builder_nfa(a->builder, a->root);
    const frit_fragment head = reasoning_part(a, nfa), part = frit_nfa_none(nfa);
    frit_nfa_add(nfa, head.out, FRIT_EPSILON, FRIT_EPSILON, part.in);
    frit_nfa_or(nfa, part, frit_nfa_dfa(nfa, &plain));
    frit_dfa_free(&plain);
    if (rest >= 0) {
        frit_fragment call = until >= 0 ? frit_nfa_call(nfa, until) : frit_nfa_empty(nfa);
        call = frit_nfa_seq(nfa, call, frit_nfa_call(nfa, rest));
        const bool ends = a->o->one_call || until < 0;
        frit_nfa_add(nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, call.in);
        frit_nfa_add(nfa, call.out, FRIT_EPSILON, FRIT_EPSILON, ends ? part.out : part.in);
    }
    return end_rule(a->builder, a->root, (frit_fragment){.in = head.in, .out = part.out});
}

// Adds calls, or the format.
static frit_status add_bound(answer_rules *a, marks m, int32_t rest, int32_t format)
{
    frit_nfa *nfa = frit_builder_nfa(a->builder, a->root);
    const frit_fragment head = reasoning_part(a, nfa), body = frit_nfa_none(nfa);
    if (rest >= 0) {
        frit_fragment open = frit_nfa_call(nfa, a->gap);
        open = frit_nfa_seq(nfa, open, frit_nfa_text(nfa, m.first));
        frit_nfa_or(nfa, body, frit_nfa_seq(nfa, open, frit_nfa_call(nfa, rest)));
    }
    if (format >= 0) frit_nfa_or(nfa, body, frit_nfa_call(nfa, format));
    return end_rule(a->builder, a->root, frit_nfa_seq(nfa, head, body));
}

// Adds the answer without calls where the whole answer is one JSON object: a text, or the format.
static frit_status add_reply(answer_rules *a, int32_t format, int32_t *rule)
{
    const answer_format *f = a->o->format;
    int32_t text = format;
    if (format < 0) {
        json_t *schema = json_pack("{s:s}", "type", "string");
        const frit_status status = schema ? frit_schema_add(a->builder, schema, NULL, &(frit_schema_form){0}, &text)
                                          : frit_fail_memory(sizeof *schema, "a reply");
        json_decref(schema);
        FRIT_TRY(status);
    }
    *rule = frit_builder_rule_new(a->builder, "a reply");
    if (*rule < 0) return a->builder->failed;
    frit_nfa *nfa = frit_builder_nfa(a->builder, *rule);
    frit_fragment part = frit_nfa_text(nfa, format < 0 ? f->reply_open : f->raw_open);
    if (format < 0) part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, a->gap));
    part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, text));
    if (format < 0) part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, a->gap));
    if (format < 0) part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, f->reply_close));
    return end_rule(a->builder, *rule, part);
}

static frit_status add_marked(answer_rules *a)
{
    const frit_answer_grammar *o = a->o;
    const marks m = marks_of(o->format);
    const bool is_object = frit_answer_is_object(o->format, o->tools, o->continues);
    const frit_str both[] = {m.first, m.other};
    const frit_schema_form form = {.without = both,
                                   .n_without = !o->tools || is_object || m.first.len == 0 ? 0
                                                : m.other.len > 0                          ? 2
                                                                                           : 1};
    int32_t rest = -1, format = -1;
    if (o->add_format && !o->must_call) FRIT_TRY(o->add_format(o->ctx, a->builder, &form, &format));
    FRIT_TRY(add_gap(a));
    FRIT_TRY(add_reasoning(a));
    if (is_object && !o->must_call) FRIT_TRY(add_reply(a, format, &format));
    const bool can_call = o->tools && o->format->style != CALL_NONE && !(o->continues && m.first.len == 0);
    if (can_call) FRIT_TRY(frit_answer_add_calls(a, m.first.len, &rest));
    a->root = frit_builder_rule_new(a->builder, "an answer");
    if (a->root < 0) return a->builder->failed;
    return o->must_call || o->add_format || is_object ? add_bound(a, m, rest, format) : add_free(a, m, rest);
}

// ------------------------------------------------------------------------------------- compiling

frit_status frit_answer_compile(frit_automaton **out, const frit_answer_grammar *o)
{
    *out = NULL;
    const bool has_calls = o->format->style != CALL_NONE;
    if (o->must_call && !has_calls)
        return frit_fail_at(FRIT_E_UNSUPPORTED, "tool_choice", FRIT_CODE_UNSUPPORTED_VALUE,
                            "the format of this model's calls is not known; a call cannot be required");
    if (o->must_call && o->continues)
        return frit_fail_at(FRIT_E_INVALID, "tool_choice", FRIT_CODE_INVALID_VALUE,
                            "asks for a call, and continue_final_message for a text");
    frit_rule_builder builder = {.budget = o->budget};
    answer_rules a = {.o = o, .builder = &builder, .root = -1};
    frit_status status = o->format->style == CALL_CHANNELS ? frit_answer_add_channels(&a) : add_marked(&a);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, a.root);
    frit_builder_free(&builder);
    return status;
}
