// SPDX-License-Identifier: MIT
// grammar/grammar.h: rules that call each other, compiled to one automaton with a stack.
//
// A front end (gbnf.c, regex.c, schema.c, tags.c) makes rules in a draft: each is a part of an automaton over bytes
// and calls of rules (nfa.h). frit_automaton_compile makes each rule deterministic and numbers the states of all
// rules together:
//
//     root  ::= "[" item "]"          state 0 --'['--> 1 --item--> 2 --']'--> 3 (final)
//     item  ::= "x" | root            state 4 --'x'--> 5 (final), 4 --root--> 5
//
// A rule that can match nothing leaves an edge that reads nothing at each of its calls, so that a call always reads at
// least one byte. Rules that no text matches are removed, and so are states from which none can end. What remains never
// comes to a dead end: whatever was accepted can be completed.
//
// A terminal may also be a token, whatever its text is: an edge for a range of tokens, which a text takes with a whole
// token (frit_match_push_token).
//
// A compiled grammar never changes; any number of threads and matchers (match.h) may use it.
#pragma once
#include "grammar/dfa.h"

struct json_t;
struct answer_format;

// States of strings whose characters are counted: node i of a segment is state first + i * stride. Before the string
// ends, low to high more characters come; each next node has low_step and high_step more.
typedef struct frit_count_segment {
    int32_t first, stride, n;
    int32_t low, high;   // high: INT32_MAX for any number
    int32_t low_step, high_step;
} frit_count_segment;

typedef struct frit_counter {
    frit_dfa character;   // the texts of one; its only final state has no edges. A quote ends the string
    frit_count_segment *segments;
    int32_t n_segments;
} frit_counter;

typedef struct frit_draft_rule {
    char *name;
    bool defined, is_entry;
    frit_nfa nfa;
    frit_fragment part;
    // In place of a part: an automaton that is deterministic and calls nothing; or a state of another rule's table,
    // where this rule begins.
    frit_dfa table;
    frit_counter counter;   // of a table; no segments: none
    int32_t base, entry;    // of is_entry: rule and state
} frit_draft_rule;

typedef struct frit_draft {
    frit_draft_rule *rules;
    int32_t n_rules, room;
    int32_t *buckets;   // rules by name
    int32_t n_buckets;
    int32_t first_named;      // of the rules that are found by their name: earlier ones are another text's
    int64_t n_table_states;   // FRIT_TABLE_STATES at most
    frit_status failed;
    frit_budget budget;   // what all of it may cost
} frit_draft;

enum {
    FRIT_GRAMMAR_RULES = 1 << 17,
    FRIT_GRAMMAR_TEXT = 4 << 20,
    FRIT_GRAMMAR_DEPTH = 200,
    FRIT_TABLE_STATES = 1 << 19
};

// The rule of this name, a new one if it is new; -1: no memory, or too many.
int32_t frit_draft_rule_named(frit_draft *draft, frit_str name);
// A new rule; the name is for messages and need not be different from others.
int32_t frit_draft_rule_new(frit_draft *draft, const char *name);
frit_nfa *frit_draft_nfa(frit_draft *draft, int32_t rule);
// Makes `part` of the rule's automaton what the rule matches.
void frit_draft_define(frit_draft *draft, int32_t rule, frit_fragment part);
// Makes a table what the rule matches: every state can be reached and can end, and something is read first. Takes both
// over. counter may be NULL.
void frit_draft_define_table(frit_draft *draft, int32_t rule, frit_dfa *table, frit_counter *counter);
// The rule is what the table of rule `base` matches from a state on.
void frit_draft_define_entry(frit_draft *draft, int32_t rule, int32_t base, int32_t state);
void frit_draft_free(frit_draft *draft);
void frit_counter_free(frit_counter *counter);

typedef struct frit_byte_edge {
    unsigned char low, high;
    int32_t to;
} frit_byte_edge;

typedef struct frit_call_edge {
    int32_t rule, to;
} frit_call_edge;

typedef struct frit_token_edge {
    int32_t low, high, to;   // of tokens, both included
} frit_token_edge;

