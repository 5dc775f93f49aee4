// SPDX-License-Identifier: MIT
// Schemas for arrays and objects as terms: conjunctions of claims, one of which must hold.
#include "grammar/schema/schema.h"

#include <stdlib.h>

static const language no_keys = {.kind = LANGUAGE_NONE}, all_keys = {.kind = LANGUAGE_ALL};

// ------------------------------------------------------------------------------------- constants

static frit_status constant_term(schema *s, json_t *value, term *t)
{
    *t = frit_no_claims;
    int32_t l, one;
    size_t i;
    json_t *sub;
    const char *name;
    if (json_is_array(value)) {
        const int32_t n = (int32_t)json_array_size(value);
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_LENGTH, .low = n, .high = n}));
        json_array_foreach(value, i, sub)
        {
            FRIT_TRY(frit_schema_literal(s, LITERAL_CONST, sub, "", &l));
            FRIT_TRY(frit_schema_set_one(s, l, &one));
            FRIT_TRY(frit_term_claim(
                s, t, (claim){.kind = CLAIM_ITEMS, .low = (int32_t)i, .high = (int32_t)i + 1, .set = one}));
        }
        return FRIT_OK;
    }
    const int32_t n = (int32_t)json_object_size(value);
    FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_MEMBERS, .low = n, .high = n}));
    json_object_foreach(value, name, sub)
    {
        FRIT_TRY(frit_schema_literal(s, LITERAL_CONST, sub, "", &l));
        FRIT_TRY(frit_schema_set_one(s, l, &one));
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_REQUIRED, .name = name}));
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_KEYS, .name = name, .set = one}));
    }
    return FRIT_OK;
}

static bool is_container(json_t *value, schema_type type)
{
    return type == TYPE_ARRAY ? json_is_array(value) : json_is_object(value);
}

// Adds terms for values that are, or are not, one of the constants.
static frit_status constants(schema *s, json_t *const *values, size_t n, schema_type type, bool negated, terms *out)
{
    *out = (terms){0};
    if (negated) FRIT_TRY(frit_terms_one(s, out));
    FRIT_TRY(frit_budget_spend(s->budget, (int64_t)n));
    for (size_t i = 0; i < n; i++) {
        term t;
        if (!is_container(values[i], type)) continue;
        FRIT_TRY(constant_term(s, values[i], &t));
        if (!negated) {
            FRIT_TRY(frit_terms_add(s, out, t));
            continue;
        }
        terms others = {0};
        FRIT_TRY(frit_terms_not(s, &t, &others));
        FRIT_TRY(frit_terms_and(s, out, &others));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- keywords of one schema

enum { MAX_TYPES = 64 };   // limit for lists of types, which may have duplicates

bool frit_schema_types(json_t *value, bool types[N_TYPES], bool *integer)
{
    static const struct {
        const char *name;
        schema_type type;
    } names[] = {{"null", TYPE_NULL},     {"boolean", TYPE_TRUE}, {"boolean", TYPE_FALSE}, {"number", TYPE_NUMBER},
                 {"string", TYPE_STRING}, {"array", TYPE_ARRAY},  {"object", TYPE_OBJECT}};
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n > MAX_TYPES) return false;
    memset(types, 0, N_TYPES * sizeof *types);
    *integer = false;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
        bool known = name && strcmp(name, "integer") == 0;
        *integer |= known;
        for (size_t k = 0; k < FRIT_COUNT(names) && name; k++) {
            if (strcmp(names[k].name, name) != 0) continue;
            types[names[k].type] = known = true;
        }
        if (!known) return false;
    }
    return true;
}

static bool is_type(json_t *name)
{
    bool types[N_TYPES], integer;
    return json_is_string(name) && frit_schema_types(name, types, &integer);
}

