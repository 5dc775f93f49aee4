// SPDX-License-Identifier: MIT
// text/chat/conversation.h: converts a conversation of OpenAI's interface to the variables of a chat template.
//
// frit_turn_new in frit.h describes valid requests. They are checked here and converted to the form that the model's
// template supports (text/chat/chat_shape.h).
#pragma once
#include "text/chat/chat.h"

#include <jansson.h>

typedef struct frit_conversation {
    json_t *variables;            // for frit_chat_apply_json
    json_t *tools;                // borrowed from the request; NULL: none, or tool_choice is "none"
    bool must_call;               // tool_choice
    const char *must_call_name;   // ... of this tool; borrowed; NULL: any
    bool continues;               // the last message is continued: its content ends with FRIT_CONVERSATION_MARK
} frit_conversation;

// The end of a message that is continued.
#define FRIT_CONVERSATION_MARK "\xee\x80\x80\xee\x80\x81"

// Whether the request has tools that the model may call, which may have a template of their own.
bool frit_conversation_has_tools(const json_t *request);
// FRIT_E_INVALID with an error that begins with the place: "messages[2].content: ...". `request` must outlive it.
frit_status frit_conversation_read(frit_conversation *out, const frit_chat *chat, const json_t *request);
// A rendered message that is continued ends where its content does: at the last mark, as others may be in the messages.
// `untrusted` may be NULL.
frit_status frit_conversation_cut(frit_buf *prompt, frit_spans *untrusted);
void frit_conversation_free(frit_conversation *conversation);
