// SPDX-License-Identifier: MIT
// Determinization by subsets, products of languages, and minimization by refining partitions.
#include "grammar/dfa.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------------- building

typedef struct builder {
    frit_dfa dfa;
    int32_t room_states, room_edges;
    bool failed;
} builder;

// Grows an array by doubling. `bytes` is the sum of the charged bytes.
static void *grow_items(size_t *bytes, frit_budget *budget, void *items, size_t before, size_t after)
{
    void *more = frit_budget_resize(budget, items, before, after);
    if (more) *bytes += after - before;
    return more;
}

// Resizes an array of the automaton.
static void *resize(frit_dfa *d, void *items, size_t before, size_t after)
{
    return grow_items(&d->bytes, d->budget, items, before, after);
}

// Begins the next state; edges that are added next leave it.
static void begin_state(builder *b, bool final)
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

static void add_edge(builder *b, int32_t low, int32_t high, int32_t to)
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

void frit_dfa_free(frit_dfa *dfa)
{
    free(dfa->first);
    free(dfa->edges);
    free(dfa->final);
    frit_budget_release(dfa->budget, dfa->bytes);
    *dfa = (frit_dfa){0};
}

static frit_status fail_memory(const frit_budget *budget)
{
    return frit_budget_fail(budget, sizeof(frit_dfa_edge), "the automaton of a grammar");
}

// Allocates room for n numbers and charges it.
static void *new_items(frit_budget *budget, size_t n, size_t size)
{
    return frit_budget_resize(budget, NULL, 0, (n + 1) * size);
}

static void free_items(frit_budget *budget, void *items, size_t n, size_t size)
{
    if (items) frit_budget_release(budget, (n + 1) * size);
    free(items);
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
        return fail_memory(NULL);
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

static frit_status fail_size(void)
{
    return frit_fail(FRIT_E_LIMIT, "the automaton of the grammar has more than %d states or takes too long to make",
                     FRIT_DFA_STATES);
}

// ------------------------------------------------------------------------------------- trimming

// Marks the states from which a final state can be reached.
static bool mark_live(const frit_dfa *d, unsigned char *live)
{
    const size_t n_states = (size_t)d->n_states, n_edges = (size_t)d->n_edges;
    int32_t *counts = new_items(d->budget, n_states + 1, sizeof *counts);
    int32_t *sources = new_items(d->budget, n_edges, sizeof *sources);
    int32_t *stack = new_items(d->budget, n_states, sizeof *stack);
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
    free_items(d->budget, counts, n_states + 1, sizeof *counts);
    free_items(d->budget, sources, n_edges, sizeof *sources);
    free_items(d->budget, stack, n_states, sizeof *stack);
    return good;
}

// Copies the states for which map is not -1, with the edges between them. map gives the new numbers, which are
// ascending.
static frit_status rebuild(frit_dfa *d, const int32_t *map)
{
    builder b = {.dfa = {.budget = d->budget}};
    for (int32_t s = 0; s < d->n_states && !b.failed; s++) {
        if (map[s] < b.dfa.n_states) continue;   // dropped, or equal to an earlier state
        begin_state(&b, d->final[s]);
        for (int32_t i = d->first[s]; i < d->first[s + 1] && !b.failed; i++)
            if (map[d->edges[i].to] >= 0) add_edge(&b, d->edges[i].low, d->edges[i].high, map[d->edges[i].to]);
    }
    if (b.failed) {
        frit_dfa_free(&b.dfa);
        return fail_memory(d->budget);
    }
    frit_dfa_free(d);
    *d = b.dfa;
    return FRIT_OK;
}

static frit_status trim(frit_dfa *d)
{
    const size_t n_states = (size_t)d->n_states;
    FRIT_TRY(frit_budget_spend(d->budget, 2 * (int64_t)d->n_edges + d->n_states));
    unsigned char *live = new_items(d->budget, n_states, 1);
    int32_t *map = new_items(d->budget, n_states, sizeof *map);
    if (live) memset(live, 0, n_states);
    frit_status status = live && map && mark_live(d, live) ? FRIT_OK : fail_memory(d->budget);
    int32_t n = 1;
    for (int32_t s = 0; status == FRIT_OK && s < d->n_states; s++) map[s] = s == 0 ? 0 : live[s] ? n++ : -1;
    if (status == FRIT_OK && !live[0]) map[0] = 0, n = 1;
    frit_budget *budget = d->budget;
    if (status == FRIT_OK && n < d->n_states) status = rebuild(d, map);
    free_items(budget, live, n_states, 1);
    free_items(budget, map, n_states, sizeof *map);
    return status;
}

// ------------------------------------------------------------------------------------- minimization

enum { MINIMIZED_STATES = 6000, MINIMIZED_WORK = 20000000 };

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

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
        h = mix(mix(h, (uint64_t)low << 32 | (uint32_t)high), to);
    }
    return h;
}

