// SPDX-License-Identifier: MIT
// Plain numbers: one per block, converted with one rounding (to nearest, ties to even).
#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/half.h"

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
