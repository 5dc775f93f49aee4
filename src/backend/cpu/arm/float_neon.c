// SPDX-License-Identifier: MIT
// Products with f32, f16 and bf16 weights for NEON.
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

#include "backend/cpu/tmpl/float_tmpl.h"

void frit_install_neon_float(frit_kernels *k)
{
    install(k, "neon");
}
