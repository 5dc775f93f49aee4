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

FRIT_INLINE int quantize_16(const float *x, float inverse, int8_t *codes)
{
    int32x4_t w[4];
    for (int i = 0; i < 4; i++) w[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse));
    const int16x8_t low = vcombine_s16(vqmovn_s32(w[0]), vqmovn_s32(w[1]));
    const int16x8_t high = vcombine_s16(vqmovn_s32(w[2]), vqmovn_s32(w[3]));
    const int8x16_t part = vcombine_s8(vqmovn_s16(low), vqmovn_s16(high));
    vst1q_s8(codes, part);
    return vaddlvq_s8(part);
}

#include "backend/cpu/tmpl/convert_tmpl.h"

void frit_install_neon_convert(frit_kernels *k)
{
    k->convert[FRIT_FORM_Q8] = convert_q8;
    k->convert[FRIT_FORM_Q8_LINES] = convert_q8_lines;
}
