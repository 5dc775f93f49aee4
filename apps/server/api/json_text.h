// SPDX-License-Identifier: MIT
// server/api/json_text.h: JSON as text for clients and logs.
#pragma once
#include <jansson.h>

// Compact; nine digits for numbers, enough for every f32.
enum { SERVER_JSON_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(9) };

// The JSON as malloc'd text. Takes `json` over. NULL if `json` is NULL or memory is short.
char *server_json_text(json_t *json);
