// SPDX-License-Identifier: MIT
// Rules of sets: the JSON texts of values. Scalars come from languages (schema_scalar.c), arrays and objects from
// terms. Each term becomes an automaton whose states record the progress: the next name or index, the number of members
// or items, and the satisfied claims that require one member or item.
#include "grammar/schema/schema.h"

#include "text/answer/format.h"

#include <stdlib.h>

enum {
    MAX_CLASSES = 64,
    MAX_WITNESSES = 8,
    MAX_NODES = SCHEMA_STATES,
    MAX_ANY_ORDER = 10,
    MAX_CHOICES = 10,
    FEW_NAMES = 6
};

static const language no_keys = {.kind = LANGUAGE_NONE}, all_keys = {.kind = LANGUAGE_ALL};

frit_status frit_schema_rule_of(schema *s, int32_t set_id, int32_t *rule)
{
    if (s->sets[set_id].rule < 0) {
        char name[32];
        snprintf(name, sizeof name, "value %d", set_id);
        s->sets[set_id].rule = frit_builder_rule_new(s->builder, name);
        FRIT_TRY(frit_schema_grow(s, &s->queue, s->n_queue, &s->queue_room, sizeof *s->queue));
        s->queue[s->n_queue++] = set_id;
    }
    *rule = s->sets[set_id].rule;
    return *rule < 0 ? s->builder->failed : FRIT_OK;
}

static bool may_be(schema *s, int32_t set_id, schema_type type)
{
    for (int32_t i = 0; i < s->sets[set_id].n; i++) {
        const int32_t id = s->sets[set_id].literals[i];
        const literal *l = &s->literals[id / 2];
        bool types[N_TYPES], integer;
        if (l->kind == LITERAL_SCHEMA && frit_schema_is_reference(s, l->value)) continue;
        json_t *keyword = l->kind == LITERAL_SCHEMA ? json_object_get(l->value, "type") : NULL;
        json_t *values = l->kind == LITERAL_SCHEMA ? json_object_get(l->value, "enum") : NULL, *one;
        json_t *constant = l->kind == LITERAL_CONST ? l->value : NULL;
        if (l->kind == LITERAL_SCHEMA && !constant) constant = json_object_get(l->value, "const");
        if (id & 1) continue;
        if (keyword && frit_schema_types(keyword, types, &integer) && !types[type]) return false;
        if (constant && json_is_array(constant) != (type == TYPE_ARRAY)) return false;
        if (constant && json_is_object(constant) != (type == TYPE_OBJECT)) return false;
        bool found = !values;
        size_t k;
        json_array_foreach(values, k, one) found |= type == TYPE_ARRAY ? json_is_array(one) : json_is_object(one);
        if (frit_budget_spend(s->budget, 8 + (int64_t)json_array_size(values)) != FRIT_OK) return true;
        if (!found) return false;
    }
    return true;
}