// Runs one round: states with the same group and edges to the same groups form one group. Returns the number of groups,
// numbered in the order of their first states.
static int32_t refine(const frit_dfa *d, int32_t *group, signature *signatures, int32_t *names, const uint64_t *hashes)
{
    for (int32_t s = 0; s < d->n_states; s++)
        signatures[s] = (signature){hashes ? hashes[s] : hash_edges(d, s, mix(0, (uint64_t)group[s]), group, NULL), s};
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
                hashes[at] = hash_edges(d, at, mix(0, d->final[at]), NULL, hashes);
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
    int32_t *group = new_items(budget, n, sizeof *group), *names = new_items(budget, n, sizeof *names);
    signature *signatures = new_items(budget, n, sizeof *signatures);
    uint64_t *hashes = new_items(budget, n, sizeof *hashes);
    frit_status status = group && names && signatures && hashes ? FRIT_OK : fail_memory(budget);
    if (status == FRIT_OK && group_states(d, group, names, signatures, hashes) < d->n_states)
        status = rebuild(d, group);
    free_items(budget, group, n, sizeof *group);
    free_items(budget, names, n, sizeof *names);
    free_items(budget, signatures, n, sizeof *signatures);
    free_items(budget, hashes, n, sizeof *hashes);
    return status == FRIT_OK ? frit_budget_spend(budget, 0) : status;
}

// ------------------------------------------------------------------------------------- interned sets

typedef struct sets {
    int32_t *items;   // items of all sets
    size_t n, room;   // items
    size_t *start;    // [n_sets + 1]
    int32_t *buckets;
    int32_t n_sets, room_sets, n_buckets;
    bool failed;
    frit_budget *budget;
    size_t bytes;   // charged to the budget
} sets;

static uint64_t hash_items(const int32_t *items, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = mix(h, (uint32_t)items[i]);
    return h;
}

static void grow_sets(sets *s)
{
    const int32_t room = s->room_sets ? s->room_sets * 2 : 32, n_buckets = room * 2;
    const size_t before = s->room_sets ? (size_t)s->room_sets + 1 : 0, after = (size_t)room + 1;
    size_t *start = grow_items(&s->bytes, s->budget, s->start, before * sizeof *start, after * sizeof *start);
    if (start) s->start = start;
    int32_t *buckets = NULL;
    if (start)
        buckets = grow_items(&s->bytes, s->budget, s->buckets, (size_t)s->n_buckets * sizeof *buckets,
                             (size_t)n_buckets * sizeof *buckets);
    if (!buckets) {
        s->failed = true;
        return;
    }
    if (s->room_sets == 0) start[0] = 0;
    memset(buckets, -1, (size_t)n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < s->n_sets; i++) {
        size_t at = (size_t)(hash_items(s->items + start[i], start[i + 1] - start[i]) & (uint64_t)(n_buckets - 1));
        while (buckets[at] >= 0) at = (at + 1) & (size_t)(n_buckets - 1);
        buckets[at] = i;
    }
    s->buckets = buckets;
    s->n_buckets = n_buckets;
    s->room_sets = room;
}

// Returns the number of the set with these items; makes it if it is new. -1: no memory.
static int32_t intern(sets *s, const int32_t *items, size_t n)
{
    if (s->n_sets >= s->room_sets) grow_sets(s);
    if (s->failed) return -1;
    size_t at = (size_t)(hash_items(items, n) & (uint64_t)(s->n_buckets - 1));
    for (; s->buckets[at] >= 0; at = (at + 1) & (size_t)(s->n_buckets - 1)) {
        const int32_t i = s->buckets[at];
        if (s->start[i + 1] - s->start[i] == n && memcmp(s->items + s->start[i], items, n * sizeof *items) == 0)
            return i;
    }
    if (s->n + n > s->room) {
        const size_t room = (s->n + n) * 2 + 16;
        int32_t *more = grow_items(&s->bytes, s->budget, s->items, s->room * sizeof *more, room * sizeof *more);
        if (!more) {
            s->failed = true;
            return -1;
        }
        s->items = more;
        s->room = room;
    }
    if (n > 0) memcpy(s->items + s->n, items, n * sizeof *items);
    s->n += n;
    s->buckets[at] = s->n_sets;
    s->start[s->n_sets + 1] = s->n;
    return s->n_sets++;
}

