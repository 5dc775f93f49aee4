// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_dots_tmpl.h: a part of packed_tmpl.h for instruction sets whose `dot` adds each quad to
// 32-bit sums.
#include "backend/cpu/tmpl/packed_word_sums.h"

#define QUADS_4BIT 1
#define QUADS_5BIT 1
#define QUADS_6BIT 1

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return dot(sum, codes[0], x, i);
}

// The functions below exist so that packed_bytes_tmpl.h compiles. Without INT16_SUMS nothing calls them.
FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return dot(zero(), codes[0], x, i);
}

FRIT_INLINE vec bytes_to_int16(vec v, int i, int j)
{
    (void)i;
    (void)j;
    return v;
}

FRIT_INLINE vec dot_int16(vec a, vec b)
{
    return bit_and(a, b);
}

FRIT_INLINE vec as_words(vec_f bits)
{
    return to_int(bits);
}
