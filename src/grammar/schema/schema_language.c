// SPDX-License-Identifier: MIT
// Languages of sets for scalar types. Null, true and false have one text, so their languages are all or none.
#include "grammar/schema/schema.h"

#include "grammar/regex.h"

#include <stdlib.h>

static const language none = {.kind = LANGUAGE_NONE}, all = {.kind = LANGUAGE_ALL};

language frit_language_keep(schema *s, frit_dfa *dfa)
{
    enum { COMPARED = 256 };
    if (frit_dfa_is_empty(dfa)) {
        frit_dfa_free(dfa);
        return none;
    }
    if (frit_budget_spend(s->budget, COMPARED / 4) != FRIT_OK) s->arena.failed = true;
    for (int32_t i = s->n_dfas; i-- > 0 && s->n_dfas - i <= COMPARED;) {
        if (s->dfas[i]->n_edges != dfa->n_edges) continue;
        if (frit_budget_spend(s->budget, dfa->n_edges) != FRIT_OK) s->arena.failed = true;
        if (!frit_dfa_same(s->dfas[i], dfa)) continue;
        frit_dfa_free(dfa);
        return (language){.kind = LANGUAGE_SOME, .dfa = s->dfas[i]};
    }
    frit_dfa *copy = NULL;
    if (frit_schema_grow(s, &s->dfas, s->n_dfas, &s->dfas_room, sizeof(frit_dfa *)) == FRIT_OK)
        copy = malloc(sizeof *copy);
    if (!copy) {
        frit_dfa_free(dfa);
        s->arena.failed = true;
        return none;
    }
    *copy = *dfa;
    s->dfas[s->n_dfas++] = copy;
    return (language){.kind = LANGUAGE_SOME, .dfa = copy};
}

static frit_status keep(schema *s, frit_status status, frit_dfa *dfa, language *out)
{
    FRIT_TRY(status);
    *out = frit_language_keep(s, dfa);
    return s->arena.failed ? frit_schema_no_memory(s) : FRIT_OK;
}

const frit_dfa *frit_language_universe(schema *s, schema_type type)
{
    static const frit_range any = {0, 0x10ffff};
    frit_dfa dfa = {0};
    if (type != TYPE_NUMBER && type != TYPE_STRING) return NULL;
    frit_dfa **known = &s->universe[type == TYPE_STRING];
    if (*known) return *known;
    frit_status status;
    if (type == TYPE_NUMBER) {
        status = frit_number_universe(s->budget, &dfa);
    } else {
        frit_nfa nfa = {.budget = s->budget};
        status = frit_dfa_new(&dfa, &nfa, frit_nfa_repeat(&nfa, frit_nfa_chars(&nfa, &any, 1), 0, FRIT_NO_LIMIT));
        frit_nfa_free(&nfa);
    }
    if (status == FRIT_OK) *known = frit_language_keep(s, &dfa).dfa;
    return *known;
}

static language lengths(int32_t low, int32_t high)
{
    if (low > high) return none;
    return low == 0 && high == NO_END ? all : (language){.kind = LANGUAGE_LENGTHS, .low = low, .high = high};
}

frit_status frit_language_dfa(schema *s, language *l, const frit_dfa **out)
{
    static const frit_range any = {0, 0x10ffff};
    frit_nfa nfa = {.budget = s->budget};
    frit_dfa dfa;
    if (l->kind == LANGUAGE_LENGTHS) {
        const frit_fragment part =
            frit_nfa_repeat(&nfa, frit_nfa_chars(&nfa, &any, 1), l->low, l->high == NO_END ? FRIT_NO_LIMIT : l->high);
        const frit_status status = frit_dfa_new(&dfa, &nfa, part);
        frit_nfa_free(&nfa);
        FRIT_TRY(keep(s, status, &dfa, l));
    }
    *out = l->kind == LANGUAGE_SOME ? l->dfa : NULL;
    return FRIT_OK;
}

