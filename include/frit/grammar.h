// SPDX-License-Identifier: MIT
// frit/grammar.h: constrained answers.
#ifndef FRIT_GRAMMAR_H
#define FRIT_GRAMMAR_H

#include "sampler.h"
#include "turn.h"

#ifdef __cplusplus
extern "C" {
#endif

// A grammar describes the answers that are allowed, compiled for the vocabulary of a model. A grammar never changes:
// any number of threads and samplers may use it.
//
//     frit_grammar_new(&grammar, model, text, strlen(text), &(frit_grammar_options){.kind = FRIT_GRAMMAR_SCHEMA});
//     frit_sampler_set_grammar(sampler, grammar);               // after the prompt was accepted
//     while (!frit_sampler_is_over(sampler)) frit_session_next(session, sampler, &token); ...
typedef struct frit_grammar frit_grammar;

typedef enum frit_grammar_kind {
    FRIT_GRAMMAR_GBNF,     // rules in llama.cpp's notation; the rule "root" is the answer
    FRIT_GRAMMAR_SCHEMA,   // JSON that a JSON schema allows (draft 2020-12, or what its $schema says from draft-04 on)
    FRIT_GRAMMAR_REGEX,    // a text that a regular expression (ECMA-262) matches as a whole
    FRIT_GRAMMAR_TAGS,     // structural tags: text in which triggers begin parts with a form, described in JSON
} frit_grammar_kind;

// Structural tags. The text is free until it contains a trigger; then one of the tags that begin with the trigger must
// follow: `begin`, JSON that the schema allows, `end`. Then the text is free again:
//
//     {"triggers": ["<call="], "structures": [{"begin": "<call=now>", "schema": {"type": "object"}, "end": "</call>"}]}
//
// `format` instead of `triggers` and `structures` describes nested parts of more kinds (docs/grammar.md).

typedef struct frit_grammar_options {
    frit_grammar_kind kind;
    bool any_order;   // of schemas: properties in any order; otherwise in the order of the schema
    // Called from time to time by the compiling thread, because compiling may take seconds. FRIT_E_CANCELLED after it
    // returns true. NULL: compiling is not cancelled.
    bool (*cancelled)(void *ctx);
    void *ctx;
    // True: objects may have properties that their schema does not name, as JSON Schema says. False (the default): an
    // object has only the properties that its schema names, if the schema names some and has no additionalProperties,
    // unevaluatedProperties or propertyNames. Models tend to invent properties otherwise.
    bool open_objects;
    uint64_t reserved[5];
} frit_grammar_options;

// Compiles a grammar, which keeps the model alive. FRIT_E_INVALID for a text with errors, or that no answer can match;
// FRIT_E_UNSUPPORTED for features that a grammar cannot express, such as uniqueItems in a schema, and for a model
// without a vocabulary; FRIT_E_LIMIT for a grammar that is too large, or takes too many steps or bytes to compile.
// Compiling takes at most a few seconds and a few hundred MB for any text.
FRIT_API frit_status frit_grammar_new(frit_grammar **out, const frit_model *model, const char *text, size_t n_bytes,
                                      const frit_grammar_options *options);
// Compiles a grammar in two parts. frit_grammar_begin compiles the text and reports its errors. The part that depends
// on the vocabulary takes longer and is computed by a thread of its own, for example while a prompt runs. The text is
// not used after the call.
typedef struct frit_grammar_job frit_grammar_job;
FRIT_API frit_status frit_grammar_begin(frit_grammar_job **out, const frit_model *model, const char *text,
                                        size_t n_bytes, const frit_grammar_options *options);
// Waits for the second part, and frees the job. `out` may be NULL if the grammar is no longer needed.
FRIT_API frit_status frit_grammar_finish(frit_grammar_job *job, frit_grammar **out);
FRIT_API void frit_grammar_free(frit_grammar *grammar);   // samplers keep their grammar alive
// Adds an owner: frit_grammar_free must be called once more.
FRIT_API frit_status frit_grammar_retain(frit_grammar *grammar);
// Restricts the sampler to tokens whose text matches the grammar, from the grammar's beginning on; tokens that end an
// answer are allowed when the text is complete. frit_sampler_accept then returns FRIT_E_INVALID for a token that does
// not match. NULL removes the grammar, and so does frit_sampler_reset. FRIT_E_UNSUPPORTED during token healing,
// FRIT_E_INVALID for a grammar of another vocabulary.
FRIT_API frit_status frit_sampler_set_grammar(frit_sampler *sampler, frit_grammar *grammar);

// Options of frit_turn_grammar, whose grammar allows reasoning if the model reasons, then calls in the model's own
// format, text, or `format`. With the tool_choice "required" or a function, the answer is a call with arguments that
// match the tool's schema; with "auto", text that begins like a call must continue as one. A strict tool needs a schema
// that a grammar can express; other tools may have any arguments if their schema cannot be expressed.
typedef struct frit_turn_grammar_options {
    const char *format;   // grammar of an answer without calls, as for frit_grammar_new; NULL: any text
    size_t n_format;
    frit_grammar_kind kind;
    bool any_order;
    bool one_call;                  // at most one call; a named function is called once in any case
    bool (*cancelled)(void *ctx);   // as in frit_grammar_options
    void *ctx;
    bool open_objects;   // as in frit_grammar_options, for the format and the arguments of tools
    uint64_t reserved[5];
} frit_turn_grammar_options;

// Compiles the grammar of a turn's answer; *out is NULL if any answer is allowed. options may be NULL. Fails as
// frit_grammar_new; sentences about the conversation begin with its field ("tools[1].function.parameters: ...").
FRIT_API frit_status frit_turn_grammar(frit_grammar **out, const frit_turn *turn,
                                       const frit_turn_grammar_options *options);
// True if the text is complete by the sampler's grammar and no token can follow. False without a grammar.
FRIT_API bool frit_sampler_is_over(const frit_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
