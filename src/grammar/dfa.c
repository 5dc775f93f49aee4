// SPDX-License-Identifier: MIT
// Automata as languages: copies, products of two automata, tests.
#include "grammar/dfa_build.h"

#include <stdlib.h>

void frit_dfa_free(frit_dfa *dfa)
{
    free(dfa->first);
    free(dfa->edges);
    free(dfa->final);
    frit_budget_release(dfa->budget, dfa->bytes);
    *dfa = (frit_dfa){0};
}

frit_status frit_dfa_copy(frit_dfa *out, const frit_dfa *dfa)
{
    const size_t n = (size_t)dfa->n_states, n_edges = (size_t)dfa->n_edges;
    *out = (frit_dfa){.n_states = dfa->n_states, .n_edges = dfa->n_edges};
    out->first = malloc((n + 1) * sizeof *out->first);
    out->edges = malloc((n_edges + 1) * sizeof *out->edges);
    out->final = malloc(n + 1);
    if (!out->first || !out->edges || !out->final) {
        frit_dfa_free(out);
        return frit_dfa_fail_memory(NULL);
    }
    memcpy(out->first, dfa->first, (n + 1) * sizeof *out->first);
    if (n_edges > 0) memcpy(out->edges, dfa->edges, n_edges * sizeof *out->edges);
    memcpy(out->final, dfa->final, n);
    return FRIT_OK;
}

bool frit_dfa_same(const frit_dfa *a, const frit_dfa *b)
{
    if (a->n_states != b->n_states || a->n_edges != b->n_edges) return false;
    return memcmp(a->first, b->first, ((size_t)a->n_states + 1) * sizeof *a->first) == 0 &&
           memcmp(a->final, b->final, (size_t)a->n_states) == 0 &&
           (a->n_edges == 0 || memcmp(a->edges, b->edges, (size_t)a->n_edges * sizeof *a->edges) == 0);
}

static bool decide(frit_dfa_op op, bool a, bool b)
{
    return op == FRIT_DFA_AND ? a && b : op == FRIT_DFA_OR ? a || b : a && !b;
}

// Adds the edges of a pair of states; -1 is the state that accepts nothing.
static frit_status pair_edges(frit_dfa_builder *out, frit_int_sets *pairs, const frit_dfa *a, frit_dfa_op op,
                              const frit_dfa *b, const int32_t pair[2])
{
    int32_t i = pair[0] >= 0 ? a->first[pair[0]] : 0, i_end = pair[0] >= 0 ? a->first[pair[0] + 1] : 0;
    int32_t k = pair[1] >= 0 ? b->first[pair[1]] : 0, k_end = pair[1] >= 0 ? b->first[pair[1] + 1] : 0;
    FRIT_TRY(frit_budget_spend(pairs->budget, 4 * (2 + i_end - i + k_end - k)));
    for (int32_t at = 0; at < FRIT_CALL;) {
        while (i < i_end && a->edges[i].high < at) i++;
        while (k < k_end && b->edges[k].high < at) k++;
        const bool in_a = i < i_end && a->edges[i].low <= at, in_b = k < k_end && b->edges[k].low <= at;
        int32_t end = FRIT_CALL - 1;   // the end of the range in which nothing changes
        if (i < i_end) end = in_a ? a->edges[i].high : a->edges[i].low - 1;
        const int32_t b_end = k == k_end ? FRIT_CALL - 1 : in_b ? b->edges[k].high : b->edges[k].low - 1;
        if (b_end < end) end = b_end;
        const int32_t next[2] = {in_a ? a->edges[i].to : -1, in_b ? b->edges[k].to : -1};
        const bool dead = op == FRIT_DFA_AND ? !in_a || !in_b : op == FRIT_DFA_OR ? !in_a && !in_b : !in_a;
        if (!dead) {
            const int32_t to = frit_int_sets_intern(pairs, next, 2);
            if (to < 0) return frit_dfa_fail_memory(pairs->budget);
            if (to >= FRIT_DFA_STATES) return frit_dfa_fail_size();
            frit_dfa_add_edge(out, at, end, to);
        }
        at = end + 1;
    }
    return FRIT_OK;
}

frit_status frit_dfa_combine(frit_dfa *out, const frit_dfa *a, frit_dfa_op op, const frit_dfa *b)
{
    frit_budget *budget = a->budget ? a->budget : b->budget;
    frit_dfa_builder made = {.dfa = {.budget = budget}};
    frit_int_sets pairs = {.budget = budget};
    const int32_t start[2] = {0, 0};
    frit_status status = frit_int_sets_intern(&pairs, start, 2) == 0 ? FRIT_OK : frit_dfa_fail_memory(budget);
    for (int32_t s = 0; status == FRIT_OK && s < pairs.n_sets; s++) {
        const int32_t pair[2] = {pairs.items[2 * s], pairs.items[2 * s + 1]};
        frit_dfa_begin_state(&made, decide(op, pair[0] >= 0 && a->final[pair[0]], pair[1] >= 0 && b->final[pair[1]]));
        status = made.failed ? frit_dfa_fail_memory(budget) : pair_edges(&made, &pairs, a, op, b, pair);
    }
    if (status == FRIT_OK && made.failed) status = frit_dfa_fail_memory(budget);
    frit_int_sets_free(&pairs);
    if (status == FRIT_OK) status = frit_dfa_trim(&made.dfa);
    if (status == FRIT_OK) status = frit_dfa_minimize(&made.dfa);
    if (status != FRIT_OK) frit_dfa_free(&made.dfa);
    *out = made.dfa;
    return status;
}

bool frit_dfa_is_empty(const frit_dfa *dfa)
{
    return dfa->n_edges == 0 && !dfa->final[0];
}

bool frit_dfa_accepts(const frit_dfa *dfa, frit_str text)
{
    int32_t s = 0;
    for (size_t i = 0; i < text.len && s >= 0; i++) s = frit_dfa_next(dfa, s, (unsigned char)text.ptr[i]);
    return s >= 0 && dfa->final[s];
}

frit_fragment frit_nfa_dfa(frit_nfa *nfa, const frit_dfa *dfa)
{
    const frit_fragment part = frit_nfa_none(nfa);
    const int32_t base = nfa->n_states;
    for (int32_t s = 0; s < dfa->n_states; s++) frit_nfa_state(nfa);
    if (nfa->failed != FRIT_OK) return part;
    frit_nfa_add(nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, base);
    for (int32_t s = 0; s < dfa->n_states; s++) {
        if (dfa->final[s]) frit_nfa_add(nfa, base + s, FRIT_EPSILON, FRIT_EPSILON, part.out);
        for (int32_t i = dfa->first[s]; i < dfa->first[s + 1]; i++)
            frit_nfa_add(nfa, base + s, dfa->edges[i].low, dfa->edges[i].high, base + dfa->edges[i].to);
    }
    return part;
}