frit_status frit_schema_bad_type(json_t *value)
{
    size_t i = 0;
    if (json_array_size(value) > MAX_TYPES)
        return frit_fail(FRIT_E_INVALID, "JSON schema: 'type' has %zu items; expected at most 7",
                         json_array_size(value));
    while (json_is_array(value) && i + 1 < json_array_size(value) && is_type(json_array_get(value, i))) i++;
    const char *name = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
    return frit_fail(FRIT_E_INVALID,
                     "JSON schema: 'type' names an unknown type: found %.60s, expected array, boolean, integer, null, "
                     "number, object or string",
                     name ? name : "no text");
}

// Reads a number of members, items or characters. Integers may be written with a fraction of 0.
static frit_status read_count(json_t *value, const char *keyword, int32_t fallback, int32_t *out)
{
    json_t *count = json_object_get(value, keyword);
    const double n = count ? json_number_value(count) : fallback;
    if (count && (!json_is_number(count) || n < 0 || n != (double)(int64_t)n))
        return frit_fail(FRIT_E_INVALID, "JSON schema: '%s' is not a whole number from 0", keyword);
    *out = n > 1000000 ? NO_END : (int32_t)n;
    return FRIT_OK;
}

static bool are_named(const term *t, json_t *list)
{
    size_t i;
    json_t *one;
    if (t->named.kind == LANGUAGE_ALL) return true;
    json_array_foreach(list, i, one)
    {
        const frit_str name = {json_string_value(one), json_string_length(one)};
        if (json_is_string(one) && (t->named.kind != LANGUAGE_SOME || !frit_dfa_accepts(t->named.dfa, name)))
            return false;
    }
    return true;
}

// Names the keys of a list and those in `known`.
static frit_status name_keys(schema *s, json_t *list, language known, term *t)
{
    language keys;
    size_t i;
    json_t *one;
    if (s->open_objects) return FRIT_OK;
    FRIT_TRY(frit_language_strings(s, t->named, FRIT_DFA_OR, known, &t->named));
    if (are_named(t, list)) return FRIT_OK;
    frit_nfa nfa = {.budget = s->budget};
    frit_dfa dfa;
    const frit_fragment names = frit_nfa_none(&nfa);
    json_array_foreach(list, i, one) if (json_is_string(one))
        frit_nfa_or(&nfa, names, frit_nfa_text(&nfa, frit_str_of(json_string_value(one))));
    const frit_status status = frit_dfa_new(&dfa, &nfa, names);
    frit_nfa_free(&nfa);
    FRIT_TRY(status);
    keys = frit_language_keep(s, &dfa);
    return frit_language_strings(s, t->named, FRIT_DFA_OR, keys, &t->named);
}

static frit_status object_claims(schema *s, json_t *value, const char *base, term *t)
{
    const char *name;
    json_t *sub;
    size_t i;
    int32_t one, low, high;
    language known = no_keys, keys;
    if (json_object_size(json_object_get(value, "properties")) > SCHEMA_NAMES ||
        json_array_size(json_object_get(value, "required")) > SCHEMA_NAMES)
        return frit_schema_too_many_names();
    json_object_foreach(json_object_get(value, "properties"), name, sub)
    {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_KEYS, .name = name, .set = one}));
    }
    json_t *properties = json_object_get(value, "properties"), *others = json_object_get(value, "additionalProperties");
    if (json_object_size(properties) > 0) {   // all names at once
        frit_nfa nfa = {.budget = s->budget};
        frit_dfa dfa;
        const frit_fragment names = frit_nfa_none(&nfa);
        json_object_foreach(properties, name, sub) frit_nfa_or(&nfa, names, frit_nfa_text(&nfa, frit_str_of(name)));
        const frit_status status = frit_dfa_new(&dfa, &nfa, names);
        frit_nfa_free(&nfa);
        FRIT_TRY(status);
        known = frit_language_keep(s, &dfa);
    }
    json_object_foreach(json_object_get(value, "patternProperties"), name, sub)
    {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(frit_schema_keys_of_pattern(s, name, &keys));
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = one}));
        FRIT_TRY(frit_language_strings(s, known, FRIT_DFA_OR, keys, &known));
    }
    if (others) {
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, known, &keys));
        FRIT_TRY(frit_schema_set_of(s, others, base, &one));
        if (one != SET_TRUE) FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = one}));
        known = all_keys;
    }
    t->seen_keys = known;
    t->lists = properties || json_object_get(value, "patternProperties");
    FRIT_TRY(name_keys(s, json_object_get(value, "required"), known, t));
    if (json_object_get(value, "propertyNames")) t->named = all_keys;   // it restricts keys other than the named ones
    if ((sub = json_object_get(value, "propertyNames"))) {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(frit_schema_language_of(s, one, TYPE_STRING, &keys));
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, keys, &keys));
        if (keys.kind != LANGUAGE_NONE)
            FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = SET_FALSE}));
    }
    json_array_foreach(json_object_get(value, "required"), i, sub) if (json_is_string(sub))
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_REQUIRED, .name = json_string_value(sub)}));
    FRIT_TRY(read_count(value, "minProperties", 0, &low));
    FRIT_TRY(read_count(value, "maxProperties", NO_END, &high));
    if (low == 0 && high == NO_END) return FRIT_OK;
    return frit_term_claim(s, t, (claim){.kind = CLAIM_MEMBERS, .low = low, .high = high});
}

