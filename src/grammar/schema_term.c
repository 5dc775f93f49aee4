// SPDX-License-Identifier: MIT
// Schemas for arrays and objects as terms: conjunctions of claims, of which one has to hold.
#include "grammar/schema.h"

#include <stdlib.h>

static const language no_keys = {.kind = LANGUAGE_NONE}, all_keys = {.kind = LANGUAGE_ALL};

// ------------------------------------------------------------------------------------- lists of terms

static frit_status add_term(schema *s, terms *list, term t)
{
    if (list->n >= SCHEMA_TERMS)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: a value has more than %d alternatives", SCHEMA_TERMS);
    FRIT_TRY(frit_budget_spend(s->budget, 8));
    if (list->n == list->room) {
        const int32_t room = list->room ? list->room * 2 : 4;
        term *items = frit_schema_alloc(s, (size_t)room, sizeof *items);
        if (!items) return frit_schema_no_memory(s);
        if (list->n > 0) memcpy(items, list->items, (size_t)list->n * sizeof *items);
        list->items = items;
        list->room = room;
    }
    t.room = t.n;
    list->items[list->n++] = t;
    return FRIT_OK;
}

static const term empty_term = {.seen_if = SET_FALSE};

static frit_status one_term(schema *s, terms *out)
{
    *out = (terms){0};
    return add_term(s, out, empty_term);
}

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static frit_status add_claim(schema *s, term *t, claim c)
{
    FRIT_TRY(frit_budget_spend(s->budget, 4));
    if (t->n == t->room) {
        const int32_t room = 2 * t->n + 2;
        claim *claims = frit_schema_alloc(s, (size_t)room, sizeof *claims);
        if (!claims) return frit_schema_no_memory(s);
        if (t->n > 0) memcpy(claims, t->claims, (size_t)t->n * sizeof *claims);
        t->claims = claims;
        t->room = room;
    }
    if (c.name) c.hash = hash_name(c.name);
    t->claims[t->n++] = c;
    return FRIT_OK;
}

static frit_status unite(schema *s, terms *a, const terms *b)
{
    for (int32_t i = 0; i < b->n; i++) FRIT_TRY(add_term(s, a, b->items[i]));
    return FRIT_OK;
}

static bool same_name(const claim *a, const claim *b)
{
    return a->hash == b->hash && strcmp(a->name, b->name) == 0;
}

static bool has_key(const claim *c, const claim *named)
{
    const char *name = named->name;
    if (c->name) return same_name(c, named);
    return c->keys.kind == LANGUAGE_ALL ||
           (c->keys.kind == LANGUAGE_SOME && frit_dfa_accepts(c->keys.dfa, frit_str_of(name)));
}

// Whether claims about lengths, or about a member that must be there, contradict each other.
static frit_status is_dead(schema *s, const term *t, bool *dead)
{
    int32_t low[2] = {0, 0}, high[2] = {NO_END, NO_END};
    *dead = false;
    for (int32_t i = 0; i < t->n; i++) {
        const claim *c = &t->claims[i];
        const int k = c->kind == CLAIM_LENGTH;
        if (c->kind != CLAIM_LENGTH && c->kind != CLAIM_MEMBERS) continue;
        if (c->low > low[k]) low[k] = c->low;
        if (c->high < high[k]) high[k] = c->high;
    }
    FRIT_TRY(frit_budget_spend(s->budget, t->n));
    *dead = low[0] > high[0] || low[1] > high[1];
    for (int32_t i = 0; i < t->n && !*dead; i++) {
        if (t->claims[i].kind != CLAIM_REQUIRED) continue;
        FRIT_TRY(frit_budget_spend(s->budget, t->n));
        int32_t all = SET_TRUE;
        for (int32_t k = 0; k < t->n; k++)
            if (t->claims[k].kind == CLAIM_KEYS && has_key(&t->claims[k], &t->claims[i]))
                FRIT_TRY(frit_schema_set_and(s, all, t->claims[k].set, &all));
        FRIT_TRY(frit_schema_is_empty(s, all, dead));
    }
    for (int32_t at = 0; at < low[1] && at < 4 && !*dead; at++) {
        FRIT_TRY(frit_budget_spend(s->budget, t->n));
        int32_t all = SET_TRUE;
        for (int32_t k = 0; k < t->n; k++)
            if (t->claims[k].kind == CLAIM_ITEMS && t->claims[k].low <= at && at < t->claims[k].high)
                FRIT_TRY(frit_schema_set_and(s, all, t->claims[k].set, &all));
        FRIT_TRY(frit_schema_is_empty(s, all, dead));
    }
    return FRIT_OK;
}

