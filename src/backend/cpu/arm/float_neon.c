// SPDX-License-Identifier: MIT
// Products with f32, f16, bf16 and fp8_128 weights for NEON.
#include "backend/cpu/arm/floats_neon.h"
#include "backend/cpu/arm/neon.h"

enum {
    LANES = FLOATS,
    COLUMNS = 512,
    BAND_ROWS = 16,
    TILE_ROWS = 4,
    TILE_TOKENS = 4,
    IN_ORDER_ROWS = 4,
    IN_ORDER_AHEAD = 8 << 10,   // bytes
    ROWS_OF_TWO = 8,
    MAX_SUMS = 16,
};

FRIT_INLINE void prefetch(const uint8_t *p)
{
    __builtin_prefetch(p);
}

FRIT_INLINE void store_f32(float *y, vec_f v)
{
    store_f(y, v);
}

FRIT_INLINE vec_f sum_4(vec_f a, vec_f b, vec_f c, vec_f d)
{
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}

FRIT_INLINE void store_4(float *y, vec_f sums, bool add)   // add: to the values of y
{
    store_f(y, add ? add_f(sums, load_f(y)) : sums);
}

FRIT_INLINE float sum_1(vec_f v)   // adds in the order of sum_4
{
    return vgetq_lane_f32(sum_4(v, v, v, v), 0);
}

// LANES codes of e4m3, times `scale`. A code is an f16 number divided by 256.
FRIT_INLINE vec_f load_e4m3(const uint8_t *codes, float scale)
{
    uint8_t part[8] = {codes[0], codes[1], codes[2], codes[3]};
    const uint16x4_t c = vget_low_u16(vmovl_u8(vld1_u8(part)));
    const uint16x4_t sign = vshl_n_u16(vand_u16(c, vdup_n_u16(0x80)), 8);
    const uint16x4_t size = vshl_n_u16(vand_u16(c, vdup_n_u16(0x7f)), 7);
    return vmulq_n_f32(f16_to_f32(vorr_u16(sign, size)), scale);
}

#include "backend/cpu/tmpl/float_tmpl.h"

void frit_install_neon_float(frit_kernels *k)
{
    install(k, "neon");
}
