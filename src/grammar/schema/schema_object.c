// SPDX-License-Identifier: MIT
// Objects: members by name and by classes of keys, in the order of the schema or in any order.
#include "grammar/schema/schema_machine.h"

#include "text/answer/format.h"

#include <stdlib.h>

enum { MAX_CLASSES = 64, MAX_ANY_ORDER = 10, FEW_NAMES = 6 };

static const language no_keys = {.kind = LANGUAGE_NONE}, all_keys = {.kind = LANGUAGE_ALL};

typedef struct key_class {   // keys about which the same claims exist
    const char *name;        // NULL: `keys`
    uint32_t hash;           // of the name
    language keys;
    int32_t set;
    bool required;
    uint32_t witnesses;   // claims for some key that a member of this class can satisfy
    int32_t member;       // rule for key and value; -1: not yet made
} key_class;

typedef struct object {
    machine m;
    const term *t;
    key_class classes[MAX_CLASSES + SCHEMA_NAMES];
    int32_t n_names, n_classes;   // the names precede the other classes
    int32_t n_until_required;     // in order: number of names up to the last required one
    int32_t low, high;
    int32_t n_witnesses;
    const claim *witnesses[MAX_WITNESSES];
    int32_t n_tracked;   // in any order: the first n_tracked names may occur once each
} object;

frit_status frit_schema_too_many_names(void)
{
    return frit_fail(FRIT_E_LIMIT, "JSON schema: an object has more than %d properties", SCHEMA_NAMES);
}

static frit_status add_name(object *o, const claim *c)
{
    FRIT_TRY(frit_budget_spend(o->m.s->budget, 4 + o->n_names));
    for (int32_t i = 0; i < o->n_names; i++)
        if (o->classes[i].hash == c->hash && strcmp(o->classes[i].name, c->name) == 0) return FRIT_OK;
    if (o->n_names >= SCHEMA_NAMES) return frit_schema_too_many_names();
    o->classes[o->n_names++] = (key_class){.name = c->name, .hash = c->hash, .set = SET_TRUE, .member = -1};
    return FRIT_OK;
}

static bool claims_name(const claim *c, const key_class *k)
{
    const char *name = k->name;
    if (c->name) return c->hash == k->hash && strcmp(c->name, name) == 0;
    return c->keys.kind == LANGUAGE_ALL ||
           (c->keys.kind == LANGUAGE_SOME && frit_dfa_accepts(c->keys.dfa, frit_str_of(name)));
}

static frit_status find_names(object *o)
{
    schema *s = o->m.s;
    for (int32_t i = 0; i < o->t->n; i++)
        if (o->t->claims[i].name) FRIT_TRY(add_name(o, &o->t->claims[i]));
    for (int32_t i = 0; i < o->n_names; i++) {
        key_class *k = &o->classes[i];
        uint32_t bit = 1;
        FRIT_TRY(frit_budget_spend(s->budget, o->t->n));
        for (int32_t c = 0; c < o->t->n; c++) {
            const claim *about = &o->t->claims[c];
            if (!about->name) FRIT_TRY(frit_budget_spend(s->budget, (int64_t)strlen(k->name)));
            if (about->kind == CLAIM_REQUIRED && claims_name(about, k)) {
                k->required = true;
                o->n_until_required = i + 1;
            }
            if (about->kind == CLAIM_KEYS && claims_name(about, k))
                FRIT_TRY(frit_schema_set_and(s, k->set, about->set, &k->set));
            if (about->kind != CLAIM_SOME_KEY) continue;
            if (claims_name(about, k)) k->witnesses |= bit;
            bit <<= 1;
        }
    }
    return FRIT_OK;
}

// Splits the classes after the names into keys that a claim applies to and other keys.
static frit_status split(object *o, const claim *c, uint32_t witness)
{
    const int32_t n = o->n_classes;
    for (int32_t i = o->n_names; i < n; i++) {
        key_class in = o->classes[i], out = in;
        FRIT_TRY(frit_language_strings(o->m.s, in.keys, FRIT_DFA_AND, c->keys, &in.keys));
        FRIT_TRY(frit_language_strings(o->m.s, out.keys, FRIT_DFA_MINUS, c->keys, &out.keys));
        in.witnesses |= witness;
        if (!witness) FRIT_TRY(frit_schema_set_and(o->m.s, in.set, c->set, &in.set));
        o->classes[i] = in.keys.kind == LANGUAGE_NONE ? out : in;
        if (in.keys.kind == LANGUAGE_NONE || out.keys.kind == LANGUAGE_NONE) continue;
        if (o->n_classes - o->n_names >= MAX_CLASSES)
            return frit_fail(FRIT_E_LIMIT, "JSON schema: an object has more than %d kinds of keys", MAX_CLASSES);
        o->classes[o->n_classes++] = out;
    }
    return FRIT_OK;
}

