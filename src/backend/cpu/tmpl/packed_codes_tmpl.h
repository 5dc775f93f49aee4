// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_codes_tmpl.h: a part of packed_tmpl.h: where the codes and scales of each packed type are. A
// type is a set of functions that its row of packed.def names.
#if !defined LANES || !defined INT16_SUMS || !defined BIASED || !defined FROM_ZERO || !defined BIAS || !defined PIN
#error "LANES, INT16_SUMS, BIASED, FROM_ZERO, BIAS and PIN: see the table of packed_tmpl.h"
#endif
#include "backend/cpu/pack/pack.h"
#include "quant/blocks.h"
#include "quant/levels.h"

enum { PANEL_STRIPS = FRIT_PANEL_ROWS / LANES };

// Addresses of the words and of the rest of one block, for the LANES rows of a strip.
typedef struct block_at {
    const uint8_t *words, *rest;
} block_at;

FRIT_INLINE vec word(block_at b, int i)
{
    return load(b.words + 64 * i);
}

FRIT_INLINE vec nibbles(vec v, int high)
{
    return bit_and(shift_right(v, 4 * high), splat_bytes(15));
}

// ------------------------------------------------------------------------------- types with one scale for a block

typedef struct type_32 {
    int n_words, rest_bytes;
    int units;                            // units of 32 columns in a block
    int bits;                             // bits of the largest code
    vec (*codes)(block_at b, int quad);   // a unit has eight quads
    vec_f (*scale)(block_at b);
    vec_f (*shift)(block_at b);   // NULL: codes are BIASED
} type_32;

static const uint8_t q4_0_levels[16] = {120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135};
// frit_iq4_levels.
static const uint8_t iq4_levels[16] = {BIASED(-127), BIASED(-104), BIASED(-83), BIASED(-65), BIASED(-49), BIASED(-35),
                                       BIASED(-22),  BIASED(-10),  BIASED(1),   BIASED(13),  BIASED(25),  BIASED(38),
                                       BIASED(53),   BIASED(69),   BIASED(89),  BIASED(113)};
