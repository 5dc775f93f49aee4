// SPDX-License-Identifier: MIT
// engine/chat/grammar.h: a compiled grammar with the vocabulary of a model.
#pragma once
#include "engine/model/model.h"
#include "grammar/constraint.h"

// A text of any kind as a rule of a larger grammar. form: how a schema's value is written; NULL: as JSON.
frit_status frit_grammar_add(frit_draft *draft, const frit_model *model, frit_str text,
                             const frit_grammar_options *options, const frit_schema_form *form, int32_t *rule);
// The part that finds the text's mistakes, and needs nothing of the vocabulary. options may be NULL.
frit_status frit_grammar_compile(frit_automaton **out, const frit_model *model, frit_str text,
                                 const frit_grammar_options *options);
// Takes the automaton over, also where it fails. `chat`: special tokens that mark reasoning and calls in its answers
// are texts; NULL: none are.
frit_status frit_grammar_of(frit_grammar **out, const frit_model *model, frit_automaton *automaton,
                            const frit_chat *chat);
