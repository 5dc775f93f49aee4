// SPDX-License-Identifier: MIT
// common/token_json.h: tokens and their log-probabilities as JSON in OpenAI's form. Shared by frit run and the server.
#pragma once
#include "frit.h"

#include <jansson.h>

// The bytes of a token, or the text of a special token. `room` may be used to hold them. Not zero-terminated.
const char *app_token_text(const frit_model *model, frit_token token, char *room, size_t size, size_t *n_bytes);
// The text of a token as a JSON string, "bytes:\xe2\x82" if it is not UTF-8. *bytes is its bytes as a list of numbers;
// may be NULL.
json_t *app_token_json(const frit_model *model, frit_token token, json_t **bytes);
// {"token", "logprob", "bytes"}. An unknown log-probability (NaN) is null.
json_t *app_logprob_json(const frit_model *model, frit_logprob found);
