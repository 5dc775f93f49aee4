// SPDX-License-Identifier: MIT
// Rules to one automaton: finds rules that can match nothing, makes each rule deterministic, removes unreachable
// states, computes ranks, and builds the tables that matchers read.
#include "grammar/grammar.h"

#include <stdlib.h>

typedef struct compiler {
    const frit_rule_builder *builder;
    int32_t root, n_rules;
    unsigned char *reached, *nullable, *productive;   // [n_rules]
    int32_t *first_caller, *callers;                  // of rule r: callers[first_caller[r] .. first_caller[r + 1])
    int32_t *queue;                                   // [n_rules]
    frit_dfa *dfas;                                   // [n_rules]
    unsigned char **live;                             // [n_rules][states of the rule]: a text can end from here
    int32_t *rank;                                    // [n_rules]; -1: not yet
    frit_budget *budget;
} compiler;

static frit_status fail_memory(const compiler *c)
{
    return frit_budget_fail(c->budget, sizeof(frit_automaton_state), "a compiled grammar");
}

static bool is_table(const compiler *c, int32_t r)
{
    return c->builder->rules[r].table.n_states > 0;
}

// ------------------------------------------------------------------------------------- which rules are used

static frit_status reach(compiler *c)
{
    int32_t n = 0;
    c->queue[n++] = c->root;
    c->reached[c->root] = 1;
    for (int32_t at = 0; at < n; at++) {
        const frit_builder_rule *rule = &c->builder->rules[c->queue[at]];
        if (!rule->defined)
            return frit_fail(FRIT_E_INVALID, "the grammar's rule '%.64s' is used, but not defined", rule->name);
        FRIT_TRY(frit_nfa_check(&rule->nfa));
        FRIT_TRY(frit_budget_spend(c->budget, 2 * (int64_t)rule->nfa.n_edges));
        if (rule->is_entry && !c->reached[rule->base]) {
            c->reached[rule->base] = 1;
            c->queue[n++] = rule->base;
        }
        for (int32_t i = 0; i < rule->nfa.n_edges; i++) {
            if (!frit_is_call(rule->nfa.edges[i].low)) continue;
            const int32_t called = rule->nfa.edges[i].low - FRIT_CALL;
            c->first_caller[called + 2]++;
            if (c->reached[called]) continue;
            c->reached[called] = 1;
            c->queue[n++] = called;
        }
    }
    for (int32_t r = 0; r < c->n_rules; r++) c->first_caller[r + 2] += c->first_caller[r + 1];
    c->callers =
        frit_budget_resize(c->budget, NULL, 0, ((size_t)c->first_caller[c->n_rules + 1] + 1) * sizeof *c->callers);
    if (!c->callers) return fail_memory(c);
    for (int32_t r = 0; r < c->n_rules; r++) {
        const frit_nfa *nfa = &c->builder->rules[r].nfa;
        for (int32_t i = 0; c->reached[r] && i < nfa->n_edges; i++)
            if (frit_is_call(nfa->edges[i].low)) c->callers[c->first_caller[nfa->edges[i].low - FRIT_CALL + 1]++] = r;
    }
    return FRIT_OK;
}

// Runs `test` on rules until the results no longer change: whenever it becomes true for a rule, the rule's callers are
// tested again.
static frit_status spread(compiler *c, unsigned char *is, int (*test)(compiler *c, int32_t rule))
{
    unsigned char *queued = calloc((size_t)c->n_rules, 1);
    int32_t *queue = malloc((size_t)c->n_rules * sizeof *queue);   // a ring buffer: each rule is in it at most once
    frit_status status = queued && queue ? FRIT_OK : fail_memory(c);
    int32_t n = 0, at = 0;
    for (int32_t r = c->n_rules - 1; status == FRIT_OK && r >= 0; r--) {
        if (!c->reached[r]) continue;
        queue[n++] = r;
        queued[r] = 1;
    }
    while (status == FRIT_OK && n > 0) {
        const int32_t r = queue[at];
        at = (at + 1) % c->n_rules;
        n--;
        queued[r] = 0;
        const int result = is[r] ? 0 : test(c, r);
        if (result < 0) status = fail_memory(c);
        if (result <= 0) continue;
        is[r] = 1;
        for (int32_t i = c->first_caller[r]; i < c->first_caller[r + 1]; i++) {
            const int32_t caller = c->callers[i];
            if (queued[caller] || is[caller]) continue;
            queued[caller] = 1;
            queue[(at + n++) % c->n_rules] = caller;
        }
    }
    free(queued);
    free(queue);
    return status;
}

