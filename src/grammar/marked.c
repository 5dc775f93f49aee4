// SPDX-License-Identifier: MIT
// Languages of texts with marks, by operations on automata.
#include "grammar/marked.h"

static frit_fragment any_text(frit_nfa *nfa)
{
    static const frit_range any = {1, 0x10ffff};
    return frit_nfa_repeat(nfa, frit_nfa_chars(nfa, &any, 1), 0, FRIT_NO_LIMIT);
}

static frit_status whole(frit_dfa *out, frit_nfa *nfa, frit_fragment part)
{
    const frit_status status = frit_dfa_new(out, nfa, part);
    frit_nfa_free(nfa);
    return status;
}

// Makes the texts that end with one of the marks.
static frit_status ending(frit_budget *budget, frit_dfa *out, const frit_str *marks, int n_marks)
{
    frit_nfa nfa = {.budget = budget};
    const frit_fragment text = any_text(&nfa), end = frit_nfa_none(&nfa);
    for (int i = 0; i < n_marks; i++) frit_nfa_or(&nfa, end, frit_nfa_text(&nfa, marks[i]));
    return whole(out, &nfa, frit_nfa_seq(&nfa, text, end));
}

typedef bool (*edge_fn)(const frit_dfa *dfa, int32_t state, const frit_dfa_edge *edge);

// Makes the language of `dfa` with only the edges for which `keeps` returns true. Frees `dfa`.
static frit_status some_edges(frit_dfa *out, frit_dfa *dfa, edge_fn keeps)
{
    frit_nfa nfa = {.budget = dfa->budget};
    const frit_fragment part = frit_nfa_none(&nfa);
    const int32_t base = nfa.n_states;
    for (int32_t s = 0; s < dfa->n_states; s++) frit_nfa_state(&nfa);
    frit_nfa_add(&nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, base);
    for (int32_t s = 0; s < dfa->n_states && nfa.failed == FRIT_OK; s++) {
        if (dfa->final[s]) frit_nfa_add(&nfa, base + s, FRIT_EPSILON, FRIT_EPSILON, part.out);
        for (int32_t i = dfa->first[s]; i < dfa->first[s + 1]; i++) {
            const frit_dfa_edge *e = &dfa->edges[i];
            if (keeps(dfa, s, e)) frit_nfa_add(&nfa, base + s, e->low, e->high, base + e->to);
        }
    }
    frit_dfa_free(dfa);
    return whole(out, &nfa, part);
}

static bool comes_before_the_end(const frit_dfa *dfa, int32_t state, const frit_dfa_edge *edge)
{
    (void)edge;
    return !dfa->final[state];
}

frit_status frit_text_until(frit_budget *budget, frit_dfa *out, const frit_str *marks, int n_marks)
{
    frit_dfa dfa;
    FRIT_TRY(ending(budget, &dfa, marks, n_marks));
    return some_edges(out, &dfa, comes_before_the_end);
}

enum { DEAD = FRIT_TOKEN };   // symbol of a mark that must not occur, because texts contain no tokens

// True if an edge may be used: after the end of a mark, only its symbol may follow.
static bool is_alive(const frit_dfa *dfa, int32_t state, const frit_dfa_edge *edge)
{
    const int32_t end = dfa->first[state + 1];
    const bool is_after_mark = end > dfa->first[state] && dfa->edges[end - 1].low >= FRIT_CALL;
    return edge->low != DEAD && (edge->low >= FRIT_CALL || !is_after_mark);
}

frit_status frit_text_until_each(frit_budget *budget, frit_dfa *out, const frit_str *marks, const int32_t *symbols,
                                 int n_marks)
{
    frit_dfa dfa;
    frit_nfa nfa = {.budget = budget};
    const frit_fragment text = any_text(&nfa), end = frit_nfa_none(&nfa);
    for (int i = 0; i < n_marks; i++) {
        const frit_fragment mark = frit_nfa_text(&nfa, marks[i]), symbol = frit_nfa_none(&nfa);
        const int32_t what = symbols[i] == FRIT_NO_SYMBOL ? DEAD : symbols[i];
        frit_nfa_add(&nfa, symbol.in, what, what, symbol.out);
        frit_nfa_or(&nfa, end, frit_nfa_seq(&nfa, mark, symbol));
    }
    FRIT_TRY(whole(&dfa, &nfa, frit_nfa_seq(&nfa, text, end)));
    return some_edges(out, &dfa, is_alive);
}

frit_status frit_text_without(frit_budget *budget, frit_dfa *out, const frit_str *marks, int n_marks)
{
    frit_dfa all, with;
    frit_nfa nfa = {.budget = budget};
    FRIT_TRY(whole(&all, &nfa, any_text(&nfa)));
    if (n_marks == 0) {
        *out = all;
        return FRIT_OK;
    }
    frit_nfa found = {.budget = budget};
    frit_fragment part = any_text(&found);
    const frit_fragment mark = frit_nfa_none(&found);
    for (int i = 0; i < n_marks; i++) frit_nfa_or(&found, mark, frit_nfa_text(&found, marks[i]));
    part = frit_nfa_seq(&found, part, mark);
    frit_status status = whole(&with, &found, frit_nfa_seq(&found, part, any_text(&found)));
    if (status == FRIT_OK) {
        status = frit_dfa_combine(out, &all, FRIT_DFA_MINUS, &with);
        frit_dfa_free(&with);
    }
    frit_dfa_free(&all);
    return status;
}

frit_status frit_text_then(frit_budget *budget, frit_dfa *out, const frit_dfa *texts, frit_str tail, frit_str mark)
{
    frit_dfa first, with_tail;
    frit_nfa nfa = {.budget = budget};
    const frit_fragment text = texts ? frit_nfa_dfa(&nfa, texts) : any_text(&nfa);
    FRIT_TRY(whole(&with_tail, &nfa, frit_nfa_seq(&nfa, text, frit_nfa_text(&nfa, tail))));
    frit_status status = frit_text_until(budget, &first, &mark, 1);
    if (status == FRIT_OK) {
        status = frit_dfa_combine(out, &with_tail, FRIT_DFA_AND, &first);
        frit_dfa_free(&first);
    }
    frit_dfa_free(&with_tail);
    return status;
}
