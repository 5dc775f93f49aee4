// SPDX-License-Identifier: MIT
// The IQ formats: codes that index sixteen uneven levels, or grids of four or eight numbers.
//
//     IQ4_NL, IQ4_XS     x = scale * level[code]
//     IQ2_*, IQ3_*       x = (scale * grid[index][j]) * +-1            signs in eight or seven bits
//     IQ1_*              x = scale * (grid[index][j] +- 1/8)           grid of -1, 0, 1
//
// A block of 256 numbers has eight groups of 32, and a group has four runs of eight. l is the index of a run in its
// group.
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/levels.h"
#include "quant/scales.h"

static void decode_levels(const uint8_t *qs, float scale, float *values)
{
    for (int j = 0; j < 16; j++) {
        values[j] = scale * (float)frit_iq4_levels[qs[j] & 15];
        values[j + 16] = scale * (float)frit_iq4_levels[qs[j] >> 4];
    }
}

void frit_decode_iq4_nl(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq4_nl *block = blocks;
    for (int64_t i = 0; i < n; i += 32, block++, values += 32) {
        decode_levels(block->qs, frit_half_to_float(block->d), values);
    }
}

// The scale of a group has six bits and an offset of -32: four bits in a nibble of scales_low, two in scales_high.
void frit_decode_iq4_xs(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq4_xs *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 8; g++, values += 32) {
            int scale = (block->scales_low[g / 2] >> (g % 2 * 4) & 15) | (block->scales_high >> g * 2 & 3) << 4;
            decode_levels(block->qs + g * 16, d * (float)(scale - 32), values);
        }
    }
}

// Writes n magnitudes; bit j of `signs` makes number j negative. Signs are unpredictable, so no branch depends on them.
static inline void decode_signed(const uint8_t *grid, int n, int signs, float scale, float *values)
{
    for (int j = 0; j < n; j++) {
        uint32_t magnitude = frit_bits_of_float(scale * (float)grid[j]);
        values[j] = frit_float_of_bits(magnitude ^ (uint32_t)(signs >> j & 1) << 31);
    }
}

// The word of a group:  | scale: 31..28 | signs of run 3: 27..21 | run 2: 20..14 | run 1: 13..7 | run 0: 6..0 |
void frit_decode_iq2_xxs(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq2_xxs *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 8; g++) {
            uint32_t word = block->groups[g].signs;
            float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
            for (int l = 0; l < 4; l++, values += 8) {
                const uint8_t *grid = frit_iq2_xxs_grid[block->groups[g].qs[l]];
                decode_signed(grid, 8, frit_even_signs(word >> 7 * l), scale, values);
            }
        }
    }
}

// A run:  | signs: 15..9 | index: 8..0 |.  scales[g]: runs 0 and 1 in the low four bits, runs 2 and 3 in the high ones.
void frit_decode_iq2_xs(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq2_xs *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int run = 0; run < 32; run++, values += 8) {
            int scale = block->scales[run / 4] >> (run / 2 % 2 * 4) & 15, code = block->qs[run];
            float magnitude = d * (0.5f + (float)scale) * 0.25f;
            decode_signed(frit_iq2_xs_grid[code & 511], 8, frit_even_signs(code >> 9), magnitude, values);
        }
    }
}

// As IQ2_XS, but with an index of ten bits, two of them in qh (bits 2 l of the group), and with all eight signs.
void frit_decode_iq2_s(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq2_s *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int run = 0; run < 32; run++, values += 8) {
            int scale = block->scales[run / 4] >> (run / 2 % 2 * 4) & 15;
            int index = block->qs[run] | (block->qh[run / 4] >> (run % 4 * 2) & 3) << 8;
            float magnitude = d * (0.5f + (float)scale) * 0.25f;
            decode_signed(frit_iq2_s_grid[index], 8, block->signs[run], magnitude, values);
        }
    }
}

// A run has two indices. The word of a group is as in IQ2_XXS.
void frit_decode_iq3_xxs(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq3_xxs *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 8; g++) {
            uint32_t word = block->signs[g];
            float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
            const uint8_t *qs = block->qs + g * 8;
            for (int l = 0; l < 4; l++, values += 8) {
                int signs = frit_even_signs(word >> 7 * l);
                decode_signed(frit_iq3_xxs_grid[qs[2 * l]], 4, signs, scale, values);
                decode_signed(frit_iq3_xxs_grid[qs[2 * l + 1]], 4, signs >> 4, scale, values + 4);
            }
        }
    }
}

// A run has two indices of nine bits; bit k of qh is the ninth bit of index k of the group.
void frit_decode_iq3_s(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq3_s *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 8; g++) {
            float scale = d * (float)(1 + 2 * (block->scales[g / 2] >> (g % 2 * 4) & 15));
            for (int k = 0; k < 8; k++, values += 4) {
                int index = block->qs[g * 8 + k] | (block->qh[g] >> k & 1) << 8;
                int signs = block->signs[g * 4 + k / 2] >> (k % 2 * 4);
                decode_signed(frit_iq3_s_grid[index], 4, signs, scale, values);
            }
        }
    }
}

static inline void decode_shifted(int index, float scale, float shift, float *values)
{
    for (int j = 0; j < 8; j++) values[j] = scale * ((float)frit_iq1_grid[index][j] + shift);
}

// qh of a group:  | sign of the shift: 15 | scale: 14..12 | high bits of run 3: 11..9 | run 2 | run 1 | run 0: 2..0 |
void frit_decode_iq1_s(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq1_s *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int g = 0; g < 8; g++) {
            int qh = block->qh[g];
            float scale = d * (float)(2 * (qh >> 12 & 7) + 1), shift = qh & 0x8000 ? -0.125f : 0.125f;
            for (int l = 0; l < 4; l++, values += 8) {
                decode_shifted(block->qs[g * 4 + l] | (qh >> 3 * l & 7) << 8, scale, shift, values);
            }
        }
    }
}

// A nibble of qh for a run:  | sign of the shift: 3 | high bits of the index: 2..0 |
// A word of scales belongs to two groups, with three bits for two runs; its top four bits are a quarter of d:
//
//     | nibble of d: 15..12 | odd group: 11..9 runs 2, 3; 8..6 runs 0, 1 | even group: 5..3, 2..0 |
void frit_decode_iq1_m(const void *blocks, float *values, int64_t n)
{
    const frit_block_iq1_m *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        unsigned bits = 0;
        for (int k = 0; k < 4; k++) bits |= (unsigned)(block->scales[k] >> 12) << 4 * k;
        float d = frit_half_to_float((uint16_t)bits);
        for (int run = 0; run < 32; run++, values += 8) {
            int nibble = block->qh[run / 2] >> (run % 2 * 4) & 15;
            int scale = block->scales[run / 8] >> (run / 2 % 4 * 3) & 7;
            float shift = nibble & 8 ? -0.125f : 0.125f;
            decode_shifted(block->qs[run] | (nibble & 7) << 8, d * (float)(2 * scale + 1), shift, values);
        }
    }
}
