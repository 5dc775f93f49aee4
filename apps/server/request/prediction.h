// SPDX-License-Identifier: MIT
// server/request/prediction.h: the field `prediction` of requests: what the answer will probably be, from which tokens
// are guessed. The answer is the one without it.
//
//     {"type": "content", "content": "..."}                 content: a string, or parts of type text
#pragma once
#include "server/request/request.h"

// A field's `parse`: fills request->prediction.
bool server_parse_prediction(json_t *value, void *request, server_problem *problem);
// Its tokens, malloc'd; NULL: there are none, or more than the context has.
frit_token *server_prediction_tokens(const frit_model *model, const server_generation *request,
                                     const frit_tokenize_limits *limits, size_t *n_tokens);
