// SPDX-License-Identifier: MIT
// server/api/json_text.h: JSON as the text that clients and logs get.
#pragma once
#include <jansson.h>

// Without spaces; numbers with nine digits, as many as an f32 has.
enum { SERVER_JSON_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(9) };

// Owns json; free the text. NULL: no memory, or no json.
char *server_json_text(json_t *json);
