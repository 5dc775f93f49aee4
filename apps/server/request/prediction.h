// SPDX-License-Identifier: MIT
// server/request/prediction.h: the field `prediction` of requests: a text that the answer will probably repeat. Its
// tokens are verified as drafts; the answer is the same as without a prediction.
//
//     {"type": "content", "content": "..."}                 content: a string, or parts of type text
#pragma once
#include "server/request/request.h"

// The field's `parse`: fills request->prediction.
bool server_parse_prediction(json_t *value, void *request, server_problem *problem);
// The tokens of the prediction, malloc'd. NULL: there is no prediction, it does not fit the context, or memory is
// short.
frit_token *server_prediction_tokens(const frit_model *model, const server_generation *request,
                                     const frit_tokenize_limits *limits, size_t *n_tokens);
