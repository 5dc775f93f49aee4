// SPDX-License-Identifier: MIT
// Open addressing with linear probing, four sevenths full.
#include "text/vocab/index.h"

#include "base/time.h"

#include <stdlib.h>

typedef struct frit_index_bucket {
    uint64_t word;
    uint32_t len;
    int32_t id;   // -1: empty
} bucket;

enum { WORD_BYTES = 8, AHEAD = 32 };

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 29;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

// Reads up to 8 bytes as one number, unique for their length. It reads overlapping parts, so that no loop over bytes is
// needed.
static inline uint64_t load(const char *p, size_t n)
{
    if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        return low | (uint64_t)high << 32;
    }
    if (n == 0) return 0;
    const unsigned char *bytes = (const unsigned char *)p;
    return bytes[0] | (uint32_t)bytes[n / 2] << 8 | (uint32_t)bytes[n - 1] << 16;
}

static inline uint64_t hash_of(uint64_t seed, frit_str key)
{
    uint64_t h = seed ^ key.len;
    size_t n = key.len;
    const char *p = key.ptr;
    for (; n > WORD_BYTES; n -= WORD_BYTES, p += WORD_BYTES) {
        uint64_t word;
        memcpy(&word, p, WORD_BYTES);
        h = mix(h ^ word);
    }
    return mix(h ^ load(p, n));
}

uint64_t frit_hash_bytes(uint64_t seed, frit_str key)
{
    return hash_of(seed, key);
}

// The first bucket of a hash. Any number of buckets is possible, so tables are no larger than needed.
static inline size_t home(const frit_index *index, uint64_t hash)
{
    return (size_t)((hash >> 32) * (uint64_t)index->n_buckets >> 32);
}

bool frit_index_init(frit_index *index, size_t n, const frit_str *pieces, size_t stride)
{
    *index = (frit_index){.pieces = (const char *)pieces, .stride = stride};
    if (n > INT32_MAX) return false;
    size_t n_buckets = n + n / 4 * 3 + 16;
    index->buckets = n_buckets < SIZE_MAX / sizeof(bucket) ? malloc(n_buckets * sizeof *index->buckets) : NULL;
    if (!index->buckets) return false;
    for (size_t i = 0; i < n_buckets; i++) index->buckets[i].id = -1;
    index->n_buckets = n_buckets;
    // The author of a file cannot know the address and the clock.
    index->seed = mix(frit_time_ns() ^ (uint64_t)(uintptr_t)index->buckets << 16);
    return true;
}

static frit_str piece_of(const frit_index *index, int32_t id)
{
    return *(const frit_str *)(const void *)(index->pieces + (size_t)id * index->stride);
}

static inline bucket *find(const frit_index *index, frit_str key, uint64_t hash, uint64_t *word)
{
    *word = key.len <= WORD_BYTES ? load(key.ptr, key.len) : hash;
    for (size_t i = home(index, hash);; i = i + 1 < index->n_buckets ? i + 1 : 0) {
        bucket *s = &index->buckets[i];
        if (s->id < 0) return s;
        if (s->word != *word || s->len != key.len) continue;
        if (key.len <= WORD_BYTES || memcmp(piece_of(index, s->id).ptr, key.ptr, key.len) == 0) return s;
    }
}

// The first piece of the same length and hash, or -1. The piece is equal to the key unless two hashes collide.
static inline int32_t probe(const frit_index *index, size_t len, uint64_t word, uint64_t hash)
{
    for (size_t i = home(index, hash);; i = i + 1 < index->n_buckets ? i + 1 : 0) {
        const bucket *s = &index->buckets[i];
        if (s->id < 0 || (s->word == word && s->len == len)) return s->id;
    }
}

static int32_t add(frit_index *index, int32_t id, frit_str key, uint64_t hash)
{
    uint64_t word;
    bucket *s = find(index, key, hash, &word);
    if (s->id >= 0) return s->id;
    *s = (bucket){word, (uint32_t)key.len, id};
    index->n++;
    return id;
}

int32_t frit_index_add(frit_index *index, int32_t id)
{
    frit_str key = piece_of(index, id);
    return add(index, id, key, hash_of(index->seed, key));
}

// Prefetches memory that is read soon.
static inline void fetch(const void *at)
{
#ifdef __GNUC__
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

// Prefetches the memory that a look-up of this key reads first. Returns the key's hash.
static inline uint64_t touch(const frit_index *index, frit_str key)
{
    uint64_t hash = hash_of(index->seed, key);
    fetch(&index->buckets[home(index, hash)]);
    return hash;
}

size_t frit_index_add_all(frit_index *index, int32_t n, bool (*skip)(const void *ctx, int32_t id), const void *ctx,
                          int32_t *first_equal)
{
    size_t n_equal = 0;
    uint64_t hashes[AHEAD];   // of the next pieces
    for (int32_t id = 0; id < n && id < AHEAD; id++) hashes[id] = touch(index, piece_of(index, id));
    for (int32_t id = 0; id < n; id++) {
        uint64_t hash = hashes[id % AHEAD];
        if (n - id > AHEAD) hashes[id % AHEAD] = touch(index, piece_of(index, id + AHEAD));
        frit_str piece = piece_of(index, id);
        if (piece.len == 0 || (skip && skip(ctx, id))) continue;
        if (add(index, id, piece, hash) != id && n_equal++ == 0 && first_equal) *first_equal = id;
    }
    return n_equal;
}

int32_t frit_index_find(const frit_index *index, frit_str key)
{
    uint64_t word;
    if (!index->buckets || key.len > UINT32_MAX) return -1;
    return find(index, key, hash_of(index->seed, key), &word)->id;
}

// Looks up the keys of a block in rounds. Each round prefetches the memory that the next round reads: the bucket, the
// piece's address, the piece.
static void find_block(const frit_index *index, const frit_str *keys, size_t n, int32_t *ids)
{
    uint64_t hashes[AHEAD], words[AHEAD];
    for (size_t i = 0; i < n; i++) {
        words[i] = hashes[i] = touch(index, keys[i]);
        if (keys[i].len <= WORD_BYTES) words[i] = load(keys[i].ptr, keys[i].len);
    }
    for (size_t i = 0; i < n; i++) {
        ids[i] = probe(index, keys[i].len, words[i], hashes[i]);
        if (keys[i].len > WORD_BYTES && ids[i] >= 0) fetch(index->pieces + (size_t)ids[i] * index->stride);
    }
    for (size_t i = 0; i < n; i++)
        if (keys[i].len > WORD_BYTES && ids[i] >= 0) fetch(piece_of(index, ids[i]).ptr);
    for (size_t i = 0; i < n; i++) {
        bool is_same = keys[i].len <= WORD_BYTES || ids[i] < 0 ||
                       memcmp(piece_of(index, ids[i]).ptr, keys[i].ptr, keys[i].len) == 0;
        if (!is_same) ids[i] = find(index, keys[i], hashes[i], &words[i])->id;
    }
}

void frit_index_find_all(const frit_index *index, const frit_str *keys, size_t n, int32_t *ids)
{
    for (size_t begin = 0; begin < n; begin += AHEAD)
        find_block(index, keys + begin, n - begin < AHEAD ? n - begin : AHEAD, ids + begin);
}

void frit_index_deinit(frit_index *index)
{
    free(index->buckets);
    *index = (frit_index){0};
}
