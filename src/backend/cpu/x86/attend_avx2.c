// SPDX-License-Identifier: MIT
// Attention by rows (ops/attend.h), and writing f16 to the cache, for AVX2.
#include "backend/cpu/x86/vec/math_avx2.h"

enum {
    PAGE_VECTORS = 2,
    VALUES_OF_FOUR = 2,
    MOST_VALUES = 8,
    ROUND = _MM_FROUND_TO_NEAREST_INT,
};

#include "backend/cpu/tmpl/attend_rows_tmpl.h"

static void encode_f16(const float *x, uint8_t *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), ROUND));
    for (; i < n; i++) {
        const uint16_t half = (uint16_t)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x[i]), ROUND), 0);
        memcpy(y + 2 * i, &half, 2);
    }
}

void frit_install_avx2_attend(frit_kernels *k)
{
    install_attend(k);
    k->encode[FRIT_DTYPE_F16] = encode_f16;
}