typedef struct frit_automaton_state {
    uint32_t first_byte, first_call, first_token;   // edges
    uint16_t n_bytes;
    int32_t table;   // of 256 next states in place of edges; -1: none
    int32_t n_calls, n_tokens;
    bool final;      // the rule may end here
    bool is_plain;   // it does not end here and calls nothing
    bool is_end;     // it ends here and nothing else
} frit_automaton_state;

typedef struct frit_automaton_rule {
    int32_t start;   // state
    int32_t rank;    // a rule that is called at the start of another has a higher rank
} frit_automaton_rule;

typedef struct frit_automaton {
    frit_automaton_state *states;
    frit_byte_edge *bytes;
    frit_call_edge *calls;
    frit_token_edge *tokens;
    int32_t (*tables)[256];
    frit_automaton_rule *rules;
    int32_t n_states, n_rules, n_tables;
    uint32_t n_bytes, n_calls, n_tokens;
    frit_counter *counters;
    int32_t n_counters;
    int32_t root;
    bool takes_nothing;   // the empty text matches
} frit_automaton;

// FRIT_E_INVALID for rules that are not defined or call themselves at their start, and if no text matches;
// FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_automaton_compile(frit_automaton **out, frit_draft *draft, int32_t root);
void frit_automaton_free(frit_automaton *grammar);

// How a grammar names the tokens of a vocabulary. find: the token with this text or, where `text` is empty, token *id.
// Returns NULL, or what is expected in its place.
typedef struct frit_token_names {
    const void *vocab;
    const char *(*find)(const void *vocab, frit_str text, int32_t *id);
} frit_token_names;

// Front ends. FRIT_E_INVALID with the line or position, what was found and what was expected.
// names: NULL where no token can be named.
frit_status frit_gbnf_compile(frit_automaton **out, frit_str text, const frit_token_names *names);
frit_status frit_regex_compile(frit_automaton **out, frit_str pattern);

typedef struct frit_schema_options {
    bool any_order;        // members come in any order; else in the order of `properties`
    bool ignore_formats;   // `format` says nothing about the value
    bool open_objects;   // as the drafts say: other members than those that are named may come, unless a keyword closes
    bool complete;       // as a validator: any order, any way to write a number
} frit_schema_options;

// options may be NULL. FRIT_E_UNSUPPORTED for what a grammar cannot say; the sentence names the keyword.
frit_status frit_schema_compile(frit_automaton **out, frit_str text, const frit_schema_options *options);

// How a value is written within an answer.
typedef struct frit_schema_form {
    const struct answer_format *arguments;   // an object, as calls in this format write their arguments; NULL: JSON
    const frit_str *without;                 // no string contains any of these marks
    int n_without;
} frit_schema_form;

// Front ends that add rules to a larger grammar. *rule is the new rule of the whole text.
frit_status frit_gbnf_add(frit_draft *draft, frit_str text, const frit_token_names *names, int32_t *rule);
frit_status frit_regex_add(frit_draft *draft, frit_str pattern, int32_t *rule);
frit_status frit_schema_add(frit_draft *draft, struct json_t *schema, const frit_schema_options *options,
                            const frit_schema_form *form, int32_t *rule);
frit_status frit_schema_add_text(frit_draft *draft, frit_str text, const frit_schema_options *options,
                                 const frit_schema_form *form, int32_t *rule);

// Structural tags (tags.c): how their parts are read.
typedef struct frit_tags_options {
    const frit_token_names *names;   // of grammars; may be NULL
    frit_schema_options schema;
    frit_schema_form form;   // whose marks no free text has, either
} frit_tags_options;

frit_status frit_tags_add_text(frit_draft *draft, frit_str text, const frit_tags_options *options, int32_t *rule);
frit_status frit_tags_compile(frit_automaton **out, frit_str text, const frit_tags_options *options);

// Whether anything but calls leads on.
static inline bool frit_state_reads(const frit_automaton_state *state)
{
    return state->n_bytes > 0 || state->n_tokens > 0;
}

static inline int32_t frit_state_next(const frit_automaton *g, int32_t state, unsigned char byte)
{
    const frit_automaton_state *s = &g->states[state];
    if (s->table >= 0) return g->tables[s->table][byte];
    const frit_byte_edge *e = g->bytes + s->first_byte;
    for (int i = 0; i < s->n_bytes; i++)
        if (byte <= e[i].high) return byte >= e[i].low ? e[i].to : -1;
    return -1;
}
