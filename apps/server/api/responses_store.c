// SPDX-License-Identifier: MIT
// Stored responses: a list, the newest last, with a hash table by id.
#include "server/api/responses_store.h"

#include "common/grow.h"
#include "frit.h"
#include "server/api/responses_disk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_BUCKETS = 1 << 12 };

typedef struct entry {
    char id[64];
    size_t key, n_bytes;
    int64_t created;
    server_stored stored;   // all NULL if the texts are in a file
    struct entry *older, *newer, *next;
} entry;

typedef struct owner {   // the number and size of the entries of a key
    size_t key, n, n_bytes;
} owner;

struct server_store {
    pthread_mutex_t lock;
    server_store_options options;
    server_disk *disk;   // NULL: responses are stored in memory
    entry *oldest, *newest, *buckets[N_BUCKETS];
    size_t n, n_bytes;
    owner *owners;   // keys without entries have no owner
    size_t n_owners, owners_capacity;
    bool warned;   // the last write failed, and a warning was printed
};

void server_stored_deinit(server_stored *stored)
{
    free(stored->response);
    free(stored->history);
    free(stored->message);
    *stored = (server_stored){0};
}

bool server_store_is_slow(const server_store *store)
{
    return store->disk != NULL;
}

// ---------------------------------------------------------------------------------------- the list, lock held

static size_t bucket_of(const char *id)
{
    uint32_t hash = 2166136261u;
    for (; *id; id++) hash = (hash ^ (unsigned char)*id) * 16777619u;
    return hash % N_BUCKETS;
}

static owner *find_owner(const server_store *store, size_t key)
{
    for (size_t i = 0; i < store->n_owners; i++)
        if (store->owners[i].key == key) return &store->owners[i];
    return NULL;
}

// Adds an entry to the counts of its key. Does nothing if memory is short: such entries are dropped last.
static void count_in(server_store *store, const entry *e)
{
    owner *o = find_owner(store, e->key);
    if (!o && !APP_GROW(store->owners, store->owners_capacity, store->n_owners + 1)) return;
    if (!o) *(o = &store->owners[store->n_owners++]) = (owner){.key = e->key};
    o->n++;
    o->n_bytes += e->n_bytes;
}

static void count_out(server_store *store, const entry *e)
{
    owner *o = find_owner(store, e->key);
    if (!o) return;
    o->n--;
    o->n_bytes -= o->n_bytes < e->n_bytes ? o->n_bytes : e->n_bytes;
    if (o->n == 0) *o = store->owners[--store->n_owners];
}

static void drop_entry(server_store *store, entry *e, bool with_file)
{
    count_out(store, e);
    *(e->older ? &e->older->newer : &store->oldest) = e->newer;
    *(e->newer ? &e->newer->older : &store->newest) = e->older;
    entry **at = &store->buckets[bucket_of(e->id)];
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    store->n--;
    store->n_bytes -= e->n_bytes;
    if (store->disk && with_file) server_disk_remove(store->disk, e->id);
    server_stored_deinit(&e->stored);
    free(e);
}

static void add_entry(server_store *store, entry *e)
{
    entry *after = store->newest;   // files are listed in any order
    while (after && after->created > e->created) after = after->older;
    e->older = after;
    e->newer = after ? after->newer : store->oldest;
    *(e->older ? &e->older->newer : &store->oldest) = e;
    *(e->newer ? &e->newer->older : &store->newest) = e;
    entry **bucket = &store->buckets[bucket_of(e->id)];
    e->next = *bucket;
    *bucket = e;
    store->n++;
    store->n_bytes += e->n_bytes;
    count_in(store, e);
}

// The oldest entry of the key with most entries or, with by_bytes, with most bytes.
static entry *oldest_of_most(const server_store *store, bool by_bytes)
{
    const owner *most = NULL;
    for (size_t i = 0; i < store->n_owners; i++) {
        const owner *o = &store->owners[i];
        if (!most || (by_bytes ? o->n_bytes > most->n_bytes : o->n > most->n)) most = o;
    }
    entry *e = store->oldest;
    while (e && most && e->key != most->key) e = e->newer;
    return e ? e : store->oldest;
}

static void drop_beyond_limits(server_store *store, int64_t now)
{
    const size_t most = store->disk ? SERVER_MAX_FILED : SERVER_MAX_STORED;
    const int64_t age = store->disk ? store->options.max_age_s : 0;
    while (age > 0 && store->oldest && now - store->oldest->created > age) drop_entry(store, store->oldest, true);
    while (store->oldest && (store->n > most || store->n_bytes > store->options.max_bytes))
        drop_entry(store, oldest_of_most(store, store->n <= most), true);
}

static entry *find_entry(const server_store *store, const char *id, size_t key)
{
    entry *e = store->buckets[bucket_of(id)];
    while (e && (e->key != key || strcmp(e->id, id) != 0)) e = e->next;
    return e;
}

// ---------------------------------------------------------------------------------------- life