static frit_status array_claims(schema *s, json_t *value, const char *base, term *t)
{
    json_t *prefix = json_object_get(value, "prefixItems"), *items = json_object_get(value, "items"), *sub;
    if (json_is_array(items)) {   // a tuple, in drafts before 2020-12
        if (s->dialect == DRAFT_2020_12 || prefix)
            return frit_schema_fail("items", "is an array; expected prefixItems, or a $schema before draft 2020-12");
        prefix = items;
        items = json_object_get(value, "additionalItems");
    }
    if (json_array_size(prefix) > SCHEMA_STATES)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: 'prefixItems' has %zu items; expected at most %d",
                         json_array_size(prefix), SCHEMA_STATES);
    const int32_t n = (int32_t)json_array_size(prefix);
    size_t i;
    int32_t one, low, high;
    json_array_foreach(prefix, i, sub)
    {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(
            frit_term_claim(s, t, (claim){.kind = CLAIM_ITEMS, .low = (int32_t)i, .high = (int32_t)i + 1, .set = one}));
    }
    t->seen_items = n;
    if (items) {
        FRIT_TRY(frit_schema_set_of(s, items, base, &one));
        if (one != SET_TRUE)
            FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_ITEMS, .low = n, .high = NO_END, .set = one}));
        t->seen_items = NO_END;
    }
    FRIT_TRY(read_count(value, "minItems", 0, &low));
    FRIT_TRY(read_count(value, "maxItems", NO_END, &high));
    if (low > 0 || high < NO_END)
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_LENGTH, .low = low, .high = high}));
    if ((sub = json_object_get(value, "contains"))) {
        claim c = {.kind = CLAIM_COUNT, .low = 0, .high = NO_END};
        FRIT_TRY(frit_schema_set_of(s, sub, base, &c.set));
        FRIT_TRY(read_count(value, "minContains", 1, &c.least));
        FRIT_TRY(read_count(value, "maxContains", NO_END, &c.most));
        if (s->dialect != DRAFT_2019_09) t->seen_if = c.set;
        if (c.least > 0 || c.most < NO_END) FRIT_TRY(frit_term_claim(s, t, c));
    }
    if (json_is_true(json_object_get(value, "uniqueItems")))
        FRIT_TRY(frit_term_claim(s, t, (claim){.kind = CLAIM_UNIQUE}));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- keywords with subschemas

typedef struct place {   // the position of a schema, and its purpose
    json_t *value;
    const char *base;
    schema_type type;
    bool seen;   // keys and items must be marked as seen, because unevaluated... follows
} place;

static frit_status expand(schema *s, place p, bool negated, terms *out);

// Clears what the terms have seen or named: a schema that does not hold does not count.
static void clear_seen(terms *list)
{
    for (int32_t i = 0; i < list->n; i++) {
        list->items[i].named = no_keys;
        list->items[i].lists = false;
        list->items[i].seen_keys = no_keys;
        list->items[i].seen_items = 0;
        list->items[i].seen_if = SET_FALSE;
    }
}

