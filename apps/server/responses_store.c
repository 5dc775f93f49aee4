// SPDX-License-Identifier: MIT
// A list, the newest last. It is short enough to be searched from its end.
#include "server/responses_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char id[64];
    size_t key, n_bytes;
    server_stored stored;
    struct entry *older, *newer;
} entry;

struct server_store {
    pthread_mutex_t lock;
    entry *oldest, *newest;
    size_t n, n_bytes;
};

server_store *server_store_new(void)
{
    server_store *store = calloc(1, sizeof *store);
    if (store) pthread_mutex_init(&store->lock, NULL);
    return store;
}

void server_stored_clear(server_stored *stored)
{
    free(stored->response);
    free(stored->history);
    free(stored->message);
    *stored = (server_stored){0};
}

// With the lock held, as in all functions before server_store_put.
static void drop(server_store *store, entry *e)
{
    *(e->older ? &e->older->newer : &store->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &store->newest) = e->older;
    store->n--;
    store->n_bytes -= e->n_bytes;
    server_stored_clear(&e->stored);
    free(e);
}

static entry *find(const server_store *store, const char *id, size_t key)
{
    entry *e = store->newest;
    while (e && (e->key != key || strcmp(e->id, id) != 0)) e = e->older;
    return e;
}

void server_store_put(server_store *store, const char *id, size_t key, server_stored *stored)
{
    entry *e = stored->response && stored->history && stored->message ? calloc(1, sizeof *e) : NULL;
    if (!e || strlen(id) >= sizeof e->id) {
        free(e);
        server_stored_clear(stored);
        return;
    }
    memcpy(e->id, id, strlen(id) + 1);
    e->key = key;
    e->n_bytes = strlen(stored->response) + strlen(stored->history) + strlen(stored->message) + sizeof *e;
    e->stored = *stored;
    *stored = (server_stored){0};
    pthread_mutex_lock(&store->lock);
    e->older = store->newest;
    *(store->newest ? &store->newest->newer : &store->oldest) = e;
    store->newest = e;
    store->n++;
    store->n_bytes += e->n_bytes;
    while (store->n > SERVER_MAX_STORED || store->n_bytes > SERVER_MAX_STORED_BYTES) drop(store, store->oldest);
    pthread_mutex_unlock(&store->lock);
}

bool server_store_get(server_store *store, const char *id, size_t key, server_stored *copy)
{
    *copy = (server_stored){0};
    pthread_mutex_lock(&store->lock);
    const entry *e = find(store, id, key);
    if (e) {
        *copy = (server_stored){strdup(e->stored.response), strdup(e->stored.history), strdup(e->stored.message)};
    }
    pthread_mutex_unlock(&store->lock);
    if (copy->response && copy->history && copy->message) return true;
    server_stored_clear(copy);
    return false;
}

bool server_store_remove(server_store *store, const char *id, size_t key)
{
    pthread_mutex_lock(&store->lock);
    entry *e = find(store, id, key);
    if (e) drop(store, e);
    pthread_mutex_unlock(&store->lock);
    return e != NULL;
}

void server_store_free(server_store *store)
{
    if (!store) return;
    while (store->oldest) drop(store, store->oldest);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
