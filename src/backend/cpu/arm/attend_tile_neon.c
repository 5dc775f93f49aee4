// SPDX-License-Identifier: MIT
// Attention by tiles (ops/attend.h) for NEON: four queries are the lanes of a vector.
#include "backend/cpu/arm/math_neon.h"
#include "backend/cpu/arm/neon.h"

enum { ROWS = 8 };

FRIT_INLINE vec_f relative(const int32_t *p, int32_t to)
{
    return vcvtq_f32_s32(vsubq_s32(vld1q_s32(p), vdupq_n_s32(to)));
}

FRIT_INLINE bool any_larger(vec_f a, vec_f b)
{
    return vmaxvq_u32(vcgtq_f32(a, b)) != 0;
}

FRIT_INLINE vec_f within(vec_f at, vec_f low, vec_f high, vec_f yes, vec_f no)
{
    return vbslq_f32(vandq_u32(vcgeq_f32(at, low), vcltq_f32(at, high)), yes, no);
}

#include "backend/cpu/tmpl/attend_tile_tmpl.h"

void frit_install_neon_attend_tile(frit_kernels *k)
{
    k->attend_tile = attend_tile;
    k->attend_fold = fold;
    k->lanes = FLOATS;
}