static void free_sets(sets *s)
{
    free(s->items);
    free(s->start);
    free(s->buckets);
    frit_budget_release(s->budget, s->bytes);
}

// ------------------------------------------------------------------------------------- subsets

typedef struct subset_work {
    const frit_nfa *nfa;
    int32_t out;
    int32_t *first;   // edges by the state that they leave
    frit_nfa_edge *edges;
    int32_t *mark, *stack, *closed;   // [n_states]
    int32_t *single;                  // [n_states]: the set reached from a single state; -1: not yet known
    int32_t round;
    sets sets;
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
    const int32_t set = intern(&w->sets, w->closed, n_closed);
    if (n == 1) w->single[states[0]] = set;
    return set;
}

static void *gather_room(subset_work *w, void *items, size_t room, size_t size)
{
    return grow_items(&w->bytes, w->budget, items, w->room * size, room * size);
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
static frit_status expand(subset_work *w, builder *b, int32_t set)
{
    size_t n, n_points;
    if (!gather(w, set, &n, &n_points)) return fail_memory(w->budget);
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
        if (to < 0) status = fail_memory(w->budget);
        if (to >= FRIT_DFA_STATES) status = fail_size();
        if (status == FRIT_OK) add_edge(b, low, high, to);
    }
    return status;
}

frit_status frit_dfa_new(frit_dfa *out, const frit_nfa *nfa, frit_fragment part)
{
    *out = (frit_dfa){0};
    FRIT_TRY(frit_nfa_check(nfa));
    frit_budget *budget = nfa->budget;
    subset_work w = {.nfa = nfa, .out = part.out, .budget = budget, .sets = {.budget = budget}};
    builder b = {.dfa = {.budget = budget}};
    frit_status status = sort_edges(&w) && close_set(&w, &part.in, 1) == 0 ? FRIT_OK : fail_memory(budget);
    for (int32_t s = 0; status == FRIT_OK && s < w.sets.n_sets; s++) {
        bool final = false;
        for (size_t i = w.sets.start[s]; i < w.sets.start[s + 1]; i++) final |= w.sets.items[i] == part.out;
        begin_state(&b, final);
        status = b.failed ? fail_memory(budget) : expand(&w, &b, s);
    }
    if (status == FRIT_OK && b.failed) status = fail_memory(budget);
    free_sets(&w.sets);
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
    if (status == FRIT_OK) status = trim(&b.dfa);
    if (status == FRIT_OK) status = frit_dfa_minimize(&b.dfa);
    if (status != FRIT_OK) frit_dfa_free(&b.dfa);
    *out = b.dfa;
    return status;
}

// ------------------------------------------------------------------------------------- languages

static bool decide(frit_dfa_op op, bool a, bool b)
{
    return op == FRIT_DFA_AND ? a && b : op == FRIT_DFA_OR ? a || b : a && !b;
}

// Adds the edges of a pair of states; -1 is the state that accepts nothing.
static frit_status pair_edges(builder *out, sets *pairs, const frit_dfa *a, frit_dfa_op op, const frit_dfa *b,
                              const int32_t pair[2])
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
            const int32_t to = intern(pairs, next, 2);
            if (to < 0) return fail_memory(pairs->budget);
            if (to >= FRIT_DFA_STATES) return fail_size();
            add_edge(out, at, end, to);
        }
        at = end + 1;
    }
    return FRIT_OK;
}

frit_status frit_dfa_combine(frit_dfa *out, const frit_dfa *a, frit_dfa_op op, const frit_dfa *b)
{
    frit_budget *budget = a->budget ? a->budget : b->budget;
    builder made = {.dfa = {.budget = budget}};
    sets pairs = {.budget = budget};
    const int32_t start[2] = {0, 0};
    frit_status status = intern(&pairs, start, 2) == 0 ? FRIT_OK : fail_memory(budget);
    for (int32_t s = 0; status == FRIT_OK && s < pairs.n_sets; s++) {
        const int32_t pair[2] = {pairs.items[2 * s], pairs.items[2 * s + 1]};
        begin_state(&made, decide(op, pair[0] >= 0 && a->final[pair[0]], pair[1] >= 0 && b->final[pair[1]]));
        status = made.failed ? fail_memory(budget) : pair_edges(&made, &pairs, a, op, b, pair);
    }
    if (status == FRIT_OK && made.failed) status = fail_memory(budget);
    free_sets(&pairs);
    if (status == FRIT_OK) status = trim(&made.dfa);
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
