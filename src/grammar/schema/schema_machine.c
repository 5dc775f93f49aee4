// SPDX-License-Identifier: MIT
// Automata of terms: their nodes, brackets and commas.
#include "grammar/schema/schema_machine.h"

#include "text/answer/format.h"

#include <stdlib.h>

frit_nfa *frit_machine_nfa(const machine *m)
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

frit_status frit_machine_reach(machine *m, node k, int32_t *state)
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
    *state = k.state = frit_nfa_state(frit_machine_nfa(m));
    m->buckets[at] = m->n;
    m->nodes[m->n++] = k;
    return frit_nfa_check(frit_machine_nfa(m));
}

void frit_machine_free(machine *m)
{
    free(m->nodes);
    free(m->buckets);
}

void frit_machine_link(frit_nfa *nfa, int32_t from, frit_fragment part, int32_t to)
{
    frit_nfa_add(nfa, from, FRIT_EPSILON, FRIT_EPSILON, part.in);
    frit_nfa_add(nfa, part.out, FRIT_EPSILON, FRIT_EPSILON, to);
}

frit_status frit_machine_open(machine *m, const char *brackets, frit_fragment *part)
{
    FRIT_TRY(frit_schema_space(m->s));
    const node start = {.ready = true};
    frit_nfa *nfa = frit_machine_nfa(m);
    *part = frit_nfa_none(nfa);
    if (m->is_arguments) {
        m->out = part->out;
        int32_t first;
        FRIT_TRY(frit_machine_reach(m, start, &first));
        frit_nfa_add(frit_machine_nfa(m), part->in, FRIT_EPSILON, FRIT_EPSILON, first);
        return FRIT_OK;
    }
    frit_fragment open = frit_nfa_bytes(nfa, (unsigned char)brackets[0], (unsigned char)brackets[0]);
    open = frit_nfa_seq(nfa, open, frit_nfa_call(nfa, m->s->rule_space));
    const int32_t last = frit_nfa_state(nfa);
    int32_t state;
    FRIT_TRY(frit_machine_reach(m, start, &state));
    frit_machine_link(nfa, part->in, open, state);
    m->out = last;
    const frit_fragment space = frit_nfa_call(nfa, m->s->rule_space);
    const frit_fragment close = frit_nfa_bytes(nfa, (unsigned char)brackets[1], (unsigned char)brackets[1]);
    frit_machine_link(nfa, last, frit_nfa_seq(nfa, space, close), part->out);
    return FRIT_OK;
}

frit_status frit_machine_add_comma(machine *m, node from)
{
    node to = from;
    int32_t state;
    to.ready = true;
    FRIT_TRY(frit_machine_reach(m, to, &state));
    frit_nfa *nfa = frit_machine_nfa(m);
    if (m->is_arguments && frit_form_is(m->s, CALL_TAGGED)) {
        frit_nfa_add(nfa, from.state, FRIT_EPSILON, FRIT_EPSILON, state);
        return FRIT_OK;
    }
    const frit_fragment comma = frit_nfa_bytes(nfa, ',', ',');
    frit_machine_link(nfa, from.state, frit_nfa_seq(nfa, comma, frit_nfa_call(nfa, m->s->rule_space)), state);
    return FRIT_OK;
}
