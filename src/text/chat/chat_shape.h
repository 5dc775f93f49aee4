// SPDX-License-Identifier: MIT
// text/chat/chat_shape.h: what a chat template supports, found by rendering small conversations.
//
// Templates agree on role and content of messages and on little else. Some need the arguments of a tool call as text,
// some as an object; some show a call only if the content is null; reasoning has several names. So each property is
// tested with the template itself when it is opened.
#pragma once
#include "base/buf.h"

struct frit_chat;
struct json_t;

// The content of a message that has tool calls and no text.
typedef enum chat_content { CHAT_CONTENT_EMPTY, CHAT_CONTENT_NULL, CHAT_CONTENT_ABSENT, CHAT_N_CONTENTS } chat_content;

typedef struct chat_shape {
    bool no_system;             // no system prompt: its text goes into the first message of the user
    bool no_calls;              // calls must be written into messages: conversation_tools.h
    bool no_tools;              // tools must be written into messages
    bool list_only;             // content must be a list of parts
    bool functions_text;        // needs the tools as a text, `functions`, and the time as `datetime`
    bool shows_tools;           // the template renders tools
    bool shows_calls;           // the template renders calls of the assistant
    bool calls_without_tools;   // renders calls only if no tools are given
    bool text_arguments;        // arguments are JSON text
    chat_content call_content;
    const char *reasoning_key;   // key of a message; "parts": a part of type thinking; NULL: reasoning is not shown
} chat_shape;

// Finds the shape. Never fails: a template that renders no sample gets the most common shape.
void frit_chat_find_shape(const struct frit_chat *chat, chat_shape *shape);

// Sample conversations, which answer/derive.c uses too. Their names and values do not occur in templates.
#define PROBE_QUESTION  "Zfrit asks?"
#define PROBE_TEXT      "Zfrit says."
#define PROBE_REASONING "Yfrit thinks."
#define PROBE_TOOL      "xfrit_probe"
#define PROBE_OTHER     "yfrit_other"
#define PROBE_ID        "c0frit001"
#define PROBE_ID_2      "c0frit002"
#define PROBE_KEY_1     "aafrit_key"   // templates may sort keys
#define PROBE_VALUE_1   "Vfrit text"   // a text
#define PROBE_KEY_2     "bbfrit_key"
#define PROBE_VALUE_2   90317   // a number

// Makes {"messages": [the question, `answer` (ownership passes; NULL: none)], "tools": ..., "add_generation_prompt":
// ...}.
struct json_t *frit_probe_chat(const chat_shape *shape, struct json_t *answer, bool tools, bool prompt);
// Makes a message of the assistant with `content` (NULL: as call_content says) and calls of n different tools.
struct json_t *frit_probe_calls(const chat_shape *shape, const char *content, const char *first_name, int n);
// Makes a message with reasoning and text.
struct json_t *frit_probe_thought(const char *reasoning_key);
// Renders and frees the conversation. False if the template refuses it.
bool frit_probe_render(const struct frit_chat *chat, struct json_t *conversation, frit_buf *out);