// Returns 1 if the rule can match nothing, as far as is known of the rules that it calls; -1: no memory.
static int can_match_nothing(compiler *c, int32_t r)
{
    const frit_builder_rule *rule = &c->builder->rules[r];
    const frit_nfa *nfa = &rule->nfa;
    if (is_table(c, r) || rule->is_entry) return 0;
    unsigned char *seen = calloc((size_t)nfa->n_states, 1);
    if (!seen) return -1;
    seen[rule->part.in] = 1;
    bool can_go_on = frit_budget_spend(c->budget, nfa->n_states / 16) == FRIT_OK;
    // Edges mostly lead forwards, so few rounds are needed; the last round changes nothing.
    for (bool changed = true; changed && !seen[rule->part.out] && can_go_on;) {
        changed = false;
        can_go_on = frit_budget_spend(c->budget, nfa->n_edges) == FRIT_OK;
        for (int32_t i = 0; i < nfa->n_edges; i++) {
            const frit_nfa_edge *e = &nfa->edges[i];
            const bool free_of = e->low == FRIT_EPSILON || (frit_is_call(e->low) && c->nullable[e->low - FRIT_CALL]);
            if (!free_of || !seen[e->from] || seen[e->to]) continue;
            seen[e->to] = 1;
            changed = true;
        }
    }
    const int result = can_go_on ? seen[rule->part.out] : -1;
    free(seen);
    return result;
}

// ------------------------------------------------------------------------------------- deterministic rules

static frit_status determinize(compiler *c, int32_t r)
{
    const frit_builder_rule *rule = &c->builder->rules[r];
    frit_nfa nfa = rule->nfa;   // a copy with edges of its own
    nfa.edges = frit_budget_resize(c->budget, NULL, 0, (size_t)(nfa.n_edges + 1) * sizeof *nfa.edges);
    if (!nfa.edges) return fail_memory(c);
    nfa.room = nfa.n_edges + 1;
    if (nfa.n_edges > 0) memcpy(nfa.edges, rule->nfa.edges, (size_t)nfa.n_edges * sizeof *nfa.edges);
    for (int32_t i = 0; i < rule->nfa.n_edges; i++) {
        const frit_nfa_edge e = rule->nfa.edges[i];
        if (frit_is_call(e.low) && c->nullable[e.low - FRIT_CALL])
            frit_nfa_add(&nfa, e.from, FRIT_EPSILON, FRIT_EPSILON, e.to);
    }
    frit_status status = frit_dfa_new(&c->dfas[r], &nfa, rule->part);
    frit_nfa_free(&nfa);
    return status;
}

static frit_status make_dfa(compiler *c, int32_t r, int32_t *n_all)
{
    if (c->builder->rules[r].is_entry) return FRIT_OK;
    if (is_table(c, r)) {
        c->dfas[r] = c->builder->rules[r].table;   // borrowed
        return FRIT_OK;
    }
    FRIT_TRY(determinize(c, r));
    *n_all += c->dfas[r].n_states;
    if (*n_all <= FRIT_DFA_STATES) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "the grammar has more than %d states", FRIT_DFA_STATES);
}

static bool can_take(const compiler *c, const frit_dfa_edge *e)
{
    return !frit_is_call(e->low) || c->productive[e->low - FRIT_CALL];
}

