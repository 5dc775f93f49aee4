// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_opened_tmpl.h: a part of packed_tmpl.h for instruction sets that keep units and activations
// as they were opened, for many tokens too: nothing is turned or copied before the products.
#pragma once
#include "backend/cpu/tmpl/packed_unit_tmpl.h"

typedef rows kept_rows;

typedef struct kept_room {
    uint8_t unused;
} kept_room;

FRIT_INLINE void keep(unit *u, kind k)
{
    (void)u;
    (void)k;
}

FRIT_INLINE kept_rows keep_rows(kept_room *room, rows r, int64_t n_x, int n_units)
{
    (void)room;
    (void)n_x;
    (void)n_units;
    return r;
}

FRIT_INLINE kept_rows kept_from(kept_rows r, int64_t j)   // token j and those after it
{
    r.x += (size_t)j * r.stride;
    return r;
}

// Adds the products of 256 columns and n_x tokens to the sums of one register of rows. `next` may be NULL.
FRIT_INLINE void one_strip(const unit *u, kind k, int n_units, kept_rows r, int n_x, vec_f *totals, ahead *next)
{
    vec_f sums[MAX_TOKENS];
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
        if (next) bring(next, next->part_bytes);
        add_unit(&u[i], k, r, n_x, sums);
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

// Sums of one register of rows and n_x tokens, as `tile` leaves them, as one for each token.
FRIT_INLINE void settle(vec_f *sums, int64_t n_x)
{
    (void)sums;
    (void)n_x;
}
