// SPDX-License-Identifier: MIT
// A list of replays, the newest first, each with a ring of bytes.
#include "server/http/replay.h"

#include "server/ops/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4096 };

struct server_replays {
    pthread_mutex_t lock;
    server_replay *first;
};

struct server_replay {
    server_replays *of;
    int n_refs;   // including that of the list
    char name[136];
    size_t key;
    const char *type;
    char *snapshot;
    char *data;   // ring of `capacity` bytes, a power of two; byte i of the stream is at i & (capacity - 1)
    size_t capacity;
    uint64_t base, end;   // positions of the first byte in the ring, and after the last
    double ended_at;      // monotonic seconds; 0: the job runs
    bool listed, cancelled;
    server_replay_reader *readers;
    server_replay *next;
};

server_replays *server_replays_new(void)
{
    server_replays *replays = calloc(1, sizeof *replays);
    if (replays) pthread_mutex_init(&replays->lock, NULL);
    return replays;
}

// ---------------------------------------------------------------------------------------- lock held

static void unref_replay(server_replay *replay)
{
    if (--replay->n_refs > 0) return;
    free(replay->snapshot);
    free(replay->data);
    free(replay);
}

static void unlist_replay(server_replay **at)
{
    server_replay *replay = *at;
    *at = replay->next;
    replay->listed = false;
    unref_replay(replay);
}

typedef struct total {   // of replays whose jobs ended
    size_t n, n_bytes;
} total;

// Counts the replays of a key that ended; `key` NULL: of all keys.
static total count_ended(const server_replays *replays, const size_t *key)
{
    total s = {0};
    for (const server_replay *replay = replays->first; replay; replay = replay->next) {
        if (replay->ended_at <= 0 || (key && replay->key != *key)) continue;
        s.n++;
        s.n_bytes += replay->capacity;
    }
    return s;
}

// The oldest ended replay of the key that has most ended replays, or most bytes with `by_bytes`.
static server_replay **oldest_of_most(server_replays *replays, bool by_bytes)
{
    server_replay **oldest = NULL;
    size_t most = 0;
    for (server_replay **at = &replays->first; *at; at = &(*at)->next) {   // from the newest to the oldest
        if ((*at)->ended_at <= 0) continue;
        const total s = count_ended(replays, &(*at)->key);
        const size_t has = by_bytes ? s.n_bytes : s.n;
        if (oldest && has < most) continue;
        if (oldest && has == most && (*at)->key != (*oldest)->key) continue;
        oldest = at;
        most = has;
    }
    return oldest;
}

// Frees ended replays that are too old, or too many. The key with most replays loses its oldest first.
static void trim_replays(server_replays *replays)
{
    const double now = server_now();
    for (server_replay **at = &replays->first; *at;)
        if ((*at)->ended_at > 0 && now - (*at)->ended_at > SERVER_REPLAY_SECONDS)
            unlist_replay(at);
        else
            at = &(*at)->next;
    for (total all = count_ended(replays, NULL); all.n > SERVER_MAX_REPLAYS || all.n_bytes > SERVER_REPLAYS_BYTES;
         all = count_ended(replays, NULL))
        unlist_replay(oldest_of_most(replays, all.n <= SERVER_MAX_REPLAYS));
}

static server_replay **find_replay(server_replays *replays, const char *name, size_t key)
{
    server_replay **at = &replays->first;
    while (*at && ((*at)->key != key || strcmp((*at)->name, name) != 0)) at = &(*at)->next;
    return at;
}

static void wake_all(server_replay *replay)
{
    for (server_replay_reader *reader = replay->readers; reader; reader = reader->next) {
        if (!reader->sleeps) continue;
        reader->sleeps = false;
        reader->wake(reader->ctx);
    }
}

// Copies bytes between positions of the stream and a buffer.
static void copy_bytes(const server_replay *replay, uint64_t from, char *bytes, size_t n)
{
    const size_t at = (size_t)from & (replay->capacity - 1);
    const size_t first = replay->capacity - at < n ? replay->capacity - at : n;
    memcpy(bytes, replay->data + at, first);
    memcpy(bytes + first, replay->data, n - first);
}

