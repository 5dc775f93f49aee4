// SPDX-License-Identifier: MIT
// backend/weights.h: random weights of any type: random codes, with scales that keep values between about 0.001 and 10.
#pragma once
#include "support/support.h"

#include "quant/blocks.h"
#include "quant/dtype.h"
#include "quant/half.h"

// Offsets of the f16 scales of a block; formats with other scales are below.
typedef struct weight_scales {
    frit_dtype dtype;
    int n;
    size_t offsets[2];
} weight_scales;

// clang-format off
static const weight_scales weight_scale_rows[] = {
    {FRIT_DTYPE_Q4_0,    1, {offsetof(frit_block_q4_0, d)}},
    {FRIT_DTYPE_Q4_1,    2, {offsetof(frit_block_q4_1, d), offsetof(frit_block_q4_1, m)}},
    {FRIT_DTYPE_Q5_0,    1, {offsetof(frit_block_q5_0, d)}},
    {FRIT_DTYPE_Q5_1,    2, {offsetof(frit_block_q5_1, d), offsetof(frit_block_q5_1, m)}},
    {FRIT_DTYPE_Q8_0,    1, {offsetof(frit_block_q8_0, d)}},
    {FRIT_DTYPE_Q2_K,    2, {offsetof(frit_block_q2_k, d), offsetof(frit_block_q2_k, dmin)}},
    {FRIT_DTYPE_Q3_K,    1, {offsetof(frit_block_q3_k, d)}},
    {FRIT_DTYPE_Q4_K,    2, {offsetof(frit_block_q4_k, d), offsetof(frit_block_q4_k, dmin)}},
    {FRIT_DTYPE_Q5_K,    2, {offsetof(frit_block_q5_k, d), offsetof(frit_block_q5_k, dmin)}},
    {FRIT_DTYPE_Q6_K,    1, {offsetof(frit_block_q6_k, d)}},
    {FRIT_DTYPE_IQ1_S,   1, {offsetof(frit_block_iq1_s, d)}},
    {FRIT_DTYPE_IQ2_XXS, 1, {offsetof(frit_block_iq2_xxs, d)}},
    {FRIT_DTYPE_IQ2_XS,  1, {offsetof(frit_block_iq2_xs, d)}},
    {FRIT_DTYPE_IQ2_S,   1, {offsetof(frit_block_iq2_s, d)}},
    {FRIT_DTYPE_IQ3_XXS, 1, {offsetof(frit_block_iq3_xxs, d)}},
    {FRIT_DTYPE_IQ3_S,   1, {offsetof(frit_block_iq3_s, d)}},
    {FRIT_DTYPE_IQ4_NL,  1, {offsetof(frit_block_iq4_nl, d)}},
    {FRIT_DTYPE_IQ4_XS,  1, {offsetof(frit_block_iq4_xs, d)}},
    {FRIT_DTYPE_TQ1_0,   1, {offsetof(frit_block_tq1_0, d)}},
    {FRIT_DTYPE_TQ2_0,   1, {offsetof(frit_block_tq2_0, d)}},
    {FRIT_DTYPE_Q1_0,    1, {offsetof(frit_block_q1_0, d)}},
    {FRIT_DTYPE_Q2_0,    1, {offsetof(frit_block_q2_0, d)}},
};
// clang-format on

static inline void weight_put(uint8_t *at, frit_dtype dtype, double value)
{
    const int64_t whole = (int64_t)(value * 20);
    const float number = (float)value;
    const int8_t i8 = (int8_t)whole;
    const int16_t i16 = (int16_t)whole;
    const int32_t i32 = (int32_t)whole;
    switch (dtype) {
    case FRIT_DTYPE_F64:
        memcpy(at, &value, 8);
        return;
    case FRIT_DTYPE_I8:
        memcpy(at, &i8, 1);
        return;
    case FRIT_DTYPE_I16:
        memcpy(at, &i16, 2);
        return;
    case FRIT_DTYPE_I32:
        memcpy(at, &i32, 4);
        return;
    case FRIT_DTYPE_I64:
        memcpy(at, &whole, 8);
        return;
    default:
        frit_dtype_get(dtype)->encode(&number, at, 1, NULL);
    }
}

static inline void weight_fix_scales(frit_rng *rng, frit_dtype dtype, uint8_t *block)
{
    const uint8_t power = (uint8_t)random_between(rng, 120, 126);
    if (dtype == FRIT_DTYPE_MXFP4) block[offsetof(frit_block_mxfp4, e)] = power;
    for (int i = 0; dtype == FRIT_DTYPE_NVFP4 && i < 4; i++) block[i] = (uint8_t)random_between(rng, 20, 60);
    if (dtype == FRIT_DTYPE_FP8_128) {
        frit_block_fp8_128 *b = (frit_block_fp8_128 *)(void *)block;
        b->d = (float)((0.002 + 0.02 * frit_rng_double(rng)) / 8);
        for (int i = 0; i < 128; i++)
            if ((b->qs[i] & 0x7f) == 0x7f) b->qs[i]--;   // NaN
    }
    if (dtype == FRIT_DTYPE_IQ1_M)   // the last of four scales has the highest four bits of the f16 scale
        block[offsetof(frit_block_iq1_m, scales) + 7] =
            (uint8_t)(0x20 | (block[offsetof(frit_block_iq1_m, scales) + 7] & 15));
    for (size_t r = 0; r < FRIT_COUNT(weight_scale_rows); r++) {
        const weight_scales *row = &weight_scale_rows[r];
        for (int i = 0; row->dtype == dtype && i < row->n; i++) {
            const double value = (0.002 + 0.02 * frit_rng_double(rng)) * (frit_rng_next(rng) & 1 ? 1 : -1);
            const uint16_t half = frit_float_to_half((float)value);
            memcpy(block + row->offsets[i], &half, 2);
        }
    }
}

// A row of n numbers, a multiple of the type's block.
static inline void random_weights(frit_rng *rng, frit_dtype dtype, void *bytes, int64_t n)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    uint8_t *at = bytes;
    for (int64_t b = 0; b < n / type->block_elems; b++, at += type->block_bytes) {
        if (type->block_elems == 1) {
            weight_put(at, dtype, 4 * frit_rng_double(rng) - 2);
            continue;
        }
        for (int i = 0; i < type->block_bytes; i++) at[i] = (uint8_t)frit_rng_next(rng);
        weight_fix_scales(rng, dtype, at);
    }
}
