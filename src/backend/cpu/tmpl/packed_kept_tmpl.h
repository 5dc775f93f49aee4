// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_kept_tmpl.h: a part of packed_tmpl.h: what many tokens are multiplied by is kept as it was
// opened, and multiplied as few tokens are. GRAIN is 1.
#include "backend/cpu/tmpl/packed_opened_tmpl.h"

enum { STRIPS = 1, PAIRS_ONLY_IN_ORDER = true };

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return 0;
}

// n_x is a constant where this is inlined.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, kept_rows r, int n_x, vec_f *totals,
                      ahead *next)
{
    (void)n_strips;
    one_strip(u, k, n_units, r, n_x, totals, next);
}
