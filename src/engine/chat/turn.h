// SPDX-License-Identifier: MIT
// engine/chat/turn.h: a turn of a chat (frit.h), which turn.c makes and takes apart, and turn_grammar.c constrains.
#pragma once
#include "engine/model/model.h"
#include "text/answer/parts.h"

#include <jansson.h>

struct frit_turn {
    frit_model *model;   // kept alive
    const frit_chat *chat;
    json_t *tools;    // NULL: none
    bool must_call;   // tool_choice
    char *only;       // ... of this tool; NULL: any
    bool continues, is_thinking;
    frit_buf prompt;
    frit_spans untrusted;   // of the prompt: what comes from the conversation
    frit_parts *split;
};
