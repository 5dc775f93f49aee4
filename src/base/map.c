// SPDX-License-Identifier: MIT
// Open addressing with linear probing, at most half full; the full hash is kept to make misses cheap.
#include "base/map.h"

#include <stdlib.h>

typedef struct frit_map_slot {
    const char *key;   // NULL: empty
    size_t len;
    uint64_t hash;
    int64_t value;
} frit_map_slot;

// FNV-1a in 8-byte strides, finished with a multiply-shift mix.
static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u ^ n;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; n > 0; n--, p++) h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

static frit_map_slot *find(frit_map_slot *slots, size_t capacity, frit_str key, uint64_t hash)
{
    size_t i = hash & (capacity - 1);
    while (slots[i].key) {
        bool same = slots[i].hash == hash && slots[i].len == key.len && memcmp(slots[i].key, key.ptr, key.len) == 0;
        if (same) break;
        i = (i + 1) & (capacity - 1);
    }
    return &slots[i];
}

bool frit_map_reserve(frit_map *map, size_t n)
{
    if (n <= map->capacity / 2) return true;
    if (n > SIZE_MAX / 4 / sizeof(frit_map_slot)) return false;
    size_t capacity = map->capacity ? map->capacity : 16;
    while (capacity / 2 < n) capacity *= 2;
    frit_map_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const frit_map_slot *old = &map->slots[i];
        if (old->key) *find(slots, capacity, (frit_str){old->key, old->len}, old->hash) = *old;
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

bool frit_map_put(frit_map *map, frit_str key, int64_t value)
{
    if (!frit_map_reserve(map, map->n + 1)) return false;
    uint64_t hash = hash_bytes(key.ptr, key.len);
    frit_map_slot *slot = find(map->slots, map->capacity, key, hash);
    if (!slot->key) map->n++;
    *slot = (frit_map_slot){key.ptr ? key.ptr : "", key.len, hash, value};
    return true;
}

bool frit_map_get(const frit_map *map, frit_str key, int64_t *value)
{
    if (map->capacity == 0) return false;
    const frit_map_slot *slot = find(map->slots, map->capacity, key, hash_bytes(key.ptr, key.len));
    if (!slot->key) return false;
    *value = slot->value;
    return true;
}

void frit_map_free(frit_map *map)
{
    free(map->slots);
    *map = (frit_map){0};
}