// Marks the states of a rule from which it can end. Returns 1 if the start is one of them.
static int find_live(compiler *c, int32_t r)
{
    const frit_dfa *d = &c->dfas[r];
    if (c->builder->rules[r].is_entry) return 1;
    if (!c->live[r] && frit_budget_acquire(c->budget, (size_t)d->n_states + 16) == FRIT_OK)
        c->live[r] = calloc((size_t)d->n_states, 1);
    unsigned char *live = c->live[r];
    if (!live) return -1;
    if (is_table(c, r)) {
        memset(live, 1, (size_t)d->n_states);
        return 1;
    }
    for (int32_t s = 0; s < d->n_states; s++) live[s] = d->final[s];
    for (bool changed = true; changed;) {
        changed = false;
        if (frit_budget_spend(c->budget, d->n_states + d->n_edges) != FRIT_OK) return -1;
        for (int32_t s = d->n_states - 1; s >= 0; s--) {
            for (int32_t i = d->first[s]; i < d->first[s + 1] && !live[s]; i++)
                if (live[d->edges[i].to] && can_take(c, &d->edges[i])) live[s] = 1, changed = true;
        }
    }
    return live[0];
}

// True if a text that is not empty matches the rule. Calls of a rule that matches only the empty text are removed.
static int is_productive(compiler *c, int32_t r)
{
    const frit_dfa *d = &c->dfas[r];
    const int live = find_live(c, r);
    if (live <= 0) return live;
    if (is_table(c, r) || c->builder->rules[r].is_entry) return 1;
    for (int32_t i = d->first[0]; i < d->first[1]; i++)
        if (c->live[r][d->edges[i].to] && can_take(c, &d->edges[i])) return 1;
    return 0;
}

// ------------------------------------------------------------------------------------- ranks

typedef struct place {
    int32_t rule, edge;
} place;

static frit_status fail_recursion(const compiler *c, const place *stack, int32_t n, int32_t rule)
{
    frit_buf path = {0};
    int32_t from = n - 1;
    while (from > 0 && stack[from].rule != rule) from--;
    for (int32_t i = from; i < n && path.len < 200; i++)
        frit_buf_printf(&path, "%.40s -> ", c->builder->rules[stack[i].rule].name);
    const frit_status status =
        frit_fail(FRIT_E_INVALID,
                  "the grammar's rule '%.40s' is left-recursive (%s%.40s); expected rules that read something before "
                  "they call themselves",
                  c->builder->rules[rule].name, path.data ? path.data : "", c->builder->rules[rule].name);
    frit_buf_free(&path);
    return status;
}

// The edges of a rule's first state. The first states of entries have no calls.
static void first_edges(const compiler *c, int32_t r, int32_t *from, int32_t *end)
{
    const bool none = c->builder->rules[r].is_entry || is_table(c, r);
    *from = none ? 0 : c->dfas[r].first[0];
    *end = none ? 0 : c->dfas[r].first[1];
}

// Numbers rules after all rules that they call at their start: depth-first, with an explicit stack.
static frit_status rank_from(compiler *c, int32_t root, place *stack, unsigned char *open, int32_t *next)
{
    int32_t n = 0, from, end;
    first_edges(c, root, &from, &end);
    stack[n++] = (place){root, from};
    open[root] = 1;
    while (n > 0) {
        place *top = &stack[n - 1];
        const frit_dfa *d = &c->dfas[top->rule];
        first_edges(c, top->rule, &from, &end);
        if (top->edge == end) {
            c->rank[top->rule] = (*next)--;
            open[top->rule] = 0;
            n--;
            continue;
        }
        const frit_dfa_edge *e = &d->edges[top->edge++];
        if (!frit_is_call(e->low) || !can_take(c, e) || !c->live[top->rule][e->to]) continue;
        const int32_t called = e->low - FRIT_CALL;
        if (open[called]) return fail_recursion(c, stack, n, called);
        if (c->rank[called] >= 0) continue;
        open[called] = 1;
        first_edges(c, called, &from, &end);
        stack[n++] = (place){called, from};
    }
    return FRIT_OK;
}

