// SPDX-License-Identifier: MIT
// Calls of tools in the styles of text/answer/format.h that have marks.
#include "grammar/answer_parts.h"

#include "text/answer/values.h"

#include <stdlib.h>

const json_t *frit_answer_tool(const answer_rules *a, size_t *at, const char **name)
{
    for (; *at < json_array_size(a->o->tools); (*at)++) {
        const json_t *function = json_object_get(json_array_get(a->o->tools, *at), "function");
        *name = json_string_value(json_object_get(function, "name"));
        if (*name && (!a->o->only || strcmp(*name, a->o->only) == 0)) return function;
    }
    return NULL;
}

// Prefixes the last error with the parameters of the at-th tool.
static frit_status fail_at_tool(size_t at, frit_status status)
{
    const frit_field field = frit_field_name("tools[%zu].function.parameters", at);
    const char *code = status == FRIT_E_UNSUPPORTED ? FRIT_CODE_UNSUPPORTED_VALUE : FRIT_CODE_INVALID_VALUE;
    return frit_fail_at(status, field.text, code, "%s", frit_error());
}

frit_status frit_answer_add_arguments(answer_rules *a, size_t at, const frit_schema_form *form, int32_t *rule)
{
    const json_t *function = json_object_get(json_array_get(a->o->tools, at), "function");
    const frit_schema_options options = {.open_objects = a->o->open_objects};
    json_t *given = json_object_get(function, "parameters");
    json_t *none = json_pack("{s:s, s:b}", "type", "object", "additionalProperties", 0);   // a tool without parameters
    json_t *any = json_pack("{s:s}", "type", "object");
    frit_status status = none && any ? FRIT_OK : frit_fail_memory(sizeof *function, "a tool's arguments");
    if (status == FRIT_OK)
        status = frit_schema_add(a->builder, json_is_object(given) ? given : none, &options, form, rule);
    // Tools that are not strict may have schemas that a grammar cannot express.
    const bool is_strict = json_is_true(json_object_get(function, "strict"));
    if (status != FRIT_OK && status != FRIT_E_MEMORY && a->builder->budget.failed == FRIT_OK && !is_strict)
        status = frit_schema_add(a->builder, any, NULL, form, rule);
    json_decref(none);
    json_decref(any);
    return status == FRIT_OK || status == FRIT_E_MEMORY || status == FRIT_E_CANCELLED ? status
                                                                                      : fail_at_tool(at, status);
}

// ------------------------------------------------------------------------------------- one call

static frit_fragment gap(const answer_rules *a, frit_nfa *nfa, frit_fragment before)
{
    return frit_nfa_seq(nfa, before, frit_nfa_call(nfa, a->gap));
}

static frit_fragment then_text(frit_nfa *nfa, frit_fragment before, const char *text)
{
    return frit_nfa_seq(nfa, before, frit_nfa_text(nfa, frit_str_of(text)));
}

static frit_fragment then_quoted(frit_nfa *nfa, frit_fragment before, frit_str text)
{
    frit_buf quoted = {0};
    frit_json_quote(text, &quoted);
    if (quoted.failed) nfa->failed = frit_fail_memory(text.len, "a tool's name");
    before = frit_nfa_seq(nfa, before, frit_nfa_text(nfa, (frit_str){quoted.data ? quoted.data : "", quoted.len}));
    frit_buf_free(&quoted);
    return before;
}

// Appends an id of nine letters and digits.
static frit_fragment then_id(frit_nfa *nfa, frit_fragment before)
{
    const frit_fragment one = frit_nfa_none(nfa);
    frit_nfa_or(nfa, one, frit_nfa_bytes(nfa, 'a', 'z'));
    frit_nfa_or(nfa, one, frit_nfa_bytes(nfa, 'A', 'Z'));
    frit_nfa_or(nfa, one, frit_nfa_bytes(nfa, '0', '9'));
    return frit_nfa_seq(nfa, before, frit_nfa_repeat(nfa, one, 9, 9));
}

static frit_fragment optional(frit_nfa *nfa, frit_fragment before, frit_fragment part)
{
    frit_nfa_add(nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, part.out);
    return frit_nfa_seq(nfa, before, part);
}

// Appends "KEY": and a gap.
static frit_fragment then_key(const answer_rules *a, frit_nfa *nfa, frit_fragment before, frit_str key)
{
    before = then_quoted(nfa, before, key);
    return gap(a, nfa, then_text(nfa, before, ":"));
}

