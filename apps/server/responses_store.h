// SPDX-License-Identifier: MIT
// server/responses_store.h: responses that clients may ask for again or continue, in memory. Any thread.
//
// The oldest go first once there are more than so many, or once they have more than so many bytes together. A response
// is there for callers with the API key that it was made with.
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { SERVER_MAX_STORED = 1024, SERVER_MAX_STORED_BYTES = 64 << 20 };

typedef struct server_store server_store;

// JSON texts, owned by the caller.
typedef struct server_stored {
    char *response;   // the object that clients get
    char *history;    // the list of messages that it answered
    char *message;    // the answer, a message of the assistant
} server_stored;

server_store *server_store_new(void);   // NULL: no memory
void server_store_free(server_store *store);
// Takes the texts over, in each case; without memory nothing is kept.
void server_store_put(server_store *store, const char *id, size_t key, server_stored *stored);
// Copies; false: nothing of that id and key, or no memory.
bool server_store_get(server_store *store, const char *id, size_t key, server_stored *copy);
bool server_store_remove(server_store *store, const char *id, size_t key);
void server_stored_clear(server_stored *stored);
