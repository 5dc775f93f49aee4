// SPDX-License-Identifier: MIT
// JSON as text.
#include "server/api/json_text.h"

#include <stddef.h>

char *server_json_text(json_t *json)
{
    char *text = json ? json_dumps(json, SERVER_JSON_FLAGS) : NULL;
    json_decref(json);
    return text;
}