frit_status frit_schema_is_empty(schema *s, int32_t set_id, bool *empty)
{
    *empty = set_id == SET_FALSE;
    if (set_id == SET_FALSE || set_id == SET_TRUE) return FRIT_OK;
    if (s->sets[set_id].empty >= 0) {
        *empty = s->sets[set_id].empty;
        return FRIT_OK;
    }
    *empty = !may_be(s, set_id, TYPE_ARRAY) && !may_be(s, set_id, TYPE_OBJECT);
    for (int type = 0; type < TYPE_ARRAY && *empty; type++) {
        language l;
        FRIT_TRY(frit_schema_language_of(s, set_id, type, &l));
        *empty = l.kind == LANGUAGE_NONE;
    }
    s->sets[set_id].empty = *empty;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- automata of terms

// A node is a list of small numbers that identifies a state.
typedef struct node {
    int32_t at, count;   // next name or index; number of members or items
    uint32_t bits;       // names that occurred, and satisfied claims
    int32_t counts[MAX_WITNESSES];
    bool ready;      // a member or an item comes next; otherwise a comma or the end
    int32_t state;   // of the rule's automaton
} node;

typedef struct machine {
    schema *s;
    bool is_arguments;   // members in the syntax of calls, without brackets around them
    int32_t rule;
    node *nodes;
    int32_t n, room;
    int32_t *buckets;   // of nodes, by a hash
    int32_t n_buckets;
    int32_t out;
} machine;

static frit_nfa *nfa_of(const machine *m)
{
    return frit_builder_nfa(m->s->builder, m->rule);
}

static uint32_t hash_node(const node *k)
{
    uint64_t h = ((uint64_t)(uint32_t)k->at << 32 | (uint32_t)k->count) ^ (uint64_t)k->bits * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < MAX_WITNESSES; i++) h = (h ^ (uint32_t)k->counts[i]) * 0x9e3779b97f4a7c15u;
    h = (h ^ k->ready) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static bool same_node(const node *a, const node *b)
{
    return a->at == b->at && a->count == b->count && a->bits == b->bits && a->ready == b->ready &&
           memcmp(a->counts, b->counts, sizeof a->counts) == 0;
}

// Returns the state of a node; makes it if it is new.
static frit_status reach(machine *m, node k, int32_t *state)
{
    uint32_t at = 0;
    FRIT_TRY(frit_budget_spend(m->s->budget, 8));
    if (m->n * 2 >= m->n_buckets) {
        const int32_t room = m->room ? m->room * 2 : 64;
        FRIT_TRY(frit_budget_spend(m->s->budget, 8 * room));
        node *nodes = realloc(m->nodes, (size_t)room * sizeof *nodes);
        if (nodes) m->nodes = nodes;
        int32_t *buckets = realloc(m->buckets, (size_t)room * 2 * sizeof *buckets);
        if (buckets) m->buckets = buckets;
        if (!nodes || !buckets) return frit_schema_no_memory(m->s);
        m->room = room;
        m->n_buckets = room * 2;
        memset(buckets, -1, (size_t)m->n_buckets * sizeof *buckets);
        for (int32_t i = 0; i < m->n; i++) {
            for (at = hash_node(&nodes[i]) & (uint32_t)(m->n_buckets - 1); buckets[at] >= 0;)
                at = (at + 1) & (uint32_t)(m->n_buckets - 1);
            buckets[at] = i;
        }
    }
    for (at = hash_node(&k) & (uint32_t)(m->n_buckets - 1); m->buckets[at] >= 0;) {
        const node *known = &m->nodes[m->buckets[at]];
        *state = known->state;
        if (same_node(known, &k)) return FRIT_OK;
        at = (at + 1) & (uint32_t)(m->n_buckets - 1);
    }
    if (m->n >= MAX_NODES)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: an array or object needs more than %d states", MAX_NODES);
    *state = k.state = frit_nfa_state(nfa_of(m));
    m->buckets[at] = m->n;
    m->nodes[m->n++] = k;
    return frit_nfa_check(nfa_of(m));
}

static void free_machine(machine *m)
{
    free(m->nodes);
    free(m->buckets);
}

static void link(frit_nfa *nfa, int32_t from, frit_fragment part, int32_t to)
{
    frit_nfa_add(nfa, from, FRIT_EPSILON, FRIT_EPSILON, part.in);
    frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, to);
}

// Begins the part: "{" or "[", space, and the first node. Final nodes are linked to the closing bracket.
static frit_status open_machine(machine *m, const char *brackets, frit_fragment *part)
{
    FRIT_TRY(frit_schema_space(m->s));
    const node start = {.ready = true};
    frit_nfa *nfa = nfa_of(m);
    *part = frit_nfa_none(nfa);
    if (m->is_arguments) {
        m->out = part->out;
        int32_t first;
        FRIT_TRY(reach(m, start, &first));
        frit_nfa_add(nfa_of(m), part->in, FRIT_EPSILON, FRIT_EPSILON, first);
        return FRIT_OK;
    }
    frit_fragment open = frit_nfa_bytes(nfa, (unsigned char)brackets[0], (unsigned char)brackets[0]);
    open = frit_nfa_seq(nfa, open, frit_nfa_call(nfa, m->s->rule_space));
    const int32_t last = frit_nfa_state(nfa);
    int32_t state;
    FRIT_TRY(reach(m, start, &state));
    link(nfa, part->in, open, state);
    m->out = last;
    const frit_fragment space = frit_nfa_call(nfa, m->s->rule_space);
    const frit_fragment close = frit_nfa_bytes(nfa, (unsigned char)brackets[1], (unsigned char)brackets[1]);
    link(nfa, last, frit_nfa_seq(nfa, space, close), part->out);
    return FRIT_OK;
}