frit_status frit_language_combine(schema *s, language a, frit_dfa_op op, language b, const frit_dfa *universe,
                                  language *out)
{
    frit_dfa dfa;
    const frit_dfa *x, *y;
    *out = none;
    if (op == FRIT_DFA_AND && (a.kind == LANGUAGE_NONE || b.kind == LANGUAGE_NONE)) return FRIT_OK;
    if (op == FRIT_DFA_MINUS && (a.kind == LANGUAGE_NONE || b.kind == LANGUAGE_ALL)) return FRIT_OK;
    *out = all;
    if (op == FRIT_DFA_OR && (a.kind == LANGUAGE_ALL || b.kind == LANGUAGE_ALL)) return FRIT_OK;
    *out = a;
    if (b.kind == (op == FRIT_DFA_AND ? LANGUAGE_ALL : LANGUAGE_NONE)) return FRIT_OK;
    *out = b;
    if (op != FRIT_DFA_MINUS && a.kind == (op == FRIT_DFA_AND ? LANGUAGE_ALL : LANGUAGE_NONE)) return FRIT_OK;
    if (op == FRIT_DFA_AND && a.kind == LANGUAGE_LENGTHS && b.kind == LANGUAGE_LENGTHS) {
        *out = lengths(a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high);
        return FRIT_OK;
    }
    if (!universe) return frit_fail(FRIT_E_INTERNAL, "JSON schema: a language without a universe");
    FRIT_TRY(frit_language_dfa(s, &a, &x));
    FRIT_TRY(frit_language_dfa(s, &b, &y));
    if (!x) x = universe;
    if (x == y && op == FRIT_DFA_MINUS) *out = none;
    if (x == y) return FRIT_OK;
    struct combined *known = &s->combined[((uintptr_t)x / 16 * 31 + (uintptr_t)y / 16 + op) % FRIT_COUNT(s->combined)];
    if (known->a == x && known->b == y && known->op == op) {
        *out = known->out;
        return FRIT_OK;
    }
    FRIT_TRY(keep(s, frit_dfa_combine(&dfa, x, op, y), &dfa, out));
    *known = (struct combined){x, y, op, *out};
    return FRIT_OK;
}

frit_status frit_language_strings(schema *s, language a, frit_dfa_op op, language b, language *out)
{
    return frit_language_combine(s, a, op, b, frit_language_universe(s, TYPE_STRING), out);
}

frit_status frit_language_text(schema *s, frit_str text, language *out)
{
    frit_nfa nfa = {.budget = s->budget};
    frit_dfa dfa;
    const frit_status status = frit_dfa_new(&dfa, &nfa, frit_nfa_text(&nfa, text));
    frit_nfa_free(&nfa);
    return keep(s, status, &dfa, out);
}

frit_status frit_schema_keys_of_pattern(schema *s, const char *pattern, language *out)
{
    frit_dfa dfa;
    return keep(s, frit_regex_language(s->budget, &dfa, frit_str_of(pattern), true), &dfa, out);
}

// ------------------------------------------------------------------------------------- keywords

static frit_status and_language(schema *s, language *a, language b, schema_type type)
{
    return frit_language_combine(s, *a, FRIT_DFA_AND, b, frit_language_universe(s, type), a);
}

static frit_status negate(schema *s, language *a, schema_type type)
{
    return frit_language_combine(s, all, FRIT_DFA_MINUS, *a, frit_language_universe(s, type), a);
}

static schema_type type_of(json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return TYPE_NULL;
    case JSON_TRUE:
        return TYPE_TRUE;
    case JSON_FALSE:
        return TYPE_FALSE;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_OBJECT:
        return TYPE_OBJECT;
    default:
        return TYPE_NUMBER;
    }
}

static frit_status number_bound(schema *s, json_t *bound, bool more, bool invert, language *out)
{
    frit_dfa dfa;
    FRIT_TRY(keep(s, frit_number_from(s->budget, bound, more, &dfa), &dfa, out));
    return invert ? negate(s, out, TYPE_NUMBER) : FRIT_OK;
}

// Makes all constants of a type at once, because lists are long.
static frit_status of_constants(schema *s, json_t *const *values, size_t n, schema_type type, language *out)
{
    frit_nfa nfa = {.budget = s->budget};
    frit_dfa dfa;
    const frit_fragment any = frit_nfa_none(&nfa), zeros = frit_number_zeros(&nfa);
    bool found = false;
    frit_nfa_add(&nfa, zeros.out, FRIT_EPSILON, FRIT_EPSILON, any.out);
    frit_status status = frit_budget_spend(s->budget, (int64_t)n);
    for (size_t i = 0; status == FRIT_OK && i < n; i++) {
        if (type_of(values[i]) != type) continue;
        found = true;
        const frit_str text = {json_string_value(values[i]), json_string_length(values[i])};
        if (type == TYPE_STRING) frit_nfa_or(&nfa, any, frit_nfa_text(&nfa, text));
        if (type == TYPE_NUMBER) status = frit_number_equal(values[i], &nfa, any, zeros);
        if (status == FRIT_OK) status = frit_nfa_check(&nfa);
    }
    *out = found ? all : none;
    if (status == FRIT_OK && found && (type == TYPE_STRING || type == TYPE_NUMBER))
        status = keep(s, frit_dfa_new(&dfa, &nfa, any), &dfa, out);
    frit_nfa_free(&nfa);
    return status;
}

