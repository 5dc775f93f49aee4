// SPDX-License-Identifier: MIT
// JSON texts of scalars: strings with JSON's escapes, numbers, null, true and false; and the space between the parts of
// arrays and objects.
#include "grammar/schema/schema.h"

#include "text/answer/format.h"

#include <string.h>

// ------------------------------------------------------------------------------------- shared rules

// Makes an empty text, a space, or a new line with up to 20 spaces or tabs.
static frit_fragment space_part(frit_nfa *nfa)
{
    const frit_fragment all = frit_nfa_none(nfa);
    frit_nfa_or(nfa, all, frit_nfa_empty(nfa));
    frit_nfa_or(nfa, all, frit_nfa_bytes(nfa, ' ', ' '));
    const frit_fragment line = frit_nfa_bytes(nfa, '\n', '\n');
    frit_fragment blank = frit_nfa_none(nfa);
    frit_nfa_or(nfa, blank, frit_nfa_bytes(nfa, ' ', ' '));
    blank = frit_nfa_or(nfa, blank, frit_nfa_bytes(nfa, '\t', '\t'));
    return frit_nfa_or(nfa, all, frit_nfa_seq(nfa, line, frit_nfa_repeat(nfa, blank, 0, 20)));
}

static frit_fragment number_part(frit_nfa *nfa, bool complete)
{
    const int32_t most = complete ? FRIT_NO_LIMIT : 15;
    frit_fragment part = frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '-', '-'), 0, 1);
    const frit_fragment whole = frit_nfa_none(nfa);
    frit_nfa_or(nfa, whole, frit_nfa_bytes(nfa, '0', '0'));
    const frit_fragment first = frit_nfa_bytes(nfa, '1', '9');
    frit_nfa_or(nfa, whole, frit_nfa_seq(nfa, first, frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 0, most)));
    part = frit_nfa_seq(nfa, part, whole);
    frit_fragment fraction = frit_nfa_bytes(nfa, '.', '.');
    fraction = frit_nfa_seq(nfa, fraction, frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 1, most));
    part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, fraction, 0, 1));
    frit_fragment power = frit_nfa_byte_of(nfa, "eeEE");
    power = frit_nfa_seq(nfa, power, frit_nfa_repeat(nfa, frit_nfa_byte_of(nfa, "++--"), 0, 1));
    power = frit_nfa_seq(nfa, power, frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 1, complete ? most : 2));
    return frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, power, 0, 1));
}

