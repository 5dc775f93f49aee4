// SPDX-License-Identifier: MIT
// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 numbers, x = q * d or x = q * d + m.
//
// Two numbers that are 16 apart share a byte of four-bit codes, and the fifth bits are in one word:
//
//     qs[j]   | number j + 16 | number j |      j = 0..15
//               7    ..     4   3  ..   0
//     qh bit j: the fifth bit of number j       j = 0..31
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/half.h"

// q = code - 8
void frit_decode_q4_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_q4_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        float d = frit_half_to_float(block->d);
        for (int j = 0; j < 16; j++) {
            values[j] = (float)((block->qs[j] & 15) - 8) * d;
            values[j + 16] = (float)((block->qs[j] >> 4) - 8) * d;
        }
    }
}

// q = code
void frit_decode_q4_1(const void *blocks, float *values, int64_t n)
{
    const frit_block_q4_1 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        float d = frit_half_to_float(block->d), m = frit_half_to_float(block->m);
        for (int j = 0; j < 16; j++) {
            values[j] = (float)(block->qs[j] & 15) * d + m;
            values[j + 16] = (float)(block->qs[j] >> 4) * d + m;
        }
    }
}

// The five-bit codes of numbers j and j + 16.
static inline int low_code5(const uint8_t *qs, uint32_t qh, int j)
{
    return (int)((qs[j] & 15) | (qh >> j & 1) << 4);
}

static inline int high_code5(const uint8_t *qs, uint32_t qh, int j)
{
    return (int)(qs[j] >> 4 | (qh >> (j + 16) & 1) << 4);
}

// q = code - 16
void frit_decode_q5_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_q5_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        float d = frit_half_to_float(block->d);
        for (int j = 0; j < 16; j++) {
            values[j] = (float)(low_code5(block->qs, block->qh, j) - 16) * d;
            values[j + 16] = (float)(high_code5(block->qs, block->qh, j) - 16) * d;
        }
    }
}

// q = code
void frit_decode_q5_1(const void *blocks, float *values, int64_t n)
{
    const frit_block_q5_1 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        float d = frit_half_to_float(block->d), m = frit_half_to_float(block->m);
        for (int j = 0; j < 16; j++) {
            values[j] = (float)low_code5(block->qs, block->qh, j) * d + m;
            values[j + 16] = (float)high_code5(block->qs, block->qh, j) * d + m;
        }
    }
}

// q = qs[j], a signed byte
void frit_decode_q8_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_q8_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        float d = frit_half_to_float(block->d);
        for (int j = 0; j < 32; j++) values[j] = (float)block->qs[j] * d;
    }
}
