// SPDX-License-Identifier: MIT
// backend/cpu/x86/kept_vnni_tmpl.h: a part of packed_tmpl.h for `vpdpbusd`: what many tokens are multiplied by is kept
// as it was opened, and two registers of rows are multiplied side by side.
//
// A quad of activations is loaded into all words of a register once for both: on Zen 5 a product whose operand is such
// a load runs once a cycle, one of registers twice. Registers hold the dots of both and of a few tokens; the sums stay
// in memory, since compilers keep them and the codes on the stack otherwise (docs/log/products.md).
//
// The including file has loaded_words, and dot_loaded: sum + the products of codes and such words.
#pragma once
#include "backend/cpu/tmpl/packed_opened_tmpl.h"

enum { STRIPS = 2, MAX_PAIR_TOKENS = 6 };

FRIT_INLINE int pair_tokens(kind k)
{
    (void)k;
    return MAX_PAIR_TOKENS;
}

typedef vec kept_dots[STRIPS][MAX_PAIR_TOKENS];

// dots = start + quads [begin, begin + n) of a unit of each strip times each token's.
FRIT_INLINE void dot_strips(const unit *u, kind k, int n_strips, int begin, int n, rows r, int n_x, kept_dots dots)
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
            const vec x = loaded_words(token(r, j)->codes + 4 * q);
            FRIT_UNROLL(2)
            for (int s = 0; s < n_strips; s++) dots[s][j] = dot_loaded(dots[s][j], u[s * UNITS].codes[q], x);
        }
    }
}

// The same sums in the same order as add_unit's.
FRIT_INLINE void add_strips(const unit *u, kind k, int n_strips, rows r, int n_x, vec_f *totals)
{
    const bool whole = is_whole(k);
    kept_dots dots;
    vec_f parts[STRIPS][MAX_PAIR_TOKENS];
    dot_strips(u, k, n_strips, 0, whole ? 8 : 4, r, n_x, dots);
    if (!whole) {
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
        totals[i] = add_dots(u + s * UNITS, k, whole ? zero_f() : parts[s][j], dots[s][j], factors_of(token(r, j), k),
                             totals[i]);
    }
}

// Adds the products of 256 columns and n_x tokens to their sums, [token][strip]; n_strips and n_x are constants where
// this is inlined. `next` may be NULL.
FRIT_INLINE void tile(const unit *u, kind k, int n_strips, int n_units, kept_rows r, int n_x, vec_f *totals,
                      ahead *next)
{
    if (n_strips == 1) {
        one_strip(u, k, n_units, r, n_x, totals, next);
        return;
    }
    for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
        for (int s = 0; next && s < n_strips; s++) bring(next, next->part_bytes);
        add_strips(u + i, k, n_strips, r, n_x, totals);
    }
}
