// SPDX-License-Identifier: MIT
// base/rng.h: a small random generator with the same numbers on every machine (splitmix64 seeding xoshiro256**).
#pragma once
#include <stdint.h>

typedef struct frit_rng {
    uint64_t s[4];
} frit_rng;

static inline uint64_t frit_rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static inline void frit_rng_init(frit_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        rng->s[i] = z ^ (z >> 31);
    }
}

static inline uint64_t frit_rng_next(frit_rng *rng)
{
    uint64_t *s = rng->s, result = frit_rng_rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = frit_rng_rotl(s[3], 45);
    return result;
}

// A number in [0, 1), 53 bits.
static inline double frit_rng_double(frit_rng *rng)
{
    return (double)(frit_rng_next(rng) >> 11) * 0x1p-53;
}
