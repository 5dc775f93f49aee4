// SPDX-License-Identifier: MIT
// quant/half.h: half precision (IEEE binary16) and bfloat16, in plain C, exact, rounding to nearest even.
#pragma once
#include <stdint.h>
#include <string.h>

static inline uint32_t frit_bits_of_float(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float frit_float_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

// Converts without branches, so that compilers vectorize loops of it, and without subnormal intermediate floats, which
// a processor may be set to flush to zero.
static inline float frit_half_to_float(uint16_t h)
{
    int32_t shifted = (h & 0x7fff) << 13, normal = shifted + (112 << 23);   // exponent bias 15 becomes 127
    uint32_t subnormal = frit_bits_of_float(frit_float_of_bits((uint32_t)shifted + (113u << 23)) - 0x1p-14f);
    uint32_t magnitude = (uint32_t)normal + (shifted >= 31 << 23 ? 112u << 23 : 0);   // infinity, NaN: 31 becomes 255
    return frit_float_of_bits((uint32_t)(h & 0x8000) << 16 | (shifted < 1 << 23 ? subnormal : magnitude));
}

static inline uint16_t frit_float_to_half(float x)
{
    uint32_t u = frit_bits_of_float(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);    // NaN
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);   // 65520 and above round to infinity
    if (magnitude < 0x38800000) {                                    // below 2^-14: subnormal
        float scaled = frit_float_of_bits(magnitude) + 0.5f;         // aligns the last bit with 2^-24
        return (uint16_t)(sign | (frit_bits_of_float(scaled) - 0x3f000000));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static inline float frit_bf16_to_float(uint16_t h)
{
    return frit_float_of_bits((uint32_t)h << 16);
}

static inline uint16_t frit_float_to_bf16(float x)
{
    uint32_t u = frit_bits_of_float(x);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 64);   // a NaN stays a quiet NaN
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