static frit_status find_ranks(compiler *c)
{
    place *stack = malloc((size_t)c->n_rules * sizeof *stack);
    unsigned char *open = calloc((size_t)c->n_rules, 1);
    frit_status status = stack && open ? FRIT_OK : fail_memory(c);
    int32_t next = c->n_rules - 1;
    for (int32_t r = 0; status == FRIT_OK && r < c->n_rules; r++) c->rank[r] = -1;
    for (int32_t r = 0; status == FRIT_OK && r < c->n_rules; r++)
        if (c->reached[r] && c->productive[r] && c->rank[r] < 0) status = rank_from(c, r, stack, open, &next);
    free(stack);
    free(open);
    return status;
}

// ------------------------------------------------------------------------------------- tables

enum {
    SEARCHED_EDGES = 6,
    MAX_TABLES = 1 << 15
};   // states with more edges have a table, except states of counters, which are many

// True if the next state of the automaton gets a table. The tables so far are counted.
static bool wants_table(const compiler *c, const frit_automaton *g, int32_t r, int n_bytes)
{
    return n_bytes > SEARCHED_EDGES && g->n_tables < MAX_TABLES && c->builder->rules[r].counter.n_segments == 0;
}

static void count(const compiler *c, frit_automaton *g, int32_t *base)
{
    for (int32_t r = 0; r < c->n_rules; r++) {
        const frit_dfa *d = &c->dfas[r];
        g->n_counters += c->reached[r] && c->builder->rules[r].counter.n_segments > 0;
        for (int32_t s = 0; c->reached[r] && c->productive[r] && s < d->n_states; s++) {
            if (!c->live[r][s]) continue;
            int n_bytes = 0;
            for (int32_t i = d->first[s]; i < d->first[s + 1]; i++) {
                if (!can_take(c, &d->edges[i]) || !c->live[r][d->edges[i].to]) continue;
                if (d->edges[i].low < FRIT_CALL)
                    n_bytes++;
                else if (frit_is_call(d->edges[i].low))
                    g->n_calls++;
                else
                    g->n_tokens++;
            }
            g->n_bytes += (uint32_t)n_bytes;
            g->n_tables += wants_table(c, g, r, n_bytes);
            g->n_states++;
        }
        base[r + 1] = g->n_states;
    }
}

// The size of the automaton in bytes, without its counters.
static size_t automaton_bytes(const frit_automaton *g)
{
    return (size_t)g->n_states * sizeof *g->states + (size_t)g->n_bytes * sizeof *g->bytes +
           (size_t)g->n_calls * sizeof *g->calls + (size_t)g->n_tokens * sizeof *g->tokens +
           (size_t)g->n_tables * sizeof *g->tables + (size_t)g->n_rules * sizeof *g->rules;
}

static void fill_table(frit_automaton *g, frit_automaton_state *state)
{
    int32_t *table = g->tables[state->table = g->n_tables++];
    memset(table, -1, sizeof g->tables[0]);
    for (int i = 0; i < state->n_bytes; i++) {
        const frit_byte_edge *e = &g->bytes[state->first_byte + (uint32_t)i];
        for (int b = e->low; b <= e->high; b++) table[b] = e->to;
    }
}

static void add_edge(frit_automaton *g, frit_automaton_state *state, const frit_dfa_edge *e, int32_t to)
{
    if (e->low < FRIT_CALL) {
        g->bytes[g->n_bytes++] = (frit_byte_edge){(unsigned char)e->low, (unsigned char)e->high, to};
        state->n_bytes++;
    } else if (frit_is_call(e->low)) {
        g->calls[g->n_calls++] = (frit_call_edge){e->low - FRIT_CALL, to};
        state->n_calls++;
    } else {
        g->tokens[g->n_tokens++] = (frit_token_edge){e->low - FRIT_TOKEN, e->high - FRIT_TOKEN, to};
        state->n_tokens++;
    }
}