static frit_status expand_sub(schema *s, const place *p, json_t *value, bool negated, terms *out)
{
    *out = (terms){0};
    FRIT_TRY(frit_budget_spend(s->budget, json_is_object(value) ? 200 : 8));
    if (json_is_boolean(value)) return json_is_true(value) != negated ? frit_terms_one(s, out) : FRIT_OK;
    if (!json_is_object(value))
        return frit_fail(FRIT_E_INVALID, "JSON schema: found a subschema that is neither an object nor true or false");
    if (++s->depth > SCHEMA_DEPTH)
        return frit_fail(FRIT_E_INVALID,
                         "JSON schema: more than %d subschemas of one value are in each other; one may refer to itself",
                         SCHEMA_DEPTH);
    const frit_status status =
        expand(s, (place){value, frit_schema_base(s, value, p->base), p->type, p->seen}, negated, out);
    s->depth--;
    if (negated) clear_seen(out);
    return status;
}

static frit_status expand_all_of(schema *s, const place *p, json_t *list, bool negated, terms *out)
{
    size_t i;
    json_t *sub;
    *out = (terms){0};
    if (!negated) FRIT_TRY(frit_terms_one(s, out));
    json_array_foreach(list, i, sub)
    {
        terms one;
        FRIT_TRY(expand_sub(s, p, sub, negated, &one));
        FRIT_TRY(negated ? frit_terms_or(s, out, &one) : frit_terms_and(s, out, &one));
    }
    return FRIT_OK;
}

// True if no two schemas of the list can hold at once, as far as terms show.
static frit_status are_disjoint(schema *s, const place *p, json_t *list, bool *disjoint)
{
    const size_t n = json_array_size(list);
    terms *all = frit_schema_alloc(s, n, sizeof *all);
    if (!all) return frit_schema_no_memory(s);
    *disjoint = true;
    for (size_t i = 0; i < n; i++) FRIT_TRY(expand_sub(s, p, json_array_get(list, i), false, &all[i]));
    for (size_t i = 0; i < n && *disjoint; i++) {
        for (size_t k = i + 1; k < n && *disjoint && all[i].n > 0; k++) {
            FRIT_TRY(frit_budget_spend(s->budget, 1));
            terms both = all[i];
            FRIT_TRY(frit_terms_and(s, &both, &all[k]));
            *disjoint = both.n == 0;
        }
    }
    return FRIT_OK;
}

// Computes terms for exactly none, exactly one, and more schemas of a list.
static frit_status count_of(schema *s, const place *p, json_t *list, terms counts[3])
{
    size_t i;
    json_t *sub;
    FRIT_TRY(frit_terms_one(s, &counts[0]));
    counts[1] = counts[2] = (terms){0};
    json_array_foreach(list, i, sub)
    {
        terms yes, no;
        FRIT_TRY(expand_sub(s, p, sub, false, &yes));
        FRIT_TRY(expand_sub(s, p, sub, true, &no));
        for (int k = 2; k >= 0; k--) {
            terms with = counts[k];
            FRIT_TRY(frit_terms_and(s, &counts[k], &no));
            FRIT_TRY(frit_terms_and(s, &with, &yes));
            FRIT_TRY(frit_terms_or(s, &counts[k < 2 ? k + 1 : 2], &with));
        }
    }
    return FRIT_OK;
}

