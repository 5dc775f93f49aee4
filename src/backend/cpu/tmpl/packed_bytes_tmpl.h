// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_bytes_tmpl.h: a part of packed_unit_tmpl.h: HALVES_BYTES, units whose scales and mins, one
// for 16 columns, stay bytes of scales_256. The instruction that makes words of pairs of products multiplies these by
// scales, so the dots of both halves are one whole number; mins times the sums of the activations' codes are another.
// Only these two become floats, instead of two dots, two scales and two mins.
#pragma once

FRIT_INLINE void open_bytes(const scales_256 *scales, int i, unit *to)
{
    const int g = 2 * i;
    for (int h = 0; h < 2; h++) to->scales[h] = as_float(two_bytes(scales->scales[g / 4], g % 4 + h, g % 4 + h));
    to->scales[UNIT_SCALES - 1] = scales->d;
    to->mins[0] = as_float(two_bytes(scales->mins[g / 4], g % 4, g % 4 + 1));
    to->mins[1] = scales->d_min;
}

// sum + what a unit's dots times its scales are worth for a token.
FRIT_INLINE vec_f add_bytes_dots(const unit *u, vec dots, const frit_q8_line *line, vec_f sum)
{
    const vec mins = dot_16(as_words(u->mins[0]), all_words(line->sums));
    const vec_f all = mul_sub_from(to_float(mins), u->mins[1], mul(to_float(dots), u->scales[UNIT_SCALES - 1]));
    return mul_add(all, all_f(line->scale), sum);
}

FRIT_INLINE void add_bytes_unit(const unit *u, rows r, int n_x, vec_f *sums)
{
    vec dots[MAX_TOKENS];
    FRIT_UNROLL(2)
    for (int h = 0; h < 2; h++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            const vec pairs = pairs_of(u->codes + 4 * h, four_quads(token(r, j)->codes + 16 * h), 0, 4);
            const vec dot = dot_16(pairs, as_words(u->scales[h]));
            dots[j] = h == 0 ? dot : add_words(dots[j], dot);
            keep_order(&dots[j]);
        }
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) sums[j] = add_bytes_dots(u, dots[j], token(r, j), sums[j]);
}
