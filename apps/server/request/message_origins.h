// SPDX-License-Identifier: MIT
// server/request/message_origins.h: where the messages of a conversation come from, so that errors name the fields of
// the request.
//
// frit_turn_new reads conversations in OpenAI's form. What is wrong in one that was made of another protocol's request
// is in a place of that form, "messages[1].tool_calls[0].function.arguments"; the caller has sent "input[1].arguments".
#pragma once
#include <jansson.h>
#include <stddef.h>

enum { SERVER_NO_PLACE = -1 };

typedef struct server_origin {
    size_t first, n;    // messages
    int call;           // of the message; or SERVER_NO_PLACE: the message itself
    const char *list;   // the field, a constant
    int item, part;     // "input[item]", "messages[item].content[part]"; or SERVER_NO_PLACE
} server_origin;

typedef struct server_origins {
    server_origin *items;
    size_t n, capacity;
    // Constants of the protocol. list: its name for "messages". ends: pairs of the end of a place in OpenAI's form and
    // the protocol's name for that end; a NULL ends the pairs.
    const char *list;
    const char *const (*ends)[2];
} server_origins;

// NULL: no memory; all functions below take it, and places stay as they are.
server_origins *server_origins_new(const char *list, const char *const (*ends)[2]);
void server_origins_free(server_origins *origins);
// Without memory the place stays unknown.
void server_origins_add(server_origins *origins, server_origin origin);
// n messages come in between, before the at-th one; of the field `list`. Or the n from `at` on go.
void server_origins_insert(server_origins *origins, size_t at, size_t n, const char *list);
void server_origins_remove(server_origins *origins, size_t at, size_t n);
// What the caller calls a place of the conversation.
void server_origins_name(const server_origins *origins, const char *place, char *name, size_t size);