static frit_status expand_choice(schema *s, const place *p, json_t *list, bool exactly_one, bool negated, terms *out)
{
    size_t i;
    json_t *sub;
    bool disjoint = !exactly_one;
    *out = (terms){0};
    if (negated && !exactly_one) {
        FRIT_TRY(frit_terms_one(s, out));
        json_array_foreach(list, i, sub)
        {
            terms one;
            FRIT_TRY(expand_sub(s, p, sub, true, &one));
            FRIT_TRY(frit_terms_and(s, out, &one));
        }
        return FRIT_OK;
    }
    if (exactly_one && !negated) FRIT_TRY(are_disjoint(s, p, list, &disjoint));
    if (!negated && disjoint && (exactly_one || !p->seen)) {
        json_array_foreach(list, i, sub)
        {
            terms one;
            FRIT_TRY(expand_sub(s, p, sub, false, &one));
            FRIT_TRY(frit_terms_or(s, out, &one));
        }
        return FRIT_OK;
    }
    terms counts[3];
    FRIT_TRY(count_of(s, p, list, counts));
    *out = counts[1];
    if (negated) *out = counts[0];
    return negated || !exactly_one ? frit_terms_or(s, out, &counts[2]) : FRIT_OK;
}

static frit_status expand_if(schema *s, const place *p, bool negated, terms *out)
{
    *out = (terms){0};
    for (int otherwise = 0; otherwise < 2; otherwise++) {
        terms condition, branch;
        json_t *sub = json_object_get(p->value, otherwise ? "else" : "then");
        FRIT_TRY(expand_sub(s, p, json_object_get(p->value, "if"), otherwise, &condition));
        if (!sub && negated) continue;
        if (sub) {
            FRIT_TRY(expand_sub(s, p, sub, negated, &branch));
            FRIT_TRY(frit_terms_and(s, &condition, &branch));
        }
        FRIT_TRY(frit_terms_or(s, out, &condition));
    }
    return FRIT_OK;
}

// Adds: if the member `name` exists, other members (an array of names), or a schema, are required.
static frit_status expand_dependent(schema *s, const place *p, const char *name, json_t *more, bool negated, terms *out)
{
    terms with = {0}, rest = {0};
    size_t i;
    json_t *other;
    *out = (terms){0};
    if (!negated) FRIT_TRY(frit_terms_single(s, out, (claim){.kind = CLAIM_KEYS, .name = name, .set = SET_FALSE}));
    FRIT_TRY(frit_terms_single(s, &with, (claim){.kind = CLAIM_REQUIRED, .name = name}));
    if (json_is_array(more)) {
        term t = frit_no_claims;
        json_array_foreach(more, i, other) if (json_is_string(other))
            FRIT_TRY(frit_term_claim(s, &t, (claim){.kind = CLAIM_REQUIRED, .name = json_string_value(other)}));
        FRIT_TRY(name_keys(s, more, no_keys, &t));
        FRIT_TRY(negated ? frit_terms_not(s, &t, &rest) : frit_terms_add(s, &rest, t));
    } else {
        FRIT_TRY(expand_sub(s, p, more, negated, &rest));
    }
    FRIT_TRY(frit_terms_and(s, &with, &rest));
    return frit_terms_or(s, out, &with);
}

// Expands part i of a schema; *found: the part exists.
static frit_status expand_part(schema *s, const place *p, int i, bool negated, bool *found, terms *out)
{
    static const char *const names[] = {"allOf", "anyOf",       "oneOf",         "not",   "if",
                                        "$ref",  "$dynamicRef", "$recursiveRef", "const", "enum"};
    json_t *value = json_object_get(p->value, names[i]);
    *found = value != NULL;
    resource target;
    if (!value) return FRIT_OK;
    switch (i) {
    case 0:
        return expand_all_of(s, p, value, negated, out);
    case 1:
    case 2:
        return expand_choice(s, p, value, i == 2, negated, out);
    case 3:
        FRIT_TRY(expand_sub(s, &(place){p->value, p->base, p->type, false}, value, !negated, out));
        clear_seen(out);
        return FRIT_OK;
    case 4:
        return expand_if(s, p, negated, out);
    case 5:
    case 6:
    case 7:
        FRIT_TRY(frit_schema_resolve(s, names[i], p->base, value, &target));
        return expand_sub(s, &(place){p->value, target.base, p->type, p->seen}, target.value, negated, out);
    case 8:
        return constants(s, &value, 1, p->type, negated, out);
    default: {
        const size_t n = json_array_size(value);
        json_t **values = frit_schema_alloc(s, n + 1, sizeof *values);
        if (!values) return frit_schema_no_memory(s);
        for (size_t k = 0; k < n; k++) values[k] = json_array_get(value, k);
        return constants(s, values, n, p->type, negated, out);
    }
    }
}

