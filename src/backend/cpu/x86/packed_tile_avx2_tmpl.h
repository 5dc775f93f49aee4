// SPDX-License-Identifier: MIT
// backend/cpu/x86/packed_tile_avx2_tmpl.h: a part of packed_tmpl.h: tiles of both strips of a panel for AVX2.
//
// A load of a quad of activations into all words serves both strips: there are two loads a cycle, and a product takes
// half a cycle where its pairs are added as int16. Registers hold the pairs or dots of two strips and a few tokens; the
// sums stay in memory.
#pragma once
#include "backend/cpu/tmpl/packed_plain_tmpl.h"

#define TILE_STRIPS 2
enum { MAX_PAIR_TOKENS = 6 };

// Tokens of a tile, the fastest numbers of docs/log/products.md. G32_INT8 needs a register for magnitudes, and units
// with two groups need one for the first group's result.
FRIT_INLINE int pair_tokens(kind k)
{
    return !has_one_scale(k) ? 4 : k == G32_INT8 ? 5 : MAX_PAIR_TOKENS;
}

typedef vec strip_dots[TILE_STRIPS][MAX_PAIR_TOKENS];

// dots += the products of quads [begin, begin + n) of a unit of each strip and each token. Pairs of all n quads are
// added as int16. G16_BYTE_SCALES multiplies them by integer scales.
FRIT_INLINE void dot_together(const unit *u, kind k, int n_strips, int begin, int n, rows r, int n_x, strip_dots dots)
{
    strip_dots pairs;
    FRIT_UNROLL(8)
    for (int q = begin; q < begin + n; q++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            const vec x = broadcast_by_load(token(r, j)->codes + 4 * q);
            FRIT_UNROLL(2)
            for (int s = 0; s < n_strips; s++) {
                const vec products = _mm256_maddubs_epi16(u[s * UNITS].codes[q], x);
                pairs[s][j] = q == begin ? products : _mm256_add_epi16(pairs[s][j], products);
                pin(&pairs[s][j]);
            }
        }
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) {
        FRIT_UNROLL(2)
        for (int s = 0; s < n_strips; s++) {
            if (k != G16_BYTE_SCALES) {
                dots[s][j] = add_int16_pairs(dots[s][j], pairs[s][j]);
                continue;
            }
            const vec dot = dot_int16(pairs[s][j], as_words(u[s * UNITS].scales[begin / 4]));
            dots[s][j] = begin == 0 ? dot : add_words(dots[s][j], dot);
        }
    }
}

// dots = start + the products of quads [begin, begin + n) of a unit of each strip and each token.
FRIT_INLINE void dot_strips(const unit *u, kind k, int n_strips, int begin, int n, rows r, int n_x, strip_dots dots)
{
    const int together = quads_at_once(k);
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x && k != G16_BYTE_SCALES; j++) {
        const vec start = start_dots(token(r, j), k, begin / 4);
        FRIT_UNROLL(2)
        for (int s = 0; s < n_strips; s++) dots[s][j] = start;
    }
    FRIT_UNROLL(8)
    for (int q = begin; q < begin + n; q += together) {
        if (together >= 4) {
            dot_together(u, k, n_strips, q, together, r, n_x, dots);
            continue;
        }
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            vec x[2];
            FRIT_UNROLL(2)
            for (int i = 0; i < together; i++) x[i] = broadcast_by_load(token(r, j)->codes + 4 * (q + i));
            FRIT_UNROLL(2)
            for (int s = 0; s < n_strips; s++) {
                const vec *codes = u[s * UNITS].codes + q;
                if (k == G32_INT8) {
                    dots[s][j] = dot_int8_by(dots[s][j], codes[0], x[0]);
                    pin(&dots[s][j]);
                    continue;
                }
                vec pairs = _mm256_maddubs_epi16(codes[0], x[0]);
                if (together == 2) pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes[1], x[1]));
                dots[s][j] = add_int16_pairs(dots[s][j], pairs);
                pin(&dots[s][j]);
            }
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
            for (int s = 0; s < n_strips; s++) {
                if (k == G16_BYTE_SCALES)
                    leave_in_memory(&dots[s][j]);
                else
                    parts[s][j] = mul(to_float(dots[s][j]), u[s * UNITS].scales[0]);
            }
        }
        dot_strips(u, k, n_strips, 4, 4, r, n_x, dots);
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) {
        const line_factors f = factors_of(token(r, j), k);
        FRIT_UNROLL(2)
        for (int s = 0; s < n_strips; s++) {
            vec_f *total = totals + j * n_strips + s;
            if (k == G16_BYTE_SCALES) {
                *total = add_bytes_dots(u + s * UNITS, dots[s][j], token(r, j), *total);
                continue;
            }
            *total = add_dots(u + s * UNITS, k, one_scale ? zero_f() : parts[s][j], dots[s][j], f, *total);
        }
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
