// SPDX-License-Identifier: MIT
// quant/scales.h: reads the packed scales and signs inside blocks; for decoders, encoders and kernels.
#pragma once
#include "quant/half.h"

// Q4_K and Q5_K: eight 6-bit scales and eight 6-bit mins in 12 bytes.
//
//     byte      bits 7..6           bits 5..0
//     0..3       scale 4..7, high 2   scale 0..3
//     4..7       min   4..7, high 2   min   0..3
//               bits 7..4           bits 3..0
//     8..11      min   4..7, low 4    scale 4..7, low 4
static inline void frit_unpack_scales_q4_k(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8])
{
    for (int g = 0; g < 4; g++) {
        scales[g] = packed[g] & 63;
        mins[g] = packed[g + 4] & 63;
        scales[g + 4] = (uint8_t)((packed[g + 8] & 15) | packed[g] >> 6 << 4);
        mins[g + 4] = (uint8_t)(packed[g + 8] >> 4 | packed[g + 4] >> 6 << 4);
    }
}

// Q3_K: sixteen 6-bit scales, stored with 32 added, in 12 bytes.
//
//     byte      bits 7..4          bits 3..0
//     0..7       scale 8..15, low 4  scale 0..7, low 4
//               bits 7..6          bits 5..4         bits 3..2        bits 1..0
//     8..11      scale 12..15, high  scale 8..11, high  scale 4..7, high  scale 0..3, high
static inline void frit_unpack_scales_q3_k(const uint8_t packed[12], int8_t scales[16])
{
    for (int g = 0; g < 16; g++) {
        int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
        int high = packed[8 + g % 4] >> (g / 4 * 2) & 3;
        scales[g] = (int8_t)((low | high << 4) - 32);
    }
}

// Half of the power of two of an E8M0 byte: 2^(e - 128). The scale is halved because frit_fp4_levels are twice the
// values of E2M1. 255, NaN in the OCP specification, is read as the next power.
static inline float frit_e8m0_half(uint8_t e)
{
    return frit_float_of_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

// Half of an unsigned E4M3 number (bias 7). The sign bit is ignored and 0x7f, NaN, reads as zero.
static inline float frit_ue4m3_half(uint8_t x)
{
    uint32_t exponent = x >> 3 & 15, mantissa = x & 7;
    if (x == 0x7f) return 0;
    if (exponent == 0) return (float)mantissa * 0x1p-10f;
    return frit_float_of_bits((exponent + 127 - 7 - 1) << 23 | mantissa << 20);
}

// Eight signs in seven bits: the eighth makes the number of minus signs even.
static inline uint8_t frit_even_signs(uint32_t seven_bits)
{
    uint32_t s = seven_bits & 127, parity = s ^ s >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return (uint8_t)(s | (parity & 1) << 7);
}
