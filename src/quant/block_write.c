// SPDX-License-Identifier: MIT
// Writes codes and integer scales into blocks. k_quants.c and scales.h show the layouts.
#include "quant/block_write.h"

#include "quant/scales.h"

void frit_write_two_bits(const uint8_t codes[256], uint8_t qs[64])
{
    for (int l = 0; l < 64; l++) {
        const uint8_t *q = codes + l / 32 * 128 + l % 32;
        qs[l] = (uint8_t)((q[0] & 3) | (q[32] & 3) << 2 | (q[64] & 3) << 4 | (q[96] & 3) << 6);
    }
}

void frit_write_four_bits(const uint8_t codes[256], uint8_t qs[128])
{
    for (int l = 0; l < 128; l++) {
        const uint8_t *q = codes + l / 32 * 64 + l % 32;
        qs[l] = (uint8_t)((q[0] & 15) | (q[32] & 15) << 4);
    }
}

void frit_write_one_bit(const uint8_t codes[256], int bit, uint8_t qh[32])
{
    for (int l = 0; l < 32; l++) {
        int byte = 0;
        for (int unit = 0; unit < 8; unit++) byte |= (codes[unit * 32 + l] >> bit & 1) << unit;
        qh[l] = (uint8_t)byte;
    }
}

void frit_write_scales_q4_k(const uint8_t scales[8], const uint8_t mins[8], uint8_t packed[12])
{
    for (int g = 0; g < 4; g++) {
        packed[g] = (uint8_t)(scales[g] | scales[g + 4] >> 4 << 6);
        packed[g + 4] = (uint8_t)(mins[g] | mins[g + 4] >> 4 << 6);
        packed[g + 8] = (uint8_t)((scales[g + 4] & 15) | (mins[g + 4] & 15) << 4);
    }
}

void frit_write_scales_q3_k(const int8_t scales[16], uint8_t packed[12])
{
    for (int l = 0; l < 8; l++) packed[l] = (uint8_t)(((scales[l] + 32) & 15) | ((scales[l + 8] + 32) & 15) << 4);
    for (int l = 0; l < 4; l++) {
        int byte = 0;
        for (int k = 0; k < 4; k++) byte |= (scales[l + 4 * k] + 32) >> 4 << 2 * k;
        packed[l + 8] = (uint8_t)byte;
    }
}

void frit_write_q6_k(const uint8_t codes[256], frit_block_q6_k *block)
{
    for (int l = 0; l < 64; l++) {
        const uint8_t *q = codes + l / 32 * 128 + l % 32;   // four units
        uint8_t *ql = block->ql + l / 32 * 64 + l % 32;
        ql[0] = (uint8_t)((q[0] & 15) | (q[64] & 15) << 4);
        ql[32] = (uint8_t)((q[32] & 15) | (q[96] & 15) << 4);
        block->qh[l] = (uint8_t)(q[0] >> 4 | q[32] >> 4 << 2 | q[64] >> 4 << 4 | q[96] >> 4 << 6);
    }
}

void frit_write_nibbles(const uint8_t codes[32], uint8_t qs[16])
{
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

uint32_t frit_write_fifth_bits(const uint8_t codes[32])
{
    uint32_t qh = 0;
    for (int j = 0; j < 32; j++) qh |= (uint32_t)(codes[j] >> 4) << j;
    return qh;
}
