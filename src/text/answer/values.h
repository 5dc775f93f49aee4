// SPDX-License-Identifier: MIT
// text/answer/values.h: values in tool calls: parts of JSON text, values in Python's and looser syntax, and the types
// of a tool's schema.
#pragma once
#include "base/buf.h"

struct json_t;

// ---- Valid JSON text: slices of it, as written.

typedef struct json_walk {
    frit_str text;
    size_t at;
} json_walk;

json_walk frit_json_enter(frit_str container);   // the inside of an object or list
bool frit_json_next(json_walk *walk, bool is_object, frit_str *key,
                    frit_str *value);   // key with its quotes; false at the end
bool frit_json_member(frit_str object, frit_str key, frit_str *value);
bool frit_json_is_object(frit_str value);
// Appends the characters of a string; false if the value is no string.
bool frit_json_string(frit_str value, frit_buf *out);
// True if a text is strictly one JSON object.
bool frit_json_check_object(frit_str text);
// Appends a text as a JSON string.
void frit_json_quote(frit_str text, frit_buf *out);

// ---- The end of a value that arrives in pieces.

typedef enum value_spelling { VALUE_JSON, VALUE_PYTHON, VALUE_LOOSE } value_spelling;

typedef struct value_scan {   // zeroed at the start of a value, which opens with a bracket or, in Python, with a name
    size_t at;                // in the text: bytes before it are read
    int depth;
    char quote;   // the quote of the text that the scan is inside of; 0: none
} value_scan;

typedef enum scan_result { SCAN_MORE, SCAN_DONE, SCAN_WRONG } scan_result;
// `quote` is the mark around texts in LOOSE; `last` says that no more text follows. DONE: the value ends before
// scan->at.
scan_result frit_value_scan(value_scan *scan, frit_str text, value_spelling spelling, frit_str quote, bool last);

// ---- Python's and looser syntax to JSON.

// Converts one value at *at, which moves to its end. False for an invalid value; `out` then has a part of it.
bool frit_value_to_json(frit_str text, size_t *at, value_spelling spelling, frit_str quote, frit_buf *out);
// Reads NAME(KEY=VALUE, ...) at *at: the name, and the arguments as an object.
bool frit_value_read_call(frit_str text, size_t *at, frit_str *name, frit_buf *args);

// ---- Parameters.

enum {
    FRIT_PARAM_TEXT = 1,
    FRIT_PARAM_NUMBER = 2,
    FRIT_PARAM_BOOL = 4,
    FRIT_PARAM_NULL = 8,
    FRIT_PARAM_OBJECT = 16,
    FRIT_PARAM_LIST = 32,
    FRIT_PARAM_ANY = 63,
};

// The types that a parameter's schema allows, from its simple keywords. NULL: any type.
unsigned frit_value_types(const struct json_t *schema);

// Appends the value of a parameter that was written as plain text: as a JSON string, or as another value if the tool's
// schema allows its type. Without a schema, text that is a JSON value becomes this value. `tools` may be NULL.
void frit_value_typed(const struct json_t *tools, frit_str tool, frit_str parameter, frit_str text, frit_buf *out);
bool frit_value_tool_is_known(const struct json_t *tools, frit_str name);