static frit_status set_or(schema *s, int32_t a, int32_t b, int32_t *out)
{
    int32_t l;
    *out = a == SET_FALSE ? b : a;
    if (a == SET_FALSE || b == SET_FALSE || a == b) return FRIT_OK;
    const int32_t any[2] = {a, b};
    FRIT_TRY(frit_schema_any(s, any, 2, &l));
    return frit_schema_set_one(s, l, out);
}

// Adds a claim to a term whose claims are its own, where none says so already. Claims about the same name are one.
static frit_status put_claim(schema *s, term *t, const claim *c, int32_t n_others)
{
    const bool of_name = c->name && (c->kind == CLAIM_REQUIRED || c->kind == CLAIM_KEYS);
    for (int32_t i = 0; i < n_others && of_name; i++) {
        claim *other = &t->claims[i];
        if (other->kind != c->kind || !other->name || !same_name(other, c)) continue;
        return c->kind == CLAIM_KEYS ? frit_schema_set_and(s, other->set, c->set, &other->set) : FRIT_OK;
    }
    t->claims[t->n++] = *c;
    return FRIT_OK;
}

static frit_status join(schema *s, const term *a, const term *b, term *out)
{
    *out = *a;
    if (a->n == 0) {
        out->claims = b->claims;
        out->n = b->n;
    } else if (b->n > 0) {
        const int32_t room = a->n + b->n;
        FRIT_TRY(frit_budget_spend(s->budget, room + (int64_t)a->n * b->n));
        out->claims = frit_schema_alloc(s, (size_t)room, sizeof *out->claims);
        if (!out->claims) return frit_schema_no_memory(s);
        memcpy(out->claims, a->claims, (size_t)a->n * sizeof *out->claims);
        for (int32_t i = 0; i < b->n; i++) FRIT_TRY(put_claim(s, out, &b->claims[i], a->n));
    }
    out->room = out->n;
    if (b->seen_items > out->seen_items) out->seen_items = b->seen_items;
    FRIT_TRY(set_or(s, a->seen_if, b->seen_if, &out->seen_if));
    return frit_language_strings(s, a->seen_keys, FRIT_DFA_OR, b->seen_keys, &out->seen_keys);
}

