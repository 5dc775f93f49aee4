// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_dots_tmpl.h: a part of packed_tmpl.h, for instruction sets whose `dot` adds to words at once:
// it takes one quad after the other.
#include "backend/cpu/tmpl/packed_wide.h"

enum { AT_ONCE_16 = 1, AT_ONCE_32 = 1, AT_ONCE_64 = 1 };

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return dot(sum, codes[0], x, i);
}

// What only LOW_CODES has (packed_bytes_tmpl.h): nothing calls it.
FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    (void)n;
    return dot(zero(), codes[0], x, i);
}

FRIT_INLINE vec two_bytes(vec v, int i, int j)
{
    (void)i;
    (void)j;
    return v;
}

FRIT_INLINE vec dot_16(vec a, vec b)
{
    return both(a, b);
}

FRIT_INLINE vec as_words(vec_f bits)
{
    return to_whole(bits);
}
