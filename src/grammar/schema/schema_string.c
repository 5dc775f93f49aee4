// SPDX-License-Identifier: MIT
// JSON strings of any characters with a minimum and a maximum number. All strings of a schema share one automaton that
// is deterministic by construction: it has a copy of the states of one character for each number of characters that may
// follow. Strings with other limits share these copies.
//
//     maxLength 3     entry '"' -> [3] -> [2] -> [1] -> [0]      after each '"' -> end
//     maxLength 2     entry '"' --------> [2]
//     2 to 4          entry '"' -> (2) -> (1) -> [2]             no '"' before the minimum number of characters
#include "grammar/schema/schema.h"

#include <stdlib.h>

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(frit_dfa_edge), "strings of a JSON schema");
}

// ------------------------------------------------------------------------------------- one character

// Makes \u0001 to \u0FFF after the first zero: the digits from the first non-zero one on.
static frit_fragment small_code_part(frit_nfa *nfa, int n_digits)
{
    static const char hex[] = "09AFaf", not_zero[] = "19AFaf";
    const frit_fragment all = frit_nfa_none(nfa);
    for (int zeros = 0; zeros < n_digits; zeros++) {
        frit_fragment part = frit_nfa_empty(nfa);
        for (int i = 0; i < n_digits; i++)
            part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, i < zeros ? "00" : i == zeros ? not_zero : hex));
        frit_nfa_or(nfa, all, part);
    }
    return all;
}

// Makes an escape. `zero`: also of the zero character, which C strings cannot contain.
static frit_fragment escape_part(frit_nfa *nfa, bool zero)
{
    static const char hex[] = "09AFaf";
    const frit_fragment all = frit_nfa_none(nfa);
    const frit_fragment small = frit_nfa_text(nfa, frit_str_of("u0"));
    if (!zero) frit_nfa_or(nfa, all, frit_nfa_seq(nfa, small, small_code_part(nfa, 3)));
    for (const char *c = "\"\\/bfnrt"; *c; c++)
        frit_nfa_or(nfa, all, frit_nfa_bytes(nfa, (unsigned char)*c, (unsigned char)*c));
    for (int kind = 0; kind < 3; kind++) {   // not D8-DF; D0-D7; a pair of surrogates
        frit_fragment part = frit_nfa_bytes(nfa, 'u', 'u');
        if (kind == 0) part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, zero ? "09ACEFacef" : "19ACEFacef"));
        if (kind > 0) part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, "DDdd"));
        if (kind == 0) part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, hex));
        if (kind == 1) part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, "07"));
        if (kind == 2) part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, "89ABab"));
        part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, frit_nfa_byte_of(nfa, hex), 2, 2));
        if (kind == 2) {
            part = frit_nfa_seq(nfa, part, frit_nfa_text(nfa, frit_str_of("\\u")));
            part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, "DDdd"));
            part = frit_nfa_seq(nfa, part, frit_nfa_byte_of(nfa, "CFcf"));
            part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, frit_nfa_byte_of(nfa, hex), 2, 2));
        }
        frit_nfa_or(nfa, all, part);
    }
    return all;
}

static frit_status make_character(frit_budget *budget, frit_dfa *out, bool zero)
{
    static const frit_range plain[] = {{' ', '!'}, {'#', '['}, {']', 0x10ffff}};
    frit_nfa nfa = {.budget = budget};
    const frit_fragment one = frit_nfa_none(&nfa);
    frit_nfa_or(&nfa, one, frit_nfa_chars(&nfa, plain, FRIT_COUNT(plain)));
    const frit_fragment slash = frit_nfa_bytes(&nfa, '\\', '\\');
    frit_nfa_or(&nfa, one, frit_nfa_seq(&nfa, slash, escape_part(&nfa, zero)));
    const frit_status status = frit_dfa_new(out, &nfa, one);
    frit_nfa_free(&nfa);
    return status;
}

// ------------------------------------------------------------------------------------- which strings there are