// Adds the states of a rule. number: [n_states of the rule], numbers of its live states.
static void add_states(const compiler *c, frit_automaton *g, int32_t r, const int32_t *number)
{
    const frit_dfa *d = &c->dfas[r];
    for (int32_t s = 0; s < d->n_states; s++) {
        if (number[s] < 0) continue;
        frit_automaton_state *state = &g->states[number[s]];
        *state = (frit_automaton_state){
            .first_byte = g->n_bytes, .first_call = g->n_calls, .first_token = g->n_tokens, .table = -1};
        for (int32_t i = d->first[s]; i < d->first[s + 1]; i++) {
            const frit_dfa_edge *e = &d->edges[i];
            if (can_take(c, e) && number[e->to] >= 0) add_edge(g, state, e, number[e->to]);
        }
        state->final = d->final[s];
        state->is_plain = !state->final && state->n_calls == 0;
        state->is_end = state->final && state->n_calls == 0 && !frit_state_reads(state);
        if (wants_table(c, g, r, state->n_bytes)) fill_table(g, state);
    }
}

// Adds a rule's counter, whose states are numbered from `base`.
static frit_status add_counter(frit_automaton *g, const frit_counter *from, int32_t base)
{
    frit_counter *to = &g->counters[g->n_counters];
    FRIT_TRY(frit_dfa_copy(&to->character, &from->character));
    to->segments = malloc((size_t)from->n_segments * sizeof *to->segments);
    g->n_counters++;
    if (!to->segments) return frit_fail_memory((size_t)from->n_segments * sizeof *to->segments, "a compiled grammar");
    to->n_segments = from->n_segments;
    for (int32_t i = 0; i < from->n_segments; i++) {
        to->segments[i] = from->segments[i];
        to->segments[i].first += base;
    }
    return FRIT_OK;
}

static frit_status fill(const compiler *c, frit_automaton *g, const int32_t *base)
{
    g->n_rules = c->n_rules;
    FRIT_TRY(frit_budget_acquire(c->budget, automaton_bytes(g)));
    g->states = calloc((size_t)g->n_states + 1, sizeof *g->states);
    g->bytes = calloc((size_t)g->n_bytes + 1, sizeof *g->bytes);
    g->calls = calloc((size_t)g->n_calls + 1, sizeof *g->calls);
    g->tokens = calloc((size_t)g->n_tokens + 1, sizeof *g->tokens);
    g->tables = calloc((size_t)g->n_tables + 1, sizeof *g->tables);
    g->rules = calloc((size_t)c->n_rules, sizeof *g->rules);
    g->counters = calloc((size_t)g->n_counters + 1, sizeof *g->counters);
    int32_t *number = malloc(((size_t)g->n_states + 1) * sizeof *number);
    int32_t n_most = 0;
    for (int32_t r = 0; r < c->n_rules; r++)
        if (c->dfas[r].n_states > n_most) n_most = c->dfas[r].n_states;
    int32_t *more = number ? realloc(number, ((size_t)n_most + 1) * sizeof *number) : NULL;
    if (!g->states || !g->bytes || !g->calls || !g->tokens || !g->tables || !g->rules || !g->counters || !more) {
        free(more ? more : number);
        return fail_memory(c);
    }
    number = more;
    g->n_bytes = g->n_calls = g->n_tokens = 0;
    g->n_tables = g->n_counters = 0;
    frit_status status = FRIT_OK;
    for (int32_t r = 0; status == FRIT_OK && r < c->n_rules; r++) {
        const frit_builder_rule *rule = &c->builder->rules[r];
        if (!c->reached[r] || !c->productive[r]) continue;
        g->rules[r] = (frit_automaton_rule){rule->is_entry ? base[rule->base] + rule->entry : base[r], c->rank[r]};
        int32_t next = base[r];
        for (int32_t s = 0; s < c->dfas[r].n_states; s++) number[s] = c->live[r][s] ? next++ : -1;
        add_states(c, g, r, number);
        if (rule->counter.n_segments > 0) status = add_counter(g, &rule->counter, base[r]);
    }
    free(number);
    return status;
}