// a becomes a and b.
static frit_status product(schema *s, terms *a, const terms *b)
{
    terms out = {0};
    for (int32_t i = 0; i < a->n; i++) {
        for (int32_t k = 0; k < b->n; k++) {
            term t;
            bool dead = false;
            FRIT_TRY(frit_budget_spend(s->budget, 16));
            FRIT_TRY(join(s, &a->items[i], &b->items[k], &t));
            if (b->items[k].n > 0 && a->items[i].n > 0) FRIT_TRY(is_dead(s, &t, &dead));
            if (!dead) FRIT_TRY(add_term(s, &out, t));
        }
    }
    *a = out;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- negation of claims

static frit_status add_single(schema *s, terms *out, claim c)
{
    term t = empty_term;
    FRIT_TRY(add_claim(s, &t, c));
    return add_term(s, out, t);
}

// The claim outside of the numbers that it allows, which are two of its fields.
static frit_status add_outside(schema *s, terms *out, claim *c, int32_t *low, int32_t *high)
{
    const int32_t a = *low, b = *high;
    if (a > 0) {
        *low = 0;
        *high = a - 1;
        FRIT_TRY(add_single(s, out, *c));
    }
    if (b == NO_END) return FRIT_OK;
    *low = b + 1;
    *high = NO_END;
    return add_single(s, out, *c);
}

static frit_status negate_claim(schema *s, claim c, terms *out)
{
    int32_t other;
    term t = empty_term;
    switch (c.kind) {
    case CLAIM_KEYS:
        FRIT_TRY(frit_schema_set_not(s, c.set, &other));
        if (other == SET_FALSE) return FRIT_OK;
        c.set = other;
        if (!c.name) {
            c.kind = CLAIM_SOME_KEY;
            return add_single(s, out, c);
        }
        FRIT_TRY(add_claim(s, &t, (claim){.kind = CLAIM_REQUIRED, .name = c.name}));
        FRIT_TRY(add_claim(s, &t, c));
        return add_term(s, out, t);
    case CLAIM_SOME_KEY:
        FRIT_TRY(frit_schema_set_not(s, c.set, &c.set));
        c.kind = CLAIM_KEYS;
        return add_single(s, out, c);
    case CLAIM_REQUIRED:
        return add_single(s, out, (claim){.kind = CLAIM_KEYS, .name = c.name, .set = SET_FALSE});
    case CLAIM_MEMBERS:
    case CLAIM_LENGTH:
        return add_outside(s, out, &c, &c.low, &c.high);
    case CLAIM_ITEMS:
        FRIT_TRY(frit_schema_set_not(s, c.set, &c.set));
        if (c.set == SET_FALSE) return FRIT_OK;
        c.kind = CLAIM_COUNT;
        c.least = 1;
        c.most = NO_END;
        return add_single(s, out, c);
    case CLAIM_COUNT:
        return add_outside(s, out, &c, &c.least, &c.most);
    default:
        return frit_schema_fail("uniqueItems", "cannot be said by a grammar");
    }
}

static frit_status negate_term(schema *s, const term *t, terms *out)
{
    for (int32_t i = 0; i < t->n; i++) FRIT_TRY(negate_claim(s, t->claims[i], out));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- constants

static frit_status constant_term(schema *s, json_t *value, term *t)
{
    *t = empty_term;
    int32_t l, one;
    size_t i;
    json_t *sub;
    const char *name;
    if (json_is_array(value)) {
        const int32_t n = (int32_t)json_array_size(value);
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_LENGTH, .low = n, .high = n}));
        json_array_foreach(value, i, sub)
        {
            FRIT_TRY(frit_schema_literal(s, LITERAL_CONST, sub, "", &l));
            FRIT_TRY(frit_schema_set_one(s, l, &one));
            FRIT_TRY(
                add_claim(s, t, (claim){.kind = CLAIM_ITEMS, .low = (int32_t)i, .high = (int32_t)i + 1, .set = one}));
        }
        return FRIT_OK;
    }
    const int32_t n = (int32_t)json_object_size(value);
    FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_MEMBERS, .low = n, .high = n}));
    json_object_foreach(value, name, sub)
    {
        FRIT_TRY(frit_schema_literal(s, LITERAL_CONST, sub, "", &l));
        FRIT_TRY(frit_schema_set_one(s, l, &one));
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_REQUIRED, .name = name}));
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_KEYS, .name = name, .set = one}));
    }
    return FRIT_OK;
}

static bool is_container(json_t *value, schema_type type)
{
    return type == TYPE_ARRAY ? json_is_array(value) : json_is_object(value);
}

