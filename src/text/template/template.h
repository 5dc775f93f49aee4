// SPDX-License-Identifier: MIT
// text/template/template.h: Jinja templates, as Hugging Face transformers renders chat templates: sandboxed, with
// trim_blocks and lstrip_blocks, loop controls, `generation` blocks, raise_exception, strftime_now and its own tojson.
//
// A template is parsed once into a tree; rendering walks the tree and allocates from an arena that dies with the call.
// Nothing that a template does can hang or exhaust the machine: steps, depth, memory and output are limited.
//
//     lex.c -> tokens -> parse.c, parse_expr.c -> nodes -> eval.c, statement.c -> text
//                                       filters.c, tests.c, methods.c, functions.c: tables of what templates may call
//                                       value.c, print.c, json.c: Python's values, str(), repr() and json.dumps()
//
// include, import, extends and everything that changes a list or dict are refused, as in transformers' sandbox. Some
// published templates append to lists nevertheless (Kimi K2's, to show calls), so a model's own template may do it.
#pragma once
#include "base/buf.h"
#include "base/spans.h"

#include <jansson.h>
#include <time.h>

typedef struct frit_template frit_template;

// Parses a template. FRIT_E_FORMAT with line and reason for a syntax error; FRIT_E_LIMIT for more than 2 MiB, or too
// many tokens.
frit_status frit_template_new(frit_template **out, frit_str source);
// Allows append and pop to change lists.
void frit_template_allow_changes(frit_template *template);
void frit_template_free(frit_template *template);

// Renders a template. `variables` is an object whose members are the names that the template sees; `now` is the time
// for strftime_now. FRIT_E_INVALID with the template's own words for raise_exception, or with line and reason for any
// other failure; FRIT_E_LIMIT if a limit is exceeded. What was written before a failure stays in `out`. `untrusted`
// (may be NULL) becomes the ranges of `out` that come from the variables (writer.h); the caller frees it. Names of
// tokens (bos_token, eos_token) and the roles of messages count as the template's own text.
//
// frit_template_render_within: *n_steps is the limit of steps, and becomes the number of steps done.
frit_status frit_template_render(const frit_template *template, const json_t *variables, const struct tm *now,
                                 frit_buf *out, frit_spans *untrusted);
frit_status frit_template_render_within(const frit_template *template, const json_t *variables, const struct tm *now,
                                        frit_buf *out, frit_spans *untrusted, int64_t *n_steps);