enum { N_PARTS = 10, REFERENCE = 5 };

// Expands all parts except unevaluated...
static frit_status expand_seen(schema *s, const place *p, bool negated, terms *out)
{
    term own = frit_no_claims;
    terms one = {0};
    FRIT_TRY(p->type == TYPE_OBJECT ? object_claims(s, p->value, p->base, &own)
                                    : array_claims(s, p->value, p->base, &own));
    FRIT_TRY(negated ? frit_terms_not(s, &own, out) : frit_terms_add(s, out, own));
    for (int i = 0; i < N_PARTS; i++) {
        bool found;
        FRIT_TRY(expand_part(s, p, i, negated, &found, &one));
        if (found) FRIT_TRY(negated ? frit_terms_or(s, out, &one) : frit_terms_and(s, out, &one));
    }
    static const char *const dependents[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    for (size_t i = 0; i < FRIT_COUNT(dependents) && p->type == TYPE_OBJECT; i++) {
        const char *name;
        json_t *more;
        json_object_foreach(json_object_get(p->value, dependents[i]), name, more)
        {
            FRIT_TRY(expand_dependent(s, p, name, more, negated, &one));
            FRIT_TRY(negated ? frit_terms_or(s, out, &one) : frit_terms_and(s, out, &one));
        }
    }
    return FRIT_OK;
}

// Adds claims about keys and items that a term has not seen.
static frit_status unevaluated(schema *s, const place *p, json_t *value, term *t, claim *c, bool *needed)
{
    int32_t one;
    FRIT_TRY(frit_schema_set_of(s, value, p->base, &one));
    if (p->type == TYPE_OBJECT) {
        *c = (claim){.kind = CLAIM_KEYS, .set = one};
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, t->seen_keys, &c->keys));
        *needed = c->keys.kind != LANGUAGE_NONE && one != SET_TRUE;
        t->seen_keys = t->named = all_keys;
        return FRIT_OK;
    }
    *c = (claim){.kind = CLAIM_ITEMS, .low = t->seen_items, .high = NO_END};
    *needed = t->seen_items != NO_END && one != SET_TRUE;
    t->seen_items = NO_END;
    if (one == SET_TRUE) return FRIT_OK;
    return frit_schema_set_or(s, one, t->seen_if, &c->set);
}

static frit_status expand_unevaluated(schema *s, const place *p, json_t *value, bool negated, terms *out)
{
    terms seen = {0};
    FRIT_TRY(expand_seen(s, p, false, &seen));
    if (negated) FRIT_TRY(expand_seen(s, p, true, out));
    for (int32_t i = 0; i < seen.n; i++) {
        claim c;
        bool needed;
        term t = seen.items[i];
        FRIT_TRY(unevaluated(s, p, value, &t, &c, &needed));
        if (!negated) {
            if (needed) FRIT_TRY(frit_term_claim(s, &t, c));
            FRIT_TRY(frit_terms_add(s, out, t));
        } else if (needed) {
            terms with = {0}, without = {0};
            FRIT_TRY(frit_terms_add(s, &with, t));
            FRIT_TRY(frit_claim_not(s, c, &without));
            FRIT_TRY(frit_terms_and(s, &with, &without));
            FRIT_TRY(frit_terms_or(s, out, &with));
        }
    }
    return FRIT_OK;
}

static frit_status expand(schema *s, place p, bool negated, terms *out)
{
    bool types[N_TYPES], integer;
    json_t *type = json_object_get(p.value, "type");
    *out = (terms){0};
    if (frit_schema_is_reference(s, p.value)) {
        bool found;
        return expand_part(s, &p, REFERENCE, negated, &found, out);
    }
    if (type && !frit_schema_types(type, types, &integer)) return frit_schema_bad_type(type);
    if (type && !types[p.type]) return negated ? frit_terms_one(s, out) : FRIT_OK;
    json_t *rest = json_object_get(p.value, p.type == TYPE_OBJECT ? "unevaluatedProperties" : "unevaluatedItems");
    if (!rest) return expand_seen(s, &p, negated, out);
    p.seen = true;
    return expand_unevaluated(s, &p, rest, negated, out);
}

