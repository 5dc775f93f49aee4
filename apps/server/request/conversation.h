// SPDX-License-Identifier: MIT
// server/request/conversation.h: builds a conversation in OpenAI's form, which frit_turn_new reads, from the
// conversation of another protocol.
#pragma once
#include "server/request/fields.h"

#include <jansson.h>
#include <stdarg.h>

// "LIST[i]", such as "messages[2]", and "OUTER.LIST[i]", such as "messages[2].content[0]".
server_field_name server_field_at(const char *list, size_t i);
server_field_name server_field_in(const server_field_name *outer, const char *list, size_t i);

// Refuses the request with "FIELD: expected WHAT", and returns false.
bool server_expect(server_problem *problem, const char *field, const char *what);
// A member of the object, which must be a text. Returns NULL, with a problem, if it is not a text.
const char *server_need_text(const json_t *object, const char *key, const char *field, server_problem *problem);

// {"type": "text", "text": ...}. Takes a reference to `text`.
json_t *server_text_part(json_t *text);
// {"id", "type": "function", "function": {"name", "arguments"}}. `arguments` is a text, a value to be written as JSON,
// or NULL.
json_t *server_call(const char *id, const char *name, const json_t *arguments);
// {"type": "function", "function": {...}}. Members that are NULL are left out.
json_t *server_tool(const char *name, json_t *description, json_t *parameters, json_t *strict);
// Sets "tools" of `out` from a list in another protocol's form. `read` returns server_tool of one tool, or NULL with a
// problem.
typedef json_t *(*server_tool_fn)(const json_t *tool, const char *field, server_problem *problem);
bool server_read_tools(const json_t *tools, server_tool_fn read, json_t *out, server_problem *problem);
// {"type": "function", "function": {"name"}}
json_t *server_named_choice(const char *name);