static frit_status find_classes(object *o)
{
    schema *s = o->m.s;
    language names = no_keys;
    if (o->n_names > 0) {
        frit_nfa nfa = {.budget = s->budget};
        frit_dfa dfa;
        const frit_fragment part = frit_nfa_none(&nfa);
        for (int32_t i = 0; i < o->n_names; i++)
            frit_nfa_or(&nfa, part, frit_nfa_text(&nfa, frit_str_of(o->classes[i].name)));
        const frit_status status = frit_dfa_new(&dfa, &nfa, part);
        frit_nfa_free(&nfa);
        FRIT_TRY(status);
        names = frit_language_keep(s, &dfa);
    }
    key_class *rest = &o->classes[o->n_names];
    *rest = (key_class){.set = SET_TRUE, .member = -1};
    FRIT_TRY(frit_language_strings(s, all_keys, FRIT_DFA_MINUS, names, &rest->keys));
    o->n_classes = o->n_names + 1;
    uint32_t bit = 1;
    for (int32_t i = 0; i < o->t->n; i++) {
        const claim *c = &o->t->claims[i];
        if (c->kind == CLAIM_KEYS && !c->name) FRIT_TRY(split(o, c, 0));
        if (c->kind != CLAIM_SOME_KEY) continue;
        FRIT_TRY(split(o, c, bit));
        bit <<= 1;
    }
    return FRIT_OK;
}

static frit_status read_object(object *o)
{
    o->high = NO_END;
    for (int32_t i = 0; i < o->t->n; i++) {
        const claim *c = &o->t->claims[i];
        if (c->kind == CLAIM_SOME_KEY) {
            if (o->n_witnesses == MAX_WITNESSES)
                return frit_fail(FRIT_E_LIMIT, "JSON schema: more than %d claims about some member", MAX_WITNESSES);
            o->witnesses[o->n_witnesses++] = c;
        }
        if (c->kind != CLAIM_MEMBERS) continue;
        if (c->low > o->low) o->low = c->low;
        if (c->high < o->high) o->high = c->high;
    }
    FRIT_TRY(find_names(o));
    return find_classes(o);
}

// Makes a rule for a member: key, colon, value.
static frit_status member_rule(object *o, const key_class *k, int32_t set_id, int32_t *rule)
{
    schema *s = o->m.s;
    int32_t value;
    frit_fragment part;
    *rule = frit_builder_rule_new(s->builder, k->name ? k->name : "member");
    if (*rule < 0) return s->builder->failed;
    if (o->m.is_arguments) {
        FRIT_TRY(frit_form_member(s, *rule, k->name, k->keys, set_id, &part));
        frit_builder_define(s->builder, *rule, part);
        return FRIT_OK;
    }
    FRIT_TRY(frit_schema_rule_of(s, set_id, &value));
    language keys = k->keys;
    if (frit_form_is(s, CALL_LOOSE)) {
        if (k->name) FRIT_TRY(frit_language_text(s, frit_str_of(k->name), &keys));
        FRIT_TRY(frit_form_key(s, *rule, k->name, keys, &part));
    } else {
        FRIT_TRY(k->name ? frit_schema_name_part(s, *rule, k->name, &part)
                         : frit_schema_string_part(s, *rule, keys, &part));
    }
    frit_nfa *nfa = frit_builder_nfa(s->builder, *rule);
    if (s->complete) part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, s->rule_space));
    part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, ':', ':'));
    part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, s->rule_space));
    part = frit_nfa_seq(nfa, part, frit_nfa_call(nfa, value));
    frit_builder_define(s->builder, *rule, part);
    return FRIT_OK;
}

