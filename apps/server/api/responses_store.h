// SPDX-License-Identifier: MIT
// server/api/responses_store.h: responses that clients may ask for again or continue, in memory or in a folder. Any
// thread.
//
// Once there are more than so many, or once they have more than so many bytes together, the oldest go first of the key
// that has most of them, so that no key takes the place of another; and in a folder those that are so old. A response
// is there for callers with the API key that it was made with. In a folder (responses_disk.h) memory has only their
// names, and what was stored is there after a restart.
#pragma once
#include "server/api/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SERVER_MAX_STORED = 1024,   // in memory
    SERVER_MAX_STORED_BYTES = 64 << 20,
    SERVER_MAX_FILED = 1 << 18,   // in a folder
    // The limits of a conversation that later requests may continue. A short request reads all of its conversation, so
    // the limits of request bodies do not bound that work.
    SERVER_MAX_HISTORY_BYTES = 16 << 20,
    SERVER_MAX_HISTORY_VALUES = 1 << 18,
};

typedef struct server_store server_store;

// JSON texts, owned by the caller.
typedef struct server_stored {
    char *response;   // the object that clients get
    char *history;    // the list of messages that it answered
    char *message;    // the answer, a message of the assistant
} server_stored;

typedef struct server_store_options {
    const char *folder;   // NULL: memory
    size_t max_bytes;     // of files
    int64_t max_age_s;    // of files; 0: any
} server_store_options;

bool server_store_new(server_store **out, const server_store_options *options, server_problem *problem);
void server_store_free(server_store *store);
// It writes to a disk, which takes long.
bool server_store_is_slow(const server_store *store);
// Takes the texts over, in each case. False: there is no memory, or the disk is full; then nothing of that id is there.
bool server_store_put(server_store *store, const char *id, size_t key, server_stored *stored);
// Copies; false: nothing of that id and key, or no memory.
bool server_store_get(server_store *store, const char *id, size_t key, server_stored *copy);
bool server_store_remove(server_store *store, const char *id, size_t key);
void server_stored_clear(server_stored *stored);
