// SPDX-License-Identifier: MIT
// server/api/responses_store.h: responses that clients may query or continue, in memory or in a folder. All functions
// are thread-safe.
//
// When a limit on the number or the bytes of all responses is exceeded, the oldest response of the key with most
// responses, or most bytes, is dropped, so that no key displaces the responses of another key. In a folder, responses
// older than max_age_s are dropped too. A response is visible only to callers with the API key that made it. In a
// folder (responses_disk.h) only ids are kept in memory, and responses survive a restart.
#pragma once
#include "server/api/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SERVER_MAX_STORED = 1024,   // in memory
    SERVER_MAX_STORED_BYTES = 64 << 20,
    SERVER_MAX_FILED = 1 << 18,   // in a folder
    // The most bytes and values of a conversation that later requests may continue. A short request can continue a long
    // conversation, so the limits of request bodies do not bound the work.
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
    const char *folder;   // NULL: responses are stored in memory
    size_t max_bytes;     // of all files
    int64_t max_age_s;    // age at which a file is dropped; 0: never
} server_store_options;

bool server_store_new(server_store **out, const server_store_options *options, server_problem *problem);
void server_store_free(server_store *store);
// True if responses are written to a disk, which may take long.
bool server_store_is_slow(const server_store *store);
// Stores a response and takes its texts over, also on failure. Returns false if memory or the disk is full; then no
// response of this id is stored.
bool server_store_put(server_store *store, const char *id, size_t key, server_stored *stored);
// Copies a response. Returns false if there is no response of this id and key, or memory is short.
bool server_store_get(server_store *store, const char *id, size_t key, server_stored *copy);
bool server_store_remove(server_store *store, const char *id, size_t key);
void server_stored_deinit(server_stored *stored);
