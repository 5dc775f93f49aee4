// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/convert_tmpl.h: conversion of activations to the forms Q8 and Q8_LINES. The including file defines
//
//     max_abs_32(x)                      the largest magnitude of 32 numbers
//     quantize_16(x, inverse, codes)     writes round(x * inverse) of 16 numbers; returns the sum of the codes
// Codes of 32 numbers, the sums of 16 of them; returns the scale.
static float quantize_line(const float *x, int8_t *codes, int sums[2])
{
    const float top = max_abs_32(x), inverse = top > 0x1p-100f ? 127 / top : 0;
    for (int i = 0; i < 2; i++) sums[i] = quantize_16(x + 16 * i, inverse, codes + 16 * i);
    return inverse > 0 ? top / 127 : 0;
}

static void convert_q8(const float *x, uint8_t *out, int64_t n)
{
    float *scales = (float *)(void *)(out + n), *factors = scales + n / 32;
    for (int64_t b = 0; b < n / 32; b++) {
        int sums[2];
        scales[b] = quantize_line(x + b * 32, (int8_t *)out + b * 32, sums);
        for (int i = 0; i < 2; i++) factors[2 * b + i] = scales[b] * (float)sums[i];
    }
}

static void convert_q8_lines(const float *x, uint8_t *out, int64_t n)
{
    frit_q8_line *line = (void *)out;
    for (int64_t b = 0; b < n / 32; b++, line++) {
        int sums[2];
        line->scale = quantize_line(x + b * 32, line->codes, sums);
        line->sum = line->scale * (float)(sums[0] + sums[1]);
        for (int i = 0; i < 2; i++) {
            line->sums_16[i] = line->scale * (float)sums[i];
            line->minus_32[i] = -32 * sums[i];
            line->sums[i] = (int16_t)sums[i];
        }
        line->minus_128 = -128 * (sums[0] + sums[1]);
    }
}
