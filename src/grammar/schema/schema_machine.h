// SPDX-License-Identifier: MIT
// grammar/schema/schema_machine.h: automata of terms: of the members of an object, or of the items of an array.
//
// A state of the automaton records progress: the next name or index, the number of members or items, and the satisfied
// claims that require one member or item. A node has these numbers; nodes with equal numbers are one state.
#pragma once
#include "grammar/schema/schema.h"

enum { MAX_WITNESSES = 8, MAX_NODES = SCHEMA_STATES };

typedef struct node {
    int32_t at, count;   // next name or index; number of members or items
    uint32_t bits;       // names that occurred, and satisfied claims
    int32_t counts[MAX_WITNESSES];
    bool ready;      // a member or an item comes next; otherwise a comma or the end
    int32_t state;   // of the rule's automaton
} node;

typedef struct machine {
    schema *s;
    bool is_arguments;   // members in the syntax of calls, without brackets around them
    int32_t rule;
    node *nodes;
    int32_t n, room;
    int32_t *buckets;   // of nodes, by a hash
    int32_t n_buckets;
    int32_t out;   // final nodes lead here
} machine;

frit_nfa *frit_machine_nfa(const machine *m);
// Returns the state of a node; makes it if it is new.
frit_status frit_machine_reach(machine *m, node k, int32_t *state);
// Begins the part: "{" or "[", space, and the first node. Final nodes are linked to the closing bracket.
frit_status frit_machine_open(machine *m, const char *brackets, frit_fragment *part);
// Adds an optional comma and space before the next member or item.
frit_status frit_machine_add_comma(machine *m, node from);
void frit_machine_link(frit_nfa *nfa, int32_t from, frit_fragment part, int32_t to);
void frit_machine_free(machine *m);

// The members of objects (schema_object.c), or the items of arrays (schema_array.c), for which the term holds.
frit_status frit_schema_object_part(schema *s, int32_t rule, const term *t, bool is_arguments, frit_fragment *part);
frit_status frit_schema_array_part(schema *s, int32_t rule, const term *t, frit_fragment *part);
