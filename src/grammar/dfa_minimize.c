// SPDX-License-Identifier: MIT
// Minimization by refining partitions.
#include "grammar/dfa_build.h"

#include <stdlib.h>

enum { MINIMIZED_STATES = 6000, MINIMIZED_WORK = 20000000 };

typedef struct signature {
    uint64_t hash;
    int32_t state;
} signature;

static int compare_signatures(const void *a, const void *b)
{
    const signature *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->state < y->state ? -1 : x->state > y->state;
}

// Hashes a state's edges. Adjacent edges with one target count as one edge. Targets are identified by their group or,
// without groups, by their hash.
static uint64_t hash_edges(const frit_dfa *d, int32_t s, uint64_t h, const int32_t *group, const uint64_t *hashes)
{
    for (int32_t i = d->first[s]; i < d->first[s + 1];) {
        uint64_t to = 0;
        const int32_t low = d->edges[i].low;
        int32_t high = low - 1;
        for (bool first = true; i < d->first[s + 1]; first = false, i++) {
            const frit_dfa_edge *e = &d->edges[i];
            const uint64_t name = group ? (uint64_t)group[e->to] : e->to == s ? 1 : hashes[e->to];
            if (!first && (name != to || high + 1 >= FRIT_CALL || e->low != high + 1)) break;
            to = name;
            high = e->high;
        }
        h = frit_dfa_mix(frit_dfa_mix(h, (uint64_t)low << 32 | (uint32_t)high), to);
    }
    return h;
}

// Runs one round: states with the same group and edges to the same groups form one group. Returns the number of groups,
// numbered in the order of their first states.
static int32_t refine(const frit_dfa *d, int32_t *group, signature *signatures, int32_t *names, const uint64_t *hashes)
{
    for (int32_t s = 0; s < d->n_states; s++)
        signatures[s] =
            (signature){hashes ? hashes[s] : hash_edges(d, s, frit_dfa_mix(0, (uint64_t)group[s]), group, NULL), s};
    qsort(signatures, (size_t)d->n_states, sizeof *signatures, compare_signatures);
    for (int32_t i = 0; i < d->n_states; i++) {
        const bool same = i > 0 && signatures[i].hash == signatures[i - 1].hash;
        group[signatures[i].state] = same ? group[signatures[i - 1].state] : signatures[i].state;
    }
    int32_t n = 0;
    for (int32_t s = 0; s < d->n_states; s++) {
        if (group[s] == s) names[s] = n++;
        group[s] = names[group[s]];
    }
    return n;
}

// Hashes all states from their ends backwards; equal states get equal hashes. False if there is a cycle other than a
// loop of one state. stack, next: room for the states.
static bool hash_backwards(const frit_dfa *d, uint64_t *hashes, int32_t *stack, int32_t *next)
{
    enum { NEW = -1, DONE = INT32_MAX };
    for (int32_t s = 0; s < d->n_states; s++) next[s] = NEW;
    for (int32_t s = 0; s < d->n_states; s++) {
        int32_t depth = 0;
        if (next[s] == NEW) {
            stack[depth++] = s;
            next[s] = d->first[s];
        }
        while (depth > 0) {
            const int32_t at = stack[depth - 1];
            if (next[at] == d->first[at + 1]) {
                hashes[at] = hash_edges(d, at, frit_dfa_mix(0, d->final[at]), NULL, hashes);
                next[at] = DONE;
                depth--;
                continue;
            }
            const int32_t to = d->edges[next[at]++].to;
            if (to == at || next[to] == DONE) continue;
            if (next[to] != NEW) return false;
            stack[depth++] = to;
            next[to] = d->first[to];
        }
    }
    return true;
}

// Refines groups until nothing changes. Bounded strings are long sequences of states, which need as many rounds as they
// have states. Without cycles, one pass from the ends is enough.
static int32_t group_states(const frit_dfa *d, int32_t *group, int32_t *names, signature *signatures, uint64_t *hashes)
{
    const int64_t round = d->n_edges + (int64_t)d->n_states * 16;
    if (frit_budget_spend(d->budget, round) != FRIT_OK) return d->n_states;
    if (hash_backwards(d, hashes, group, names)) return refine(d, group, signatures, names, hashes);
    int64_t work = 0;
    int32_t n = 0, before = -1;
    if (d->n_states > MINIMIZED_STATES) return d->n_states;
    for (int32_t s = 0; s < d->n_states; s++) group[s] = d->final[s];
    while (n != before && work < MINIMIZED_WORK && frit_budget_spend(d->budget, round) == FRIT_OK) {
        before = n;
        n = refine(d, group, signatures, names, NULL);
        work += round;
    }
    return n == before ? n : d->n_states;
}

frit_status frit_dfa_minimize(frit_dfa *d)
{
    if (d->n_states < 2) return FRIT_OK;
    frit_budget *budget = d->budget;
    const size_t n = (size_t)d->n_states;
    int32_t *group = frit_dfa_items_new(budget, n, sizeof *group),
            *names = frit_dfa_items_new(budget, n, sizeof *names);
    signature *signatures = frit_dfa_items_new(budget, n, sizeof *signatures);
    uint64_t *hashes = frit_dfa_items_new(budget, n, sizeof *hashes);
    frit_status status = group && names && signatures && hashes ? FRIT_OK : frit_dfa_fail_memory(budget);
    if (status == FRIT_OK && group_states(d, group, names, signatures, hashes) < d->n_states)
        status = frit_dfa_renumber(d, group);
    frit_dfa_items_free(budget, group, n, sizeof *group);
    frit_dfa_items_free(budget, names, n, sizeof *names);
    frit_dfa_items_free(budget, signatures, n, sizeof *signatures);
    frit_dfa_items_free(budget, hashes, n, sizeof *hashes);
    return status == FRIT_OK ? frit_budget_spend(budget, 0) : status;
}
