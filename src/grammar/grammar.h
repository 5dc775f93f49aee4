// SPDX-License-Identifier: MIT
// grammar/grammar.h: rules that call each other, compiled to one automaton with a stack.
//
// A front end (gbnf.c, regex.c, schema.c, tags.c) makes rules in a builder. A rule is a part of an automaton over bytes
// and calls of rules (nfa.h). frit_automaton_compile makes each rule deterministic and numbers the states of all rules
// together:
//
//     root  ::= "[" item "]"          state 0 --'['--> 1 --item--> 2 --']'--> 3 (final)
//     item  ::= "x" | root            state 4 --'x'--> 5 (final), 4 --root--> 5
//
// If a rule can match nothing, each of its calls gets an edge that reads nothing, so that a call always reads at least
// one byte. Rules that no text matches are removed, and so are states from which no final state can be reached. So
// there are no dead ends: every accepted text can be completed.
//
// A terminal may also be a token, whatever its text: an edge for a range of tokens, which reads a whole token
// (frit_match_push_token).
//
// A compiled grammar never changes; any number of threads and matchers (match.h) may use it.
#pragma once
#include "grammar/dfa.h"

struct json_t;
struct answer_format;

// States of strings whose characters are counted. Node i of a segment is state first + i * stride. At node 0, between
// low and high more characters must follow before the string ends; each next node has low_step and high_step more.
typedef struct frit_count_segment {
    int32_t first, stride, n;
    int32_t low, high;   // high: INT32_MAX for no limit
    int32_t low_step, high_step;
} frit_count_segment;

typedef struct frit_counter {
    frit_dfa character;   // the texts of one character; the only final state has no edges. A quote ends the string
    frit_count_segment *segments;
    int32_t n_segments;
} frit_counter;

typedef struct frit_builder_rule {
    char *name;
    bool defined, is_entry;
    frit_nfa nfa;
    frit_fragment part;
    // Instead of a part, a rule may have a table: an automaton that is deterministic and calls nothing. Or the rule is
    // an entry: a state of another rule's table, where this rule begins.
    frit_dfa table;
    frit_counter counter;   // of a table; no segments: the table has no counter
    int32_t base, entry;    // for is_entry: rule and state
} frit_builder_rule;

typedef struct frit_rule_builder {
    frit_builder_rule *rules;
    int32_t n_rules, room;
    int32_t *buckets;   // rules by name
    int32_t n_buckets;
    int32_t first_named;      // the first rule that can be found by name: earlier rules belong to another text
    int64_t n_table_states;   // at most FRIT_TABLE_STATES
    frit_status failed;
    frit_budget budget;   // of the whole builder
} frit_rule_builder;

enum {
    FRIT_GRAMMAR_RULES = 1 << 17,
    FRIT_GRAMMAR_TEXT = 4 << 20,
    FRIT_GRAMMAR_DEPTH = 200,
    FRIT_TABLE_STATES = 1 << 19
};

// Finds the rule of this name, or makes it; -1: no memory, or too many rules.
int32_t frit_builder_rule_named(frit_rule_builder *builder, frit_str name);
// Makes a rule; the name is for messages and need not be unique.
int32_t frit_builder_rule_new(frit_rule_builder *builder, const char *name);
frit_nfa *frit_builder_nfa(frit_rule_builder *builder, int32_t rule);
// Defines the rule as `part` of its automaton.
void frit_builder_define(frit_rule_builder *builder, int32_t rule, frit_fragment part);
// Defines the rule by a table. Every state of the table must be reachable and lead to an end, and the first symbol must
// be read. Takes ownership of table and counter. counter may be NULL.
void frit_builder_define_table(frit_rule_builder *builder, int32_t rule, frit_dfa *table, frit_counter *counter);
// Defines the rule as the texts that the table of rule `base` matches from a state on.
void frit_builder_define_entry(frit_rule_builder *builder, int32_t rule, int32_t base, int32_t state);
void frit_builder_free(frit_rule_builder *builder);
void frit_counter_free(frit_counter *counter);