static frit_status of_constant(schema *s, json_t *value, schema_type type, language *out)
{
    return of_constants(s, &value, 1, type, out);
}

static frit_status of_type(schema *s, json_t *value, schema_type type, language *out)
{
    bool types[N_TYPES], integer;
    frit_dfa dfa;
    if (!frit_schema_types(value, types, &integer)) return frit_schema_bad_type(value);
    *out = types[type] ? all : none;
    if (type != TYPE_NUMBER || types[type] || !integer) return FRIT_OK;
    if (s->integers.kind == LANGUAGE_NONE) FRIT_TRY(keep(s, frit_number_integers(s->budget, &dfa), &dfa, &s->integers));
    *out = s->integers;
    return FRIT_OK;
}

static frit_status of_lengths(json_t *min, json_t *max, language *out)
{
    const double low = json_number_value(min), high = max ? json_number_value(max) : -1;
    *out = none;
    if (max && high < low) return FRIT_OK;
    if (low > 50000 || high > 50000) return frit_schema_fail(max ? "maxLength" : "minLength", "is above 50000");
    *out = lengths(low > 0 ? (int32_t)low : 0, max ? (int32_t)high : NO_END);
    return FRIT_OK;
}

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])"},
    {"time", "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"},
    {"date-time", "\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?"
                  "(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"},
    {"duration", "P(\\d{1,9}W|(\\d{1,9}Y(\\d{1,9}M(\\d{1,9}D)?)?|\\d{1,9}M(\\d{1,9}D)?|\\d{1,9}D)"
                 "(T(\\d{1,9}H(\\d{1,9}M(\\d{1,9}S)?)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S))?"
                 "|T(\\d{1,9}H(\\d{1,9}M(\\d{1,9}S)?)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S))"},
    {"email", "[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
              "(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?){1,4}"},
    {"hostname", "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?){0,4}"},
    {"ipv4", "((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"},
    {"ipv6", "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,2})?::"
             "([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){0,2})?"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uri", "[a-zA-Z][a-zA-Z0-9+.-]*://[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*(:\\d{1,5})?(/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*"
            "(\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?"},
};

static frit_status of_format(schema *s, json_t *value, language *out)
{
    frit_dfa dfa;
    *out = all;
    for (size_t i = 0; i < FRIT_COUNT(formats) && !s->ignore_formats && json_is_string(value); i++)
        if (strcmp(formats[i].name, json_string_value(value)) == 0)
            return keep(s, frit_regex_language(s->budget, &dfa, frit_str_of(formats[i].pattern), false), &dfa, out);
    return FRIT_OK;
}

static frit_status of_string_keywords(schema *s, json_t *value, language *out)
{
    json_t *min = json_object_get(value, "minLength"), *max = json_object_get(value, "maxLength");
    json_t *pattern = json_object_get(value, "pattern"), *format = json_object_get(value, "format");
    language one;
    if (min || max) {
        FRIT_TRY(of_lengths(min, max, &one));
        FRIT_TRY(and_language(s, out, one, TYPE_STRING));
    }
    if (json_is_string(pattern)) {
        FRIT_TRY(frit_schema_keys_of_pattern(s, json_string_value(pattern), &one));
        FRIT_TRY(and_language(s, out, one, TYPE_STRING));
    }
    if (!format) return FRIT_OK;
    FRIT_TRY(of_format(s, format, &one));
    return and_language(s, out, one, TYPE_STRING);
}