// Links a member of a class from a node to the next node; also once for each claim for some key that it may satisfy.
static frit_status add_member(object *o, const node *from, key_class *k, node to)
{
    schema *s = o->m.s;
    bool empty;
    const int32_t cap = o->high != NO_END ? o->high : o->low > 1 ? o->low : 1;
    if (from->count >= o->high) return FRIT_OK;
    to.ready = false;
    to.count = from->count < cap ? from->count + 1 : cap;
    for (int32_t w = -1; w < o->n_witnesses; w++) {
        node next = to;
        int32_t set_id = k->set, rule = k->member, state;
        if (w >= 0 && (!(k->witnesses >> w & 1) || from->bits >> (16 + w) & 1)) continue;
        if (w >= 0) FRIT_TRY(frit_schema_set_and(s, set_id, o->witnesses[w]->set, &set_id));
        if (w >= 0) next.bits |= 1u << (16 + w);
        FRIT_TRY(frit_schema_is_empty(s, set_id, &empty));
        if (empty) continue;
        if (w >= 0 || rule < 0) FRIT_TRY(member_rule(o, k, set_id, &rule));
        if (w < 0) k->member = rule;
        FRIT_TRY(frit_machine_reach(&o->m, next, &state));
        frit_nfa *nfa = frit_machine_nfa(&o->m);
        frit_machine_link(nfa, from->state, frit_nfa_call(nfa, rule), state);
    }
    return FRIT_OK;
}

static frit_status add_in_order(object *o, node from)
{
    node to = from;
    int32_t state;
    if (from.at < o->n_names) {
        key_class *k = &o->classes[from.at];
        to.at = from.at + 1;
        FRIT_TRY(add_member(o, &from, k, to));
        if (k->required) return FRIT_OK;
        FRIT_TRY(frit_machine_reach(&o->m, to, &state));
        frit_nfa_add(frit_machine_nfa(&o->m), from.state, FRIT_EPSILON, FRIT_EPSILON, state);
        return FRIT_OK;
    }
    for (int32_t i = o->n_names; i < o->n_classes; i++) FRIT_TRY(add_member(o, &from, &o->classes[i], to));
    return FRIT_OK;
}

static frit_status add_any_order(object *o, node from)
{
    for (int32_t i = 0; i < o->n_classes; i++) {
        node to = from;
        if (i < o->n_tracked && from.bits >> i & 1) continue;
        if (i < o->n_tracked) to.bits |= 1u << i;
        FRIT_TRY(add_member(o, &from, &o->classes[i], to));
    }
    return FRIT_OK;
}

// In any order, states record which names occurred: all names if they are few, otherwise the required ones.
static frit_status choose_tracked(object *o)
{
    o->n_tracked = o->n_names;
    if (o->n_names <= FEW_NAMES) return FRIT_OK;
    int32_t n = 0;
    for (int32_t i = 0; i < o->n_names; i++) {
        if (!o->classes[i].required) continue;
        const key_class swap = o->classes[n];
        o->classes[n++] = o->classes[i];
        o->classes[i] = swap;
    }
    o->n_tracked = n;
    if (n <= MAX_ANY_ORDER) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "JSON schema: 'required' names %d properties, of which the order may be any; "
                     "expected at most %d",
                     n, MAX_ANY_ORDER);
}

static bool is_object_end(const object *o, const node *k)
{
    if (k->ready && k->count > 0) return false;   // after a comma a member must follow
    if (k->count < o->low || (k->bits >> 16) != (1u << o->n_witnesses) - 1) return false;
    if (!o->m.s->any_order) return k->at >= o->n_until_required;
    for (int32_t i = 0; i < o->n_tracked; i++)
        if (o->classes[i].required && !(k->bits >> i & 1)) return false;
    return true;
}

frit_status frit_schema_object_part(schema *s, int32_t rule, const term *t, bool is_arguments, frit_fragment *part)
{
    object *o = calloc(1, sizeof *o);
    if (!o) return frit_fail_memory(sizeof *o, "a JSON schema");
    o->m = (machine){.s = s, .rule = rule, .is_arguments = is_arguments};
    o->t = t;
    frit_status status = read_object(o);
    if (status == FRIT_OK && s->any_order) status = choose_tracked(o);
    if (status == FRIT_OK) status = frit_machine_open(&o->m, "{}", part);
    for (int32_t i = 0; status == FRIT_OK && i < o->m.n; i++) {
        const node from = o->m.nodes[i];
        if (is_object_end(o, &from))
            frit_nfa_add(frit_machine_nfa(&o->m), from.state, FRIT_EPSILON, FRIT_EPSILON, o->m.out);
        status = !from.ready    ? frit_machine_add_comma(&o->m, from)
                 : s->any_order ? add_any_order(o, from)
                                : add_in_order(o, from);
    }
    frit_machine_free(&o->m);
    free(o);
    return status;
}