// ------------------------------------------------------------------------------------- sets

static frit_status terms_of_set(schema *s, int32_t set_id, schema_type type, terms *out);

static frit_status terms_of_literal(schema *s, int32_t id, schema_type type, terms *out)
{
    const literal l = s->literals[id / 2];
    const bool negated = id & 1;
    *out = (terms){0};
    if (l.kind == LITERAL_CONST) return constants(s, &l.value, 1, type, negated, out);
    if (l.kind == LITERAL_SCHEMA) return expand_sub(s, &(place){l.value, l.base, type, false}, l.value, negated, out);
    if (negated) FRIT_TRY(frit_terms_one(s, out));
    for (int32_t i = 0; i < l.n_any; i++) {
        terms one;
        int32_t other = l.any[i];
        if (negated) FRIT_TRY(frit_schema_set_not(s, other, &other));
        FRIT_TRY(terms_of_set(s, other, type, &one));
        FRIT_TRY(negated ? frit_terms_and(s, out, &one) : frit_terms_or(s, out, &one));
    }
    return FRIT_OK;
}

static frit_status terms_of_set(schema *s, int32_t set_id, schema_type type, terms *out)
{
    *out = (terms){0};
    if (set_id == SET_FALSE) return FRIT_OK;
    FRIT_TRY(frit_terms_one(s, out));
    for (int32_t i = 0; i < s->sets[set_id].n; i++) {
        terms one;
        FRIT_TRY(terms_of_literal(s, s->sets[set_id].literals[i], type, &one));
        FRIT_TRY(frit_terms_and(s, out, &one));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- closed objects

// The required number of members.
static int32_t least_members(const term *t)
{
    int32_t least = 0;
    for (int32_t i = 0; i < t->n; i++)
        if (t->claims[i].kind == CLAIM_MEMBERS && t->claims[i].low > least) least = t->claims[i].low;
    return least;
}

static int32_t n_named(const term *t)
{
    int32_t n = 0;
    for (int32_t i = 0; i < t->n; i++) {
        const claim *c = &t->claims[i];
        if (c->kind == CLAIM_KEYS && !c->name && c->set != SET_FALSE) return NO_END;   // a pattern allows any number
        n += c->kind == CLAIM_KEYS && c->name;
    }
    return n;
}

// Closes an object: a schema that names members, and does not mention others, then allows no others. Otherwise models
// invent members, because few schemas that programs write exclude them.
static frit_status close_term(schema *s, term *t, bool *dead)
{
    claim others = {.kind = CLAIM_KEYS, .set = SET_FALSE};
    *dead = false;
    if (!t->lists || t->named.kind == LANGUAGE_ALL || least_members(t) > n_named(t)) return FRIT_OK;
    FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, t->named, &others.keys));
    if (others.keys.kind == LANGUAGE_NONE) return FRIT_OK;
    FRIT_TRY(frit_term_claim(s, t, others));
    return frit_term_is_dead(s, t, dead);
}

// Closes the terms of a list. Terms that only hold with other members are dropped; if all would be, none is closed.
static frit_status close_objects(schema *s, terms *list)
{
    terms closed = {0};
    for (int32_t i = 0; i < list->n; i++) {
        term t = list->items[i];
        bool dead;
        FRIT_TRY(close_term(s, &t, &dead));
        if (!dead) FRIT_TRY(frit_terms_add(s, &closed, t));
    }
    if (closed.n > 0) *list = closed;
    return FRIT_OK;
}

frit_status frit_schema_terms_of(schema *s, int32_t set_id, schema_type type, terms *out)
{
    FRIT_TRY(terms_of_set(s, set_id, type, out));
    return type == TYPE_OBJECT && !s->open_objects ? close_objects(s, out) : FRIT_OK;
}
