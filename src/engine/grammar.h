// SPDX-License-Identifier: MIT
// engine/grammar.h: a compiled grammar with the vocabulary of a model.
#pragma once
#include "engine/model.h"
#include "grammar/constraint.h"

// The tokens that grammars for the model may name; it is borrowed.
frit_token_names frit_grammar_names(const frit_model *model);
// The part that finds the text's mistakes, and needs nothing of the vocabulary. options may be NULL.
frit_status frit_grammar_compile(frit_automaton **out, const frit_model *model, frit_str text,
                                 const frit_grammar_options *options);
// Takes the automaton over, also where it fails. `chat`: special tokens that mark reasoning and calls in its answers
// are texts; NULL: none are.
frit_status frit_grammar_of(frit_grammar **out, const frit_model *model, frit_automaton *automaton,
                            const frit_chat *chat);
