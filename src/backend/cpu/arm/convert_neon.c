// SPDX-License-Identifier: MIT
// Conversion of activations to the forms Q8 and Q8_LINES for NEON: the same bits as the scalar conversion.
#include "backend/cpu/arm/neon.h"

#include <arm_neon.h>

static float max_abs_32(const float *x)
{
    float32x4_t top = vabsq_f32(vld1q_f32(x));
    for (int i = 4; i < 32; i += 4) top = vmaxq_f32(top, vabsq_f32(vld1q_f32(x + i)));
    return vmaxvq_f32(top);
}

// Codes of 16 numbers: round(x * inverse).
FRIT_INLINE int8x16_t round_16(const float *x, float inverse)
{
    int32x4_t w[4];
    for (int i = 0; i < 4; i++) w[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse));
    const int16x8_t low = vcombine_s16(vqmovn_s32(w[0]), vqmovn_s32(w[1]));
    const int16x8_t high = vcombine_s16(vqmovn_s32(w[2]), vqmovn_s32(w[3]));
    return vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
}

// Codes of 32 numbers, the sums of 16 of them; returns the scale.
static float quantize_line(const float *x, int8_t *codes, int sums[2])
{
    const float top = max_abs_32(x), inverse = top > 0x1p-100f ? 127 / top : 0;
    for (int i = 0; i < 2; i++) {
        const int8x16_t part = round_16(x + 16 * i, inverse);
        vst1q_s8(codes + 16 * i, part);
        sums[i] = vaddlvq_s8(part);
    }
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

void frit_install_neon_convert(frit_kernels *k)
{
    k->convert[FRIT_FORM_Q8] = convert_q8;
    k->convert[FRIT_FORM_Q8_LINES] = convert_q8_lines;
}