static frit_status shared_rule(schema *s, int32_t *rule, bool number)
{
    if (*rule >= 0) return FRIT_OK;
    *rule = frit_builder_rule_new(s->builder, number ? "number" : "space");
    if (*rule < 0) return s->builder->failed;
    frit_nfa *nfa = frit_builder_nfa(s->builder, *rule);
    frit_builder_define(s->builder, *rule, number ? number_part(nfa, s->complete) : space_part(nfa));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- texts of strings

// Adds the edges of one byte of a string's content in JSON.
static void add_escaped(frit_nfa *nfa, int32_t from, int byte, int32_t to)
{
    static const char special[] = "\"\\/\b\f\n\r\t", names[] = "\"\\/bfnrt", hex[] = "0123456789abcdef";
    const char *at = byte ? strchr(special, byte) : NULL;
    const int32_t slash = frit_nfa_state(nfa);
    frit_nfa_add(nfa, from, '\\', '\\', slash);
    if (at) frit_nfa_add(nfa, slash, names[at - special], names[at - special], to);
    if (byte >= ' ') return;
    int32_t state = slash;
    const char digits[] = {'u', '0', '0', byte >= 16 ? '1' : '0', hex[byte & 15]};
    for (int i = 0; i < 5; i++) {
        const int32_t next = i == 4 ? to : frit_nfa_state(nfa);
        frit_nfa_add(nfa, state, digits[i], digits[i], next);
        if (digits[i] >= 'a' && i > 0) frit_nfa_add(nfa, state, digits[i] - 32, digits[i] - 32, next);
        state = next;
    }
}

// Adds the edges of bytes low to high of a string's content.
static void add_content(frit_nfa *nfa, int32_t from, int low, int high, int32_t to)
{
    for (int b = low; b <= high;) {
        const bool plain = b >= ' ' && b != '"' && b != '\\';
        int end = b;
        while (plain && end < high && end + 1 != '"' && end + 1 != '\\') end++;
        if (plain) frit_nfa_add(nfa, from, b, end, to);
        if (!plain) add_escaped(nfa, from, b, to);
        if (b <= '/' && end >= '/') add_escaped(nfa, from, '/', to);
        b = end + 1;
    }
}

// Makes "..." with the language's texts.
static frit_fragment quoted(frit_nfa *nfa, const frit_dfa *dfa, bool zero)
{
    const frit_fragment part = frit_nfa_none(nfa);
    const int32_t base = nfa->n_states;
    for (int32_t s = 0; s < dfa->n_states; s++) frit_nfa_state(nfa);
    if (nfa->failed != FRIT_OK) return part;
    frit_nfa_add(nfa, part.in, '"', '"', base);
    for (int32_t s = 0; s < dfa->n_states; s++) {
        if (dfa->final[s]) frit_nfa_add(nfa, base + s, '"', '"', part.out);
        for (int32_t i = dfa->first[s]; i < dfa->first[s + 1]; i++)
            add_content(nfa, base + s, dfa->edges[i].low == 0 && !zero ? 1 : dfa->edges[i].low, dfa->edges[i].high,
                        base + dfa->edges[i].to);
    }
    return part;
}

frit_status frit_schema_name_part(schema *s, int32_t rule, const char *name, frit_fragment *out)
{
    language strings;
    if (s->form->n_without > 0) {
        FRIT_TRY(frit_language_text(s, frit_str_of(name), &strings));
        return frit_schema_string_part(s, rule, strings, out);
    }
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    *out = frit_nfa_bytes(nfa, '"', '"');
    for (; *name; name++) {
        const int32_t next = frit_nfa_state(nfa);
        add_content(nfa, out->out, (unsigned char)*name, (unsigned char)*name, next);
        out->out = next;
    }
    *out = frit_nfa_seq(nfa, *out, frit_nfa_bytes(nfa, '"', '"'));
    return FRIT_OK;
}

// Makes strings without marks of the form.
frit_status frit_schema_string_part(schema *s, int32_t rule, language keys, frit_fragment *out)
{
    if (frit_form_is(s, CALL_LOOSE)) return frit_form_text(s, rule, keys, out);
    if (s->form->n_without > 0) FRIT_TRY(frit_form_allow(s, &keys));
    if (keys.kind == LANGUAGE_NONE) {
        *out = frit_nfa_none(frit_builder_nfa(s->builder, rule));
        return FRIT_OK;
    }
    if (keys.kind == LANGUAGE_SOME) {
        *out = quoted(frit_builder_nfa(s->builder, rule), keys.dfa, s->complete);
        return FRIT_OK;
    }
    const bool counts = keys.kind == LANGUAGE_LENGTHS;
    int32_t string;
    FRIT_TRY(frit_schema_counted_rule(s, counts ? keys.low : 0, counts ? keys.high : NO_END, &string));
    *out = frit_nfa_call(frit_builder_nfa(s->builder, rule), string);
    return FRIT_OK;
}

frit_status frit_schema_space(schema *s)
{
    return shared_rule(s, &s->rule_space, false);
}

// ------------------------------------------------------------------------------------- scalars

// Restricts numbers to those that programs write, if the language has any: short ones, and integers without a point.
static frit_status nicer(schema *s, language *l)
{
    frit_dfa nice;
    language both;
    if (s->complete || l->kind != LANGUAGE_SOME) return FRIT_OK;
    if (s->nice.kind == LANGUAGE_NONE) {
        FRIT_TRY(frit_number_nice(s->budget, &nice));
        s->nice = frit_language_keep(s, &nice);
    }
    FRIT_TRY(frit_language_combine(s, *l, FRIT_DFA_AND, s->nice, frit_language_universe(s, TYPE_NUMBER), &both));
    if (both.kind != LANGUAGE_NONE) *l = both;
    return FRIT_OK;
}

frit_status frit_schema_scalar_part(schema *s, int32_t rule, schema_type type, language l, frit_fragment *part)
{
    static const char *const texts[] = {"null", "true", "false"};
    if (type == TYPE_STRING) return frit_schema_string_part(s, rule, l, part);
    if (type == TYPE_NUMBER) FRIT_TRY(nicer(s, &l));
    if (type == TYPE_NUMBER && l.kind == LANGUAGE_ALL) FRIT_TRY(shared_rule(s, &s->rule_number, true));
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    if (type != TYPE_NUMBER)
        *part = frit_nfa_text(nfa, frit_str_of(texts[type]));
    else
        *part = l.kind == LANGUAGE_ALL ? frit_nfa_call(nfa, s->rule_number) : frit_nfa_dfa(nfa, l.dfa);
    return FRIT_OK;
}
