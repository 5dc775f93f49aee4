// SPDX-License-Identifier: MIT
// text/chat/conversation_tools.h: calls, results and tools for chat templates that have no place for them.
//
// What other templates render is written into messages that every template has, in the form of answers that such
// models are asked for (the last row of answer/rows.c):
//
//     system       ..., the tools, and how an answer calls them or replies
//     assistant    {"tool_calls": [{"name": "add", "arguments": {"a": 1}}]}
//     user         {"tool_result": {"name": "add", "content": "2"}}
//
// Templates may want that user and assistant take turns, so a message that is written here joins its neighbour of the
// same role.
//
// Where a template tells of tools in its own words and renders no calls, these are written as its models write them
// (answer/rows.c), and the template has a role for results.
#pragma once
#include "text/answer/format.h"
#include "text/chat/chat_shape.h"

#include <jansson.h>

// Changes the messages, in the form of the template. `tools`: those that the model is told of; NULL: none. Nothing is
// changed where there are no tools, calls or results.
frit_status frit_conversation_write_tools(json_t *messages, const chat_shape *shape, const answer_format *format,
                                          const json_t *tools);
