// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_recoded_tmpl.h: a part of packed_codes_tmpl.h: types whose blocks are recoded when they are
// packed. quant/recode.h draws the recoded blocks.

// ------------------------------------------------------------------------------- two or three levels

FRIT_INLINE vec_f shift_negative_f16(block_at b)
{
    return mul(load_f16s(b.rest), splat_f(-1));
}

FRIT_INLINE vec codes_q1_0(block_at b, int quad)   // 0 and 2
{
    return bit_and(move_bit(word(b, quad / 8), quad % 8, 1), splat_bytes(2));
}

FRIT_INLINE vec codes_q2_0(block_at b, int quad)
{
    return bit_and(shift_right(word(b, quad / 8 * 2 + quad % 2), quad % 8 / 2 * 2), splat_bytes(3));
}

FRIT_INLINE vec codes_tq1_0(block_at b, int quad)
{
    return two_bits(b, 0, quad);
}

FRIT_INLINE vec codes_tq2_0(block_at b, int quad)
{
    return two_bits(b, 0, quad);
}

FRIT_INLINE scales_256 scales_tq(block_at b)
{
    return (scales_256){.d = load_f16s(b.rest), .d_min = load_f16s(b.rest)};
}

FRIT_INLINE vec one(const scales_256 *s, int g)
{
    (void)s;
    (void)g;
    return splat_words(1);
}

// ------------------------------------------------------------------------------- NVFP4

FRIT_INLINE vec codes_nvfp4(block_at b, int quad)   // 32 added
{
    static const uint8_t levels[16] = {32, 33, 34, 35, 36, 38, 40, 44, 32, 31, 30, 29, 28, 26, 24, 20};
    return shuffle(levels, nibbles(word(b, 4 + quad / 4 * 2 + quad % 2), quad % 4 / 2));
}

// Half of an E4M3 number, as a multiple of 2^-10. Shifted by 7, its bits are an f16 that is 2^8 times smaller.
FRIT_INLINE scales_256 scales_nvfp4(block_at b)
{
    return (scales_256){.scales = {word(b, 0), word(b, 1), word(b, 2), word(b, 3)}, .d = splat_f(0x1p-10f)};
}

FRIT_INLINE vec scale_nvfp4(const scales_256 *s, int g)
{
    return to_int(mul(low_f16s(shift_left(scale_unsigned(s, g), 7)), splat_f(0x1p17f)));
}

// ------------------------------------------------------------------------------- grids

// 2 * n + 1, where n is the nibble of group g.
FRIT_INLINE vec scale_odd(const scales_256 *s, int g)
{
    return bit_or(shift_left(bit_and(shift_right(s->scales[g / 8], g % 8 * 4), splat_words(15)), 1), splat_words(1));
}

FRIT_INLINE scales_256 scales_from(block_at b, int first_word, int n, float factor)
{
    scales_256 s = {.d = mul(load_f16s(b.rest), splat_f(factor))};
    for (int i = 0; i < n; i++) s.scales[i] = word(b, first_word + i);
    s.d_min = s.d;
    return s;
}

FRIT_INLINE scales_256 scales_iq1_s(block_at b)
{
    scales_256 s = scales_from(b, 16, 1, 1);
    s.d_min = mul(s.d, splat_f(0.125f));
    return s;
}

FRIT_INLINE scales_256 scales_16_eighth(block_at b)
{
    return scales_from(b, 24, 2, 0.125f);
}

FRIT_INLINE scales_256 scales_iq2_xxs(block_at b)
{
    return scales_from(b, 24, 1, 0.125f);
}

FRIT_INLINE scales_256 scales_iq3_xxs(block_at b)
{
    return scales_from(b, 32, 1, 0.25f);
}

FRIT_INLINE scales_256 scales_iq3_s(block_at b)
{
    return scales_from(b, 32, 1, 1);
}

FRIT_INLINE vec codes_iq1_s(block_at b, int quad)
{
    return two_bits(b, 0, quad);
}

FRIT_INLINE vec scale_iq1_s(const scales_256 *s, int g)
{
    return bit_or(shift_left(bit_and(shift_right(s->scales[0], g * 4), splat_words(7)), 1), splat_words(1));
}

// Codes are 1 too large, and the shift is an eighth up or down, so the min is 7 or 9 eighths of the scale.
FRIT_INLINE vec min_iq1_s(const scales_256 *s, int g)
{
    const vec scale = scale_iq1_s(s, g), down = shift_right_signed(shift_left(s->scales[0], 28 - g * 4), 31);
    return sub_words(shift_left(scale, 3), sub_words(scale, shift_left(bit_and(scale, down), 1)));
}

// Codes of two bits from one plane and a third bit from another.
FRIT_INLINE vec three_bits(block_at b, int quad)
{
    return masked_or(two_bits(b, 0, quad), move_bit(word(b, 16 + quad % 8), quad / 8, 2), splat_bytes(4));
}

FRIT_INLINE vec codes_iq1_m(block_at b, int quad)   // eighths, 32 added
{
    static const uint8_t levels[16] = {25, 33, 41, 0, 23, 31, 39, 0};
    return shuffle(levels, three_bits(b, quad));
}

FRIT_INLINE vec codes_iq2_xxs(block_at b, int quad)
{
    static const uint8_t levels[16] = {BIASED(8), BIASED(25), BIASED(43), 0, BIASED(-8), BIASED(-25), BIASED(-43), 0};
    return shuffle(levels, three_bits(b, quad));
}

FRIT_INLINE vec codes_iq2_s(block_at b, int quad)   // 64 added
{
    static const uint8_t levels[16] = {72, 89, 107, 0, 56, 39, 21, 0};
    return shuffle(levels, three_bits(b, quad));
}

FRIT_INLINE vec codes_iq2_xs(block_at b, int quad)
{
    return codes_iq2_s(b, quad);
}

FRIT_INLINE vec codes_iq3_xxs(block_at b, int quad)
{
    static const uint8_t levels[16] = {BIASED(4),   BIASED(12),  BIASED(20),  BIASED(28),  BIASED(36),  BIASED(44),
                                       BIASED(52),  BIASED(62),  BIASED(-4),  BIASED(-12), BIASED(-20), BIASED(-28),
                                       BIASED(-36), BIASED(-44), BIASED(-52), BIASED(-62)};
    return shuffle(levels, four_bits(b, 0, quad));
}

FRIT_INLINE vec codes_iq3_s(block_at b, int quad)
{
    static const uint8_t levels[16] = {BIASED(1),  BIASED(3),   BIASED(5),   BIASED(7),  BIASED(9),  BIASED(11),
                                       BIASED(13), BIASED(15),  BIASED(-1),  BIASED(-3), BIASED(-5), BIASED(-7),
                                       BIASED(-9), BIASED(-11), BIASED(-13), BIASED(-15)};
    return shuffle(levels, four_bits(b, 0, quad));
}
