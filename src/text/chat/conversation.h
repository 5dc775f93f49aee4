// SPDX-License-Identifier: MIT
// text/chat/conversation.h: converts a conversation of OpenAI's interface to the variables of a chat template.
//
// frit_turn_new in frit.h describes valid requests. Requests are checked here and converted to the form that the
// model's template supports (text/chat/chat_shape.h).
#pragma once
#include "text/chat/chat.h"

#include <jansson.h>

typedef struct frit_conversation {
    json_t *variables;            // for frit_chat_apply_json
    json_t *tools;                // borrowed from the request; NULL: none, or tool_choice is "none"
    bool must_call;               // tool_choice requires a call
    const char *must_call_name;   // the tool to call; borrowed; NULL: any
    bool continues;               // the last message is continued: its content ends with FRIT_CONVERSATION_MARK
} frit_conversation;

// Marks the end of a message that is continued.
#define FRIT_CONVERSATION_MARK "\xee\x80\x80\xee\x80\x81"

// True if the request has tools that the model may call; a separate template may exist for them.
bool frit_conversation_has_tools(const json_t *request);
// Converts a request, which must outlive `out`. The text of FRIT_E_INVALID begins with the place: "messages[2].content:
// ...". With n_images above 0, content may have as many parts {"type": "image"}, which the template writes as
// placeholders.
frit_status frit_conversation_read(frit_conversation *out, const frit_chat *chat, const json_t *request,
                                   size_t n_images);
// Cuts a rendered prompt where the content of the continued message ends: at the last mark, because messages may
// contain marks too. `untrusted` may be NULL.
frit_status frit_conversation_cut(frit_buf *prompt, frit_spans *untrusted);
void frit_conversation_free(frit_conversation *conversation);
