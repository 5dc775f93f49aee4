// SPDX-License-Identifier: MIT
// server/http/replay.h: streams that outlive their connections.
//
//     POST ..., X-Conversation-Id: a    --> the job's bytes go into a replay instead of its send queue
//     (the connection breaks)               the job continues
//     GET /v1/stream/a?from=1234        --> the bytes from there on, and those that come
//     DELETE /v1/stream/a               --> the job ends
//
// A replay keeps the last 4 MiB of its stream, while its job runs and for five minutes after. Those whose jobs have
// ended have so many bytes together; the oldest go first of the key that has most. A replay is there for callers with
// the API key that it was made with. Any thread; all functions take one lock, which is taken after the worker's.
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
typedef struct server_replay server_replay;   // counted: each pointer that is kept is a share

typedef struct server_replay_reader {
    server_replay *replay;   // NULL: it reads nothing; a share
    uint64_t position;       // of the next byte, from the stream's beginning
    void (*wake)(void *ctx);
    void *ctx;
    bool sleeps;   // it was suspended, and wakes with what comes next
    struct server_replay_reader *next;
} server_replay_reader;

server_replays *server_replays_new(void);   // NULL: no memory
void server_replays_free(server_replays *replays);

// A stream of this name; it is not found before it is published. type: Content-Type, a constant; NULL: it is
// no stream, and has no readers. Gives NULL without memory.
server_replay *server_replay_new(server_replays *replays, const char *name, size_t key, const char *type);
void server_replay_publish(server_replay *replay);   // ends one of the same name and caller
server_replay *server_replays_find(server_replays *replays, const char *name, size_t key);
void server_replay_release(server_replay *replay);   // may be NULL
// What is shown of it while its job runs; takes the text over.
void server_replay_set_snapshot(server_replay *replay, char *json);
// A copy; NULL: nothing is shown.
char *server_replay_snapshot(server_replay *replay);
const char *server_replay_type(const server_replay *replay);

// The job's side. False: no memory, bytes are missing.
bool server_replay_put(server_replay *replay, const char *bytes, size_t n);
void server_replay_wake(server_replay *replay);   // its readers, after bytes were put
void server_replay_end(server_replay *replay);
// Its job is to end.
void server_replay_cancel(server_replay *replay);
bool server_replay_is_cancelled(server_replay *replay);
bool server_replay_is_running(server_replay *replay);

// The readers' side. The position after the event with this id ("id: N"). False: it is not, or no longer, there.
bool server_replay_after(server_replay *replay, uint64_t id, uint64_t *position);
// False: what is at this position is not kept any more, or is not there yet and never will be.
bool server_replay_has(server_replay *replay, uint64_t position);
// Reads from reader->position on. Takes a share.
void server_replay_join(server_replay *replay, server_replay_reader *reader);
typedef enum server_replay_result {
    SERVER_REPLAY_READ,
    SERVER_REPLAY_END,
    SERVER_REPLAY_NOTHING,   // `suspend` was called under the lock, and the reader's wake will be
    SERVER_REPLAY_LOST,      // the reader was too slow: what it would get next is not kept any more
} server_replay_result;
server_replay_result server_replay_take(server_replay_reader *reader, char *bytes, size_t size, size_t *n,
                                        void (*suspend)(void *ctx), void *ctx);
void server_replay_leave(server_replay_reader *reader);