static bool grow_ring(server_replay *replay, size_t n)
{
    const size_t kept = (size_t)(replay->end - replay->base);
    size_t capacity = replay->capacity ? replay->capacity : FIRST_CAPACITY;
    while (capacity < kept + n && capacity < SERVER_REPLAY_BYTES) capacity *= 2;
    if (capacity == replay->capacity) return true;
    char *data = malloc(capacity);
    if (!data) return false;
    const server_replay larger = {.data = data, .capacity = capacity};
    for (uint64_t i = replay->base; i < replay->end;) {   // in pieces that do not wrap in either ring
        const size_t at = (size_t)i & (capacity - 1), from = (size_t)i & (replay->capacity - 1);
        size_t piece = (size_t)(replay->end - i);
        if (piece > capacity - at) piece = capacity - at;
        if (piece > replay->capacity - from) piece = replay->capacity - from;
        memcpy(larger.data + at, replay->data + from, piece);
        i += piece;
    }
    free(replay->data);
    replay->data = data;
    replay->capacity = capacity;
    return true;
}

// ---------------------------------------------------------------------------------------- the list

void server_replays_free(server_replays *replays)
{
    if (!replays) return;
    while (replays->first) unlist_replay(&replays->first);
    pthread_mutex_destroy(&replays->lock);
    free(replays);
}

server_replay *server_replay_new(server_replays *replays, const char *name, size_t key, const char *type)
{
    server_replay *replay = calloc(1, sizeof *replay);
    if (!replay) return NULL;
    replay->of = replays;
    replay->n_refs = 1;
    snprintf(replay->name, sizeof replay->name, "%s", name);
    replay->key = key;
    replay->type = type;
    return replay;
}

void server_replay_publish(server_replay *replay)
{
    server_replays *replays = replay->of;
    pthread_mutex_lock(&replays->lock);
    server_replay **old = find_replay(replays, replay->name, replay->key);
    if (*old) {
        (*old)->cancelled = true;
        unlist_replay(old);
    }
    trim_replays(replays);
    replay->listed = true;
    replay->n_refs++;
    replay->next = replays->first;
    replays->first = replay;
    pthread_mutex_unlock(&replays->lock);
}

server_replay *server_replays_find(server_replays *replays, const char *name, size_t key)
{
    pthread_mutex_lock(&replays->lock);
    trim_replays(replays);
    server_replay *replay = *find_replay(replays, name, key);
    if (replay) replay->n_refs++;
    pthread_mutex_unlock(&replays->lock);
    return replay;
}

void server_replay_unref(server_replay *replay)
{
    if (!replay) return;
    pthread_mutex_t *lock = &replay->of->lock;
    pthread_mutex_lock(lock);
    unref_replay(replay);
    pthread_mutex_unlock(lock);
}

void server_replay_set_snapshot(server_replay *replay, char *json)
{
    pthread_mutex_lock(&replay->of->lock);
    free(replay->snapshot);
    replay->snapshot = json;
    pthread_mutex_unlock(&replay->of->lock);
}

char *server_replay_snapshot(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    char *text = replay->snapshot ? strdup(replay->snapshot) : NULL;
    pthread_mutex_unlock(&replay->of->lock);
    return text;
}

const char *server_replay_type(const server_replay *replay)
{
    return replay->type;
}

// ---------------------------------------------------------------------------------------- the job's side

bool server_replay_put(server_replay *replay, const char *bytes, size_t n)
{
    pthread_mutex_lock(&replay->of->lock);
    const bool good = grow_ring(replay, n);
    if (good && n > replay->capacity) {   // of an event that is longer than the ring, the end is kept
        replay->base = replay->end += n - replay->capacity;
        bytes += n - replay->capacity;
        n = replay->capacity;
    }
    if (good) {
        const size_t at = (size_t)replay->end & (replay->capacity - 1);
        const size_t first = replay->capacity - at < n ? replay->capacity - at : n;
        memcpy(replay->data + at, bytes, first);
        memcpy(replay->data, bytes + first, n - first);
        replay->end += n;
        if (replay->end - replay->base > replay->capacity) replay->base = replay->end - replay->capacity;
    }
    pthread_mutex_unlock(&replay->of->lock);
    return good;
}