// The value is, or is not, one of those.
static frit_status constants(schema *s, json_t *const *values, size_t n, schema_type type, bool negated, terms *out)
{
    *out = (terms){0};
    if (negated) FRIT_TRY(one_term(s, out));
    FRIT_TRY(frit_budget_spend(s->budget, (int64_t)n));
    for (size_t i = 0; i < n; i++) {
        term t;
        if (!is_container(values[i], type)) continue;
        FRIT_TRY(constant_term(s, values[i], &t));
        if (!negated) {
            FRIT_TRY(add_term(s, out, t));
            continue;
        }
        terms others = {0};
        FRIT_TRY(negate_term(s, &t, &others));
        FRIT_TRY(product(s, out, &others));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- keywords of one schema

enum { MAX_TYPES = 64 };   // that a list may have, some of them twice

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

// A count of members, items or characters, as whole numbers with a fraction of 0 may be written too.
static frit_status read_count(json_t *value, const char *keyword, int32_t fallback, int32_t *out)
{
    json_t *count = json_object_get(value, keyword);
    const double n = count ? json_number_value(count) : fallback;
    if (count && (!json_is_number(count) || n < 0 || n != (double)(int64_t)n))
        return frit_fail(FRIT_E_INVALID, "JSON schema: '%s' is not a whole number from 0", keyword);
    *out = n > 1000000 ? NO_END : (int32_t)n;
    return FRIT_OK;
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
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_KEYS, .name = name, .set = one}));
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
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = one}));
        FRIT_TRY(frit_language_strings(s, known, FRIT_DFA_OR, keys, &known));
    }
    if (others) {
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, known, &keys));
        FRIT_TRY(frit_schema_set_of(s, others, base, &one));
        if (one != SET_TRUE) FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = one}));
        known = all_keys;
    }
    t->seen_keys = known;
    if ((sub = json_object_get(value, "propertyNames"))) {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(frit_schema_language_of(s, one, TYPE_STRING, &keys));
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, keys, &keys));
        if (keys.kind != LANGUAGE_NONE)
            FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_KEYS, .keys = keys, .set = SET_FALSE}));
    }
    json_array_foreach(json_object_get(value, "required"), i, sub) if (json_is_string(sub))
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_REQUIRED, .name = json_string_value(sub)}));
    FRIT_TRY(read_count(value, "minProperties", 0, &low));
    FRIT_TRY(read_count(value, "maxProperties", NO_END, &high));
    if (low == 0 && high == NO_END) return FRIT_OK;
    return add_claim(s, t, (claim){.kind = CLAIM_MEMBERS, .low = low, .high = high});
}

static frit_status array_claims(schema *s, json_t *value, const char *base, term *t)
{
    json_t *prefix = json_object_get(value, "prefixItems"), *items = json_object_get(value, "items"), *sub;
    if (json_array_size(prefix) > SCHEMA_STATES)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: 'prefixItems' has %zu items; expected at most %d",
                         json_array_size(prefix), SCHEMA_STATES);
    const int32_t n = (int32_t)json_array_size(prefix);
    size_t i;
    int32_t one, low, high;
    if (json_is_array(items)) return frit_schema_fail("items", "is an array; expected prefixItems");
    json_array_foreach(prefix, i, sub)
    {
        FRIT_TRY(frit_schema_set_of(s, sub, base, &one));
        FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_ITEMS, .low = (int32_t)i, .high = (int32_t)i + 1, .set = one}));
    }
    t->seen_items = n;
    if (items) {
        FRIT_TRY(frit_schema_set_of(s, items, base, &one));
        if (one != SET_TRUE)
            FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_ITEMS, .low = n, .high = NO_END, .set = one}));
        t->seen_items = NO_END;
    }
    FRIT_TRY(read_count(value, "minItems", 0, &low));
    FRIT_TRY(read_count(value, "maxItems", NO_END, &high));
    if (low > 0 || high < NO_END) FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_LENGTH, .low = low, .high = high}));
    if ((sub = json_object_get(value, "contains"))) {
        claim c = {.kind = CLAIM_COUNT, .low = 0, .high = NO_END};
        FRIT_TRY(frit_schema_set_of(s, sub, base, &c.set));
        FRIT_TRY(read_count(value, "minContains", 1, &c.least));
        FRIT_TRY(read_count(value, "maxContains", NO_END, &c.most));
        t->seen_if = c.set;
        if (c.least > 0 || c.most < NO_END) FRIT_TRY(add_claim(s, t, c));
    }
    if (json_is_true(json_object_get(value, "uniqueItems"))) FRIT_TRY(add_claim(s, t, (claim){.kind = CLAIM_UNIQUE}));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- keywords with subschemas

