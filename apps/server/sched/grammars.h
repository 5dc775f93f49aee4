// SPDX-License-Identifier: MIT
// server/sched/grammars.h: grammars of requests, compiled once and kept by their text. Any thread.
#pragma once
#include "frit.h"
#include "server/api/problem.h"

#include <jansson.h>

typedef struct server_grammars server_grammars;

server_grammars *server_grammars_new(void);   // NULL: no memory
void server_grammars_free(server_grammars *grammars);
// The grammar of a text, for the caller to free. NULL with a problem that names the field `param`.
// 499 where options->cancelled ended it. is_unknown: a grammar that is not kept is not compiled, and this set to true;
// may be NULL.
frit_grammar *server_grammars_get(server_grammars *grammars, const frit_model *model,
                                  const frit_grammar_options *options, const char *text, size_t n, const char *param,
                                  bool *is_unknown, server_problem *problem);
// The grammar of a chat's answer, or NULL where the answer may be anything: then problem->status is 0. `param`: the
// field that options->format comes from, or NULL.
frit_grammar *server_grammars_get_turn(server_grammars *grammars, const frit_turn *turn, const json_t *request,
                                       const frit_turn_grammar_options *options, const char *param, bool *is_unknown,
                                       server_problem *problem);