static frit_fragment id_member(const answer_rules *a, frit_nfa *nfa, bool is_last)
{
    frit_fragment part = is_last ? gap(a, nfa, frit_nfa_text(nfa, frit_str_of(","))) : frit_nfa_empty(nfa);
    part = then_text(nfa, then_key(a, nfa, part, a->o->format->id_key), "\"");
    part = then_text(nfa, then_id(nfa, part), "\"");
    return is_last ? part : gap(a, nfa, then_text(nfa, part, ","));
}

static frit_fragment json_call(const answer_rules *a, frit_nfa *nfa, const char *name, int32_t arguments)
{
    const answer_format *f = a->o->format;
    frit_fragment part = frit_nfa_text(nfa, frit_str_of("{"));
    part = gap(a, nfa, part);
    if (f->name_key.len == 0) {
        part = then_key(a, nfa, part, frit_str_of(name));
    } else {
        if (f->id_key.len > 0) part = optional(nfa, part, id_member(a, nfa, false));
        part = then_quoted(nfa, then_key(a, nfa, part, f->name_key), frit_str_of(name));
        part = then_key(a, nfa, gap(a, nfa, then_text(nfa, part, ",")), f->args_key);
    }
    part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, arguments));
    if (f->name_key.len > 0 && f->id_key.len > 0) part = optional(nfa, part, id_member(a, nfa, true));
    return then_text(nfa, gap(a, nfa, part), "}");
}

static bool ends_with(frit_str text, const char *part)
{
    const size_t n = strlen(part);
    return text.len >= n && memcmp(text.ptr + text.len - n, part, n) == 0;
}

static frit_fragment named_call(const answer_rules *a, frit_nfa *nfa, const char *name, int32_t arguments)
{
    const answer_format *f = a->o->format;
    frit_fragment part = frit_nfa_text(nfa, frit_str_of(name));
    if (ends_with(f->call_open, "functions.")) {   // functions.NAME:0
        const frit_fragment colon = frit_nfa_text(nfa, frit_str_of(":"));
        const frit_fragment digits = frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 1, 3);
        part = optional(nfa, part, frit_nfa_seq(nfa, colon, digits));
    }
    if (f->id_open.len > 0) part = optional(nfa, part, then_id(nfa, frit_nfa_text(nfa, f->id_open)));
    part = frit_nfa_seq(nfa, gap(a, nfa, part), frit_nfa_text(nfa, f->args_open));
    return frit_nfa_seq(nfa, gap(a, nfa, part), frit_nfa_call(nfa, arguments));
}

static frit_fragment one_call(const answer_rules *a, frit_nfa *nfa, const char *name, int32_t arguments)
{
    const answer_format *f = a->o->format;
    if (f->style == CALL_JSON) return json_call(a, nfa, name, arguments);
    if (f->style == CALL_NAMED) return named_call(a, nfa, name, arguments);
    frit_fragment part = frit_nfa_text(nfa, frit_str_of(name));
    if (f->style == CALL_PYTHON) part = then_text(nfa, part, "(");
    if (f->style == CALL_TAGGED) part = frit_nfa_seq(nfa, gap(a, nfa, part), frit_nfa_text(nfa, f->name_close));
    if (f->style != CALL_LOOSE) part = gap(a, nfa, part);
    part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, arguments));
    return f->style == CALL_PYTHON ? then_text(nfa, gap(a, nfa, part), ")") : part;
}

static frit_status check_name(const answer_rules *a, size_t at, const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    if (a->o->format->style == CALL_JSON || (n > 0 && n <= 200 && !name[n])) return FRIT_OK;
    return frit_fail_at(FRIT_E_UNSUPPORTED, frit_field_name("tools[%zu].function.name", at).text,
                        FRIT_CODE_UNSUPPORTED_VALUE,
                        "'%.64s' cannot be written in this model's calls; expected letters, digits, _, - and .", name);
}