typedef struct frit_byte_edge {
    unsigned char low, high;
    int32_t to;
} frit_byte_edge;

typedef struct frit_call_edge {
    int32_t rule, to;
} frit_call_edge;

typedef struct frit_token_edge {
    int32_t low, high, to;   // low, high: tokens, both included
} frit_token_edge;

typedef struct frit_automaton_state {
    uint32_t first_byte, first_call, first_token;   // indices of edges
    uint16_t n_bytes;
    int32_t table;   // index of a table of 256 next states, instead of edges; -1: none
    int32_t n_calls, n_tokens;
    bool final;      // the rule may end here
    bool is_plain;   // the rule does not end here, and the state has no calls
    bool is_end;     // the rule ends here, and nothing can follow
} frit_automaton_state;

typedef struct frit_automaton_rule {
    int32_t start;   // state
    int32_t rank;    // a rule that another rule calls at its start has a higher rank than the caller
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

// Compiles a builder. FRIT_E_INVALID for rules that are not defined or call themselves at their start, and if no text
// matches; FRIT_E_LIMIT, FRIT_E_MEMORY.
frit_status frit_automaton_compile(frit_automaton **out, frit_rule_builder *builder, int32_t root);
void frit_automaton_free(frit_automaton *grammar);

// The names of a vocabulary's tokens in a grammar. `find` finds the token with this text or, if `text` is empty, token
// *id. It returns NULL, or a description of valid names.
typedef struct frit_token_names {
    const void *vocab;
    const char *(*find)(const void *vocab, frit_str text, int32_t *id);
} frit_token_names;

// Front ends. FRIT_E_INVALID with the line or position, what was found and what was expected. names: NULL if tokens
// cannot be named.
frit_status frit_gbnf_compile(frit_automaton **out, frit_str text, const frit_token_names *names);
frit_status frit_regex_compile(frit_automaton **out, frit_str pattern);

typedef struct frit_schema_options {
    bool any_order;        // members in any order, otherwise in the order of `properties`
    bool ignore_formats;   // `format` does not restrict the value
    bool open_objects;     // as in the drafts: members that are not named may occur, unless a keyword excludes them
    bool complete;         // as a validator: any order, any way to write a number
} frit_schema_options;

// options may be NULL. FRIT_E_UNSUPPORTED for keywords that a grammar cannot express; the error names the keyword.
frit_status frit_schema_compile(frit_automaton **out, frit_str text, const frit_schema_options *options);

// How a value is written within an answer.
typedef struct frit_schema_form {
    const struct answer_format *arguments;   // the value is an object in this format's syntax for arguments; NULL: JSON
    const frit_str *without;                 // no string contains any of these marks
    int n_without;
} frit_schema_form;

// Front ends that add rules to a larger grammar. *rule is the rule of the whole text.
frit_status frit_gbnf_add(frit_rule_builder *builder, frit_str text, const frit_token_names *names, int32_t *rule);
frit_status frit_regex_add(frit_rule_builder *builder, frit_str pattern, int32_t *rule);
frit_status frit_schema_add(frit_rule_builder *builder, struct json_t *schema, const frit_schema_options *options,
                            const frit_schema_form *form, int32_t *rule);
frit_status frit_schema_add_text(frit_rule_builder *builder, frit_str text, const frit_schema_options *options,
                                 const frit_schema_form *form, int32_t *rule);

// Structural tags (tags.c): options of their parts.
typedef struct frit_tags_options {
    const frit_token_names *names;   // for grammars; may be NULL
    frit_schema_options schema;
    frit_schema_form form;   // free text may not contain the form's marks either
} frit_tags_options;

frit_status frit_tags_add_text(frit_rule_builder *builder, frit_str text, const frit_tags_options *options,
                               int32_t *rule);
frit_status frit_tags_compile(frit_automaton **out, frit_str text, const frit_tags_options *options);

// True if the state has edges that are not calls.
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
