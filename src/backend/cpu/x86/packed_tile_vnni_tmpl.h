// SPDX-License-Identifier: MIT
// backend/cpu/x86/packed_tile_vnni_tmpl.h: a part of packed_tmpl.h: tiles of two strips for `vpdpbusd`.
//
// A quad of activations is loaded into all words of a register once for both strips: on Zen 5 a product whose operand
// is such a load runs once a cycle, a product of registers twice. Registers hold the dots of both strips and a few
// tokens; the sums stay in memory, since compilers spill sums and codes otherwise (docs/log/products.md).
//
// The including file defines broadcast_by_load(p), the word at p in all words, and dot_loaded(sum, codes, words).
#pragma once
#include "backend/cpu/tmpl/packed_plain_tmpl.h"

#define TILE_STRIPS 2
enum { MAX_PAIR_TOKENS = 6 };

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return MAX_PAIR_TOKENS;
}

typedef vec strip_dots[TILE_STRIPS][MAX_PAIR_TOKENS];

// dots = start + the products of quads [begin, begin + n) of a unit of each strip and each token.
FRIT_INLINE void dot_strips(const unit *u, kind k, int n_strips, int begin, int n, rows r, int n_x, strip_dots dots)
{
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) {
        const vec start = start_dots(token(r, j), k, begin / 4);
        FRIT_UNROLL(2)
        for (int s = 0; s < n_strips; s++) dots[s][j] = start;
    }
    FRIT_UNROLL(8)
    for (int q = begin; q < begin + n; q++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            const vec x = broadcast_by_load(token(r, j)->codes + 4 * q);
            FRIT_UNROLL(2)
            for (int s = 0; s < n_strips; s++) dots[s][j] = dot_loaded(dots[s][j], u[s * UNITS].codes[q], x);
        }
    }
}

// Adds in the order of add_unit, so that results are the same bits.
FRIT_INLINE void add_strips(const unit *u, kind k, int n_strips, rows r, int n_x, vec_f *totals)
{
    const bool one_scale = has_one_scale(k);
    strip_dots dots;
    vec_f parts[TILE_STRIPS][MAX_PAIR_TOKENS];
    dot_strips(u, k, n_strips, 0, one_scale ? 8 : 4, r, n_x, dots);
    if (!one_scale) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            FRIT_UNROLL(2)
            for (int s = 0; s < n_strips; s++) parts[s][j] = mul(to_float(dots[s][j]), u[s * UNITS].scales[0]);
        }
        dot_strips(u, k, n_strips, 4, 4, r, n_x, dots);
    }
    FRIT_UNROLL(16)
    for (int i = 0; i < n_x * n_strips; i++) {
        const int s = i % n_strips, j = i / n_strips;
        totals[i] = add_dots(u + s * UNITS, k, one_scale ? zero_f() : parts[s][j], dots[s][j],
                             factors_of(token(r, j), k), totals[i]);
    }
}

// Adds the products of 256 columns and n_x tokens to their sums, [token][strip]. n_strips and n_x are constants where
// this is inlined. `next` may be NULL.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, tile_input r, int n_x, vec_f *totals,
                      prefetch_plan *next)
{
    if (n_strips == 1) {
        one_strip(u, k, n_units, r, n_x, totals, next);
        return;
    }
    for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
        for (int s = 0; next && s < n_strips; s++) prefetch_next(next, next->part_bytes);
        add_strips(u + i, k, n_strips, r, n_x, totals);
    }
}
