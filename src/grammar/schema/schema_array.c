// SPDX-License-Identifier: MIT
// Arrays: items by index, counts of items that satisfy a claim, and unique items of a list of values.
#include "grammar/schema/schema_machine.h"

enum { MAX_CHOICES = 10 };

typedef struct array {
    machine m;
    const term *t;
    int32_t low, high, last;   // items from index `last` on have equal conditions
    bool unique;
    int32_t choices[MAX_CHOICES];   // for unique items: sets that at most one item each may satisfy
    int32_t n_choices;
    int32_t n_counts;
    const claim *counts[MAX_WITNESSES];
    // The sets of an item at index `known_at` by the claims that count it; -1: not yet known.
    int32_t known_at, *known;
} array;

// Refuses counts that states cannot represent, before any state is made.
static frit_status refuse_many(const array *a)
{
    int64_t n = 1 + 2 * (int64_t)a->last;
    for (int32_t i = 0; i < a->n_counts && n <= MAX_NODES; i++) {
        const claim *c = a->counts[i];
        const bool bounded = c->most != NO_END && (a->high == NO_END || c->most < a->high);
        n = a->last > 0 ? n : n * (1 + (int64_t)(bounded ? c->most : c->least));
    }
    if (n <= MAX_NODES) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "JSON schema: an array or object needs more than %d states", MAX_NODES);
}

static frit_status read_array(array *a)
{
    a->high = NO_END;
    for (int32_t i = 0; i < a->t->n; i++) {
        const claim *c = &a->t->claims[i];
        if (c->kind == CLAIM_UNIQUE) a->unique = true;
        if (c->kind == CLAIM_LENGTH) {
            if (c->low > a->low) a->low = c->low;
            if (c->high < a->high) a->high = c->high;
        }
        if (c->kind == CLAIM_ITEMS || c->kind == CLAIM_COUNT) {
            if (c->low > a->last) a->last = c->low;
            if (c->high != NO_END && c->high > a->last) a->last = c->high;
        }
        if (c->kind != CLAIM_COUNT) continue;
        if (a->n_counts == MAX_WITNESSES)
            return frit_fail(FRIT_E_LIMIT, "JSON schema: more than %d claims about some item", MAX_WITNESSES);
        a->counts[a->n_counts++] = c;
    }
    if (a->low > a->last) a->last = a->low;
    if (a->high != NO_END && a->high > a->last) a->last = a->high;
    a->unique = a->unique && a->high > 1;
    return refuse_many(a);
}

// Makes the set of an item at an index that the claims in `counted` count.
static frit_status item_set(const array *a, int32_t at, uint32_t counted, int32_t *out)
{
    schema *s = a->m.s;
    FRIT_TRY(frit_budget_spend(s->budget, a->t->n));
    *out = SET_TRUE;
    for (int32_t i = 0; i < a->t->n; i++) {
        const claim *c = &a->t->claims[i];
        if (c->kind == CLAIM_ITEMS && c->low <= at && at < c->high) FRIT_TRY(frit_schema_set_and(s, *out, c->set, out));
    }
    for (int32_t i = 0; i < a->n_counts; i++) {
        const claim *c = a->counts[i];
        int32_t one = c->set;
        if (at < c->low || at >= c->high) continue;
        if (!(counted >> i & 1)) {
            if (c->most == NO_END) continue;   // the item may satisfy the claim, but need not
            FRIT_TRY(frit_schema_set_not(s, one, &one));
        }
        FRIT_TRY(frit_schema_set_and(s, *out, one, out));
    }
    return FRIT_OK;
}

// Returns item_set, which is made once for each index.
static frit_status known_item_set(array *a, int32_t at, uint32_t counted, int32_t *out)
{
    const size_t n = (size_t)1 << a->n_counts;
    if (!a->known) {
        a->known = frit_schema_alloc(a->m.s, n, sizeof *a->known);
        a->known_at = -1;
        if (!a->known) return frit_schema_no_memory(a->m.s);
    }
    if (a->known_at != at) memset(a->known, -1, n * sizeof *a->known);
    a->known_at = at;
    if (a->known[counted] < 0) FRIT_TRY(item_set(a, at, counted, &a->known[counted]));
    *out = a->known[counted];
    return FRIT_OK;
}

static bool same_value(json_t *x, json_t *y)
{
    if (json_is_number(x) && json_is_number(y)) return json_number_value(x) == json_number_value(y);
    return json_equal(x, y);
}

// Returns the values that a schema lists itself or by reference, for the caller to release; NULL: no list.
static json_t *listed_values(schema *s, json_t *value, const char *base)
{
    bool types[N_TYPES], integer;
    resource target = {.value = value, .base = base};
    json_t *reference;
    for (int i = 0; i < SCHEMA_DEPTH && (reference = json_object_get(target.value, "$ref")); i++)
        if (frit_schema_resolve(s, "$ref", target.base, reference, &target) != FRIT_OK) return NULL;
    json_t *list = json_object_get(target.value, "enum"), *type = json_object_get(target.value, "type");
    if (json_is_array(list)) return json_incref(list);
    if (!type || !frit_schema_types(type, types, &integer) || integer) return NULL;
    if (types[TYPE_NUMBER] || types[TYPE_STRING] || types[TYPE_ARRAY] || types[TYPE_OBJECT]) return NULL;
    list = json_array();
    if (types[TYPE_NULL]) json_array_append_new(list, json_null());
    if (types[TYPE_TRUE]) json_array_append_new(list, json_true());
    if (types[TYPE_TRUE]) json_array_append_new(list, json_false());
    return list;
}

