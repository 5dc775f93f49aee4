// SPDX-License-Identifier: MIT
// Terms and lists of terms: conjunction, alternative, and negation by claims.
#include "grammar/schema/schema.h"

// ------------------------------------------------------------------------------------- lists of terms

frit_status frit_terms_add(schema *s, terms *list, term t)
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
    list->items[list->n++] = t;
    return FRIT_OK;
}

const term frit_no_claims = {.seen_if = SET_FALSE};

frit_status frit_terms_one(schema *s, terms *out)
{
    *out = (terms){0};
    return frit_terms_add(s, out, frit_no_claims);
}

static frit_status hash_name(schema *s, claim *c)
{
    const size_t n = strlen(c->name);
    if (n > SCHEMA_NAME_BYTES)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: the name of a property has %zu bytes; expected at most %d", n,
                         SCHEMA_NAME_BYTES);
    c->hash = 2166136261u;
    for (size_t i = 0; i < n; i++) c->hash = (c->hash ^ (unsigned char)c->name[i]) * 16777619u;
    return frit_budget_spend(s->budget, (int64_t)n / 4);
}

static bool has_room(const term *t, int32_t n_more)
{
    return t->n + n_more <= t->room && *t->used == t->n;
}

// Gives the term a copy of its claims, with room for more.
static frit_status own_claims(schema *s, term *t, int32_t n_more)
{
    const int32_t room = 2 * (t->n + n_more);
    FRIT_TRY(frit_budget_spend(s->budget, t->n));
    claim *claims = frit_schema_alloc(s, (size_t)room, sizeof *claims);
    int32_t *used = frit_schema_alloc(s, 1, sizeof *used);
    if (!claims || !used) return frit_schema_no_memory(s);
    if (t->n > 0) memcpy(claims, t->claims, (size_t)t->n * sizeof *claims);
    t->claims = claims;
    t->room = room;
    t->used = used;
    *used = t->n;
    return FRIT_OK;
}

static void append(term *t, const claim *c)
{
    t->claims[t->n++] = *c;
    *t->used = t->n;
}

frit_status frit_term_claim(schema *s, term *t, claim c)
{
    FRIT_TRY(frit_budget_spend(s->budget, 4));
    if (!has_room(t, 1)) FRIT_TRY(own_claims(s, t, 1));
    if (c.name) FRIT_TRY(hash_name(s, &c));
    append(t, &c);
    return FRIT_OK;
}

