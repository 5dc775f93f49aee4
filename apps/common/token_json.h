// SPDX-License-Identifier: MIT
// common/token_json.h: tokens, and how likely they were, as JSON in OpenAI's form. Shared by frit run and the server.
#pragma once
#include "frit.h"

#include <jansson.h>

// The bytes of a token, the text of special ones too; `room` may hold them. Not zero-terminated.
const char *app_token_text(const frit_model *model, frit_token token, char *room, size_t size, size_t *n_bytes);
// The text of a token as a JSON string, "bytes:\xe2\x82" if it is not UTF-8 on its own. *bytes: its bytes as a list of
// numbers; NULL: not wanted.
json_t *app_token_json(const frit_model *model, frit_token token, json_t **bytes);
// {"token", "logprob", "bytes"}; a log-probability that is not known (NaN) is null.
json_t *app_logprob_json(const frit_model *model, frit_logprob found);