// ------------------------------------------------------------------------------------- all together

static frit_status allocate(compiler *c)
{
    const size_t n = (size_t)c->n_rules;
    FRIT_TRY(frit_budget_acquire(c->budget, n * (24 + sizeof *c->dfas + sizeof *c->live)));
    c->reached = calloc(n, 1);
    c->nullable = calloc(n, 1);
    c->productive = calloc(n, 1);
    c->first_caller = calloc(n + 2, sizeof *c->first_caller);
    c->queue = calloc(n, sizeof *c->queue);
    c->dfas = calloc(n, sizeof *c->dfas);
    c->live = calloc(n, sizeof *c->live);
    c->rank = calloc(n, sizeof *c->rank);
    const bool good =
        c->reached && c->nullable && c->productive && c->first_caller && c->queue && c->dfas && c->live && c->rank;
    return good ? FRIT_OK : fail_memory(c);
}

static void deinit(compiler *c)
{
    for (int32_t r = 0; c->dfas && r < c->n_rules; r++)
        if (!is_table(c, r)) frit_dfa_free(&c->dfas[r]);
    for (int32_t r = 0; c->live && r < c->n_rules; r++) free(c->live[r]);
    free(c->reached);
    free(c->nullable);
    free(c->productive);
    free(c->first_caller);
    free(c->callers);
    free(c->queue);
    free(c->dfas);
    free(c->live);
    free(c->rank);
}

static frit_status make(compiler *c, frit_automaton *g)
{
    FRIT_TRY(frit_budget_spend(c->budget, 16 * (int64_t)c->n_rules));
    FRIT_TRY(allocate(c));
    FRIT_TRY(reach(c));
    FRIT_TRY(spread(c, c->nullable, can_match_nothing));
    int32_t n_all = 0;
    for (int32_t r = 0; r < c->n_rules; r++)
        if (c->reached[r]) FRIT_TRY(make_dfa(c, r, &n_all));
    FRIT_TRY(spread(c, c->productive, is_productive));
    for (int32_t r = 0; r < c->n_rules; r++)   // with the results for all rules
        if (c->reached[r] && find_live(c, r) < 0) return fail_memory(c);
    g->takes_nothing = c->nullable[c->root];
    g->root = c->root;
    if (!c->productive[c->root])
        return frit_fail(FRIT_E_INVALID, "the grammar matches %s; expected one that a text matches",
                         g->takes_nothing ? "only the empty text" : "no text at all");
    FRIT_TRY(find_ranks(c));
    int32_t *base = calloc((size_t)c->n_rules + 1, sizeof *base);
    if (!base) return fail_memory(c);
    count(c, g, base);
    const frit_status status = fill(c, g, base);
    free(base);
    return status;
}

frit_status frit_automaton_compile(frit_automaton **out, frit_rule_builder *builder, int32_t root)
{
    *out = NULL;
    if (builder->failed != FRIT_OK) return builder->failed;
    compiler c = {.builder = builder, .root = root, .n_rules = builder->n_rules, .budget = &builder->budget};
    frit_automaton *g = calloc(1, sizeof *g);
    const frit_status status = g ? make(&c, g) : fail_memory(&c);
    deinit(&c);
    if (status == FRIT_OK)
        *out = g;
    else
        frit_automaton_free(g);
    return status;
}

void frit_automaton_free(frit_automaton *g)
{
    if (!g) return;
    for (int32_t i = 0; i < g->n_counters; i++) frit_counter_free(&g->counters[i]);
    free(g->counters);
    free(g->states);
    free(g->bytes);
    free(g->calls);
    free(g->tokens);
    free(g->tables);
    free(g->rules);
    free(g);
}
