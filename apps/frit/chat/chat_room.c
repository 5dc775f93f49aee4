// SPDX-License-Identifier: MIT
// Makes room in the context. The conversation keeps all messages; the model sees the system message and the newest
// turns. A turn is a message of the user with all messages up to the next one.
#include "frit/chat/chat.h"

#include <stdlib.h>
#include <string.h>

// Counts the messages before the first turn, which are never removed.
static size_t count_fixed(const chat *c)
{
    const char *role = chat_talk_role(c, 0);
    return strcmp(role, "system") == 0 || strcmp(role, "developer") == 0;
}

json_t *chat_room_messages(const chat *c)
{
    if (c->n_left_out == 0) return json_incref(c->messages);
    json_t *seen = json_array();
    for (size_t i = 0; seen && i < json_array_size(c->messages); i++)
        if (i < count_fixed(c) || i >= count_fixed(c) + c->n_left_out)
            json_array_append(seen, json_array_get(c->messages, i));
    return seen;
}

// Removes the oldest turn. Returns false if there is only one.
static bool leave_out_one(chat *c)
{
    const size_t first = count_fixed(c) + c->n_left_out;
    for (size_t i = first + 1; i < json_array_size(c->messages); i++) {
        if (strcmp(chat_talk_role(c, i), "user") != 0) continue;
        c->n_left_out = i - count_fixed(c);
        c->n_turns_unreported++;
        return true;
    }
    return false;
}

frit_status chat_room_make(chat *c, size_t n_more, frit_turn **turn, frit_token **tokens, size_t *n)
{
    frit_engine_info info;
    frit_engine_get_info(c->engine, &info);
    const size_t n_ctx = (size_t)info.n_ctx, n_left_out = c->n_left_out;
    // Once a turn has to go, turns go until half of the context is free, so that the next answers need not drop one
    // each.
    for (size_t room = n_ctx;; room = n_ctx / 2) {
        *tokens = NULL;
        if (!(*turn = chat_talk_turn(c))) return FRIT_E_INVALID;
        *tokens = cli_turn_tokens(*turn, n);
        if (!*tokens) return FRIT_E_INVALID;
        const bool fits = *n + n_more < room;
        if (fits || c->keeps_all || !leave_out_one(c)) break;
        frit_turn_free(*turn);
        free(*tokens);
    }
    if (*n + n_more < n_ctx) return FRIT_OK;
    c->n_left_out = n_left_out;   // removing turns did not help
    c->n_turns_unreported = 0;
    return FRIT_E_LIMIT;
}

void chat_room_say(chat *c)
{
    if (c->n_turns_unreported > 0)
        cli_note(c->common,
                 "the context was full: the model no longer sees the oldest %zu messages "
                 "(--no-context-shift ends answers instead)",
                 c->n_left_out);
    c->n_turns_unreported = 0;
}