// frit_fp4_levels, with 128 added and with 12 added.
static const uint8_t fp4_levels[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};
static const uint8_t fp4_low_levels[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

FRIT_INLINE vec_f scale_f16(block_at b)
{
    return load_f16s(b.rest);
}

FRIT_INLINE vec_f scale_low_f16(block_at b)
{
    return low_f16s(word(b, 0));
}

FRIT_INLINE vec_f shift_high_f16(block_at b)
{
    return low_f16s(shift_right(word(b, 0), 16));
}

// 2^(e - 128). The float's exponent is e - 1; for e below 2 the result is subnormal, so a mantissa bit is set instead.
FRIT_INLINE vec_f scale_mxfp4(block_at b)
{
    static const uint8_t below[16] = {1, 2};
    const vec e = bytes_as_words(b.rest), exponent = sub_words(max_words(e, splat_words(1)), splat_words(1));
    const vec mantissa = bit_and(shuffle(below, min_bytes(e, splat_words(2))), splat_words(255));
    return as_float(bit_or(shift_left(exponent, 23), shift_left(mantissa, 21)));
}

// The shifts of q4_0, q5_0 and mxfp4 whose codes count from zero (FROM_ZERO).
FRIT_INLINE vec_f shift_q4_0(block_at b)
{
    return mul(scale_f16(b), splat_f(-8));
}

FRIT_INLINE vec_f shift_q5_0(block_at b)
{
    return mul(scale_f16(b), splat_f(-16));
}

FRIT_INLINE vec_f shift_mxfp4(block_at b)
{
    return mul(scale_mxfp4(b), splat_f(-12));
}

FRIT_INLINE vec codes_q4_0(block_at b, int quad)
{
    const vec codes = nibbles(word(b, quad % 4), quad / 4);
    return INT16_SUMS ? codes : shuffle(q4_0_levels, codes);
}

FRIT_INLINE vec codes_iq4_nl(block_at b, int quad)
{
    return shuffle(iq4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_mxfp4(block_at b, int quad)
{
    return shuffle(INT16_SUMS ? fp4_low_levels : fp4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_q8_0(block_at b, int quad)
{
    return INT16_SUMS ? word(b, quad) : bit_xor(word(b, quad), splat_bytes(128));
}

FRIT_INLINE vec codes_q4_1(block_at b, int quad)
{
    return nibbles(word(b, 1 + quad % 4), quad / 4);
}

// 16 in byte i of each word where its bit 4 * quad + i is set.
FRIT_INLINE vec fifth_bits(vec bits, int quad)
{
    static const uint8_t picks[2][4] = {{1, 2, 4, 8}, {16, 32, 64, 128}};
    const vec bit = bit_and(broadcast_byte(bits, quad / 2), broadcast_word(picks[quad % 2]));
    return shift_left(min_bytes(bit, splat_bytes(1)), 4);
}

FRIT_INLINE vec codes_q5_0(block_at b, int quad)
{
    const vec low = nibbles(word(b, 1 + quad % 4), quad / 4), codes = bit_or(low, fifth_bits(word(b, 0), quad));
    return INT16_SUMS ? codes : add_bytes(codes, splat_bytes(112));
}

FRIT_INLINE vec codes_q5_1(block_at b, int quad)
{
    return bit_or(nibbles(word(b, 2 + quad % 4), quad / 4), fifth_bits(word(b, 1), quad));
}

// ------------------------------------------------------------------------------- types with blocks of 256

typedef struct scales_256 {
    vec scales[4], mins[4];   // as the type packs them, mostly bytes
    vec_f d, d_min;
    block_at at;   // for scales that lie among the codes
} scales_256;

enum { CARRIED = 8 };   // registers that `unpack` carries from unit to unit

typedef struct type_256 {
    int n_words, rest_bytes;
    int group;   // columns with one scale: 16 or 32
    int bits;    // bits of the largest code
    int bias;    // added to the codes: 0, 4, 32 or 64 for groups of 16; 0 or 128 for groups of 32
    // Unpacks the eight quads of a unit. Called for units 0 to 7 in order; `carry` keeps registers between the calls.
    void (*unpack)(block_at b, int unit, vec *carry, vec *codes);
    scales_256 (*scales)(block_at b);
    vec (*scale)(const scales_256 *s, int g);
    vec (*min)(const scales_256 *s, int g);   // NULL: none
} type_256;

FRIT_INLINE vec scale_unsigned(const scales_256 *s, int g)
{
    const vec v = shift_right(s->scales[g / 4], g % 4 * 8);
    return g % 4 == 3 ? v : bit_and(v, splat_words(255));
}

FRIT_INLINE vec min_unsigned(const scales_256 *s, int g)
{
    const vec v = shift_right(s->mins[g / 4], g % 4 * 8);
    return g % 4 == 3 ? v : bit_and(v, splat_words(255));
}

FRIT_INLINE vec scale_signed(const scales_256 *s, int g)
{
    return shift_right_signed(shift_left(s->scales[g / 4], 24 - g % 4 * 8), 24);
}

// Codes of two bits. 32 columns lie in the same bits of eight words.
FRIT_INLINE vec two_bits(block_at b, int first_word, int quad)
{
    const int unit = quad / 8;
    return bit_and(shift_right(word(b, first_word + unit / 4 * 8 + quad % 8), unit % 4 * 2), splat_bytes(3));
}

FRIT_INLINE vec four_bits(block_at b, int first_word, int quad)
{
    const int unit = quad / 8;
    return nibbles(word(b, first_word + unit / 2 * 8 + quad % 8), unit % 2);
}

// Shifts v so that bit `from` of each byte comes to bit `to`. The caller masks the other bits.
FRIT_INLINE vec move_bit(vec v, int from, int to)
{
    return from >= to ? shift_right(v, from - to) : shift_left(v, to - from);
}

FRIT_INLINE vec codes_q2_k(block_at b, int quad)
{
    return two_bits(b, 4, quad);
}

FRIT_INLINE scales_256 scales_q2_k(block_at b)
{
    scales_256 s = {.d = low_f16s(word(b, 20)), .d_min = low_f16s(shift_right(word(b, 20), 16))};
    for (int i = 0; i < 4; i++) {
        s.scales[i] = nibbles(word(b, i), 0);
        s.mins[i] = nibbles(word(b, i), 1);
    }
    return s;
}

// -4..3 with 32 added (28..35), or with 4 added under INT16_SUMS.
FRIT_INLINE vec codes_q3_k(block_at b, int quad)
{
    const vec high = move_bit(word(b, quad % 8), quad / 8, 2);
    const vec codes = masked_or(two_bits(b, 8, quad), high, splat_bytes(4));
    return INT16_SUMS ? codes : add_bytes(codes, splat_bytes(28));
}

FRIT_INLINE scales_256 scales_q3_k(block_at b)
{
    const vec low = word(b, 24), low_2 = word(b, 25), high = word(b, 26), two = splat_bytes(0x30);
    const vec offset = splat_bytes(32);
    return (scales_256){.scales = {sub_bytes(masked_or(nibbles(low, 0), shift_left(high, 4), two), offset),
                                   sub_bytes(masked_or(nibbles(low_2, 0), shift_left(high, 2), two), offset),
                                   sub_bytes(masked_or(nibbles(low, 1), high, two), offset),
                                   sub_bytes(masked_or(nibbles(low_2, 1), shift_right(high, 2), two), offset)},
                        .d = load_f16s(b.rest)};
}

FRIT_INLINE vec codes_q4_k(block_at b, int quad)
{
    return four_bits(b, 4, quad);
}

FRIT_INLINE scales_256 scales_q4_k(block_at b)   // drawn in quant/scales.h
{
    const vec s = word(b, 1), m = word(b, 2), low_bits = word(b, 3), six = splat_bytes(63), two = splat_bytes(0x30);
    return (scales_256){.scales = {bit_and(s, six), masked_or(nibbles(low_bits, 0), shift_right(s, 2), two)},
                        .mins = {bit_and(m, six), masked_or(nibbles(low_bits, 1), shift_right(m, 2), two)},
                        .d = low_f16s(word(b, 0)),
                        .d_min = low_f16s(shift_right(word(b, 0), 16))};
}

FRIT_INLINE vec codes_q5_k(block_at b, int quad)
{
    return masked_or(four_bits(b, 12, quad), move_bit(word(b, 4 + quad % 8), quad / 8, 4), splat_bytes(16));
}

FRIT_INLINE vec codes_q6_k(block_at b, int quad)
{
    const int part = quad / 32, unit = quad / 8 % 4, i = quad % 8;
    const vec low = nibbles(word(b, 16 * part + unit % 2 * 8 + i), unit / 2);
    return masked_or(low, move_bit(word(b, 32 + 8 * part + i), 2 * unit, 4), splat_bytes(0x30));
}

FRIT_INLINE scales_256 scales_q6_k(block_at b)
{
    return (scales_256){.scales = {word(b, 48), word(b, 49), word(b, 50), word(b, 51)}, .d = load_f16s(b.rest)};
}

FRIT_INLINE vec codes_iq4_xs(block_at b, int quad)
{
    return shuffle(iq4_levels, nibbles(word(b, 2 + quad / 8 * 4 + quad % 4), quad / 4 % 2));
}

FRIT_INLINE scales_256 scales_iq4_xs(block_at b)
{
    return (scales_256){.scales = {word(b, 1), shift_right(word(b, 0), 16)}, .d = low_f16s(word(b, 0))};
}

// A scale has four bits in one word and two in the other; 32 was added to it.
FRIT_INLINE vec scale_iq4_xs(const scales_256 *s, int g)
{
    const vec low = bit_and(shift_right(s->scales[0], 4 * g), splat_words(15));
    return sub_words(masked_or(low, move_bit(s->scales[1], 2 * g, 4), splat_words(0x30)), splat_words(32));
}

#include "backend/cpu/tmpl/packed_recoded_tmpl.h"

#define PACKED_32(...)
#define PACKED_256(name, ...)                                                    \
    FRIT_INLINE void unpack_##name(block_at b, int unit, vec *carry, vec *codes) \
    {                                                                            \
        (void)carry;                                                             \
        FRIT_UNROLL(8)                                                           \
        for (int q = 0; q < 8; q++) {                                            \
            codes[q] = codes_##name(b, 8 * unit + q);                            \
            PIN(&codes[q]);                                                      \
        }                                                                        \
    }
#include "backend/cpu/pack/packed.def"
#undef PACKED_32
#undef PACKED_256