typedef struct place {   // where a schema is, and for what
    json_t *value;
    const char *base;
    schema_type type;
    bool seen;   // what was seen is needed: unevaluated... follows
} place;

static frit_status expand(schema *s, place p, bool negated, terms *out);

// What a schema that does not hold has seen does not count.
static void forget_seen(terms *list)
{
    for (int32_t i = 0; i < list->n; i++) {
        list->items[i].seen_keys = no_keys;
        list->items[i].seen_items = 0;
        list->items[i].seen_if = SET_FALSE;
    }
}

static frit_status expand_sub(schema *s, const place *p, json_t *value, bool negated, terms *out)
{
    *out = (terms){0};
    if (json_is_boolean(value)) return json_is_true(value) != negated ? one_term(s, out) : FRIT_OK;
    if (!json_is_object(value))
        return frit_fail(FRIT_E_INVALID, "JSON schema: found a subschema that is neither an object nor true or false");
    FRIT_TRY(frit_budget_spend(s->budget, 200));
    if (++s->depth > SCHEMA_DEPTH)
        return frit_fail(FRIT_E_INVALID, "JSON schema: a subschema refers to itself without a value between");
    const frit_status status =
        expand(s, (place){value, frit_schema_base(s, value, p->base), p->type, p->seen}, negated, out);
    s->depth--;
    if (negated) forget_seen(out);
    return status;
}

static frit_status expand_all_of(schema *s, const place *p, json_t *list, bool negated, terms *out)
{
    size_t i;
    json_t *sub;
    *out = (terms){0};
    if (!negated) FRIT_TRY(one_term(s, out));
    json_array_foreach(list, i, sub)
    {
        terms one;
        FRIT_TRY(expand_sub(s, p, sub, negated, &one));
        FRIT_TRY(negated ? unite(s, out, &one) : product(s, out, &one));
    }
    return FRIT_OK;
}

// Whether no two of the list can hold at once, as far as terms show.
static frit_status are_disjoint(schema *s, const place *p, json_t *list, bool *disjoint)
{
    const size_t n = json_array_size(list);
    terms *all = frit_schema_alloc(s, n, sizeof *all);
    if (!all) return frit_schema_no_memory(s);
    *disjoint = true;
    for (size_t i = 0; i < n; i++) FRIT_TRY(expand_sub(s, p, json_array_get(list, i), false, &all[i]));
    for (size_t i = 0; i < n && *disjoint; i++) {
        for (size_t k = i + 1; k < n && *disjoint; k++) {
            terms both = all[i];
            FRIT_TRY(product(s, &both, &all[k]));
            *disjoint = both.n == 0;
        }
    }
    return FRIT_OK;
}

