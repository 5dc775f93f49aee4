// SPDX-License-Identifier: MIT
// backend/cpu/x86/kept_avx512vnni_tmpl.h: a part of packed_tmpl.h: what many tokens are multiplied by is kept as it was
// opened, and where that is faster two panels are multiplied side by side.
//
// A quad of activations is loaded into all words of a register once for both panels: on Zen 5 a product whose operand
// is such a load runs once a cycle, one of registers twice. Registers hold the dots of two panels and six tokens; the
// sums stay in memory, since compilers keep them and the codes on the stack otherwise (docs/speed/products.md).
#pragma once
#include "backend/cpu/tmpl/packed_unit_tmpl.h"

enum { STRIPS = 2, MAX_PAIR_TOKENS = 6 };

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

typedef vec kept_dots[STRIPS][MAX_TOKENS];

// dots = start + quads [begin, begin + n) of a unit of each strip times each token's.
FRIT_INLINE void dot_strips(const unit *u, kind k, int n_strips, int begin, int n, rows r, int n_x, kept_dots dots)
{
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j++) {
        const vec start = start_dots(token(r, j), k, begin / 4);
#pragma GCC unroll 2
        for (int s = 0; s < n_strips; s++) dots[s][j] = start;
    }
#pragma GCC unroll 8
    for (int q = begin; q < begin + n; q++) {
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) {
            const vec x = loaded_words(token(r, j)->codes + 4 * q);
#pragma GCC unroll 2
            for (int s = 0; s < n_strips; s++) dots[s][j] = _mm512_dpbusd_epi32(dots[s][j], u[s * UNITS].codes[q], x);
        }
    }
}

// The same sums in the same order as add_unit's.
FRIT_INLINE void add_strips(const unit *u, kind k, int n_strips, rows r, int n_x, vec_f *totals)
{
    const bool whole = is_whole(k);
    kept_dots dots;
    vec_f parts[STRIPS][MAX_TOKENS];
    dot_strips(u, k, n_strips, 0, whole ? 8 : 4, r, n_x, dots);
    if (!whole) {
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) {
#pragma GCC unroll 2
            for (int s = 0; s < n_strips; s++) parts[s][j] = mul(to_float(dots[s][j]), u[s * UNITS].scales[0]);
        }
        dot_strips(u, k, n_strips, 4, 4, r, n_x, dots);
    }
#pragma GCC unroll 16
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
        vec_f sums[MAX_TOKENS];
        for (int j = 0; j < n_x; j++) sums[j] = totals[j];
        for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
            if (next) bring(next);
            add_unit(&u[i], k, r, n_x, sums);
        }
        for (int j = 0; j < n_x; j++) totals[j] = sums[j];
        return;
    }
    for (int i = 0; i < n_units; i++, r.x += sizeof(frit_q8_line)) {
        for (int s = 0; next && s < n_strips; s++) bring(next);
        add_strips(u + i, k, n_strips, r, n_x, totals);
    }
}

// Sums of one register of rows and n_x tokens, as `tile` leaves them, as one for each token.
FRIT_INLINE void settle(vec_f *sums, int64_t n_x)
{
    (void)sums;
    (void)n_x;
}
