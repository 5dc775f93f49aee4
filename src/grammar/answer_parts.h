// SPDX-License-Identifier: MIT
// grammar/answer_parts.h: declarations that the files of answers share.
#pragma once
#include "grammar/answer.h"
#include "text/answer/format.h"

#include <jansson.h>

typedef struct answer_rules {
    const frit_answer_grammar *o;
    frit_rule_builder *builder;
    int32_t root, gap, reasoning;   // rules; -1: none
} answer_rules;

// answer.c: adds a rule of the automaton and frees it. Returns `made` if making the automaton failed.
frit_status frit_answer_rule_dfa(frit_rule_builder *builder, frit_status made, frit_dfa *dfa, int32_t *rule);
// answer_calls.c
// The next tool that may be called, from *at on; NULL at the end.
const json_t *frit_answer_tool(const answer_rules *a, size_t *at, const char **name);
// Adds the rule of the arguments of tool `at`. No string in them contains one of the marks `without`.
frit_status frit_answer_add_arguments(answer_rules *a, size_t at, const frit_schema_form *form, int32_t *rule);
// Adds the rule of all calls with their marks, without the first `skip` bytes.
frit_status frit_answer_add_calls(answer_rules *a, size_t skip, int32_t *rule);
// answer_channels.c: defines the root.
frit_status frit_answer_add_channels(answer_rules *a);
