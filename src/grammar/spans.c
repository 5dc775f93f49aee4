// SPDX-License-Identifier: MIT
// Runs of states, and equal states of an automaton.
#include "grammar/spans.h"

#include "grammar/mask.h"
#include "grammar/token_trie.h"

#include <stdlib.h>

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(frit_run), "the masks of a grammar");
}

// ------------------------------------------------------------------------------------- equal states

// Finds equal states. States are compared by their edges, after the states that the edges lead to. A state on a cycle
// longer than a loop of one is equal to no other.
typedef struct likeness {
    const frit_automaton *a;
    const bool *in_root;
    int32_t *alike;     // -1: not known yet
    int32_t *buckets;   // states that others may be equal to
    uint32_t n_buckets;
} likeness;

enum { SELF = -2 };

static int32_t target(const likeness *l, int32_t state, int32_t to)
{
    return to == state ? SELF : l->alike[to];
}

static uint64_t mix(uint64_t h, int64_t value)
{
    h = (h ^ (uint64_t)value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint32_t hash_state(const likeness *l, int32_t s)
{
    const frit_automaton_state *state = &l->a->states[s];
    uint64_t h = mix(state->final, l->in_root[s]);
    for (uint32_t i = 0; i < state->n_bytes; i++) {
        const frit_byte_edge *e = &l->a->bytes[state->first_byte + i];
        h = mix(mix(h, e->low << 8 | e->high), target(l, s, e->to));
    }
    for (int32_t i = 0; i < state->n_calls; i++) {
        const frit_call_edge *e = &l->a->calls[state->first_call + (uint32_t)i];
        h = mix(mix(h, e->rule), target(l, s, e->to));
    }
    for (int32_t i = 0; i < state->n_tokens; i++) {
        const frit_token_edge *e = &l->a->tokens[state->first_token + (uint32_t)i];
        h = mix(mix(h, (int64_t)e->low << 32 | e->high), target(l, s, e->to));
    }
    return (uint32_t)(h >> 32);
}

static bool is_same(const likeness *l, int32_t s, int32_t t)
{
    const frit_automaton_state *x = &l->a->states[s], *y = &l->a->states[t];
    if (x->final != y->final || l->in_root[s] != l->in_root[t]) return false;
    if (x->n_bytes != y->n_bytes || x->n_calls != y->n_calls || x->n_tokens != y->n_tokens) return false;
    for (uint32_t i = 0; i < x->n_bytes; i++) {
        const frit_byte_edge *e = &l->a->bytes[x->first_byte + i], *f = &l->a->bytes[y->first_byte + i];
        if (e->low != f->low || e->high != f->high || target(l, s, e->to) != target(l, t, f->to)) return false;
    }
    for (int32_t i = 0; i < x->n_calls; i++) {
        const frit_call_edge *e = &l->a->calls[x->first_call + (uint32_t)i];
        const frit_call_edge *f = &l->a->calls[y->first_call + (uint32_t)i];
        if (e->rule != f->rule || target(l, s, e->to) != target(l, t, f->to)) return false;
    }
    for (int32_t i = 0; i < x->n_tokens; i++) {
        const frit_token_edge *e = &l->a->tokens[x->first_token + (uint32_t)i];
        const frit_token_edge *f = &l->a->tokens[y->first_token + (uint32_t)i];
        if (e->low != f->low || e->high != f->high || target(l, s, e->to) != target(l, t, f->to)) return false;
    }
    return true;
}

// The target of a state's i-th edge; -1: the state has fewer edges.
static int32_t edge_target(const frit_automaton *a, int32_t s, int32_t i)
{
    const frit_automaton_state *state = &a->states[s];
    if (i < state->n_bytes) return a->bytes[state->first_byte + (uint32_t)i].to;
    i -= state->n_bytes;
    if (i < state->n_calls) return a->calls[state->first_call + (uint32_t)i].to;
    i -= state->n_calls;
    return i < state->n_tokens ? a->tokens[state->first_token + (uint32_t)i].to : -1;
}

// Compares state `s`, whose targets have been visited.
static void settle(likeness *l, int32_t s)
{
    bool known = true;
    for (int32_t i = 0, to; (to = edge_target(l->a, s, i)) >= 0; i++) known &= target(l, s, to) != -1;
    l->alike[s] = s;
    if (!known) return;
    uint32_t at = hash_state(l, s) & (l->n_buckets - 1);
    for (; l->buckets[at] >= 0; at = (at + 1) & (l->n_buckets - 1)) {
        if (!is_same(l, s, l->buckets[at])) continue;
        l->alike[s] = l->buckets[at];
        return;
    }
    l->buckets[at] = s;
}

// Leaves out states of a counter: strings of a schema share them already.
static void leave_out(const frit_counter *counter, int32_t *alike, int32_t *next)
{
    for (int32_t i = 0; i < counter->n_segments; i++) {
        const frit_count_segment *g = &counter->segments[i];
        for (int32_t s = g->first; s < g->first + g->n * g->stride; s++) {
            alike[s] = s;
            next[s] = 1;
        }
    }
}

frit_status frit_states_alike(const frit_automaton *a, const bool *in_root, int32_t *alike)
{
    const size_t n = (size_t)a->n_states;
    likeness l = {.a = a, .in_root = in_root, .alike = alike, .n_buckets = 64};
    while (l.n_buckets < 2 * n) l.n_buckets *= 2;
    l.buckets = malloc(l.n_buckets * sizeof *l.buckets);
    int32_t *stack = malloc((n + 1) * sizeof *stack), *next = calloc(n + 1, sizeof *next);   // next: index of an edge +
                                                                                             // 1
    const frit_status status = l.buckets && stack && next ? FRIT_OK : fail_memory();
    for (size_t i = 0; status == FRIT_OK && i < l.n_buckets; i++) l.buckets[i] = -1;
    for (size_t i = 0; status == FRIT_OK && i < n; i++) alike[i] = -1;
    for (int32_t i = 0; status == FRIT_OK && i < a->n_counters; i++) leave_out(&a->counters[i], alike, next);
    for (int32_t s = 0; status == FRIT_OK && s < a->n_states; s++) {
        int32_t depth = 0;
        if (next[s] == 0) stack[depth++] = s;
        if (next[s] == 0) next[s] = 1;
        while (depth > 0) {
            const int32_t at = stack[depth - 1], to = edge_target(a, at, next[at] - 1);
            next[at]++;
            if (to < 0) {
                settle(&l, at);
                depth--;
            } else if (next[to] == 0) {
                next[to] = 1;
                stack[depth++] = to;
            }
        }
    }
    free(l.buckets);
    free(stack);
    free(next);
    return status;
}

// ------------------------------------------------------------------------------------- runs

// The state that most bytes lead to; -1: none.
static int32_t main_target(const frit_automaton *a, int32_t s)
{
    int32_t to = -1;
    int most = 0;
    for (uint32_t i = 0; i < a->states[s].n_bytes; i++) {
        const frit_byte_edge *e = &a->bytes[a->states[s].first_byte + i];
        const int high = e->high < 0x80 ? e->high : 0x7f;
        if (e->low > high || high - e->low + 1 <= most) continue;
        most = high - e->low + 1;
        to = e->to;
    }
    return to;
}

// The state after any `n_more` bytes of a character, the first of them low to high; -1 if there are several, or if
// rules are called or end on the way.
static int32_t after_bytes(const frit_automaton *a, int32_t s, int low, int high, int n_more)
{
    int32_t all = -1;
    for (uint32_t i = 0; i < a->states[s].n_bytes && low <= high; i++) {
        const frit_byte_edge *e = &a->bytes[a->states[s].first_byte + i];
        if (e->high < low) continue;
        if (e->low > low) return -1;
        low = e->high + 1;
        if (n_more > 1 && !a->states[e->to].is_plain) return -1;
        const int32_t end = n_more > 1 ? after_bytes(a, e->to, 0x80, 0xbf, n_more - 1) : e->to;
        if (end < 0 || (all >= 0 && end != all)) return -1;
        all = end;
    }
    return low <= high ? -1 : all;
}

// True if every character beyond ASCII leads from s to `to`.
static bool all_characters(const frit_automaton *a, int32_t s, int32_t to)
{
    static const struct {
        unsigned char first, last, low, high, n_more;
    } rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2}, {0xe1, 0xec, 0x80, 0xbf, 2},
                {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2}, {0xf0, 0xf0, 0x90, 0xbf, 3},
                {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        int at = rows[i].first;
        for (uint32_t k = 0; k < a->states[s].n_bytes && at <= rows[i].last; k++) {
            const frit_byte_edge *e = &a->bytes[a->states[s].first_byte + k];
            if (e->high < at) continue;
            if (e->low > at || !a->states[e->to].is_plain) return false;
            if (after_bytes(a, e->to, rows[i].low, rows[i].high, rows[i].n_more) != to) return false;
            at = e->high + 1;
        }
        if (at <= rows[i].last) return false;
    }
    return true;
}

static uint64_t classes_to(const frit_automaton *a, int32_t s, int32_t to)
{
    uint64_t other = 0;
    for (int b = 0; b < 256; b++)
        if (frit_state_next(a, s, (unsigned char)b) != to) other |= (uint64_t)1 << frit_byte_class((unsigned char)b);
    return ~other;
}

static uint16_t one_more(uint16_t n)
{
    return n >= UINT16_MAX - 1 ? n : (uint16_t)(n + 1);
}

// True if no byte of the classes or beyond ASCII can be read.
static bool ends_all(const frit_automaton *a, int32_t s, uint64_t classes)
{
    if (a->states[s].n_calls > 0) return false;
    for (int b = 0; b < 256; b++) {
        const bool counts = b >= 0x80 || (classes >> frit_byte_class((unsigned char)b) & 1);
        if (counts && frit_state_next(a, s, (unsigned char)b) >= 0) return false;
    }
    return true;
}

// Computes the run of a state from the run of the next state.
static frit_run run_of(const frit_automaton *a, const bool *in_root, const frit_run *runs, int32_t s, int32_t to)
{
    const frit_automaton_state *next = &a->states[to];
    frit_run run = {.classes = classes_to(a, s, to)};
    const bool leads_on = next->is_plain || (in_root[to] && next->n_calls == 0);
    if (!leads_on) return (frit_run){0};
    const bool utf8 = all_characters(a, s, to), same = (run.classes & ~runs[to].classes) == 0;
    run.ascii = to == s ? UINT16_MAX : one_more(same ? runs[to].ascii : 0);
    if (utf8) run.utf8 = to == s ? UINT16_MAX : one_more(same ? runs[to].utf8 : 0);
    const bool goes_on = to == s || (runs[to].ascii > 0 && run.classes == runs[to].classes);
    run.is_sharp =
        utf8 && run.ascii == run.utf8 && (to == s || (goes_on ? runs[to].is_sharp : ends_all(a, to, run.classes)));
    return run;
}

// Computes runs of counted characters: any character can be read while others may follow.
static void counter_runs(const frit_counter *counter, frit_run *runs)
{
    const frit_dfa *one = &counter->character;
    uint64_t other = 0;
    for (int b = 0; b < 256; b++) {
        const int32_t to = frit_dfa_next(one, 0, b);
        if (to < 0 || !one->final[to]) other |= (uint64_t)1 << frit_byte_class((unsigned char)b);
    }
    for (int32_t i = 0; i < counter->n_segments; i++) {
        const frit_count_segment *g = &counter->segments[i];
        for (int32_t k = 0; k < g->n; k++) {
            const int64_t high = g->high + (int64_t)k * g->high_step;
            const uint16_t n = high < UINT16_MAX ? (uint16_t)high : UINT16_MAX;
            runs[g->first + k * g->stride] = (frit_run){.classes = ~other, .ascii = n, .utf8 = n};
        }
    }
}

frit_status frit_states_runs(const frit_automaton *a, const bool *in_root, frit_run *runs)
{
    const size_t n = (size_t)a->n_states;
    int32_t *stack = malloc((n + 1) * sizeof *stack);
    unsigned char *seen = calloc(n + 1, 1);
    if (!stack || !seen) {
        free(stack);
        free(seen);
        return fail_memory();
    }
    for (int32_t i = 0; i < a->n_counters; i++) counter_runs(&a->counters[i], runs);
    for (int32_t s = 0; s < a->n_states; s++) {
        int32_t depth = 0, at = s;
        // Follows main targets to their end; a longer cycle ends at its first state.
        while (at >= 0 && !seen[at] && a->states[at].table >= 0 && a->states[at].n_calls == 0) {
            seen[at] = 1;
            stack[depth++] = at;
            at = main_target(a, at);
        }
        for (; depth > 0; depth--) {
            const int32_t last = stack[depth - 1], to = main_target(a, last);
            if (to >= 0) runs[last] = run_of(a, in_root, runs, last, to);
        }
    }
    free(stack);
    free(seen);
    return FRIT_OK;
}
