// SPDX-License-Identifier: MIT
// server/sched/grammars.h: a cache of compiled grammars, by their texts. Any thread.
#pragma once
#include "frit.h"
#include "server/api/problem.h"

#include <jansson.h>

typedef struct server_grammars server_grammars;

server_grammars *server_grammars_new(void);   // NULL: no memory
void server_grammars_free(server_grammars *grammars);
// The grammar of a text, for the caller to free. NULL with a problem that names the field `param`, of status 499 if
// options->cancelled ended the compilation. With `is_unknown` (may be NULL), a grammar that is not in the cache is not
// compiled, and *is_unknown becomes true.
frit_grammar *server_grammars_get(server_grammars *grammars, const frit_model *model,
                                  const frit_grammar_options *options, const char *text, size_t n, const char *param,
                                  bool *is_unknown, server_problem *problem);
// The grammar of a chat's answer. NULL with problem->status 0: any answer is allowed. `param`: the field with
// options->format, or NULL.
frit_grammar *server_grammars_get_turn(server_grammars *grammars, const frit_turn *turn, const json_t *request,
                                       const frit_turn_grammar_options *options, const char *param, bool *is_unknown,
                                       server_problem *problem);
