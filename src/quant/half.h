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

static inline float frit_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
    if (exponent == 31) return frit_float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0) return frit_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;   // zero and subnormal numbers
    return frit_float_of_bits(sign | frit_bits_of_float(magnitude));
}

static inline uint16_t frit_float_to_half(float x)
{
    uint32_t u = frit_bits_of_float(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);    // NaN
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);   // 65520 and above round to infinity
    if (magnitude < 0x38800000) {                                    // below 2^-14: subnormal
        float scaled = frit_float_of_bits(magnitude) + 0.5f;         // lines the last bit up with 2^-24
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
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 64);   // keep NaN a quiet NaN
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
