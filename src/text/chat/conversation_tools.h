// SPDX-License-Identifier: MIT
// text/chat/conversation_tools.h: tool calls, results and tools for chat templates that do not support them.
//
// The tools and calls are written into messages of roles that every template supports, in the format that the model is
// asked to answer
// in (the last row of answer/rows.c):
//
//     system       ..., the tools, and how an answer calls them or replies
//     assistant    {"tool_calls": [{"name": "add", "arguments": {"a": 1}}]}
//     user         {"tool_result": {"name": "add", "content": "2"}}
//
// Templates may require that user and assistant alternate, so a message that is written here is joined with an adjacent
// message of the same role.
//
// A template may render tools in its own words, but no calls. Then calls are written in the model's own format
// (answer/rows.c), and results use the template's role for them.
#pragma once
#include "text/answer/format.h"
#include "text/chat/chat_shape.h"

#include <jansson.h>

// Changes the messages, in the form of the template. `tools` are the tools that the model is told of; NULL: none.
// Changes nothing if there are no tools, calls or results.
frit_status frit_conversation_write_tools(json_t *messages, const chat_shape *shape, const answer_format *format,
                                          const json_t *tools);
