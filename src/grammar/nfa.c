// SPDX-License-Identifier: MIT
// Parts of automata, and characters as sequences of UTF-8 bytes.
#include "grammar/nfa.h"

#include "base/utf8.h"

#include <stdlib.h>

void frit_nfa_free(frit_nfa *nfa)
{
    free(nfa->edges);
    frit_budget_release(nfa->budget, (size_t)nfa->room * sizeof *nfa->edges);
    *nfa = (frit_nfa){.budget = nfa->budget};
}

frit_status frit_nfa_check(const frit_nfa *nfa)
{
    if (nfa->failed == FRIT_E_LIMIT && (!nfa->budget || nfa->budget->failed == FRIT_OK))
        return frit_fail(FRIT_E_LIMIT, "the grammar has more than %d states; expected shorter repetitions",
                         nfa->max_states ? nfa->max_states : FRIT_NFA_STATES);
    if (nfa->failed != FRIT_OK)
        return frit_budget_fail(nfa->budget, (size_t)nfa->room * sizeof *nfa->edges, "a grammar");
    return frit_budget_spend(nfa->budget, 0);
}

int32_t frit_nfa_state(frit_nfa *nfa)
{
    if (nfa->failed != FRIT_OK) return 0;
    if (nfa->n_states >= (nfa->max_states ? nfa->max_states : FRIT_NFA_STATES)) {
        nfa->failed = FRIT_E_LIMIT;
        return 0;
    }
    if (nfa->budget) nfa->budget->steps++;
    return nfa->n_states++;
}

void frit_nfa_add(frit_nfa *nfa, int32_t from, int32_t low, int32_t high, int32_t to)
{
    if (nfa->failed != FRIT_OK) return;
    if (nfa->n_edges == nfa->room) {
        const int32_t room = nfa->room ? nfa->room * 2 : 8;
        frit_nfa_edge *edges = NULL;
        if (room < INT32_MAX / 4)
            edges = frit_budget_resize(nfa->budget, nfa->edges, (size_t)nfa->room * sizeof *edges,
                                       (size_t)room * sizeof *edges);
        if (!edges) {
            nfa->failed = FRIT_E_MEMORY;
            return;
        }
        nfa->edges = edges;
        nfa->room = room;
    }
    if (nfa->budget) nfa->budget->steps++;
    nfa->edges[nfa->n_edges++] = (frit_nfa_edge){from, to, low, high};
}

static void epsilon(frit_nfa *nfa, int32_t from, int32_t to)
{
    frit_nfa_add(nfa, from, FRIT_EPSILON, FRIT_EPSILON, to);
}

frit_fragment frit_nfa_none(frit_nfa *nfa)
{
    frit_fragment part = {.first_state = nfa->n_states, .first_edge = nfa->n_edges};
    part.in = frit_nfa_state(nfa);
    part.out = frit_nfa_state(nfa);
    return part;
}

frit_fragment frit_nfa_empty(frit_nfa *nfa)
{
    frit_fragment part = {.first_state = nfa->n_states, .first_edge = nfa->n_edges};
    part.in = part.out = frit_nfa_state(nfa);
    return part;
}

frit_fragment frit_nfa_bytes(frit_nfa *nfa, unsigned char low, unsigned char high)
{
    const frit_fragment part = frit_nfa_none(nfa);
    frit_nfa_add(nfa, part.in, low, high, part.out);
    return part;
}

frit_fragment frit_nfa_byte_of(frit_nfa *nfa, const char *pairs)
{
    const frit_fragment part = frit_nfa_none(nfa);
    for (; *pairs; pairs += 2) frit_nfa_add(nfa, part.in, (unsigned char)pairs[0], (unsigned char)pairs[1], part.out);
    return part;
}

frit_fragment frit_nfa_text(frit_nfa *nfa, frit_str text)
{
    frit_fragment part = frit_nfa_empty(nfa);
    for (size_t i = 0; i < text.len && nfa->failed == FRIT_OK; i++) {
        const unsigned char byte = (unsigned char)text.ptr[i];
        const int32_t next = frit_nfa_state(nfa);
        frit_nfa_add(nfa, part.out, byte, byte, next);
        part.out = next;
    }
    return part;
}

frit_fragment frit_nfa_call(frit_nfa *nfa, int32_t rule)
{
    const frit_fragment part = frit_nfa_none(nfa);
    frit_nfa_add(nfa, part.in, FRIT_CALL + rule, FRIT_CALL + rule, part.out);
    return part;
}

frit_fragment frit_nfa_token(frit_nfa *nfa, int32_t token, bool negated)
{
    const frit_fragment part = frit_nfa_none(nfa);
    const int32_t symbol = FRIT_TOKEN + token;
    if (!negated) frit_nfa_add(nfa, part.in, symbol, symbol, part.out);
    if (negated && token > 0) frit_nfa_add(nfa, part.in, FRIT_TOKEN, symbol - 1, part.out);
    if (negated) frit_nfa_add(nfa, part.in, symbol + 1, FRIT_TOKEN_END - 1, part.out);
    return part;
}

