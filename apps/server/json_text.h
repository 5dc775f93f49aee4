// SPDX-License-Identifier: MIT
// server/json_text.h: JSON as the text that clients and logs get.
#pragma once
#include <jansson.h>

// Without spaces; numbers with nine digits, as many as an f32 has. Owns json; free the text. NULL: no memory, or no
// json.
char *server_json_text(json_t *json);
