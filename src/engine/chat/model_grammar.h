// SPDX-License-Identifier: MIT
// engine/chat/model_grammar.h: a compiled grammar with the vocabulary of a model.
#pragma once
#include "engine/model/model.h"
#include "grammar/constraint.h"

// Adds a text of any kind as a rule of a larger grammar. `form` is how a schema's value is written; NULL: JSON.
frit_status frit_grammar_add(frit_rule_builder *builder, const frit_model *model, frit_str text,
                             const frit_grammar_options *options, const frit_schema_form *form, int32_t *rule);
// Compiles a text without the vocabulary, and finds its mistakes. `options` may be NULL.
frit_status frit_grammar_compile(frit_automaton **out, const frit_model *model, frit_str text,
                                 const frit_grammar_options *options);
// Makes a grammar of an automaton, and takes ownership of it even if it fails. With `chat`, special tokens that mark
// reasoning and calls are texts.
frit_status frit_grammar_of(frit_grammar **out, const frit_model *model, frit_automaton *automaton,
                            const frit_chat *chat);
