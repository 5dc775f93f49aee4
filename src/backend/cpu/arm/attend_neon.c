// SPDX-License-Identifier: MIT
// Attention by rows (ops/attend.h), and writing f16 to the cache, for NEON.
#include "backend/cpu/arm/math_neon.h"
#include "backend/cpu/arm/neon.h"

enum {
    PAGE_VECTORS = 4,
    VALUES_OF_FOUR = 4,
    MOST_VALUES = 16,
};

#include "backend/cpu/tmpl/attend_rows_tmpl.h"

static void encode_f16(const float *x, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += FLOATS) {
        uint16_t f16s[FLOATS];
        const int64_t left = n - i < FLOATS ? n - i : FLOATS;
        vst1_u16(f16s, vreinterpret_u16_f16(vcvt_f16_f32(load_part(x + i, left))));
        memcpy(y + 2 * i, f16s, (size_t)left * 2);
    }
}

void frit_install_neon_attend(frit_kernels *k)
{
    install_attend(k);
    k->encode[FRIT_DTYPE_F16] = encode_f16;
}
