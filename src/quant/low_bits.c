// SPDX-License-Identifier: MIT
// TQ1_0 and TQ2_0 (three levels), Q1_0 (two) and Q2_0 (four): x = q * d.
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/half.h"

// A byte contains five digits of base 3, the first the most significant, as a fraction of 256: byte = ceil(number * 256
// / 243). Multiplying by a power of three (mod 256) drops leading digits; after multiplying by three, the carry over
// 256 is a digit.
static float *decode_digits(const uint8_t *qs, int n_bytes, int n_digits, float d, float *values)
{
    uint8_t power = 1;
    for (int digit = 0; digit < n_digits; digit++, power = (uint8_t)(power * 3)) {
        for (int l = 0; l < n_bytes; l++) {
            int q = (uint8_t)(qs[l] * power) * 3 >> 8;
            *values++ = (float)(q - 1) * d;
        }
    }
    return values;
}

// Digit k of byte l belongs to number l + k * (number of bytes of the part). There are three parts:
//
//     qs  | 32 bytes of 5 digits: 160 numbers | 16 bytes of 5: 80 numbers |  qh | 4 bytes of 4: 16 numbers |
void frit_decode_tq1_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_tq1_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        values = decode_digits(block->qs, 32, 5, d, values);
        values = decode_digits(block->qs + 32, 16, 5, d, values);
        values = decode_digits(block->qh, 4, 4, d, values);
    }
}

// Two bits, 32 numbers apart: byte l of 32 has numbers l, l + 32, l + 64, l + 96. q = code - 1.
void frit_decode_tq2_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_tq2_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 256, block++) {
        float d = frit_half_to_float(block->d);
        for (int unit = 0; unit < 8; unit++) {
            const uint8_t *qs = block->qs + unit / 4 * 32;
            int shift = unit % 4 * 2;
            for (int l = 0; l < 32; l++) *values++ = (float)((qs[l] >> shift & 3) - 1) * d;
        }
    }
}

// Bit j % 8 of byte j / 8: 1 is +d, 0 is -d.
void frit_decode_q1_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_q1_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 128, block++, values += 128) {
        uint32_t minus_d = frit_bits_of_float(-frit_half_to_float(block->d));
        for (int j = 0; j < 128; j++) {
            values[j] = frit_float_of_bits(minus_d ^ (uint32_t)(block->qs[j / 8] >> j % 8 & 1) << 31);
        }
    }
}

// Bits 2 * (j % 4) of byte j / 4. q = code - 1: -1, 0, 1 or 2.
void frit_decode_q2_0(const void *blocks, float *values, int64_t n)
{
    const frit_block_q2_0 *block = blocks;
    for (int64_t i = 0; i < n; i += 64, block++, values += 64) {
        float d = frit_half_to_float(block->d);
        for (int j = 0; j < 64; j++) values[j] = (float)((block->qs[j / 4] >> (j % 4 * 2) & 3) - 1) * d;
    }
}