frit_status frit_terms_or(schema *s, terms *a, const terms *b)
{
    for (int32_t i = 0; i < b->n; i++) FRIT_TRY(frit_terms_add(s, a, b->items[i]));
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

// True if claims about lengths, or about a required member, contradict each other.
frit_status frit_term_is_dead(schema *s, const term *t, bool *dead)
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
        for (int32_t k = 0; k < t->n; k++) {
            if (t->claims[k].kind != CLAIM_KEYS) continue;
            if (!t->claims[k].name) FRIT_TRY(frit_budget_spend(s->budget, (int64_t)strlen(t->claims[i].name)));
            if (!has_key(&t->claims[k], &t->claims[i])) continue;
            FRIT_TRY(frit_schema_set_and(s, all, t->claims[k].set, &all));
        }
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

frit_status frit_schema_set_or(schema *s, int32_t a, int32_t b, int32_t *out)
{
    int32_t l;
    *out = a == SET_FALSE ? b : a;
    if (a == SET_FALSE || b == SET_FALSE || a == b) return FRIT_OK;
    const int32_t any[2] = {a, b};
    FRIT_TRY(frit_schema_any(s, any, 2, &l));
    return frit_schema_set_one(s, l, out);
}

// Finds a claim with the same name among the first n claims of a term; -1: not found.
static int32_t find_same(const term *t, int32_t n, const claim *c)
{
    if (!c->name || (c->kind != CLAIM_REQUIRED && c->kind != CLAIM_KEYS)) return -1;
    for (int32_t i = 0; i < n; i++)
        if (t->claims[i].kind == c->kind && t->claims[i].name && same_name(&t->claims[i], c)) return i;
    return -1;
}

// Adds the claims of b. A claim about a name is combined with an existing claim about it.
static frit_status add_claims(schema *s, term *t, const term *b)
{
    const int32_t n = t->n;
    bool own = has_room(t, b->n);
    FRIT_TRY(frit_budget_spend(s->budget, (int64_t)n * b->n));
    for (int32_t i = 0; i < b->n && own; i++) own = find_same(t, n, &b->claims[i]) < 0;
    if (!own) FRIT_TRY(own_claims(s, t, b->n));
    for (int32_t i = 0; i < b->n; i++) {
        const claim *c = &b->claims[i];
        const int32_t same = find_same(t, n, c);
        if (same < 0)
            append(t, c);
        else if (c->kind == CLAIM_KEYS)
            FRIT_TRY(frit_schema_set_and(s, t->claims[same].set, c->set, &t->claims[same].set));
    }
    return FRIT_OK;
}

static frit_status join(schema *s, const term *a, const term *b, term *out)
{
    *out = *a;
    if (a->n == 0) {
        out->claims = b->claims;
        out->n = b->n;
        out->room = b->room;
        out->used = b->used;
    } else if (b->n > 0) {
        FRIT_TRY(add_claims(s, out, b));
    }
    out->lists = a->lists || b->lists;
    if (!s->open_objects) FRIT_TRY(frit_language_strings(s, a->named, FRIT_DFA_OR, b->named, &out->named));
    if (b->seen_items > out->seen_items) out->seen_items = b->seen_items;
    FRIT_TRY(frit_schema_set_or(s, a->seen_if, b->seen_if, &out->seen_if));
    return frit_language_strings(s, a->seen_keys, FRIT_DFA_OR, b->seen_keys, &out->seen_keys);
}

// a becomes a and b.
frit_status frit_terms_and(schema *s, terms *a, const terms *b)
{
    terms out = {0};
    for (int32_t i = 0; i < a->n; i++) {
        for (int32_t k = 0; k < b->n; k++) {
            term t;
            bool dead = false;
            FRIT_TRY(frit_budget_spend(s->budget, 16));
            FRIT_TRY(join(s, &a->items[i], &b->items[k], &t));
            if (b->items[k].n > 0 && a->items[i].n > 0) FRIT_TRY(frit_term_is_dead(s, &t, &dead));
            if (!dead) FRIT_TRY(frit_terms_add(s, &out, t));
        }
    }
    *a = out;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- negation of claims

frit_status frit_terms_single(schema *s, terms *out, claim c)
{
    term t = frit_no_claims;
    FRIT_TRY(frit_term_claim(s, &t, c));
    return frit_terms_add(s, out, t);
}

// Adds the claim for numbers below *low or above *high, which are fields of the claim.
static frit_status add_outside(schema *s, terms *out, claim *c, int32_t *low, int32_t *high)
{
    const int32_t a = *low, b = *high;
    if (a > 0) {
        *low = 0;
        *high = a - 1;
        FRIT_TRY(frit_terms_single(s, out, *c));
    }
    if (b == NO_END) return FRIT_OK;
    *low = b + 1;
    *high = NO_END;
    return frit_terms_single(s, out, *c);
}

frit_status frit_claim_not(schema *s, claim c, terms *out)
{
    int32_t other;
    term t = frit_no_claims;
    switch (c.kind) {
    case CLAIM_KEYS:
        FRIT_TRY(frit_schema_set_not(s, c.set, &other));
        if (other == SET_FALSE) return FRIT_OK;
        c.set = other;
        if (!c.name) {
            c.kind = CLAIM_SOME_KEY;
            return frit_terms_single(s, out, c);
        }
        FRIT_TRY(frit_term_claim(s, &t, (claim){.kind = CLAIM_REQUIRED, .name = c.name}));
        FRIT_TRY(frit_term_claim(s, &t, c));
        return frit_terms_add(s, out, t);
    case CLAIM_SOME_KEY:
        FRIT_TRY(frit_schema_set_not(s, c.set, &c.set));
        c.kind = CLAIM_KEYS;
        return frit_terms_single(s, out, c);
    case CLAIM_REQUIRED:
        return frit_terms_single(s, out, (claim){.kind = CLAIM_KEYS, .name = c.name, .set = SET_FALSE});
    case CLAIM_MEMBERS:
    case CLAIM_LENGTH:
        return add_outside(s, out, &c, &c.low, &c.high);
    case CLAIM_ITEMS:
        FRIT_TRY(frit_schema_set_not(s, c.set, &c.set));
        if (c.set == SET_FALSE) return FRIT_OK;
        c.kind = CLAIM_COUNT;
        c.least = 1;
        c.most = NO_END;
        return frit_terms_single(s, out, c);
    case CLAIM_COUNT:
        return add_outside(s, out, &c, &c.least, &c.most);
    default:
        return frit_schema_fail("uniqueItems", "cannot be expressed by a grammar");
    }
}

frit_status frit_terms_not(schema *s, const term *t, terms *out)
{
    for (int32_t i = 0; i < t->n; i++) FRIT_TRY(frit_claim_not(s, t->claims[i], out));
    return FRIT_OK;
}
