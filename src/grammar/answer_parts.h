// SPDX-License-Identifier: MIT
// grammar/answer_parts.h: what the files of answers share.
#pragma once
#include "grammar/answer.h"
#include "text/answer/format.h"

#include <jansson.h>

typedef struct answer_rules {
    const frit_answer_grammar *o;
    frit_draft *draft;
    int32_t root, gap, reasoning;   // rules; -1: none
} answer_rules;

// answer.c. Frees the automaton, unless making it failed.
frit_status frit_answer_rule_dfa(frit_draft *draft, frit_status made, frit_dfa *dfa, int32_t *rule);
// answer_calls.c
// A tool that may be called; NULL at the end.
const json_t *frit_answer_tool(const answer_rules *a, size_t *at, const char **name);
// The arguments of tool `at`. `without`: marks that no string of them has.
frit_status frit_answer_add_arguments(answer_rules *a, size_t at, const frit_schema_form *form, int32_t *rule);
// All calls with their marks but for the first `skip` bytes.
frit_status frit_answer_add_calls(answer_rules *a, size_t skip, int32_t *rule);
// answer_channels.c: defines the root.
frit_status frit_answer_add_channels(answer_rules *a);
