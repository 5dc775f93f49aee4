// SPDX-License-Identifier: MIT
// Open addressing with linear probing, at most two thirds full.
#include "text/index.h"

#include "base/time.h"

#include <stdlib.h>

typedef struct frit_index_slot {
    uint64_t word;
    uint32_t len;
    int32_t id;   // -1: empty
} slot;

enum { WORD_BYTES = 8, AHEAD = 16 };

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 29;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

// 1 to 8 bytes as one number. Two overlapping halves are read, so that no loop over bytes is needed.
static uint64_t load(const char *p, size_t n)
{
    uint64_t word = 0;
    if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        return low | (uint64_t)high << 32;
    }
    for (size_t i = 0; i < n; i++) word |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return word;
}

uint64_t frit_hash_bytes(uint64_t seed, frit_str key)
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

bool frit_index_init(frit_index *index, size_t n, const frit_str *pieces, size_t stride)
{
    *index = (frit_index){.pieces = (const char *)pieces, .stride = stride};
    size_t capacity = 16;
    while (capacity / 3 * 2 <= n) {
        if (capacity > SIZE_MAX / 4 / sizeof(slot)) return false;
        capacity *= 2;
    }
    index->slots = malloc(capacity * sizeof *index->slots);
    if (!index->slots) return false;
    for (size_t i = 0; i < capacity; i++) index->slots[i].id = -1;
    index->mask = capacity - 1;
    // Address and clock are not known to whoever wrote the file.
    index->seed = mix(frit_time_ns() ^ (uint64_t)(uintptr_t)index->slots << 16);
    return true;
}

static frit_str piece_of(const frit_index *index, int32_t id)
{
    return *(const frit_str *)(const void *)(index->pieces + (size_t)id * index->stride);
}

static slot *find(const frit_index *index, frit_str key, uint64_t hash, uint64_t *word)
{
    *word = key.len <= WORD_BYTES ? load(key.ptr, key.len) : hash;
    for (size_t i = hash & index->mask;; i = (i + 1) & index->mask) {
        slot *s = &index->slots[i];
        if (s->id < 0) return s;
        if (s->word != *word || s->len != key.len) continue;
        if (key.len <= WORD_BYTES || memcmp(piece_of(index, s->id).ptr, key.ptr, key.len) == 0) return s;
    }
}

static int32_t add(frit_index *index, int32_t id, frit_str key, uint64_t hash)
{
    uint64_t word;
    slot *s = find(index, key, hash, &word);
    if (s->id >= 0) return s->id;
    *s = (slot){word, (uint32_t)key.len, id};
    index->n++;
    return id;
}

int32_t frit_index_add(frit_index *index, int32_t id)
{
    frit_str key = piece_of(index, id);
    return add(index, id, key, frit_hash_bytes(index->seed, key));
}

uint64_t frit_index_touch(const frit_index *index, frit_str key)
{
    uint64_t hash = frit_hash_bytes(index->seed, key);
#ifdef __GNUC__
    __builtin_prefetch(&index->slots[hash & index->mask]);
#endif
    return hash;
}

size_t frit_index_add_all(frit_index *index, int32_t n, bool (*skip)(const void *ctx, int32_t id), const void *ctx,
                          int32_t *first_equal)
{
    size_t n_equal = 0;
    uint64_t hashes[AHEAD];   // of the next pieces
    for (int32_t id = 0; id < n && id < AHEAD; id++) hashes[id] = frit_index_touch(index, piece_of(index, id));
    for (int32_t id = 0; id < n; id++) {
        uint64_t hash = hashes[id % AHEAD];
        if (n - id > AHEAD) hashes[id % AHEAD] = frit_index_touch(index, piece_of(index, id + AHEAD));
        frit_str piece = piece_of(index, id);
        if (piece.len == 0 || (skip && skip(ctx, id))) continue;
        if (add(index, id, piece, hash) != id && n_equal++ == 0 && first_equal) *first_equal = id;
    }
    return n_equal;
}

int32_t frit_index_find(const frit_index *index, frit_str key)
{
    if (!index->slots || key.len > UINT32_MAX) return -1;
    return frit_index_find_touched(index, key, frit_hash_bytes(index->seed, key));
}

int32_t frit_index_find_touched(const frit_index *index, frit_str key, uint64_t hash)
{
    uint64_t word;
    return find(index, key, hash, &word)->id;
}

void frit_index_free(frit_index *index)
{
    free(index->slots);
    *index = (frit_index){0};
}
