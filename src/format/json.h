// SPDX-License-Identifier: MIT
// format/json.h: JSON as Python reads it, for the files of a model's folder.
#pragma once
#include "base/status.h"

#include <jansson.h>

// NaN, Infinity, -Infinity and numbers that are too large for a double become the strings "NaN", "Infinity" and
// "-Infinity". Integers of more than 18 digits become floats. The last of equal keys is used. Half a surrogate pair
// becomes U+FFFD, and without JSON_ALLOW_NUL zero does. A byte order mark is skipped. `flags` are Jansson's.
json_t *frit_json_read(const char *text, size_t n_bytes, size_t flags, json_error_t *error);
