// SPDX-License-Identifier: MIT
// JSON texts of values that hold no others: strings as JSON escapes them, numbers, null, true and false; and the space
// between the parts of arrays and objects.
#include "grammar/schema.h"

#include "text/answer/format.h"

#include <string.h>

// ------------------------------------------------------------------------------------- shared rules

// Nothing, a space, or a new line with up to 20 spaces or tabs.
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

static frit_fragment hex_part(frit_nfa *nfa, const char *pairs)
{
    const frit_fragment all = frit_nfa_none(nfa);
    for (; *pairs; pairs += 2)
        frit_nfa_or(nfa, all, frit_nfa_bytes(nfa, (unsigned char)pairs[0], (unsigned char)pairs[1]));
    return all;
}

// \u0001 to \u0FFF after the first zero: the digits from the first that is not zero on.
static frit_fragment small_code_part(frit_nfa *nfa, int n_digits)
{
    static const char hex[] = "09AFaf", not_zero[] = "19AFaf";
    const frit_fragment all = frit_nfa_none(nfa);
    for (int zeros = 0; zeros < n_digits; zeros++) {
        frit_fragment part = frit_nfa_empty(nfa);
        for (int i = 0; i < n_digits; i++)
            part = frit_nfa_seq(nfa, part, hex_part(nfa, i < zeros ? "00" : i == zeros ? not_zero : hex));
        frit_nfa_or(nfa, all, part);
    }
    return all;
}

// `zero`: also that of the zero character, which C strings cannot hold.
static frit_fragment escape_part(frit_nfa *nfa, bool zero)
{
    static const char hex[] = "09AFaf";
    const frit_fragment all = frit_nfa_none(nfa);
    const frit_fragment small = frit_nfa_text(nfa, frit_str_of("u0"));
    if (!zero) frit_nfa_or(nfa, all, frit_nfa_seq(nfa, small, small_code_part(nfa, 3)));
    for (const char *c = "\"\\/bfnrt"; *c; c++)
        frit_nfa_or(nfa, all, frit_nfa_bytes(nfa, (unsigned char)*c, (unsigned char)*c));
    for (int kind = 0; kind < 3; kind++) {   // not D8-DF; D0-D7; a pair of surrogates
        frit_fragment part = frit_nfa_bytes(nfa, 'u', 'u');
        if (kind == 0) part = frit_nfa_seq(nfa, part, hex_part(nfa, zero ? "09ACEFacef" : "19ACEFacef"));
        if (kind > 0) part = frit_nfa_seq(nfa, part, hex_part(nfa, "DDdd"));
        if (kind == 0) part = frit_nfa_seq(nfa, part, hex_part(nfa, hex));
        if (kind == 1) part = frit_nfa_seq(nfa, part, hex_part(nfa, "07"));
        if (kind == 2) part = frit_nfa_seq(nfa, part, hex_part(nfa, "89ABab"));
        part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, hex_part(nfa, hex), 2, 2));
        if (kind == 2) {
            part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, frit_str_of("\\u")));
            part = frit_nfa_seq(nfa, part, hex_part(nfa, "DDdd"));
            part = frit_nfa_seq(nfa, part, hex_part(nfa, "CFcf"));
            part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, hex_part(nfa, hex), 2, 2));
        }
        frit_nfa_or(nfa, all, part);
    }
    return all;
}

static frit_fragment string_part(frit_nfa *nfa, bool zero)
{
    static const frit_range plain[] = {{' ', '!'}, {'#', '['}, {']', 0x10ffff}};
    frit_fragment part = frit_nfa_bytes(nfa, '"', '"');
    const frit_fragment one = frit_nfa_none(nfa);
    frit_nfa_or(nfa, one, frit_nfa_chars(nfa, plain, FRIT_COUNT(plain)));
    const frit_fragment slash = frit_nfa_bytes(nfa, '\\', '\\');
    frit_nfa_or(nfa, one, frit_nfa_seq(nfa, slash, escape_part(nfa, zero)));
    part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, one, 0, FRIT_NO_LIMIT));
    return frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, '"', '"'));
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
    frit_fragment power = hex_part(nfa, "eeEE");
    power = frit_nfa_seq(nfa, power, frit_nfa_repeat(nfa, hex_part(nfa, "++--"), 0, 1));
    power = frit_nfa_seq(nfa, power, frit_nfa_repeat(nfa, frit_nfa_bytes(nfa, '0', '9'), 1, complete ? most : 2));
    return frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, power, 0, 1));
}