void server_replay_wake(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    wake_all(replay);
    pthread_mutex_unlock(&replay->of->lock);
}

void server_replay_end(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    if (replay->ended_at <= 0) replay->ended_at = server_now();
    wake_all(replay);
    pthread_mutex_unlock(&replay->of->lock);
}

void server_replay_cancel(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    replay->cancelled = true;
    pthread_mutex_unlock(&replay->of->lock);
}

bool server_replay_is_cancelled(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    const bool cancelled = replay->cancelled;
    pthread_mutex_unlock(&replay->of->lock);
    return cancelled;
}

bool server_replay_is_running(server_replay *replay)
{
    pthread_mutex_lock(&replay->of->lock);
    const bool runs = replay->ended_at <= 0;
    pthread_mutex_unlock(&replay->of->lock);
    return runs;
}

// ---------------------------------------------------------------------------------------- readers

// Events have "id: N" in a line of their own, and JSON has no line feeds; the ring is searched as one text.
bool server_replay_after(server_replay *replay, uint64_t id, uint64_t *position)
{
    char line[48];
    pthread_mutex_lock(&replay->of->lock);
    const size_t n = (size_t)(replay->end - replay->base);
    char *text = malloc(n + 2);
    const char *found = NULL, *end = NULL;
    if (text && n > 0) {
        text[0] = '\n';
        copy_bytes(replay, replay->base, text + 1, n);
        text[n + 1] = 0;
        snprintf(line, sizeof line, "\nid: %llu\n", (unsigned long long)id);
        found = strstr(text, line);
        end = found ? strstr(found, "\n\n") : NULL;
        if (end) *position = replay->base + (uint64_t)(end + 2 - (text + 1));
    }
    free(text);
    pthread_mutex_unlock(&replay->of->lock);
    return end != NULL;
}

bool server_replay_has(server_replay *replay, uint64_t position)
{
    pthread_mutex_lock(&replay->of->lock);
    const bool has = position >= replay->base && position <= replay->end;
    pthread_mutex_unlock(&replay->of->lock);
    return has;
}

void server_replay_join(server_replay *replay, server_replay_reader *reader)
{
    pthread_mutex_lock(&replay->of->lock);
    replay->n_refs++;
    reader->replay = replay;
    reader->next = replay->readers;
    replay->readers = reader;
    pthread_mutex_unlock(&replay->of->lock);
}

server_replay_result server_replay_take(server_replay_reader *reader, char *bytes, size_t size, size_t *n,
                                        void (*suspend)(void *ctx), void *ctx)
{
    server_replay *replay = reader->replay;
    server_replay_result result = SERVER_REPLAY_READ;
    pthread_mutex_lock(&replay->of->lock);
    *n = 0;
    if (reader->position < replay->base) {
        result = SERVER_REPLAY_LOST;
    } else if (reader->position < replay->end) {
        const uint64_t left = replay->end - reader->position;
        *n = left < size ? (size_t)left : size;
        copy_bytes(replay, reader->position, bytes, *n);
        reader->position += *n;
    } else if (replay->ended_at > 0) {
        result = SERVER_REPLAY_END;
    } else {
        result = SERVER_REPLAY_NOTHING;
        reader->sleeps = true;
        suspend(ctx);
    }
    pthread_mutex_unlock(&replay->of->lock);
    return result;
}

void server_replay_leave(server_replay_reader *reader)
{
    server_replay *replay = reader->replay;
    if (!replay) return;
    pthread_mutex_t *lock = &replay->of->lock;
    pthread_mutex_lock(lock);
    server_replay_reader **at = &replay->readers;
    while (*at != reader) at = &(*at)->next;
    *at = reader->next;
    reader->replay = NULL;
    unref_replay(replay);
    pthread_mutex_unlock(lock);
}
