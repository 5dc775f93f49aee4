// SPDX-License-Identifier: MIT
// Determinization: a state of the result is a set of states of the nondeterministic automaton.
#include "grammar/dfa_build.h"

#include <stdlib.h>

typedef struct subset_work {
    const frit_nfa *nfa;
    int32_t out;
    int32_t *first;   // edges by the state that they leave
    frit_nfa_edge *edges;
    int32_t *mark, *stack, *closed;   // [n_states]
    int32_t *single;                  // [n_states]: the set reached from a single state; -1: not yet known
    int32_t round;
    frit_int_sets sets;
    int32_t *points;          // symbols at which the set of targets changes
    frit_nfa_edge *leaving;   // edges that leave the current set
    int32_t *targets;
    size_t room;
    frit_budget *budget;
    size_t bytes;   // charged to the budget
} subset_work;

static bool sort_edges(subset_work *w)
{
    const frit_nfa *nfa = w->nfa;
    const size_t n = (size_t)nfa->n_states;
    const size_t bytes = 5 * (n + 2) * sizeof *w->first + ((size_t)nfa->n_edges + 1) * sizeof *w->edges;
    if (frit_budget_acquire(w->budget, bytes) != FRIT_OK) return false;
    w->bytes = bytes;
    if (frit_budget_spend(w->budget, 2 * (int64_t)nfa->n_edges + nfa->n_states) != FRIT_OK) return false;
    w->first = calloc(n + 2, sizeof *w->first);
    w->edges = malloc(((size_t)nfa->n_edges + 1) * sizeof *w->edges);
    w->mark = calloc(n, sizeof *w->mark);
    w->stack = malloc(n * sizeof *w->stack);
    w->closed = malloc(n * sizeof *w->closed);
    w->single = malloc(n * sizeof *w->single);
    if (!w->first || !w->edges || !w->mark || !w->stack || !w->closed || !w->single) return false;
    memset(w->single, -1, n * sizeof *w->single);
    for (int32_t i = 0; i < nfa->n_edges; i++) w->first[nfa->edges[i].from + 2]++;
    for (size_t s = 0; s < n; s++) w->first[s + 2] += w->first[s + 1];
    for (int32_t i = 0; i < nfa->n_edges; i++) w->edges[w->first[nfa->edges[i].from + 1]++] = nfa->edges[i];
    return true;
}

