// SPDX-License-Identifier: MIT
// SHA-256, as FIPS 180-4 writes it.
#include "base/sha256.h"

#include "base/status.h"
#include "frit_tools.h"

#include <string.h>

// The fractions of the cube roots of the first 64 primes.
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void expand(const uint8_t block[64], uint32_t w[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

// A round rotates the names of the variables instead of their values: after eight rounds each name is back.
#define ROUND(a, b, c, d, e, f, g, h, i)                                                              \
    do {                                                                                              \
        const uint32_t one_ =                                                                         \
            h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + w[i]; \
        d += one_;                                                                                    \
        h = one_ + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) | (c & (a | b)));              \
    } while (0)

static void add_block(frit_sha256 *sum, const uint8_t block[64])
{
    uint32_t w[64], *s = sum->state;
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    expand(block, w);
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t more[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) s[i] += more[i];
}

void frit_sha256_init(frit_sha256 *sum)
{
    *sum = (frit_sha256){0};
    memcpy(sum->state, first_state, sizeof first_state);
}

void frit_sha256_add(frit_sha256 *sum, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        const size_t at = sum->n_bytes % 64, part = n < 64 - at ? n : 64 - at;
        if (part < 64) memcpy(sum->block + at, from, part);
        if (at + part == 64) add_block(sum, part < 64 ? sum->block : from);
        sum->n_bytes += part;
        from += part;
        n -= part;
    }
}

void frit_sha256_end(frit_sha256 *sum, uint8_t out[FRIT_SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    const uint64_t n_bits = sum->n_bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    frit_sha256_add(sum, padding, 1 + (119 - sum->n_bytes % 64) % 64);
    frit_sha256_add(sum, length, sizeof length);
    for (int i = 0; i < 32; i++) out[i] = (uint8_t)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

bool frit_sha256_of(const void *bytes, size_t n, uint8_t sum[32])
{
    FRIT_REQUIRE_ITEMS_OR(false, bytes, n);
    FRIT_REQUIRE_OR(false, sum);
    frit_sha256 state;
    frit_sha256_init(&state);
    frit_sha256_add(&state, bytes, n);
    frit_sha256_end(&state, sum);
    return true;
}
