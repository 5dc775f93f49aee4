// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_bytes_tmpl.h: a part of packed_unit_tmpl.h: G16_BYTE_SCALES, units with a scale and a min for
// each 16 columns, which stay bytes of scales_256. The instruction that adds pairs of int16 products to words
// multiplies them by the scales, so the dots of both groups are one integer. The mins times the sums of the activation
// codes are another. Only these two integers become floats, instead of two dots, two scales and two mins.
#pragma once

FRIT_INLINE void unpack_byte_scales(const scales_256 *scales, int i, unit *to)
{
    const int g = 2 * i;
    for (int h = 0; h < 2; h++) to->scales[h] = as_float(bytes_to_int16(scales->scales[g / 4], g % 4 + h, g % 4 + h));
    to->scales[UNIT_SCALES - 1] = scales->d;
    to->mins[0] = as_float(bytes_to_int16(scales->mins[g / 4], g % 4, g % 4 + 1));
    to->mins[1] = scales->d_min;
}

// sum + a unit's product with a token. `dots` are already multiplied by the byte scales.
FRIT_INLINE vec_f add_bytes_dots(const unit *u, vec dots, const frit_q8_line *line, vec_f sum)
{
    const vec mins = dot_int16(as_words(u->mins[0]), broadcast_word(line->sums));
    const vec_f all = mul_sub_from(to_float(mins), u->mins[1], mul(to_float(dots), u->scales[UNIT_SCALES - 1]));
    return mul_add(all, splat_f(line->scale), sum);
}

FRIT_INLINE void add_bytes_unit(const unit *u, rows r, int n_x, vec_f *sums)
{
    vec dots[MAX_TOKENS];
    FRIT_UNROLL(2)
    for (int h = 0; h < 2; h++) {
        FRIT_UNROLL(16)
        for (int j = 0; j < n_x; j++) {
            const vec pairs = pairs_of(u->codes + 4 * h, four_quads(token(r, j)->codes + 16 * h), 0, 4);
            const vec dot = dot_int16(pairs, as_words(u->scales[h]));
            dots[j] = h == 0 ? dot : add_words(dots[j], dot);
            keep_order(&dots[j]);
        }
    }
    FRIT_UNROLL(16)
    for (int j = 0; j < n_x; j++) sums[j] = add_bytes_dots(u, dots[j], token(r, j), sums[j]);
}