// Adds an optional comma and space before the next member or item.
static frit_status add_comma(machine *m, node from)
{
    node to = from;
    int32_t state;
    to.ready = true;
    FRIT_TRY(reach(m, to, &state));
    frit_nfa *nfa = nfa_of(m);
    if (m->is_arguments && frit_form_is(m->s, CALL_TAGGED)) {
        frit_nfa_add(nfa, from.state, FRIT_EPSILON, FRIT_EPSILON, state);
        return FRIT_OK;
    }
    const frit_fragment comma = frit_nfa_bytes(nfa, ',', ',');
    link(nfa, from.state, frit_nfa_seq(nfa, comma, frit_nfa_call(nfa, m->s->rule_space)), state);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- objects

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
        FRIT_TRY(reach(&o->m, next, &state));
        frit_nfa *nfa = nfa_of(&o->m);
        link(nfa, from->state, frit_nfa_call(nfa, rule), state);
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
        FRIT_TRY(reach(&o->m, to, &state));
        frit_nfa_add(nfa_of(&o->m), from.state, FRIT_EPSILON, FRIT_EPSILON, state);
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

static frit_status object_part(schema *s, int32_t rule, const term *t, bool is_arguments, frit_fragment *part)
{
    object *o = calloc(1, sizeof *o);
    if (!o) return frit_fail_memory(sizeof *o, "a JSON schema");
    o->m = (machine){.s = s, .rule = rule, .is_arguments = is_arguments};
    o->t = t;
    frit_status status = read_object(o);
    if (status == FRIT_OK && s->any_order) status = choose_tracked(o);
    if (status == FRIT_OK) status = open_machine(&o->m, "{}", part);
    for (int32_t i = 0; status == FRIT_OK && i < o->m.n; i++) {
        const node from = o->m.nodes[i];
        if (is_object_end(o, &from)) frit_nfa_add(nfa_of(&o->m), from.state, FRIT_EPSILON, FRIT_EPSILON, o->m.out);
        status = !from.ready ? add_comma(&o->m, from) : s->any_order ? add_any_order(o, from) : add_in_order(o, from);
    }
    free_machine(&o->m);
    free(o);
    return status;
}

// ------------------------------------------------------------------------------------- arrays

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
        FRIT_TRY(reach(&a->m, to, &state));
        frit_nfa *nfa = nfa_of(&a->m);
        link(nfa, from.state, frit_nfa_call(nfa, value), state);
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
        FRIT_TRY(reach(&a->m, to, &state));
        frit_nfa *nfa = nfa_of(&a->m);
        link(nfa, from.state, frit_nfa_call(nfa, value), state);
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

static frit_status array_part(schema *s, int32_t rule, const term *t, frit_fragment *part)
{
    array a = {.m = {.s = s, .rule = rule}, .t = t};
    frit_status status = read_array(&a);
    if (status == FRIT_OK && a.unique) status = find_choices(&a);
    if (status == FRIT_OK) status = open_machine(&a.m, "[]", part);
    for (int32_t i = 0; status == FRIT_OK && i < a.m.n; i++) {
        const node from = a.m.nodes[i];
        if (is_array_end(&a, &from)) frit_nfa_add(nfa_of(&a.m), from.state, FRIT_EPSILON, FRIT_EPSILON, a.m.out);
        status = !from.ready ? add_comma(&a.m, from) : a.unique ? add_unique_items(&a, from) : add_items(&a, from);
    }
    free_machine(&a.m);
    return status;
}

// ------------------------------------------------------------------------------------- sets

static frit_status add_terms(schema *s, int32_t set_id, int32_t rule, schema_type type, bool is_arguments,
                             frit_fragment all)
{
    terms list;
    FRIT_TRY(frit_schema_terms_of(s, set_id, type, &list));
    for (int32_t i = 0; i < list.n; i++) {
        frit_fragment part;
        FRIT_TRY(type == TYPE_ARRAY ? array_part(s, rule, &list.items[i], &part)
                                    : object_part(s, rule, &list.items[i], is_arguments, &part));
        frit_nfa_or(frit_builder_nfa(s->builder, rule), all, part);
    }
    return FRIT_OK;
}

static frit_status end_rule(schema *s, int32_t rule, frit_fragment all)
{
    frit_builder_define(s->builder, rule, all);
    return s->arena.failed ? frit_schema_no_memory(s) : frit_nfa_check(frit_builder_nfa(s->builder, rule));
}

frit_status frit_schema_define_as(schema *s, int32_t set_id, int32_t rule, const bool types[N_TYPES])
{
    const frit_fragment all = frit_nfa_none(frit_builder_nfa(s->builder, rule));
    for (int type = 0; type < TYPE_ARRAY; type++) {
        language l;
        frit_fragment part;
        if (!types[type]) continue;
        FRIT_TRY(frit_schema_language_of(s, set_id, type, &l));
        if (l.kind == LANGUAGE_NONE) continue;
        FRIT_TRY(frit_schema_scalar_part(s, rule, type, l, &part));
        frit_nfa_or(frit_builder_nfa(s->builder, rule), all, part);
    }
    for (int type = TYPE_ARRAY; type < N_TYPES; type++)
        if (types[type]) FRIT_TRY(add_terms(s, set_id, rule, type, false, all));
    return end_rule(s, rule, all);
}

frit_status frit_schema_define(schema *s, int32_t set_id)
{
    static const bool all[N_TYPES] = {true, true, true, true, true, true, true};
    return frit_schema_define_as(s, set_id, s->sets[set_id].rule, all);
}

frit_status frit_schema_define_arguments(schema *s, int32_t set_id, int32_t rule)
{
    const frit_fragment all = frit_nfa_none(frit_builder_nfa(s->builder, rule));
    FRIT_TRY(add_terms(s, set_id, rule, TYPE_OBJECT, true, all));
    return end_rule(s, rule, all);
}
