// SPDX-License-Identifier: MIT
// base/philox.h: Philox 4x32-10, a counter-based random generator (Salmon et al. 2011, "Parallel Random Numbers: As
// Easy as 1, 2, 3"). A number is a function of a key and a counter. There is no state between draws, so any number of a
// sequence can be computed at once, on any machine.
#pragma once
#include <stdint.h>

typedef struct frit_philox {
    uint32_t x[4];
} frit_philox;

static inline frit_philox frit_philox_4x32(frit_philox counter, uint32_t key0, uint32_t key1)
{
    frit_philox c = counter;
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xd2511f53u * c.x[0], b = (uint64_t)0xcd9e8d57u * c.x[2];
        c = (frit_philox){
            {(uint32_t)(b >> 32) ^ c.x[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.x[3] ^ key1, (uint32_t)a}};
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return c;
}

// 64 random bits for the token at a position of a sequence. Each kind of decision about a token uses a stream of its
// own.
static inline uint64_t frit_philox_stream(uint64_t seed, uint64_t position, uint32_t stream)
{
    const frit_philox counter = {{(uint32_t)position, (uint32_t)(position >> 32), stream, 0}};
    const frit_philox drawn = frit_philox_4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
    return drawn.x[0] | (uint64_t)drawn.x[1] << 32;
}

// 64 random bits that choose the token at a position.
static inline uint64_t frit_philox_draw(uint64_t seed, uint64_t position)
{
    return frit_philox_stream(seed, position, 0);
}

// A number below n: the upper half of the product of both.
static inline uint64_t frit_philox_below(uint64_t drawn, uint64_t n)
{
    const uint64_t low = UINT32_MAX, a = drawn >> 32, b = drawn & low, c = n >> 32, d = n & low;
    const uint64_t middle = (a * d & low) + (b * c & low) + (b * d >> 32);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}
