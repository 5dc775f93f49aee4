// SPDX-License-Identifier: MIT
// Words are distributed to four lanes round robin, so that four multiplications overlap. The checksum is as fast as
// reading memory.
#include "base/checksum.h"

#include <string.h>

enum { BLOCK = 8 * FRIT_CHECKSUM_LANES };

// An odd number, so that every step is invertible: different words give different lanes.
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t stir(uint64_t x)
{
    x = (x ^ x >> 32) * FACTOR;
    return x ^ x >> 29;
}

static void add_blocks(uint64_t *lanes, const uint8_t *bytes, size_t n_blocks)
{
    uint64_t words[FRIT_CHECKSUM_LANES];
    for (; n_blocks > 0; n_blocks--, bytes += BLOCK) {
        memcpy(words, bytes, BLOCK);
        for (int i = 0; i < FRIT_CHECKSUM_LANES; i++) {
            const uint64_t x = (lanes[i] ^ words[i]) * FACTOR;
            lanes[i] = x ^ x >> 31;
        }
    }
}

void frit_checksum_add(frit_checksum *sum, const void *bytes, size_t n)
{
    if (n == 0) return;   // `bytes` may be NULL
    const uint8_t *at = bytes;
    size_t n_rest = sum->n_bytes % BLOCK;
    sum->n_bytes += n;
    if (n_rest > 0) {
        const size_t taken = n < BLOCK - n_rest ? n : BLOCK - n_rest;
        memcpy(sum->rest + n_rest, at, taken);
        at += taken;
        n -= taken;
        if (n_rest + taken < BLOCK) return;
        add_blocks(sum->lanes, sum->rest, 1);
    }
    add_blocks(sum->lanes, at, n / BLOCK);
    if (n % BLOCK > 0) memcpy(sum->rest, at + n / BLOCK * BLOCK, n % BLOCK);
}

uint64_t frit_checksum_value(const frit_checksum *sum)
{
    frit_checksum last = *sum;
    const size_t n_rest = last.n_bytes % BLOCK;
    if (n_rest > 0) {
        memset(last.rest + n_rest, 0, BLOCK - n_rest);
        add_blocks(last.lanes, last.rest, 1);
    }
    uint64_t value = stir(last.n_bytes);   // so that zeros at the end count
    for (int i = 0; i < FRIT_CHECKSUM_LANES; i++) value = stir(value ^ last.lanes[i]);
    return value;
}