static int compare_ints(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

// The number of steps that sorting n items is charged.
static int64_t sort_steps(size_t n)
{
    int64_t steps = (int64_t)n;
    for (size_t i = n; i > 1; i /= 4) steps += (int64_t)n;
    return steps;
}

static void sort_ints(int32_t *items, size_t n)
{
    enum { FEW = 24 };
    if (n > FEW) {
        qsort(items, n, sizeof *items, compare_ints);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const int32_t item = items[i];
        size_t k = i;
        for (; k > 0 && items[k - 1] > item; k--) items[k] = items[k - 1];
        items[k] = item;
    }
}

// Returns the set of states with symbol edges, or final, that can be reached from `states` without reading a symbol.
static int32_t close_set(subset_work *w, const int32_t *states, size_t n)
{
    size_t n_stack = 0, n_closed = 0;
    int64_t steps = (int64_t)n;
    if (n == 1 && w->single[states[0]] >= 0) return w->single[states[0]];
    w->round++;
    for (size_t i = 0; i < n; i++) {
        if (w->mark[states[i]] == w->round) continue;
        w->mark[states[i]] = w->round;
        w->stack[n_stack++] = states[i];
    }
    while (n_stack > 0) {
        const int32_t s = w->stack[--n_stack];
        bool reads = s == w->out;
        steps += w->first[s + 1] - w->first[s] + 1;
        for (int32_t i = w->first[s]; i < w->first[s + 1]; i++) {
            const int32_t to = w->edges[i].to;
            if (w->edges[i].low != FRIT_EPSILON) {
                reads = true;
            } else if (w->mark[to] != w->round) {
                w->mark[to] = w->round;
                w->stack[n_stack++] = to;
            }
        }
        if (reads) w->closed[n_closed++] = s;
    }
    sort_ints(w->closed, n_closed);
    if (frit_budget_spend(w->budget, steps + sort_steps(n_closed)) != FRIT_OK) return -1;
    const int32_t set = frit_int_sets_intern(&w->sets, w->closed, n_closed);
    if (n == 1) w->single[states[0]] = set;
    return set;
}

static void *gather_room(subset_work *w, void *items, size_t room, size_t size)
{
    return frit_dfa_grow(&w->bytes, w->budget, items, w->room * size, room * size);
}

static bool gather(subset_work *w, int32_t set, size_t *n_leaving, size_t *n_points)
{
    size_t n = 0, n_max = 0;
    const size_t begin = w->sets.start[set], end = w->sets.start[set + 1];
    for (size_t k = begin; k < end; k++) {
        const int32_t s = w->sets.items[k];
        n_max += (size_t)(w->first[s + 1] - w->first[s]);
    }
    if (n_max + 1 > w->room) {
        const size_t room = (n_max + 1) * 2;
        int32_t *points = gather_room(w, w->points, room, 2 * sizeof *points);
        if (points) w->points = points;
        frit_nfa_edge *leaving = points ? gather_room(w, w->leaving, room, sizeof *leaving) : NULL;
        if (leaving) w->leaving = leaving;
        int32_t *targets = leaving ? gather_room(w, w->targets, room, sizeof *targets) : NULL;
        if (targets) w->targets = targets;
        if (!targets) return false;
        w->room = room;
    }
    for (size_t k = begin; k < end; k++) {
        const int32_t s = w->sets.items[k];
        for (int32_t i = w->first[s]; i < w->first[s + 1]; i++)
            if (w->edges[i].low != FRIT_EPSILON) w->leaving[n++] = w->edges[i];
    }
    for (size_t i = 0; i < n; i++) {
        w->points[2 * i] = w->leaving[i].low;
        w->points[2 * i + 1] = w->leaving[i].high + 1;
    }
    *n_leaving = n;
    size_t distinct = 0;
    if (frit_budget_spend(w->budget, (int64_t)(end - begin) + 2 * sort_steps(2 * n)) != FRIT_OK) return false;
    sort_ints(w->points, 2 * n);
    for (size_t i = 0; i < 2 * n; i++)
        if (distinct == 0 || w->points[distinct - 1] != w->points[i]) w->points[distinct++] = w->points[i];
    *n_points = distinct;
    return true;
}

static int compare_lows(const void *a, const void *b)
{
    const frit_nfa_edge *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

// Adds the edges of the current state.
static frit_status expand(subset_work *w, frit_dfa_builder *b, int32_t set)
{
    size_t n, n_points;
    if (!gather(w, set, &n, &n_points)) return frit_dfa_fail_memory(w->budget);
    if (n > 1) qsort(w->leaving, n, sizeof *w->leaving, compare_lows);
    size_t done = 0;   // number of edges that end before every later point
    frit_status status = FRIT_OK;
    for (size_t p = 0; p + 1 < n_points && status == FRIT_OK; p++) {
        const int32_t low = w->points[p], high = w->points[p + 1] - 1;
        size_t n_targets = 0;
        size_t i;
        while (done < n && w->leaving[done].high < low) done++;
        for (i = done; i < n && w->leaving[i].low <= low; i++)
            if (w->leaving[i].high >= high) w->targets[n_targets++] = w->leaving[i].to;
        FRIT_TRY(frit_budget_spend(w->budget, (int64_t)(i - done) + 1));
        if (n_targets == 0) continue;
        const int32_t to = close_set(w, w->targets, n_targets);
        if (to < 0) status = frit_dfa_fail_memory(w->budget);
        if (to >= FRIT_DFA_STATES) status = frit_dfa_fail_size();
        if (status == FRIT_OK) frit_dfa_add_edge(b, low, high, to);
    }
    return status;
}

frit_status frit_dfa_new(frit_dfa *out, const frit_nfa *nfa, frit_fragment part)
{
    *out = (frit_dfa){0};
    FRIT_TRY(frit_nfa_check(nfa));
    frit_budget *budget = nfa->budget;
    subset_work w = {.nfa = nfa, .out = part.out, .budget = budget, .sets = {.budget = budget}};
    frit_dfa_builder b = {.dfa = {.budget = budget}};
    frit_status status = sort_edges(&w) && close_set(&w, &part.in, 1) == 0 ? FRIT_OK : frit_dfa_fail_memory(budget);
    for (int32_t s = 0; status == FRIT_OK && s < w.sets.n_sets; s++) {
        bool final = false;
        for (size_t i = w.sets.start[s]; i < w.sets.start[s + 1]; i++) final |= w.sets.items[i] == part.out;
        frit_dfa_begin_state(&b, final);
        status = b.failed ? frit_dfa_fail_memory(budget) : expand(&w, &b, s);
    }
    if (status == FRIT_OK && b.failed) status = frit_dfa_fail_memory(budget);
    frit_int_sets_free(&w.sets);
    free(w.first);
    free(w.edges);
    free(w.mark);
    free(w.stack);
    free(w.closed);
    free(w.single);
    free(w.points);
    free(w.leaving);
    free(w.targets);
    frit_budget_release(budget, w.bytes);
    if (status == FRIT_OK) status = frit_dfa_trim(&b.dfa);
    if (status == FRIT_OK) status = frit_dfa_minimize(&b.dfa);
    if (status != FRIT_OK) frit_dfa_free(&b.dfa);
    *out = b.dfa;
    return status;
}
