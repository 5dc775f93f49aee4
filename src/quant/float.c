// SPDX-License-Identifier: MIT
// Plain numbers: one per block, converted with one rounding (to nearest, ties to even).
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/half.h"

#include <float.h>
#include <math.h>

int64_t frit_first_beyond(const float *values, int64_t n, float most)
{
    enum { AT_ONCE = 64 };
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        const int64_t end = n - i < AT_ONCE ? n : i + AT_ONCE;
        int n_within = 0;
        for (int64_t k = i; k < end; k++) n_within += fabsf(values[k]) <= most;   // false for NaN
        if (n_within == end - i) continue;
        while (fabsf(values[i]) <= most) i++;
        return i;
    }
    return n;
}

int64_t frit_encode_checked(const frit_dtype_info *type, const float *values, void *blocks, int64_t n,
                            const float *importance, float *again)
{
    type->encode(values, blocks, n, importance);
    type->decode(blocks, again, n);
    const int64_t bad = frit_first_beyond(values, n, type->largest);
    return bad < n ? bad : frit_first_beyond(again, n, FLT_MAX);
}

void frit_decode_f32(const void *blocks, float *values, int64_t n)
{
    memcpy(values, blocks, (size_t)n * sizeof(float));
}

void frit_decode_f16(const void *blocks, float *values, int64_t n)
{
    const frit_block_f16 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = frit_half_to_float(block[i].value);
}

void frit_decode_bf16(const void *blocks, float *values, int64_t n)
{
    const frit_block_bf16 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = frit_bf16_to_float(block[i].value);
}

// The exponent of f16 has one more bit, and its bias is 8 larger.
void frit_decode_fp8(const void *blocks, float *values, int64_t n)
{
    const frit_block_fp8 *block = blocks;
    for (int64_t i = 0; i < n; i++) {
        const unsigned code = block[i].value, magnitude = code & 0x7f;
        const float value = frit_half_to_float((frit_half)((code & 0x80) << 8 | magnitude << 7)) * 256;
        values[i] = magnitude == 0x7f ? NAN : value;
    }
}

void frit_decode_fp8_128(const void *blocks, float *values, int64_t n)
{
    const frit_block_fp8_128 *block = blocks;
    for (int64_t i = 0; i < n; i += 128, block++, values += 128) {
        const float d = block->d;
        frit_decode_fp8(block->qs, values, 128);
        for (int k = 0; k < 128; k++) values[k] *= d;
    }
}

void frit_decode_f64(const void *blocks, float *values, int64_t n)
{
    const frit_block_f64 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = (float)block[i].value;
}

void frit_decode_i8(const void *blocks, float *values, int64_t n)
{
    const frit_block_i8 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = (float)block[i].value;
}

void frit_decode_i16(const void *blocks, float *values, int64_t n)
{
    const frit_block_i16 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = (float)block[i].value;
}

void frit_decode_i32(const void *blocks, float *values, int64_t n)
{
    const frit_block_i32 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = (float)block[i].value;
}

void frit_decode_i64(const void *blocks, float *values, int64_t n)
{
    const frit_block_i64 *block = blocks;
    for (int64_t i = 0; i < n; i++) values[i] = (float)block[i].value;
}

void frit_encode_f32(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    memcpy(blocks, values, (size_t)n * sizeof(float));
}

void frit_encode_f16(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_f16 *block = blocks;
    for (int64_t i = 0; i < n; i++) block[i].value = frit_float_to_half(values[i]);
}

void frit_encode_bf16(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_bf16 *block = blocks;
    for (int64_t i = 0; i < n; i++) block[i].value = frit_float_to_bf16(values[i]);
}

// Numbers that are too large become the largest, 448. Numbers below 2^-6 become multiples of 2^-9.
static uint8_t fp8_of(float x)
{
    const uint32_t bits = frit_bits_of_float(x), sign = bits >> 24 & 0x80, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint8_t)(sign | 0x7f);
    if (magnitude < 0x3c800000) return (uint8_t)(sign | (frit_bits_of_float(fabsf(x) * 512 + 0x1p23f) & 15));
    const uint32_t code =
        magnitude > 0x43e00000 ? 0x7e : ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - 120 * 8;
    return (uint8_t)(sign | code);
}

void frit_encode_fp8(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_fp8 *block = blocks;
    for (int64_t i = 0; i < n; i++) block[i].value = fp8_of(values[i]);
}

// The scale makes the largest magnitude 448, so that most numbers have three bits after the first.
void frit_encode_fp8_128(const float *values, void *blocks, int64_t n, const float *importance)
{
    (void)importance;
    frit_block_fp8_128 *block = blocks;
    for (int64_t i = 0; i < n; i += 128, block++, values += 128) {
        float most = 0;
        for (int k = 0; k < 128; k++) most = fabsf(values[k]) > most ? fabsf(values[k]) : most;
        const float d = most > 0x1p-117f ? most / 448 : 0, inverse = d > 0 ? 1 / d : 0;
        block->d = d;
        for (int k = 0; k < 128; k++) block->qs[k] = fp8_of(values[k] * inverse);
    }
}