// The files of a folder, collected first so that they can be sorted by age.
typedef struct listing {
    server_disk_entry *items;
    size_t n, capacity;
} listing;

static void note_file(void *ctx, const server_disk_entry *found)
{
    listing *all = ctx;
    if (APP_GROW(all->items, all->capacity, all->n + 1)) all->items[all->n++] = *found;
}

static int by_age(const void *a, const void *b)
{
    const int64_t x = ((const server_disk_entry *)a)->created, y = ((const server_disk_entry *)b)->created;
    return (x > y) - (x < y);
}

static void list_files(server_store *store)
{
    listing all = {0};
    server_disk_list(store->disk, note_file, &all);
    if (all.n > 0) qsort(all.items, all.n, sizeof *all.items, by_age);
    for (size_t i = 0; i < all.n; i++) {
        entry *e = calloc(1, sizeof *e);
        if (!e) break;
        memcpy(e->id, all.items[i].id, sizeof e->id);
        e->key = all.items[i].key;
        e->n_bytes = all.items[i].n_bytes;
        e->created = all.items[i].created;
        add_entry(store, e);
    }
    free(all.items);
    drop_beyond_limits(store, (int64_t)time(NULL));
}

bool server_store_new(server_store **out, const server_store_options *options, server_problem *problem)
{
    *out = NULL;
    server_store *store = calloc(1, sizeof *store);
    if (!store) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    store->options = *options;
    if (!options->folder) store->options.max_bytes = SERVER_MAX_STORED_BYTES;
    if (options->folder && !server_disk_open(&store->disk, options->folder, problem)) {
        free(store);
        return false;
    }
    pthread_mutex_init(&store->lock, NULL);
    if (store->disk) list_files(store);
    *out = store;
    return true;
}

void server_store_free(server_store *store)
{
    if (!store) return;
    while (store->oldest) drop_entry(store, store->oldest, false);
    free(store->owners);
    server_disk_close(store->disk);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

// ---------------------------------------------------------------------------------------- responses

// Writes the file of an entry without holding the lock, so that other threads can use the store. Only the first of
// consecutive failures prints a warning.
static bool write_file(server_store *store, entry *e)
{
    server_disk_entry file = {.key = e->key, .created = e->created};
    char reason[128];
    memcpy(file.id, e->id, sizeof file.id);
    const bool good = server_disk_write(store->disk, &file, &e->stored, reason);
    e->n_bytes = file.n_bytes;
    server_stored_deinit(&e->stored);
    pthread_mutex_lock(&store->lock);
    const bool warns = !good && !store->warned;
    store->warned = !good;
    pthread_mutex_unlock(&store->lock);
    if (warns) fprintf(stderr, "frit: warning: responses are not stored: %s: %s\n", store->options.folder, reason);
    return good;
}

bool server_store_put(server_store *store, const char *id, size_t key, server_stored *stored)
{
    entry *e = stored->response && stored->history && stored->message ? calloc(1, sizeof *e) : NULL;
    if (!e || strlen(id) >= sizeof e->id) {
        free(e);
        server_stored_deinit(stored);
        return false;
    }
    memcpy(e->id, id, strlen(id) + 1);
    e->key = key;
    e->created = (int64_t)time(NULL);
    e->n_bytes = strlen(stored->response) + strlen(stored->history) + strlen(stored->message) + sizeof *e;
    e->stored = *stored;
    *stored = (server_stored){0};
    if (store->disk && !write_file(store, e)) {
        free(e);
        return false;
    }
    pthread_mutex_lock(&store->lock);
    add_entry(store, e);
    drop_beyond_limits(store, e->created);
    pthread_mutex_unlock(&store->lock);
    return true;
}

// Drops an entry whose file cannot be read. The file stays.
static void drop_named(server_store *store, const char *id, size_t key)
{
    pthread_mutex_lock(&store->lock);
    entry *e = find_entry(store, id, key);
    if (e) drop_entry(store, e, false);
    pthread_mutex_unlock(&store->lock);
}

bool server_store_get(server_store *store, const char *id, size_t key, server_stored *copy)
{
    *copy = (server_stored){0};
    pthread_mutex_lock(&store->lock);
    drop_beyond_limits(store, (int64_t)time(NULL));
    const entry *e = find_entry(store, id, key);
    const bool is_filed = e && store->disk;
    if (e && !is_filed) {
        *copy = (server_stored){strdup(e->stored.response), strdup(e->stored.history), strdup(e->stored.message)};
    }
    pthread_mutex_unlock(&store->lock);
    if (is_filed && server_disk_read(store->disk, id, copy)) return true;
    if (is_filed) drop_named(store, id, key);
    if (copy->response && copy->history && copy->message) return true;
    server_stored_deinit(copy);
    return false;
}

bool server_store_remove(server_store *store, const char *id, size_t key)
{
    pthread_mutex_lock(&store->lock);
    entry *e = find_entry(store, id, key);
    if (e) drop_entry(store, e, true);
    pthread_mutex_unlock(&store->lock);
    return e != NULL;
}
