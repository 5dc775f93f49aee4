// SPDX-License-Identifier: MIT
// text/load_json.h: expectations of tests in JSON files.
#pragma once
#include "support/support.h"

#include <jansson.h>

static inline json_t *load_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}
