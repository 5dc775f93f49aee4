// SPDX-License-Identifier: MIT
// MXFP4 and NVFP4: E2M1 numbers (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) with eight-bit scales.
//
// The levels are doubled, so that they are integers, and the scales are halved: the products are the same.
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/levels.h"
#include "quant/scales.h"

// Decodes qs[j]: number j in the low bits, j + half in the high bits.
static void decode_nibbles(const uint8_t *qs, int half, float d, float *values)
{
    for (int j = 0; j < half; j++) {
        values[j] = (float)frit_fp4_levels[qs[j] & 15] * d;
        values[j + half] = (float)frit_fp4_levels[qs[j] >> 4] * d;
    }
}

// The OCP microscaling format: 32 numbers with a power of two.
void frit_decode_mxfp4(const void *blocks, float *values, int64_t n)
{
    const frit_block_mxfp4 *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        decode_nibbles(block->qs, 16, frit_e8m0_half(block->e), values);
    }
}

// Decodes four groups of 16 numbers, each with an E4M3 scale. (The scale of the whole tensor is a tensor of its own.)
void frit_decode_nvfp4(const void *blocks, float *values, int64_t n)
{
    const frit_block_nvfp4 *block = blocks;
    for (int64_t i = 0; i < n; i += 64, block++) {
        for (int g = 0; g < 4; g++, values += 16) {
            decode_nibbles(block->qs + g * 8, 8, frit_ue4m3_half(block->d[g]), values);
        }
    }
}