static frit_status of_number_keywords(schema *s, json_t *value, language *out)
{
    static const struct {
        const char *keyword, *exclusive;   // exclusive is true or false in draft-04, where it is no bound of its own
        bool more, invert;
    } bounds[] = {{"minimum", "exclusiveMinimum", false, false},
                  {"exclusiveMinimum", NULL, true, false},
                  {"maximum", "exclusiveMaximum", true, true},
                  {"exclusiveMaximum", NULL, false, true}};
    const bool may_be_flags = s->dialect == DRAFT_ANY || s->dialect == DRAFT_04;
    language one;
    for (size_t i = 0; i < FRIT_COUNT(bounds); i++) {
        json_t *bound = json_object_get(value, bounds[i].keyword);
        if (!bound || (may_be_flags && !bounds[i].exclusive && json_is_boolean(bound))) continue;
        const json_t *flag = may_be_flags && bounds[i].exclusive ? json_object_get(value, bounds[i].exclusive) : NULL;
        if (!json_is_number(bound))
            return frit_fail(FRIT_E_INVALID, "JSON schema: '%s' is not a number", bounds[i].keyword);
        FRIT_TRY(number_bound(s, bound, bounds[i].more != json_is_true(flag), bounds[i].invert, &one));
        FRIT_TRY(and_language(s, out, one, TYPE_NUMBER));
    }
    json_t *divisor = json_object_get(value, "multipleOf");
    frit_dfa dfa;
    if (!divisor) return FRIT_OK;
    FRIT_TRY(keep(s, frit_number_multiples(s->budget, divisor, &dfa), &dfa, &one));
    return and_language(s, out, one, TYPE_NUMBER);
}

// ------------------------------------------------------------------------------------- combinations

static frit_status of_schema(schema *s, json_t *value, const char *base, schema_type type, language *out);

static frit_status of_sub(schema *s, json_t *value, const char *base, schema_type type, language *out)
{
    FRIT_TRY(frit_budget_spend(s->budget, 100));
    if (++s->depth > SCHEMA_DEPTH)
        return frit_fail(FRIT_E_INVALID,
                         "JSON schema: more than %d subschemas of one value are in each other; one may refer to itself",
                         SCHEMA_DEPTH);
    *out = json_is_false(value) ? none : all;
    const frit_status status =
        json_is_object(value) ? of_schema(s, value, frit_schema_base(s, value, base), type, out) : FRIT_OK;
    s->depth--;
    return status;
}

static frit_status of_list(schema *s, json_t *list, const char *base, const char *how, schema_type type, language *out)
{
    const bool exactly_one = strcmp(how, "oneOf") == 0, every = strcmp(how, "allOf") == 0;
    const frit_dfa *universe = frit_language_universe(s, type);
    language so_far = every ? all : none, twice = none;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        language l, both;
        FRIT_TRY(of_sub(s, one, base, type, &l));
        FRIT_TRY(frit_language_combine(s, so_far, FRIT_DFA_AND, l, universe, &both));
        if (exactly_one) FRIT_TRY(frit_language_combine(s, twice, FRIT_DFA_OR, both, universe, &twice));
        if (every)
            so_far = both;
        else
            FRIT_TRY(frit_language_combine(s, so_far, FRIT_DFA_OR, l, universe, &so_far));
    }
    FRIT_TRY(frit_language_combine(s, so_far, FRIT_DFA_MINUS, twice, universe, &so_far));
    return and_language(s, out, so_far, type);
}

static frit_status of_if(schema *s, json_t *value, const char *base, schema_type type, language *out)
{
    const frit_dfa *universe = frit_language_universe(s, type);
    json_t *then = json_object_get(value, "then"), *other = json_object_get(value, "else");
    language condition, a = all, b = all, without;
    FRIT_TRY(of_sub(s, json_object_get(value, "if"), base, type, &condition));
    if (then) FRIT_TRY(of_sub(s, then, base, type, &a));
    if (other) FRIT_TRY(of_sub(s, other, base, type, &b));
    FRIT_TRY(frit_language_combine(s, a, FRIT_DFA_AND, condition, universe, &a));
    FRIT_TRY(frit_language_combine(s, b, FRIT_DFA_MINUS, condition, universe, &without));
    FRIT_TRY(frit_language_combine(s, a, FRIT_DFA_OR, without, universe, &a));
    return and_language(s, out, a, type);
}

static frit_status of_enum(schema *s, json_t *values, schema_type type, language *out)
{
    const size_t n = json_array_size(values);
    json_t **items = frit_schema_alloc(s, n, sizeof *items);
    language any;
    if (!items) return frit_schema_no_memory(s);
    for (size_t i = 0; i < n; i++) items[i] = json_array_get(values, i);
    FRIT_TRY(of_constants(s, items, n, type, &any));
    return and_language(s, out, any, type);
}