// Adds a rule for a call of any of the tools.
static frit_status add_one(answer_rules *a, int32_t *rule)
{
    const answer_format *f = a->o->format;
    const frit_schema_form form = {.arguments = f, .without = &f->value_close, .n_without = f->style == CALL_TAGGED};
    const size_t n = json_array_size(a->o->tools);
    int32_t *arguments = calloc(n + 1, sizeof *arguments);
    const char *name;
    frit_status status = arguments ? FRIT_OK : frit_fail_memory(n * sizeof *arguments, "the tools of an answer");
    for (size_t i = 0; status == FRIT_OK && frit_answer_tool(a, &i, &name); i++) {
        status = check_name(a, i, name);
        if (status == FRIT_OK) status = frit_answer_add_arguments(a, i, &form, &arguments[i]);
    }
    *rule = status == FRIT_OK ? frit_builder_rule_new(a->builder, "a call") : 0;
    if (*rule < 0) status = a->builder->failed;
    if (status == FRIT_OK) {
        frit_nfa *nfa = frit_builder_nfa(a->builder, *rule);
        const frit_fragment all = frit_nfa_none(nfa);
        for (size_t i = 0; frit_answer_tool(a, &i, &name); i++)
            frit_nfa_or(nfa, all, one_call(a, nfa, name, arguments[i]));
        frit_builder_define(a->builder, *rule, all);
        status = frit_nfa_check(nfa);
    }
    free(arguments);
    return status;
}

// ------------------------------------------------------------------------------------- all calls

// Makes one or more of a part, separated by `between`.
static frit_fragment many(const answer_rules *a, frit_nfa *nfa, frit_fragment before, frit_fragment part,
                          const char *between)
{
    if (!a->o->one_call) {
        const frit_fragment again = gap(a, nfa, frit_nfa_text(nfa, frit_str_of(between)));
        frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, again.in);
        frit_nfa_add(nfa, again.out, FRIT_EPSILON, FRIT_EPSILON, part.in);
    }
    return frit_nfa_seq(nfa, before, part);
}

static frit_fragment mark(const answer_rules *a, frit_nfa *nfa, frit_fragment before, frit_str text)
{
    return text.len == 0 ? before : gap(a, nfa, frit_nfa_seq(nfa, before, frit_nfa_text(nfa, text)));
}

// Makes a closing mark. The gap comes before it, so that nothing needs to follow the last mark.
static frit_fragment closing_mark(const answer_rules *a, frit_nfa *nfa, frit_fragment before, frit_str text)
{
    return text.len == 0 ? before : frit_nfa_seq(nfa, gap(a, nfa, before), frit_nfa_text(nfa, text));
}

frit_status frit_answer_add_calls(answer_rules *a, size_t skip, int32_t *rule)
{
    const answer_format *f = a->o->format;
    int32_t one;
    FRIT_TRY(add_one(a, &one));
    *rule = frit_builder_rule_new(a->builder, "calls");
    if (*rule < 0) return a->builder->failed;
    frit_nfa *nfa = frit_builder_nfa(a->builder, *rule);
    const bool has_section = f->section_open.len > 0, has_marks = f->call_open.len > 0;
    const bool in_list = f->style == CALL_PYTHON || f->in_list;
    const frit_str opening = has_section ? f->section_open : f->call_open;
    // The first mark, of which `skip` bytes have been read.
    frit_fragment part = frit_nfa_empty(nfa);
    if (opening.len > 0) part = mark(a, nfa, part, (frit_str){opening.ptr + skip, opening.len - skip});
    if (opening.len > 0 && opening.len == skip) part = gap(a, nfa, part);
    frit_fragment call = frit_nfa_call(nfa, one);
    if (in_list) {
        frit_fragment list = frit_nfa_text(nfa, frit_str_of("["));
        list = many(a, nfa, list, call, ",");
        call = then_text(nfa, gap(a, nfa, list), "]");
    }
    if (has_section && has_marks) {
        call = closing_mark(a, nfa, frit_nfa_seq(nfa, mark(a, nfa, frit_nfa_empty(nfa), f->call_open), call),
                            f->call_close);
        part = in_list ? frit_nfa_seq(nfa, part, call) : many(a, nfa, part, call, "");
    } else if (has_section) {
        call = closing_mark(a, nfa, call, f->call_close);
        part = in_list ? frit_nfa_seq(nfa, part, call) : many(a, nfa, part, call, ",");
    } else if (has_marks && !in_list && !a->o->one_call) {
        part = closing_mark(a, nfa, frit_nfa_seq(nfa, part, call), f->call_close);
        // The mark of further calls is read in full.
        const frit_fragment again = mark(a, nfa, gap(a, nfa, frit_nfa_empty(nfa)), f->call_open);
        frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, again.in);
        frit_nfa_add(nfa, again.out, FRIT_EPSILON, FRIT_EPSILON, call.in);
    } else {
        part = closing_mark(a, nfa, frit_nfa_seq(nfa, part, call), f->call_close);
    }
    frit_builder_define(a->builder, *rule, closing_mark(a, nfa, part, f->section_close));
    return frit_nfa_check(nfa);
}
