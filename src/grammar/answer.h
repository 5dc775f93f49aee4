// SPDX-License-Identifier: MIT
// grammar/answer.h: the grammar of a chat's answer: reasoning, then a text, calls of tools, or a format.
//
//     reasoning?  ( text-without-marks* mark the-rest-of-calls )* text-without-marks     tools, and no call is needed
//     reasoning?  calls                                                                  a call is needed
//     reasoning?  ( format | calls )                                                     a format; calls with tools
//     reasoning?  ( reply | calls )                                    the answer is one object (frit_answer_is_object)
//
// Marks are the marks of the model's calls (text/answer/format.h). After the first word of a mark, which the parser of
// answers recognises too, only a call can follow. Formats with channels (parts_channels.c) have a header before each
// message.
#pragma once
#include "grammar/grammar.h"

typedef enum frit_thinking { FRIT_THINKING_NOT, FRIT_THINKING_MAYBE, FRIT_THINKING_NOW } frit_thinking;

typedef struct frit_answer_grammar {
    const struct answer_format *format;
    frit_thinking thinking;       // the reasoning that begins the answer; NOW: the prompt has opened it
    bool continues;               // the prompt ends within the text of the answer
    const struct json_t *tools;   // as in requests; NULL: none
    bool must_call;
    const char *only;    // the only tool that may be called; NULL: any
    bool one_call;       // at most one call
    bool open_objects;   // for the schemas of tools: frit_schema_options
    // Adds the grammar of an answer without calls. NULL: any text.
    frit_status (*add_format)(void *ctx, frit_rule_builder *builder, const frit_schema_form *form, int32_t *rule);
    void *ctx;
    frit_budget budget;   // the initial budget
} frit_answer_grammar;

// True if a tool is strict: its arguments obey its schema wherever it is called.
bool frit_answer_has_strict(const struct json_t *tools);
// FRIT_E_INVALID and FRIT_E_UNSUPPORTED with an error that begins with the field of the request.
frit_status frit_answer_compile(frit_automaton **out, const frit_answer_grammar *answer);