// Counts how many of a list hold: none, one, more.
static frit_status count_of(schema *s, const place *p, json_t *list, terms counts[3])
{
    size_t i;
    json_t *sub;
    FRIT_TRY(one_term(s, &counts[0]));
    counts[1] = counts[2] = (terms){0};
    json_array_foreach(list, i, sub)
    {
        terms yes, no;
        FRIT_TRY(expand_sub(s, p, sub, false, &yes));
        FRIT_TRY(expand_sub(s, p, sub, true, &no));
        for (int k = 2; k >= 0; k--) {
            terms with = counts[k];
            FRIT_TRY(product(s, &counts[k], &no));
            FRIT_TRY(product(s, &with, &yes));
            FRIT_TRY(unite(s, &counts[k < 2 ? k + 1 : 2], &with));
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
        FRIT_TRY(one_term(s, out));
        json_array_foreach(list, i, sub)
        {
            terms one;
            FRIT_TRY(expand_sub(s, p, sub, true, &one));
            FRIT_TRY(product(s, out, &one));
        }
        return FRIT_OK;
    }
    if (exactly_one && !negated) FRIT_TRY(are_disjoint(s, p, list, &disjoint));
    if (!negated && disjoint && (exactly_one || !p->seen)) {
        json_array_foreach(list, i, sub)
        {
            terms one;
            FRIT_TRY(expand_sub(s, p, sub, false, &one));
            FRIT_TRY(unite(s, out, &one));
        }
        return FRIT_OK;
    }
    terms counts[3];
    FRIT_TRY(count_of(s, p, list, counts));
    *out = counts[1];
    if (negated) *out = counts[0];
    return negated || !exactly_one ? unite(s, out, &counts[2]) : FRIT_OK;
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
            FRIT_TRY(product(s, &condition, &branch));
        }
        FRIT_TRY(unite(s, out, &condition));
    }
    return FRIT_OK;
}

// A member `name` demands more: others (an array of names), or a schema.
static frit_status expand_dependent(schema *s, const place *p, const char *name, json_t *more, bool negated, terms *out)
{
    terms with = {0}, rest = {0};
    size_t i;
    json_t *other;
    *out = (terms){0};
    if (!negated) FRIT_TRY(add_single(s, out, (claim){.kind = CLAIM_KEYS, .name = name, .set = SET_FALSE}));
    FRIT_TRY(add_single(s, &with, (claim){.kind = CLAIM_REQUIRED, .name = name}));
    if (json_is_array(more)) {
        term t = empty_term;
        json_array_foreach(more, i, other) if (json_is_string(other))
            FRIT_TRY(add_claim(s, &t, (claim){.kind = CLAIM_REQUIRED, .name = json_string_value(other)}));
        FRIT_TRY(negated ? negate_term(s, &t, &rest) : add_term(s, &rest, t));
    } else {
        FRIT_TRY(expand_sub(s, p, more, negated, &rest));
    }
    FRIT_TRY(product(s, &with, &rest));
    return unite(s, out, &with);
}