frit_fragment frit_nfa_seq(frit_nfa *nfa, frit_fragment a, frit_fragment b)
{
    epsilon(nfa, a.out, b.in);
    return (frit_fragment){a.in, b.out, a.first_state, a.first_edge};
}

frit_fragment frit_nfa_or(frit_nfa *nfa, frit_fragment alternatives, frit_fragment part)
{
    epsilon(nfa, alternatives.in, part.in);
    epsilon(nfa, part.out, alternatives.out);
    return alternatives;
}

static frit_fragment copy(frit_nfa *nfa, frit_fragment part, int32_t end_state, int32_t end_edge)
{
    const int32_t by = nfa->n_states - part.first_state;
    const frit_fragment made = {part.in + by, part.out + by, nfa->n_states, nfa->n_edges};
    for (int32_t i = part.first_state; i < end_state; i++) frit_nfa_state(nfa);
    for (int32_t i = part.first_edge; i < end_edge && nfa->failed == FRIT_OK; i++) {
        const frit_nfa_edge e = nfa->edges[i];
        frit_nfa_add(nfa, e.from + by, e.low, e.high, e.to + by);
    }
    return made;
}

frit_fragment frit_nfa_repeat(frit_nfa *nfa, frit_fragment part, int32_t min, int32_t max)
{
    const int32_t end_state = nfa->n_states, end_edge = nfa->n_edges;
    const int32_t n = max != FRIT_NO_LIMIT ? max : min > 0 ? min : 1;
    frit_fragment all = {part.first_state, part.first_state, part.first_state, part.first_edge};
    const int32_t in = frit_nfa_state(nfa), out = frit_nfa_state(nfa);
    int32_t at = in;
    for (int32_t i = 0; i < n && nfa->failed == FRIT_OK; i++) {
        const frit_fragment one = i == 0 ? part : copy(nfa, part, end_state, end_edge);
        if (i >= min) epsilon(nfa, at, out);
        epsilon(nfa, at, one.in);
        at = one.out;
        if (max == FRIT_NO_LIMIT && i == n - 1) epsilon(nfa, one.out, one.in);
    }
    epsilon(nfa, at, out);
    all.in = in;
    all.out = out;
    return all;
}

// ------------------------------------------------------------------------------------- characters

static int compare_ranges(const void *a, const void *b)
{
    const frit_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

size_t frit_ranges_sort(frit_range *ranges, size_t n)
{
    size_t kept = 0;
    if (n > 0) qsort(ranges, n, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].low <= ranges[kept - 1].high + 1) {
            if (ranges[i].high > ranges[kept - 1].high) ranges[kept - 1].high = ranges[i].high;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

size_t frit_ranges_invert(const frit_range *ranges, size_t n, frit_range *out)
{
    size_t n_out = 0;
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].low > next) out[n_out++] = (frit_range){next, ranges[i].low - 1};
        next = ranges[i].high + 1;
    }
    if (next <= 0x10ffff) out[n_out++] = (frit_range){next, 0x10ffff};
    return n_out;
}

static void add_bytes(frit_nfa *nfa, frit_fragment part, uint32_t low, uint32_t high)
{
    char a[4], b[4];
    const int n = frit_utf8_encode(low, a);
    frit_utf8_encode(high, b);
    int32_t at = part.in;
    for (int i = 0; i < n; i++) {
        const int32_t next = i == n - 1 ? part.out : frit_nfa_state(nfa);
        frit_nfa_add(nfa, at, (unsigned char)a[i], (unsigned char)b[i], next);
        at = next;
    }
}

// Cuts a range into ranges whose bytes are ranges at every position: of one length, and with all possible continuation
// bytes.
static void add_chars(frit_nfa *nfa, frit_fragment part, frit_range range)
{
    static const uint32_t cuts[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff, 0x10ffff};
    while (range.low <= range.high && range.low <= 0x10ffff && nfa->failed == FRIT_OK) {
        uint32_t high = range.high;
        size_t i = 0;
        while (range.low > cuts[i]) i++;
        if (high > cuts[i]) high = cuts[i];
        for (int bits = 6; bits <= 18 && range.low > 0x7f; bits += 6) {
            const uint32_t mask = (1u << bits) - 1;
            if ((range.low & ~mask) == (high & ~mask)) break;
            if ((range.low & mask) != 0)
                high = range.low | mask;
            else if ((high & mask) != mask)
                high = (high & ~mask) - 1;
        }
        if (range.low < 0xd800 || range.low > 0xdfff) add_bytes(nfa, part, range.low, high);
        range.low = high + 1;
    }
}

frit_fragment frit_nfa_chars(frit_nfa *nfa, const frit_range *ranges, size_t n)
{
    const frit_fragment part = frit_nfa_none(nfa);
    for (size_t i = 0; i < n; i++) add_chars(nfa, part, ranges[i]);
    return part;
}
