// SPDX-License-Identifier: MIT
// engine/grammar.h: a compiled grammar with the vocabulary of a model.
#pragma once
#include "engine/model.h"
#include "grammar/constraint.h"

// Takes the automaton over, also where it fails. `marks`: special tokens that mark reasoning and calls are texts.
frit_status frit_grammar_of(frit_grammar **out, const frit_model *model, frit_automaton *automaton, bool marks);