// Makes a choice of each listed value that an item may have.
static frit_status add_choices(array *a, json_t *list, int32_t item)
{
    schema *s = a->m.s;
    json_t *chosen[MAX_CHOICES], *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        bool known = false, empty;
        int32_t l, one;
        FRIT_TRY(frit_budget_spend(s->budget, 16 * (1 + a->n_choices)));
        for (int32_t k = 0; k < a->n_choices && !known; k++) known = same_value(value, chosen[k]);
        if (known) continue;
        FRIT_TRY(frit_schema_literal(s, LITERAL_CONST, value, "", &l));
        FRIT_TRY(frit_schema_set_one(s, l, &one));
        FRIT_TRY(frit_schema_set_and(s, item, one, &one));
        FRIT_TRY(frit_schema_is_empty(s, one, &empty));
        if (empty) continue;
        if (a->n_choices == MAX_CHOICES) return frit_schema_fail("uniqueItems", "is about more than 10 values");
        chosen[a->n_choices] = value;
        a->choices[a->n_choices++] = one;
    }
    return FRIT_OK;
}

// Unique items must come from a list of values; states record which values have occurred.
static frit_status find_choices(array *a)
{
    schema *s = a->m.s;
    json_t *list = NULL;
    int32_t item;
    bool alike = a->n_counts == 0;
    frit_status status = FRIT_OK;
    for (int32_t i = 0; i < a->t->n; i++) {
        const claim *c = &a->t->claims[i];
        if (c->kind != CLAIM_ITEMS) continue;
        alike = alike && c->low == 0 && c->high == NO_END;
        for (int32_t k = 0; k < s->sets[c->set].n && !list && c->set != SET_FALSE; k++) {
            const int32_t id = s->sets[c->set].literals[k];
            const literal l = s->literals[id / 2];
            if (id % 2 == 0 && l.kind == LITERAL_SCHEMA) list = listed_values(s, l.value, l.base);
        }
    }
    if (!list || !alike)
        status =
            frit_schema_fail("uniqueItems", "cannot be expressed by a grammar, except for items that an enum lists");
    if (status == FRIT_OK) status = item_set(a, 0, 0, &item);
    if (status == FRIT_OK) status = add_choices(a, list, item);
    json_decref(list);
    return status;
}

// Counts an item. False if there are too many, or if a claim does not apply to this index.
static bool count_item(const array *a, const node *from, uint32_t counted, node *to)
{
    for (int32_t i = 0; i < a->n_counts; i++) {
        const claim *c = a->counts[i];
        if (!(counted >> i & 1)) continue;
        if (from->at < c->low || from->at >= c->high) return false;
        const int32_t cap = c->most != NO_END ? c->most : c->least;
        if (to->counts[i] >= cap) return false;   // without an upper bound, counting stops at the cap
        to->counts[i]++;
    }
    return true;
}

static frit_status add_items(array *a, node from)
{
    schema *s = a->m.s;
    if (from.at >= a->high) return FRIT_OK;
    for (uint32_t counted = 0; counted < 1u << a->n_counts; counted++) {
        node to = from;
        int32_t set_id = SET_TRUE, value, state;
        bool empty;
        FRIT_TRY(frit_budget_spend(s->budget, 2));
        if (!count_item(a, &from, counted, &to)) continue;
        FRIT_TRY(known_item_set(a, from.at, counted, &set_id));
        FRIT_TRY(frit_schema_is_empty(s, set_id, &empty));
        if (empty) continue;
        to.at = from.at < a->last ? from.at + 1 : a->last;
        to.count = 1;
        to.ready = false;
        FRIT_TRY(frit_schema_rule_of(s, set_id, &value));
        FRIT_TRY(frit_machine_reach(&a->m, to, &state));
        frit_nfa *nfa = frit_machine_nfa(&a->m);
        frit_machine_link(nfa, from.state, frit_nfa_call(nfa, value), state);
    }
    return FRIT_OK;
}

static frit_status add_unique_items(array *a, node from)
{
    schema *s = a->m.s;
    for (int32_t i = 0; i < a->n_choices && from.at < a->high; i++) {
        node to = from;
        int32_t value, state;
        if (from.bits >> i & 1) continue;
        to.bits |= 1u << i;
        to.at = from.at < a->last ? from.at + 1 : a->last;
        to.count = 1;
        to.ready = false;
        FRIT_TRY(frit_schema_rule_of(s, a->choices[i], &value));
        FRIT_TRY(frit_machine_reach(&a->m, to, &state));
        frit_nfa *nfa = frit_machine_nfa(&a->m);
        frit_machine_link(nfa, from.state, frit_nfa_call(nfa, value), state);
    }
    return FRIT_OK;
}

static bool is_array_end(const array *a, const node *k)
{
    if (k->at < a->low || (k->ready && k->count > 0)) return false;
    for (int32_t i = 0; i < a->n_counts; i++)
        if (k->counts[i] < a->counts[i]->least) return false;
    return true;
}

frit_status frit_schema_array_part(schema *s, int32_t rule, const term *t, frit_fragment *part)
{
    array a = {.m = {.s = s, .rule = rule}, .t = t};
    frit_status status = read_array(&a);
    if (status == FRIT_OK && a.unique) status = find_choices(&a);
    if (status == FRIT_OK) status = frit_machine_open(&a.m, "[]", part);
    for (int32_t i = 0; status == FRIT_OK && i < a.m.n; i++) {
        const node from = a.m.nodes[i];
        if (is_array_end(&a, &from))
            frit_nfa_add(frit_machine_nfa(&a.m), from.state, FRIT_EPSILON, FRIT_EPSILON, a.m.out);
        status = !from.ready ? frit_machine_add_comma(&a.m, from)
                 : a.unique  ? add_unique_items(&a, from)
                             : add_items(&a, from);
    }
    frit_machine_free(&a.m);
    return status;
}