// Part i of a schema; *found: it is there.
static frit_status expand_part(schema *s, const place *p, int i, bool negated, bool *found, terms *out)
{
    static const char *const names[] = {"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "const", "enum"};
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
        forget_seen(out);
        return FRIT_OK;
    case 4:
        return expand_if(s, p, negated, out);
    case 5:
    case 6:
        FRIT_TRY((i == 5 ? frit_schema_resolve : frit_schema_resolve_dynamic)(s, p->base, value, &target));
        return expand_sub(s, &(place){p->value, target.base, p->type, p->seen}, target.value, negated, out);
    case 7:
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

enum { N_PARTS = 9 };

// All but unevaluated...
static frit_status expand_seen(schema *s, const place *p, bool negated, terms *out)
{
    term own = empty_term;
    terms one = {0};
    FRIT_TRY(p->type == TYPE_OBJECT ? object_claims(s, p->value, p->base, &own)
                                    : array_claims(s, p->value, p->base, &own));
    FRIT_TRY(negated ? negate_term(s, &own, out) : add_term(s, out, own));
    for (int i = 0; i < N_PARTS; i++) {
        bool found;
        FRIT_TRY(expand_part(s, p, i, negated, &found, &one));
        if (found) FRIT_TRY(negated ? unite(s, out, &one) : product(s, out, &one));
    }
    static const char *const dependents[] = {"dependentRequired", "dependentSchemas"};
    for (size_t i = 0; i < FRIT_COUNT(dependents) && p->type == TYPE_OBJECT; i++) {
        const char *name;
        json_t *more;
        json_object_foreach(json_object_get(p->value, dependents[i]), name, more)
        {
            FRIT_TRY(expand_dependent(s, p, name, more, negated, &one));
            FRIT_TRY(negated ? unite(s, out, &one) : product(s, out, &one));
        }
    }
    return FRIT_OK;
}

// Claims about what a term has not seen.
static frit_status unevaluated(schema *s, const place *p, json_t *value, term *t, claim *c, bool *needed)
{
    int32_t one;
    FRIT_TRY(frit_schema_set_of(s, value, p->base, &one));
    if (p->type == TYPE_OBJECT) {
        *c = (claim){.kind = CLAIM_KEYS, .set = one};
        FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, t->seen_keys, &c->keys));
        *needed = c->keys.kind != LANGUAGE_NONE && one != SET_TRUE;
        t->seen_keys = all_keys;
        return FRIT_OK;
    }
    *c = (claim){.kind = CLAIM_ITEMS, .low = t->seen_items, .high = NO_END};
    *needed = t->seen_items != NO_END && one != SET_TRUE;
    t->seen_items = NO_END;
    if (one == SET_TRUE) return FRIT_OK;
    return set_or(s, one, t->seen_if, &c->set);
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
            if (needed) FRIT_TRY(add_claim(s, &t, c));
            FRIT_TRY(add_term(s, out, t));
        } else if (needed) {
            terms with = {0}, without = {0};
            FRIT_TRY(add_term(s, &with, t));
            FRIT_TRY(negate_claim(s, c, &without));
            FRIT_TRY(product(s, &with, &without));
            FRIT_TRY(unite(s, out, &with));
        }
    }
    return FRIT_OK;
}

static frit_status expand(schema *s, place p, bool negated, terms *out)
{
    bool types[N_TYPES], integer;
    json_t *type = json_object_get(p.value, "type");
    *out = (terms){0};
    if (type && !frit_schema_types(type, types, &integer)) return frit_schema_bad_type(type);
    if (type && !types[p.type]) return negated ? one_term(s, out) : FRIT_OK;
    json_t *rest = json_object_get(p.value, p.type == TYPE_OBJECT ? "unevaluatedProperties" : "unevaluatedItems");
    if (!rest) return expand_seen(s, &p, negated, out);
    p.seen = true;
    return expand_unevaluated(s, &p, rest, negated, out);
}

// ------------------------------------------------------------------------------------- sets

static frit_status terms_of_literal(schema *s, int32_t id, schema_type type, terms *out)
{
    const literal l = s->literals[id / 2];
    const bool negated = id & 1;
    *out = (terms){0};
    if (l.kind == LITERAL_CONST) return constants(s, &l.value, 1, type, negated, out);
    if (l.kind == LITERAL_SCHEMA) return expand_sub(s, &(place){l.value, l.base, type, false}, l.value, negated, out);
    if (negated) FRIT_TRY(one_term(s, out));
    for (int32_t i = 0; i < l.n_any; i++) {
        terms one;
        int32_t other = l.any[i];
        if (negated) FRIT_TRY(frit_schema_set_not(s, other, &other));
        FRIT_TRY(frit_schema_terms_of(s, other, type, &one));
        FRIT_TRY(negated ? product(s, out, &one) : unite(s, out, &one));
    }
    return FRIT_OK;
}

frit_status frit_schema_terms_of(schema *s, int32_t set_id, schema_type type, terms *out)
{
    *out = (terms){0};
    if (set_id == SET_FALSE) return FRIT_OK;
    FRIT_TRY(one_term(s, out));
    for (int32_t i = 0; i < s->sets[set_id].n; i++) {
        terms one;
        FRIT_TRY(terms_of_literal(s, s->sets[set_id].literals[i], type, &one));
        FRIT_TRY(product(s, out, &one));
    }
    return FRIT_OK;
}
