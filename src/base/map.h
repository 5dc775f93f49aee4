// SPDX-License-Identifier: MIT
// base/map.h: one hash map, from byte strings to int64. Keys are borrowed and must outlive the map.
//
//     frit_map map = {0};
//     frit_map_put(&map, frit_str_of("token"), 7);        // false when out of memory
//     int64_t id;
//     if (frit_map_get(&map, key, &id)) ...
//     frit_map_free(&map);
#pragma once
#include "base/buf.h"

typedef struct frit_map {
    struct frit_map_bucket *buckets;
    size_t n, capacity;   // capacity: a power of two, or 0
    uint64_t seed;        // of the hash, different for each map
} frit_map;

bool frit_map_reserve(frit_map *map, size_t n);
bool frit_map_put(frit_map *map, frit_str key, int64_t value);   // replaces an older value
bool frit_map_get(const frit_map *map, frit_str key, int64_t *value);
void frit_map_free(frit_map *map);
