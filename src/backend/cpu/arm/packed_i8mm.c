// SPDX-License-Identifier: MIT
// Products of packed weights with the matrix products of ARMv8.6, for more tokens than two. SMMLA multiplies eight
// columns of two rows by the same of two tokens; a sum holds
//
//     row 0, token 0 | row 0, token 1 | row 1, token 0 | row 1, token 1
//
// So two quads of four rows are kept as eight columns of rows 0 and 1, then of 2 and 3, and tokens go in pairs: the
// last one of an odd number is beside itself.
#include "backend/cpu/arm/dot_dotprod.h"

enum { MAX_TOKENS = 8, MAX_TOKENS_HALVES = 6, BLOCK_SUMS = 768 };

static const char isa[] = "i8mm";

#include "backend/cpu/tmpl/packed_unit_tmpl.h"

FRIT_INLINE void keep(vec codes[8])
{
    for (int q = 0; q < 8; q += 2) {
        const vec first = codes[q], second = codes[q + 1];
        codes[q] = vzip1q_u32(first, second);
        codes[q + 1] = vzip2q_u32(first, second);
    }
}

// Eight columns of two tokens: the first or the last eight of sixteen.
FRIT_INLINE int8x16_t pair(x_quads a, x_quads b, int last)
{
    const int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);
    return vreinterpretq_s8_s64(last ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

FRIT_INLINE vec start(const frit_q8_line *line, kind k, int half)
{
    return k == HALVES_BIASED ? all_words(&line->minus_32[half]) : zero();
}

FRIT_INLINE void dot_kept(const vec *codes, kind k, int half, int n_quads, rows r, int n_x, vec *dots)
{
    int32x4_t sums[MAX_TOKENS][2];   // [pair of tokens][pair of rows]
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j += 2) sums[j][0] = sums[j][1] = vdupq_n_s32(0);
#pragma GCC unroll 2
    for (int q = 0; q < n_quads; q += 4) {
        const int at = 16 * half + 4 * q;
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j += 2) {
            const x_quads a = four_quads(token(r, j)->codes + at);
            const x_quads b = j + 1 < n_x ? four_quads(token(r, j + 1)->codes + at) : a;
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++) {
                const int8x16_t x = pair(a, b, i);
                sums[j][0] = vmmlaq_s32(sums[j][0], signed_bytes(codes[q + 2 * i]), x);
                sums[j][1] = vmmlaq_s32(sums[j][1], signed_bytes(codes[q + 2 * i + 1]), x);
            }
        }
    }
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j++) {
        const int32x4_t low = sums[j / 2 * 2][0], high = sums[j / 2 * 2][1];
        const int32x4_t all = j % 2 ? vuzp2q_s32(low, high) : vuzp1q_s32(low, high);
        dots[j] = vreinterpretq_u32_s32(vaddq_s32(all, signed_words(start(token(r, j), k, half))));
    }
}

#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_i8mm(frit_kernels *k)
{
    install(k);
}
