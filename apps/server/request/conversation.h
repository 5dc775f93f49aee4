// SPDX-License-Identifier: MIT
// server/request/conversation.h: builds a conversation in OpenAI's form, which frit_turn_new reads, from that of
// another protocol.
#pragma once
#include "server/api/problem.h"

#include <jansson.h>
#include <stdarg.h>

// A place within a request, for messages: "messages[2].content[0]".
typedef struct server_place {
    char text[64];
} server_place;
server_place server_place_at(const char *list, size_t i);
server_place server_place_in(const server_place *outer, const char *list, size_t i);

// False with "PLACE: expected WHAT".
bool server_expect(server_problem *problem, const char *place, const char *what);
// A member that must be a text; NULL with a problem.
const char *server_need_text(const json_t *object, const char *key, const char *place, server_problem *problem);

// {"type": "text", "text": ...}; shares the text.
json_t *server_text_part(json_t *text);
// {"id", "type": "function", "function": {"name", "arguments"}}. `arguments`: a text, or a value that becomes one, or
// NULL.
json_t *server_call(const char *id, const char *name, const json_t *arguments);
// {"type": "function", "function": {...}} of a tool's members; those that are NULL are left out.
json_t *server_tool(const char *name, json_t *description, json_t *parameters, json_t *strict);
// "tools" of `out`, from a list in another form, of which `read` makes server_tool; NULL of it: a problem.
typedef json_t *(*server_tool_fn)(const json_t *tool, const char *place, server_problem *problem);
bool server_read_tools(const json_t *tools, server_tool_fn read, json_t *out, server_problem *problem);
// {"type": "function", "function": {"name"}}
json_t *server_named_choice(const char *name);