static frit_status of_references(schema *s, json_t *value, const char *base, schema_type type, language *out)
{
    static const char *const keywords[] = {"$ref", "$dynamicRef", "$recursiveRef"};
    for (size_t i = 0; i < FRIT_COUNT(keywords) && out->kind != LANGUAGE_NONE; i++) {
        resource target;
        language one;
        json_t *reference = json_object_get(value, keywords[i]);
        if (!reference) continue;
        FRIT_TRY(frit_schema_resolve(s, keywords[i], base, reference, &target));
        FRIT_TRY(of_sub(s, target.value, target.base, type, &one));
        FRIT_TRY(and_language(s, out, one, type));
    }
    return FRIT_OK;
}

static frit_status of_schema(schema *s, json_t *value, const char *base, schema_type type, language *out)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    language one;
    json_t *sub = json_object_get(value, "type");
    *out = all;
    if (frit_schema_is_reference(s, value)) return of_references(s, value, base, type, out);
    if (sub) FRIT_TRY(of_type(s, sub, type, out));
    sub = json_object_get(value, "const");
    if (sub) {
        FRIT_TRY(of_constant(s, sub, type, &one));
        FRIT_TRY(and_language(s, out, one, type));
    }
    sub = json_object_get(value, "enum");
    if (sub) FRIT_TRY(of_enum(s, sub, type, out));
    if (type == TYPE_STRING) FRIT_TRY(of_string_keywords(s, value, out));
    if (type == TYPE_NUMBER) FRIT_TRY(of_number_keywords(s, value, out));
    for (size_t i = 0; i < FRIT_COUNT(lists) && out->kind != LANGUAGE_NONE; i++)
        if ((sub = json_object_get(value, lists[i]))) FRIT_TRY(of_list(s, sub, base, lists[i], type, out));
    if ((sub = json_object_get(value, "not")) && out->kind != LANGUAGE_NONE) {
        FRIT_TRY(of_sub(s, sub, base, type, &one));
        FRIT_TRY(frit_language_combine(s, *out, FRIT_DFA_MINUS, one, frit_language_universe(s, type), out));
    }
    if (json_object_get(value, "if") && out->kind != LANGUAGE_NONE) FRIT_TRY(of_if(s, value, base, type, out));
    return of_references(s, value, base, type, out);
}

static frit_status of_literal(schema *s, int32_t item, schema_type type, language *out)
{
    const literal l = s->literals[item];
    *out = l.languages.of[type];
    if (l.languages.known[type]) return FRIT_OK;
    *out = none;
    if (l.kind == LITERAL_CONST) FRIT_TRY(of_constant(s, l.value, type, out));
    if (l.kind == LITERAL_SCHEMA) FRIT_TRY(of_sub(s, l.value, l.base, type, out));
    for (int32_t k = 0; k < l.n_any; k++) {
        language part;
        FRIT_TRY(frit_schema_language_of(s, l.any[k], type, &part));
        FRIT_TRY(frit_language_combine(s, *out, FRIT_DFA_OR, part, frit_language_universe(s, type), out));
    }
    known_languages *known = &s->literals[item].languages;   // the list of literals may have moved
    known->of[type] = *out;
    known->known[type] = true;
    return FRIT_OK;
}

frit_status frit_schema_language_of(schema *s, int32_t set_id, schema_type type, language *out)
{
    const int32_t n = s->sets[set_id].n, *literals = s->sets[set_id].literals;
    int32_t i = 0;
    *out = set_id == SET_FALSE ? none : s->sets[set_id].languages.of[type];
    if (set_id == SET_FALSE || s->sets[set_id].languages.known[type]) return FRIT_OK;
    FRIT_TRY(frit_budget_spend(s->budget, 8 + n));
    *out = all;
    const int32_t most = n > 1 ? frit_schema_set_known(s, set_id, n - 1) : -1;   // sets grow by one literal at a time
    if (most >= 0 && s->sets[most].languages.known[type]) {
        *out = s->sets[most].languages.of[type];
        i = n - 1;
    }
    for (; i < n && out->kind != LANGUAGE_NONE; i++) {
        language one;
        FRIT_TRY(of_literal(s, literals[i] / 2, type, &one));
        if (literals[i] & 1) FRIT_TRY(negate(s, &one, type));
        FRIT_TRY(and_language(s, out, one, type));
    }
    known_languages *known = &s->sets[set_id].languages;
    known->of[type] = *out;
    known->known[type] = true;
    return FRIT_OK;
}
