// SPDX-License-Identifier: MIT
// Open addressing with linear probing, at most half full. The full hash is stored to make misses cheap.
#include "base/map.h"

#include "base/time.h"

#include <stdlib.h>

typedef struct frit_map_bucket {
    const char *key;   // NULL: empty
    size_t len;
    uint64_t hash;
    int64_t value;
} frit_map_bucket;

// SipHash-1-3: keys are input, and without the seed no one can construct keys that collide.
typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static void sip_round(sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotl(s->b, 13) ^ s->a;
    s->d = rotl(s->d, 16) ^ s->c;
    s->a = rotl(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotl(s->b, 17) ^ s->c;
    s->d = rotl(s->d, 21) ^ s->a;
    s->c = rotl(s->c, 32);
}

static void sip_word(sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

static uint64_t hash_bytes(uint64_t seed, const char *p, size_t n)
{
    uint64_t k0 = seed, k1 = seed * 0x9e3779b97f4a7c15u, last = (uint64_t)n << 56, word;
    sip s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&word, p, 8);
        sip_word(&s, word);
    }
    for (size_t i = 0; i < n; i++) last |= (uint64_t)(unsigned char)p[i] << 8 * i;
    sip_word(&s, last);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

static frit_map_bucket *find(frit_map_bucket *buckets, size_t capacity, frit_str key, uint64_t hash)
{
    size_t i = hash & (capacity - 1);
    while (buckets[i].key) {
        bool same =
            buckets[i].hash == hash && buckets[i].len == key.len && memcmp(buckets[i].key, key.ptr, key.len) == 0;
        if (same) break;
        i = (i + 1) & (capacity - 1);
    }
    return &buckets[i];
}

bool frit_map_reserve(frit_map *map, size_t n)
{
    if (n <= map->capacity / 2) return true;
    if (n > SIZE_MAX / 4 / sizeof(frit_map_bucket)) return false;
    size_t capacity = map->capacity ? map->capacity : 16;
    while (capacity / 2 < n) capacity *= 2;
    frit_map_bucket *buckets = calloc(capacity, sizeof *buckets);
    if (!buckets) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const frit_map_bucket *old = &map->buckets[i];
        if (old->key) *find(buckets, capacity, (frit_str){old->key, old->len}, old->hash) = *old;
    }
    // Seeds the map before the first hash. The author of a file cannot know the address and the clock.
    if (!map->buckets) map->seed = frit_time_ns() ^ (uint64_t)(uintptr_t)buckets << 20;
    free(map->buckets);
    map->buckets = buckets;
    map->capacity = capacity;
    return true;
}

bool frit_map_put(frit_map *map, frit_str key, int64_t value)
{
    if (!frit_map_reserve(map, map->n + 1)) return false;
    uint64_t hash = hash_bytes(map->seed, key.ptr, key.len);
    frit_map_bucket *bucket = find(map->buckets, map->capacity, key, hash);
    if (!bucket->key) map->n++;
    *bucket = (frit_map_bucket){key.ptr ? key.ptr : "", key.len, hash, value};
    return true;
}

bool frit_map_get(const frit_map *map, frit_str key, int64_t *value)
{
    if (map->capacity == 0) return false;
    const frit_map_bucket *bucket = find(map->buckets, map->capacity, key, hash_bytes(map->seed, key.ptr, key.len));
    if (!bucket->key) return false;
    *value = bucket->value;
    return true;
}

void frit_map_free(frit_map *map)
{
    free(map->buckets);
    *map = (frit_map){0};
}
