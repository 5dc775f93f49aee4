// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_tile_tmpl.h: a part of packed_tmpl.h: tiles of one strip. TOKEN_GROUP is 1.
#include "backend/cpu/tmpl/packed_plain_tmpl.h"

#define TILE_STRIPS         1
#define PAIRS_ONLY_IN_ORDER 1

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return 0;
}

// n_x is a constant where this is inlined.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, tile_input r, int n_x, vec_f *totals,
                      prefetch_plan *next)
{
    (void)n_strips;
    one_strip(u, k, n_units, r, n_x, totals, next);
}
