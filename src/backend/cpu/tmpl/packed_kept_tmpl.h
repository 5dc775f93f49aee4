// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_kept_tmpl.h: a part of packed_tmpl.h: codes that many tokens read are kept as they were
// opened, and multiplied as those that few do.
#include "backend/cpu/tmpl/packed_unit_tmpl.h"

FRIT_INLINE void keep(vec codes[8])
{
    (void)codes;
}

FRIT_INLINE void dot_kept(const vec *codes, kind k, int half, int n_quads, rows r, int n_x, vec *dots)
{
    dot_quads(codes, k, half, n_quads, r, n_x, dots);
}