frit_status frit_schema_counted_rule(schema *s, int32_t low, int32_t high, int32_t *rule)
{
    FRIT_TRY(frit_budget_spend(s->budget, s->n_counted));
    for (int32_t i = 0; i < s->n_counted; i++) {
        *rule = s->counted[i].rule;
        if (s->counted[i].low == low && s->counted[i].high == high) return FRIT_OK;
    }
    FRIT_TRY(frit_schema_grow(s, &s->counted, s->n_counted, &s->counted_room, sizeof *s->counted));
    *rule = frit_builder_rule_new(s->builder, "string");
    if (*rule < 0) return s->builder->failed;
    s->counted[s->n_counted++] = (counted_string){low, high, *rule};
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- all of them

typedef struct chain {   // the beginning of a count: `low` required characters, then at most `rest`
    int32_t rest, low;
    int32_t first;   // state of the node after which one required character is left
} chain;

typedef struct maker {
    frit_dfa one;      // automaton of a character
    int32_t *offset;   // [one.n_states]: offsets of states within a node; -1: the final one
    int32_t stride;
    chain *chains;
    int32_t n_chains;
    int32_t most, end, first, any;   // nodes for at most `most` characters, from `first` on; `any`: the node for any
                                     // number
    bool has_any, has_most;
    int64_t n_states;
    frit_dfa out;
} maker;

static int32_t rest_of(const counted_string *c)
{
    return c->high == NO_END ? NO_END : c->high - c->low;
}

// Lists the sequences to build, each with the longest prefix that is needed, and numbers their states. `used`: number
// of states of other schemas.
static frit_status lay_out(maker *m, const counted_string *wanted, int32_t n, int64_t used)
{
    m->chains = calloc((size_t)n, sizeof *m->chains);
    m->offset = malloc((size_t)m->one.n_states * sizeof *m->offset);
    if (!m->chains || !m->offset) return fail_memory();
    for (int32_t s = 0; s < m->one.n_states; s++) m->offset[s] = m->one.final[s] ? -1 : m->stride++;
    for (int32_t i = 0; i < n; i++) {
        const int32_t rest = rest_of(&wanted[i]);
        int32_t k = 0;
        while (k < m->n_chains && m->chains[k].rest != rest) k++;
        if (k == m->n_chains) m->chains[m->n_chains++].rest = rest;
        if (wanted[i].low > m->chains[k].low) m->chains[k].low = wanted[i].low;
        if (rest == NO_END) m->has_any = true;
        if (rest != NO_END) m->has_most = true;
        if (rest != NO_END && rest > m->most) m->most = rest;
    }
    m->end = n;
    m->n_states = n + 1 + m->has_most;
    m->first = (int32_t)m->n_states;
    m->n_states += (int64_t)m->most * m->stride;
    m->any = (int32_t)(m->n_states < FRIT_TABLE_STATES ? m->n_states : 0);
    if (m->has_any) m->n_states += m->stride;
    for (int32_t k = 0; k < m->n_chains; k++) {
        m->chains[k].first = (int32_t)(m->n_states < FRIT_TABLE_STATES ? m->n_states : 0);
        m->n_states += (int64_t)m->chains[k].low * m->stride;
    }
    if (used + m->n_states <= FRIT_TABLE_STATES) return FRIT_OK;
    return frit_fail(FRIT_E_LIMIT, "JSON schema: strings of limited lengths need %lld states; expected at most %d",
                     (long long)(used + m->n_states), FRIT_TABLE_STATES);
}

// The node at which at most `rest` characters may follow. Its state 0 is followed by its other states.
static int32_t node_at_most(const maker *m, int32_t rest)
{
    if (rest == NO_END) return m->any;
    return rest == 0 ? m->end + 1 : m->first + (rest - 1) * m->stride;
}

static int32_t node_of(const maker *m, const counted_string *c)
{
    const chain *k = m->chains;
    while (k->rest != rest_of(c)) k++;
    return c->low == 0 ? node_at_most(m, k->rest) : k->first + (c->low - 1) * m->stride;
}

static void begin_state(maker *m, bool final)
{
    frit_dfa *d = &m->out;
    d->first[d->n_states] = d->n_edges;
    d->final[d->n_states++] = final;
}

static void add_edge(maker *m, int32_t low, int32_t high, int32_t to)
{
    m->out.edges[m->out.n_edges++] = (frit_dfa_edge){low, high, to};
}

// Adds the states of a node, from which a character leads to the next node. `ends`: a quote ends the string.
static void add_node(maker *m, int32_t next, bool ends)
{
    const int32_t base = m->out.n_states;
    for (int32_t s = 0; s < m->one.n_states; s++) {
        if (m->offset[s] < 0) continue;
        begin_state(m, false);
        bool quote = ends && s == 0;
        for (int32_t i = m->one.first[s]; i < m->one.first[s + 1]; i++) {
            const frit_dfa_edge *e = &m->one.edges[i];
            if (quote && e->low > '"') {
                add_edge(m, '"', '"', m->end);
                quote = false;
            }
            add_edge(m, e->low, e->high, m->offset[e->to] < 0 ? next : base + m->offset[e->to]);
        }
    }
}

static frit_status make_table(maker *m, const counted_string *wanted, int32_t n)
{
    const size_t n_states = (size_t)m->n_states, n_nodes = n_states / (size_t)m->stride + 1;
    const size_t n_edges = n_nodes * ((size_t)m->one.n_edges + 1) + (size_t)n + 2;
    const size_t bytes = n_states * (1 + sizeof *m->out.first) + n_edges * sizeof *m->out.edges;
    FRIT_TRY(frit_budget_acquire(m->one.budget, bytes));
    FRIT_TRY(frit_budget_spend(m->one.budget, (int64_t)n_edges + (int64_t)n * m->n_chains));
    m->out.budget = m->one.budget;
    m->out.bytes = bytes;
    m->out.first = malloc((n_states + 1) * sizeof *m->out.first);
    m->out.final = malloc(n_states);
    m->out.edges = malloc(n_edges * sizeof *m->out.edges);
    if (!m->out.first || !m->out.final || !m->out.edges) return fail_memory();
    for (int32_t i = 0; i < n; i++) {
        begin_state(m, false);
        add_edge(m, '"', '"', node_of(m, &wanted[i]));
    }
    begin_state(m, true);
    if (m->has_most) begin_state(m, false);
    if (m->has_most) add_edge(m, '"', '"', m->end);
    for (int32_t h = 1; h <= m->most; h++) add_node(m, node_at_most(m, h - 1), true);
    if (m->has_any) add_node(m, m->any, true);
    for (int32_t k = 0; k < m->n_chains; k++)
        for (int32_t i = 0; i < m->chains[k].low; i++)
            add_node(m, i == 0 ? node_at_most(m, m->chains[k].rest) : m->chains[k].first + (i - 1) * m->stride, false);
    m->out.first[m->out.n_states] = m->out.n_edges;
    return FRIT_OK;
}

static frit_status make_counter(const maker *m, frit_counter *out)
{
    *out = (frit_counter){.segments = calloc((size_t)m->n_chains + 3, sizeof *out->segments)};
    if (!out->segments) return fail_memory();
    frit_count_segment *to = out->segments;
    if (m->has_most) *to++ = (frit_count_segment){.first = m->end + 1, .stride = 1, .n = 1};
    if (m->most > 0)
        *to++ = (frit_count_segment){.first = m->first, .stride = m->stride, .n = m->most, .high = 1, .high_step = 1};
    if (m->has_any) *to++ = (frit_count_segment){.first = m->any, .stride = m->stride, .n = 1, .high = INT32_MAX};
    for (int32_t k = 0; k < m->n_chains; k++) {
        const chain *c = &m->chains[k];
        const bool any = c->rest == NO_END;
        if (c->low == 0) continue;
        *to++ = (frit_count_segment){.first = c->first,
                                     .stride = m->stride,
                                     .n = c->low,
                                     .low = 1,
                                     .high = any ? INT32_MAX : c->rest + 1,
                                     .low_step = 1,
                                     .high_step = !any};
    }
    out->n_segments = (int32_t)(to - out->segments);
    return frit_dfa_copy(&out->character, &m->one);
}

frit_status frit_schema_define_counted(schema *s)
{
    maker m = {0};
    frit_counter counter = {0};
    if (s->n_counted == 0) return FRIT_OK;
    const int32_t rule = frit_builder_rule_new(s->builder, "strings");
    if (rule < 0) return s->builder->failed;
    frit_status status = make_character(s->budget, &m.one, s->complete);
    if (status == FRIT_OK) status = lay_out(&m, s->counted, s->n_counted, s->builder->n_table_states);
    if (status == FRIT_OK) status = make_table(&m, s->counted, s->n_counted);
    if (status == FRIT_OK) status = make_counter(&m, &counter);
    if (status == FRIT_OK) {
        frit_builder_define_table(s->builder, rule, &m.out, &counter);
        for (int32_t i = 0; i < s->n_counted; i++) frit_builder_define_entry(s->builder, s->counted[i].rule, rule, i);
    } else {
        frit_dfa_free(&m.out);
        frit_counter_free(&counter);
    }
    frit_dfa_free(&m.one);
    free(m.offset);
    free(m.chains);
    return status;
}
