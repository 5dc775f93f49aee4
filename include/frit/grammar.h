// SPDX-License-Identifier: MIT
// frit/grammar.h: constrained answers.
#ifndef FRIT_GRAMMAR_H
#define FRIT_GRAMMAR_H

#include "sampler.h"
#include "turn.h"

#ifdef __cplusplus
extern "C" {
#endif

// What an answer may be, compiled for the vocabulary of a model. A grammar never changes: any thread may use it, and
// any number of samplers.
//
//     frit_grammar_new(&grammar, model, text, strlen(text), &(frit_grammar_options){.kind = FRIT_GRAMMAR_SCHEMA});
//     frit_sampler_set_grammar(sampler, grammar);               // after the prompt was accepted
//     while (!frit_sampler_is_over(sampler)) frit_session_next(session, sampler, &token); ...
typedef struct frit_grammar frit_grammar;

typedef enum frit_grammar_kind {
    FRIT_GRAMMAR_GBNF,     // rules in llama.cpp's notation, of which "root" is the answer
    FRIT_GRAMMAR_SCHEMA,   // JSON that a JSON schema allows (draft 2020-12, or what its $schema says from draft-04 on)
    FRIT_GRAMMAR_REGEX,    // a text that a regular expression (ECMA-262) matches as a whole
    FRIT_GRAMMAR_TAGS,     // structural tags: text in which triggers begin parts that have a form, described in JSON
} frit_grammar_kind;

// Structural tags. The text is free until a trigger is complete; then it goes on as one of the tags that begin with it:
// `begin`, JSON that the schema allows, `end`. Then it is free again:
//
//     {"triggers": ["<call="], "structures": [{"begin": "<call=now>", "schema": {"type": "object"}, "end": "</call>"}]}
//
// `format` in place of these has more kinds of parts than schemas, one within another (docs/grammar.md).

typedef struct frit_grammar_options {
    frit_grammar_kind kind;
    bool any_order;   // of schemas: properties in any order; otherwise in the order of the schema
    // Compiling may take a second or two: asked now and then by the calling thread, it ends with FRIT_E_CANCELLED once
    // this returns true; NULL: never.
    bool (*cancelled)(void *ctx);
    void *ctx;
    // Whether objects may have properties that their JSON schema does not name, as the drafts of JSON Schema say. The
    // default is false: an object has only the properties that its schema names, if the schema names some and has no
    // additionalProperties, unevaluatedProperties or propertyNames. Without this limit models invent properties.
    bool open_objects;
    uint64_t reserved[5];
} frit_grammar_options;

// Keeps the model alive. FRIT_E_INVALID for a text with mistakes, or which nothing matches; FRIT_E_UNSUPPORTED for what
// a grammar cannot say, as a schema with uniqueItems, and for a model without a vocabulary; FRIT_E_LIMIT for one that
// is too large, or needs too many steps or bytes to compile: whatever the text is, that is a matter of seconds and a
// few hundred MB.
FRIT_API frit_status frit_grammar_new(frit_grammar **out, const frit_model *model, const char *text, size_t n_bytes,
                                      const frit_grammar_options *options);
// The same in two parts: the text is compiled and its mistakes are told at once; what depends on the vocabulary, which
// takes longer, is made on a thread of its own, as while a prompt runs. The text is not needed after the call.
typedef struct frit_grammar_job frit_grammar_job;
FRIT_API frit_status frit_grammar_begin(frit_grammar_job **out, const frit_model *model, const char *text,
                                        size_t n_bytes, const frit_grammar_options *options);
// Waits for it, and frees the job. `out` may be NULL, for a grammar that is not wanted any more.
FRIT_API frit_status frit_grammar_finish(frit_grammar_job *job, frit_grammar **out);
FRIT_API void frit_grammar_free(frit_grammar *grammar);   // samplers keep their grammar alive
// Counts one more owner: frit_grammar_free is to be called once more.
FRIT_API frit_status frit_grammar_retain(frit_grammar *grammar);
// From here on the sampler picks tokens whose text fits the grammar, from its beginning on; the tokens that end an
// answer fit where the text is complete. NULL removes the grammar, and so does frit_sampler_reset. frit_sampler_accept
// then gives FRIT_E_INVALID for a token that does not fit. FRIT_E_UNSUPPORTED while token healing is under way,
// FRIT_E_INVALID for a grammar of another vocabulary.
FRIT_API frit_status frit_sampler_set_grammar(frit_sampler *sampler, frit_grammar *grammar);
// What the answer of a turn may be: reasoning, where the model reasons, then calls in the model's own format, text, or
// what `format` says. With the tool_choice "required" or a function, the answer calls, and the arguments obey the
// schemas of the tools; with "auto", what begins like a call goes on as one. Strict tools need a schema that a grammar
// can say; the others may then have any arguments.
typedef struct frit_turn_grammar_options {
    const char *format;   // of an answer that calls nothing, as frit_grammar_new has it; NULL: any text
    size_t n_format;
    frit_grammar_kind kind;
    bool any_order;
    bool one_call;                  // at most one call; a named function is called once in any case
    bool (*cancelled)(void *ctx);   // as frit_grammar_options has it
    void *ctx;
    bool open_objects;   // likewise; of the format, and of the arguments of tools
    uint64_t reserved[5];
} frit_turn_grammar_options;

// *out: NULL where the answer may be anything. options may be NULL. Errors: of frit_grammar_new, and those that begin
// with the field of the conversation ("tools[1].function.parameters: ...").
FRIT_API frit_status frit_turn_grammar(frit_grammar **out, const frit_turn *turn,
                                       const frit_turn_grammar_options *options);
// Whether the text is complete by the sampler's grammar and nothing can follow. False without a grammar.
FRIT_API bool frit_sampler_is_over(const frit_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
