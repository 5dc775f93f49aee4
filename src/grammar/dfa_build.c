// SPDX-License-Identifier: MIT
// Building automata state by state, and removing states that lead nowhere.
#include "grammar/dfa_build.h"

#include <stdlib.h>

// Resizes an array of the automaton.
static void *resize(frit_dfa *d, void *items, size_t before, size_t after)
{
    return frit_dfa_grow(&d->bytes, d->budget, items, before, after);
}

void frit_dfa_begin_state(frit_dfa_builder *b, bool final)
{
    frit_dfa *d = &b->dfa;
    if (d->n_states + 1 >= b->room_states) {
        const int32_t room = b->room_states ? b->room_states * 2 : 16;
        int32_t *first = resize(d, d->first, (size_t)b->room_states * sizeof *first, (size_t)room * sizeof *first);
        if (first) d->first = first;
        unsigned char *finals = first ? resize(d, d->final, (size_t)b->room_states, (size_t)room) : NULL;
        if (finals) d->final = finals;
        if (!finals) {
            b->failed = true;
            return;
        }
        b->room_states = room;
    }
    d->first[d->n_states] = d->n_edges;
    d->first[d->n_states + 1] = d->n_edges;
    d->final[d->n_states++] = final;
}

void frit_dfa_add_edge(frit_dfa_builder *b, int32_t low, int32_t high, int32_t to)
{
    frit_dfa *d = &b->dfa;
    if (b->failed) return;
    const int32_t first = d->first[d->n_states - 1];
    if (d->n_edges > first && high < FRIT_CALL) {
        frit_dfa_edge *last = &d->edges[d->n_edges - 1];
        if (last->to == to && last->high + 1 == low) {
            last->high = high;
            return;
        }
    }
    if (d->n_edges == b->room_edges) {
        const int32_t room = b->room_edges ? b->room_edges * 2 : 16;
        frit_dfa_edge *edges = resize(d, d->edges, (size_t)b->room_edges * sizeof *edges, (size_t)room * sizeof *edges);
        if (!edges) {
            b->failed = true;
            return;
        }
        d->edges = edges;
        b->room_edges = room;
    }
    d->edges[d->n_edges++] = (frit_dfa_edge){low, high, to};
    d->first[d->n_states] = d->n_edges;
}

frit_status frit_dfa_fail_memory(const frit_budget *budget)
{
    return frit_budget_fail(budget, sizeof(frit_dfa_edge), "the automaton of a grammar");
}

void *frit_dfa_items_new(frit_budget *budget, size_t n, size_t size)
{
    return frit_budget_resize(budget, NULL, 0, (n + 1) * size);
}

void frit_dfa_items_free(frit_budget *budget, void *items, size_t n, size_t size)
{
    if (items) frit_budget_release(budget, (n + 1) * size);
    free(items);
}

frit_status frit_dfa_fail_size(void)
{
    return frit_fail(FRIT_E_LIMIT, "the automaton of the grammar has more than %d states or takes too long to make",
                     FRIT_DFA_STATES);
}

// ------------------------------------------------------------------------------------- trimming

// Marks the states from which a final state can be reached.
static bool mark_live(const frit_dfa *d, unsigned char *live)
{
    const size_t n_states = (size_t)d->n_states, n_edges = (size_t)d->n_edges;
    int32_t *counts = frit_dfa_items_new(d->budget, n_states + 1, sizeof *counts);
    int32_t *sources = frit_dfa_items_new(d->budget, n_edges, sizeof *sources);
    int32_t *stack = frit_dfa_items_new(d->budget, n_states, sizeof *stack);
    const bool good = counts && sources && stack;
    if (good) memset(counts, 0, (n_states + 2) * sizeof *counts);
    for (int32_t i = 0; good && i < d->n_edges; i++) counts[d->edges[i].to + 2]++;
    for (int32_t s = 0; good && s < d->n_states; s++) counts[s + 2] += counts[s + 1];
    for (int32_t s = 0; good && s < d->n_states; s++)
        for (int32_t i = d->first[s]; i < d->first[s + 1]; i++) sources[counts[d->edges[i].to + 1]++] = s;
    int32_t n = 0;
    for (int32_t s = 0; good && s < d->n_states; s++) {
        live[s] = d->final[s];
        if (live[s]) stack[n++] = s;
    }
    while (good && n > 0) {
        const int32_t s = stack[--n];
        for (int32_t i = counts[s]; i < counts[s + 1]; i++) {
            if (live[sources[i]]) continue;
            live[sources[i]] = 1;
            stack[n++] = sources[i];
        }
    }
    frit_dfa_items_free(d->budget, counts, n_states + 1, sizeof *counts);
    frit_dfa_items_free(d->budget, sources, n_edges, sizeof *sources);
    frit_dfa_items_free(d->budget, stack, n_states, sizeof *stack);
    return good;
}

frit_status frit_dfa_renumber(frit_dfa *d, const int32_t *map)
{
    frit_dfa_builder b = {.dfa = {.budget = d->budget}};
    for (int32_t s = 0; s < d->n_states && !b.failed; s++) {
        if (map[s] < b.dfa.n_states) continue;   // dropped, or equal to an earlier state
        frit_dfa_begin_state(&b, d->final[s]);
        for (int32_t i = d->first[s]; i < d->first[s + 1] && !b.failed; i++)
            if (map[d->edges[i].to] >= 0) frit_dfa_add_edge(&b, d->edges[i].low, d->edges[i].high, map[d->edges[i].to]);
    }
    if (b.failed) {
        frit_dfa_free(&b.dfa);
        return frit_dfa_fail_memory(d->budget);
    }
    frit_dfa_free(d);
    *d = b.dfa;
    return FRIT_OK;
}

frit_status frit_dfa_trim(frit_dfa *d)
{
    const size_t n_states = (size_t)d->n_states;
    FRIT_TRY(frit_budget_spend(d->budget, 2 * (int64_t)d->n_edges + d->n_states));
    unsigned char *live = frit_dfa_items_new(d->budget, n_states, 1);
    int32_t *map = frit_dfa_items_new(d->budget, n_states, sizeof *map);
    if (live) memset(live, 0, n_states);
    frit_status status = live && map && mark_live(d, live) ? FRIT_OK : frit_dfa_fail_memory(d->budget);
    int32_t n = 1;
    for (int32_t s = 0; status == FRIT_OK && s < d->n_states; s++) map[s] = s == 0 ? 0 : live[s] ? n++ : -1;
    if (status == FRIT_OK && !live[0]) map[0] = 0, n = 1;
    frit_budget *budget = d->budget;
    if (status == FRIT_OK && n < d->n_states) status = frit_dfa_renumber(d, map);
    frit_dfa_items_free(budget, live, n_states, 1);
    frit_dfa_items_free(budget, map, n_states, sizeof *map);
    return status;
}
