// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_plain_tmpl.h: a part of packed_tmpl.h for instruction sets whose tiles read units and
// activations as they are: nothing is rearranged or copied before the products.
#pragma once
#include "backend/cpu/tmpl/packed_unit_tmpl.h"

typedef rows tile_input;

typedef struct tile_buffer {
    uint8_t unused;
} tile_buffer;

FRIT_INLINE void arrange_unit(unit *u, kind k)
{
    (void)u;
    (void)k;
}

FRIT_INLINE tile_input arrange_tokens(tile_buffer *buffer, rows r, int64_t n_x, int n_units)
{
    (void)buffer;
    (void)n_x;
    (void)n_units;
    return r;
}

FRIT_INLINE tile_input input_from(tile_input r, int64_t j)
{
    r.x += (size_t)j * r.stride;
    return r;
}

// Adds the products of 256 columns and n_x tokens to the sums of one register of rows. `next` may be NULL.
FRIT_INLINE void one_strip(const unit *u, kind k, int n_units, tile_input r, int n_x, vec_f *totals,
                           prefetch_plan *next)
{
    vec_f sums[MAX_TOKENS];
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
        if (next) prefetch_next(next, next->part_bytes);
        add_unit(&u[i], k, r, n_x, sums);
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

FRIT_INLINE void deinterleave_sums(vec_f *sums, int64_t n_x)
{
    (void)sums;
    (void)n_x;
}
