// SPDX-License-Identifier: MIT
// text/conversation.h: a conversation as OpenAI's clients write it, to the variables of a chat template.
//
// What clients may write is described at frit_turn_new in frit.h. Here it is checked, and put into the form that the
// model's template takes (text/chat_shape.h).
#pragma once
#include "text/chat.h"

#include <jansson.h>

typedef struct frit_conversation {
    json_t *variables;            // for frit_chat_apply_json
    json_t *tools;                // borrowed from the request; NULL: none, or tool_choice is "none"
    bool must_call;               // tool_choice
    const char *must_call_name;   // ... of this tool; borrowed; NULL: any
    bool continues;               // the last message goes on: its content ends with frit_conversation_mark
} frit_conversation;

// Where a message that goes on ends.
#define FRIT_CONVERSATION_MARK "\xee\x80\x80\xee\x80\x81"

// FRIT_E_INVALID with a sentence that begins with the place: "messages[2].content: ...". `request` must outlive it.
frit_status frit_conversation_read(frit_conversation *out, const frit_chat *chat, const json_t *request);
void frit_conversation_free(frit_conversation *conversation);
