// SPDX-License-Identifier: MIT
// backend/cpu/arm/dot_dotprod.h: products of bytes for packed_tmpl.h by SDOT, which multiplies all rows by one lane of
// the activations.
#pragma once
#include "backend/cpu/arm/vec_neon.h"

typedef int8x16_t x_quads;

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    return vld1q_s8(p);
}

FRIT_INLINE int32x4_t dot_lane(int32x4_t sum, int8x16_t codes, x_quads x, int i)
{
    switch (i) {   // the lane is part of the instruction; i is a constant where this is inlined
    case 0:
        return vdotq_laneq_s32(sum, codes, x, 0);
    case 1:
        return vdotq_laneq_s32(sum, codes, x, 1);
    case 2:
        return vdotq_laneq_s32(sum, codes, x, 2);
    default:
        return vdotq_laneq_s32(sum, codes, x, 3);
    }
}

FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    return vreinterpretq_u32_s32(dot_lane(signed_words(sum), signed_bytes(codes), x, i));
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}

#include "backend/cpu/tmpl/packed_dots_tmpl.h"