static frit_status shared_rule(schema *s, int32_t *rule, int which)
{
    static const char *const names[] = {"space", "string", "number"};
    if (*rule >= 0) return FRIT_OK;
    *rule = frit_draft_rule_new(s->draft, names[which]);
    if (*rule < 0) return s->draft->failed;
    frit_nfa *nfa = frit_draft_nfa(s->draft, *rule);
    frit_draft_define(s->draft, *rule,
                      which == 0   ? space_part(nfa)
                      : which == 1 ? string_part(nfa, s->complete)
                                   : number_part(nfa, s->complete));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- texts of strings

// The edges of one byte of a string's content, as JSON writes it.
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

// Bytes low to high of a string's content.
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

// "..." with the language's texts.
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

// Strings, without the marks of the form.
frit_status frit_schema_string_part(schema *s, int32_t rule, language keys, frit_fragment *out)
{
    if (frit_form_is(s, CALL_LOOSE)) return frit_form_text(s, rule, keys, out);
    if (s->form->n_without > 0) FRIT_TRY(frit_form_allow(s, &keys));
    if (keys.kind == LANGUAGE_NONE) {
        *out = frit_nfa_none(frit_draft_nfa(s->draft, rule));
        return FRIT_OK;
    }
    if (keys.kind == LANGUAGE_SOME) {
        *out = quoted(frit_draft_nfa(s->draft, rule), keys.dfa, s->complete);
        return FRIT_OK;
    }
    FRIT_TRY(shared_rule(s, &s->rule_string, 1));
    *out = frit_nfa_call(frit_draft_nfa(s->draft, rule), s->rule_string);
    return FRIT_OK;
}

frit_status frit_schema_space(schema *s)
{
    return shared_rule(s, &s->rule_space, 0);
}

// ------------------------------------------------------------------------------------- scalars

// Numbers as programs write them, where the language has such: short, whole numbers without a point.
static frit_status nicer(schema *s, language *l)
{
    frit_dfa nice;
    language both;
    if (s->complete || l->kind != LANGUAGE_SOME) return FRIT_OK;
    FRIT_TRY(frit_number_nice(&nice));
    FRIT_TRY(frit_language_combine(s, *l, FRIT_DFA_AND, frit_language_keep(s, &nice),
                                   frit_language_universe(s, TYPE_NUMBER), &both));
    if (both.kind != LANGUAGE_NONE) *l = both;
    return FRIT_OK;
}

frit_status frit_schema_scalar_part(schema *s, int32_t rule, schema_type type, language l, frit_fragment *part)
{
    static const char *const texts[] = {"null", "true", "false"};
    if (type == TYPE_STRING) return frit_schema_string_part(s, rule, l, part);
    if (type == TYPE_NUMBER) FRIT_TRY(nicer(s, &l));
    if (type == TYPE_NUMBER && l.kind == LANGUAGE_ALL) FRIT_TRY(shared_rule(s, &s->rule_number, 2));
    frit_nfa *nfa = frit_draft_nfa(s->draft, rule);
    if (type != TYPE_NUMBER)
        *part = frit_nfa_text(nfa, frit_str_of(texts[type]));
    else
        *part = l.kind == LANGUAGE_ALL ? frit_nfa_call(nfa, s->rule_number) : frit_nfa_dfa(nfa, l.dfa);
    return FRIT_OK;
}
