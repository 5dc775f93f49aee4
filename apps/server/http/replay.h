// SPDX-License-Identifier: MIT
// server/http/replay.h: streams that outlive their connections.
//
//     POST ..., X-Conversation-Id: a    --> the job's bytes go into a replay instead of its send queue
//     (the connection breaks)               the job continues
//     GET /v1/stream/a?from=1234        --> the bytes from there on, and those that come
//     DELETE /v1/stream/a               --> the job ends
//
// A replay keeps the last 4 MiB of its stream, while its job runs and for five minutes after. Replays whose jobs ended
// have SERVER_REPLAYS_BYTES together; above that the oldest replay of the key with most bytes is freed. Only callers
// with the API key of the first request find a replay. The functions may be called on any thread; they take one lock,
// which is taken after the worker's.
#pragma once
#include "server/api/problem.h"

#include <stdint.h>

enum {
    SERVER_MAX_NAME = 128,
    SERVER_REPLAY_BYTES = 4 << 20,
    SERVER_REPLAYS_BYTES = 64 << 20,
    SERVER_MAX_REPLAYS = 256,
    SERVER_REPLAY_SECONDS = 300,
};

typedef struct server_replays server_replays;
typedef struct server_replay server_replay;   // reference-counted

typedef struct server_replay_reader {
    server_replay *replay;   // a reference; NULL: nothing is read
    uint64_t position;       // of the next byte in the stream
    void (*wake)(void *ctx);
    void *ctx;
    bool sleeps;   // the reader was suspended; new bytes wake it
    struct server_replay_reader *next;
} server_replay_reader;

server_replays *server_replays_new(void);   // NULL: no memory
void server_replays_free(server_replays *replays);

// A replay that is found once it is published. `type`: Content-Type, a constant; NULL: a replay without readers, for a
// job that is no stream. NULL: no memory.
server_replay *server_replay_new(server_replays *replays, const char *name, size_t key, const char *type);
void server_replay_publish(server_replay *replay);   // ends an older replay with the same name and key
server_replay *server_replays_find(server_replays *replays, const char *name, size_t key);
void server_replay_unref(server_replay *replay);   // may be NULL
// Sets the JSON that is shown while the job runs; takes over the text.
void server_replay_set_snapshot(server_replay *replay, char *json);
// A copy of the snapshot; NULL: none.
char *server_replay_snapshot(server_replay *replay);
const char *server_replay_type(const server_replay *replay);

// For the job. Appends bytes. False: no memory, and bytes are missing.
bool server_replay_put(server_replay *replay, const char *bytes, size_t n);
void server_replay_wake(server_replay *replay);   // wakes the readers, after bytes were put
void server_replay_end(server_replay *replay);
// Asks the job to end.
void server_replay_cancel(server_replay *replay);
bool server_replay_is_cancelled(server_replay *replay);
bool server_replay_is_running(server_replay *replay);

// For readers. The position after the event with this id ("id: N"). False: the event is not in the replay.
bool server_replay_after(server_replay *replay, uint64_t id, uint64_t *position);
// True if bytes from this position on are, or will be, in the replay.
bool server_replay_has(server_replay *replay, uint64_t position);
// Begins to read at reader->position. The reader gets a reference.
void server_replay_join(server_replay *replay, server_replay_reader *reader);
typedef enum server_replay_result {
    SERVER_REPLAY_READ,
    SERVER_REPLAY_END,
    SERVER_REPLAY_NOTHING,   // `suspend` was called under the lock; reader->wake is called later
    SERVER_REPLAY_LOST,      // the reader was too slow: the next bytes are not kept any more
} server_replay_result;
server_replay_result server_replay_take(server_replay_reader *reader, char *bytes, size_t size, size_t *n,
                                        void (*suspend)(void *ctx), void *ctx);
void server_replay_leave(server_replay_reader *reader);
