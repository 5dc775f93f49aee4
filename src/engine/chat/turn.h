// SPDX-License-Identifier: MIT
// engine/chat/turn.h: a turn of a chat (frit.h). turn.c makes it and splits the answer; turn_grammar.c makes its
// grammar.
#pragma once
#include "engine/media/media.h"
#include "engine/model/model.h"
#include "text/answer/parts.h"

#include <jansson.h>

struct frit_turn {
    frit_model *model;   // holds a reference
    const frit_chat *chat;
    json_t *tools;    // NULL: no tools
    bool must_call;   // tool_choice requires a call
    char *only;       // name of the required tool; NULL: any
    bool continues, is_thinking;
    frit_buf prompt;
    frit_spans untrusted;   // parts of the prompt that come from the conversation
    frit_parts *split;
    frit_media **media;   // [n_media]: tokens of the conversation's pictures, in order
    size_t n_media;
};
