// SPDX-License-Identifier: MIT
// server/request/message_origins.h: which field of the request each message of a conversation was made from, so that
// errors name the fields that the client sent.
//
// frit_turn_new reads conversations in OpenAI's form, and its errors name fields of this form, such as
// "messages[1].tool_calls[0].function.arguments". If another protocol's request was converted to the form, the client
// sent another field, such as "input[1].arguments".
#pragma once
#include <jansson.h>
#include <stddef.h>

enum { SERVER_NO_INDEX = -1 };

typedef struct server_origin {
    size_t first, n;    // the messages in OpenAI's form
    int call;           // index of a tool call of the message; SERVER_NO_INDEX: the whole message
    const char *list;   // the request's field, a constant
    int item, part;     // indices in "input[item]", "messages[item].content[part]"; or SERVER_NO_INDEX
} server_origin;

typedef struct server_origins {
    server_origin *items;
    size_t n, capacity;
    // Constants of the protocol. list: its name for "messages". ends: pairs of the end of a field's name in OpenAI's
    // form and of the protocol's end for it; a pair of NULL ends the list.
    const char *list;
    const char *const (*ends)[2];
} server_origins;

// Returns NULL if memory is short. All functions below accept NULL and then leave the names of fields as they are.
server_origins *server_origins_new(const char *list, const char *const (*ends)[2]);
void server_origins_free(server_origins *origins);
// Adds an origin. If memory is short, errors about its messages have no field of the request.
void server_origins_add(server_origins *origins, server_origin origin);
// Tells that n messages were inserted before message `at`, from the field `list`, or that n messages from `at` on were
// removed.
void server_origins_insert(server_origins *origins, size_t at, size_t n, const char *list);
void server_origins_remove(server_origins *origins, size_t at, size_t n);
// Writes the request's name for a field of the conversation.
void server_origins_name(const server_origins *origins, const char *field, char *name, size_t size);
