// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_codes_tmpl.h: where the codes and scales of each packed type are, in operations on `vec`,
// which the file that includes this has defined for its instruction set: words of LANES rows.
//
// A type is a handful of functions, which its row of packed.def names. The including file has packed_wide.h before
// this, or defines what is in it:
//
//     LOW_CODES        1: many products of small codes are added before they become words. Codes of a few bits are
//                      multiplied from zero then, and what is too much is a min; otherwise so much is added to them
//                      that they are like those of other types
//     WIDE(code)       a code of eight bits as it is multiplied
//     FROM_ZERO, ADDED what packed.def has for codes from zero
//     PIN(v)           where compilers run out of registers: codes are unpacked one after the other
#include "backend/cpu/pack/pack.h"
#include "quant/blocks.h"
#include "quant/levels.h"

enum { HALVES = FRIT_PANEL_ROWS / LANES };

// Where the words and the rest of one block begin for the rows of this half.
typedef struct block_at {
    const uint8_t *words, *rest;
} block_at;

FRIT_INLINE vec word(block_at b, int i)
{
    return load(b.words + 64 * i);
}

FRIT_INLINE vec nibbles(vec v, int high)
{
    return both(right(v, 4 * high), all_bytes(15));
}

// ------------------------------------------------------------------------------- types with one scale for a block

typedef struct type_32 {
    int n_words, rest_bytes;
    int units;                            // of 32 columns in a block
    int bits;                             // of the largest code
    vec (*codes)(block_at b, int quad);   // eight for each unit
    vec_f (*scale)(block_at b);
    vec_f (*shift)(block_at b);   // NULL: codes have 128 added
} type_32;

static const uint8_t q4_0_levels[16] = {120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135};
// frit_iq4_levels, and frit_fp4_levels with 128 added.
static const uint8_t iq4_levels[16] = {WIDE(-127), WIDE(-104), WIDE(-83), WIDE(-65), WIDE(-49), WIDE(-35),
                                       WIDE(-22),  WIDE(-10),  WIDE(1),   WIDE(13),  WIDE(25),  WIDE(38),
                                       WIDE(53),   WIDE(69),   WIDE(89),  WIDE(113)};
static const uint8_t fp4_levels[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};
static const uint8_t fp4_low_levels[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};   // 12 added

FRIT_INLINE vec_f scale_half(block_at b)
{
    return halves(b.rest);
}

FRIT_INLINE vec_f scale_first_half(block_at b)
{
    return low_halves(word(b, 0));
}

FRIT_INLINE vec_f shift_second_half(block_at b)
{
    return low_halves(right(word(b, 0), 16));
}

// 2^(e - 128): e - 1 as the exponent of a float, or below it one of the mantissa's highest bits.
FRIT_INLINE vec_f scale_mxfp4(block_at b)
{
    static const uint8_t below[16] = {1, 2};
    const vec e = bytes_as_words(b.rest), exponent = sub_words(max_words(e, same_words(1)), same_words(1));
    const vec mantissa = both(look_up(below, min_bytes(e, same_words(2))), same_words(255));
    return as_float(either(left(exponent, 23), left(mantissa, 21)));
}

FRIT_INLINE vec_f shift_q4_0(block_at b)   // of codes from zero, as the next two
{
    return mul(scale_half(b), all_f(-8));
}

FRIT_INLINE vec_f shift_q5_0(block_at b)
{
    return mul(scale_half(b), all_f(-16));
}

FRIT_INLINE vec_f shift_mxfp4(block_at b)
{
    return mul(scale_mxfp4(b), all_f(-12));
}

FRIT_INLINE vec codes_q4_0(block_at b, int quad)
{
    const vec codes = nibbles(word(b, quad % 4), quad / 4);
    return LOW_CODES ? codes : look_up(q4_0_levels, codes);
}

FRIT_INLINE vec codes_iq4_nl(block_at b, int quad)
{
    return look_up(iq4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_mxfp4(block_at b, int quad)
{
    return look_up(LOW_CODES ? fp4_low_levels : fp4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_q8_0(block_at b, int quad)
{
    return LOW_CODES ? word(b, quad) : flip(word(b, quad), all_bytes(128));
}

FRIT_INLINE vec codes_q4_1(block_at b, int quad)
{
    return nibbles(word(b, 1 + quad % 4), quad / 4);
}

// 16 in byte i of each word where its bit 4 * quad + i is set.
FRIT_INLINE vec fifth_bits(vec bits, int quad)
{
    static const uint8_t picks[2][4] = {{1, 2, 4, 8}, {16, 32, 64, 128}};
    const vec bit = both(spread_byte(bits, quad / 2), all_words(picks[quad % 2]));
    return left(min_bytes(bit, all_bytes(1)), 4);
}

FRIT_INLINE vec codes_q5_0(block_at b, int quad)
{
    const vec low = nibbles(word(b, 1 + quad % 4), quad / 4), codes = either(low, fifth_bits(word(b, 0), quad));
    return LOW_CODES ? codes : add_bytes(codes, all_bytes(112));
}

FRIT_INLINE vec codes_q5_1(block_at b, int quad)
{
    return either(nibbles(word(b, 2 + quad % 4), quad / 4), fifth_bits(word(b, 1), quad));
}

// ------------------------------------------------------------------------------- types with blocks of 256

typedef struct scales_256 {
    vec scales[4], mins[4];   // what holds those of a row; bytes, mostly
    vec_f d, d_min;
    block_at at;   // for scales that lie among the codes
} scales_256;

enum { KEPT = 8 };   // registers

typedef struct type_256 {
    int n_words, rest_bytes;
    int group;   // columns with one scale: 16 or 32
    int bits;    // of the largest code
    int bias;    // what was added to the codes: 0, of groups of 16 also 4, 32 or 64, of those of 32 also 128
    // The eight quads of unit 0..7, one after the other: `kept` is for what one finds for those after it.
    void (*open)(block_at b, int unit, vec *kept, vec *codes);
    scales_256 (*scales)(block_at b);
    vec (*scale)(const scales_256 *s, int g);
    vec (*min)(const scales_256 *s, int g);   // NULL: none
} type_256;

FRIT_INLINE vec scale_unsigned(const scales_256 *s, int g)
{
    const vec v = right(s->scales[g / 4], g % 4 * 8);
    return g % 4 == 3 ? v : both(v, same_words(255));
}

FRIT_INLINE vec min_unsigned(const scales_256 *s, int g)
{
    const vec v = right(s->mins[g / 4], g % 4 * 8);
    return g % 4 == 3 ? v : both(v, same_words(255));
}

FRIT_INLINE vec scale_signed(const scales_256 *s, int g)
{
    return right_signed(left(s->scales[g / 4], 24 - g % 4 * 8), 24);
}

// Two or four bits of codes: 32 columns lie in the same bits of eight words.
FRIT_INLINE vec two_bits(block_at b, int first_word, int quad)
{
    const int unit = quad / 8;
    return both(right(word(b, first_word + unit / 4 * 8 + quad % 8), unit % 4 * 2), all_bytes(3));
}

FRIT_INLINE vec four_bits(block_at b, int first_word, int quad)
{
    const int unit = quad / 8;
    return nibbles(word(b, first_word + unit / 2 * 8 + quad % 8), unit % 2);
}

// v's bit `from` of each byte moved to bit `to`, the others as they come.
FRIT_INLINE vec move_bit(vec v, int from, int to)
{
    return from >= to ? right(v, from - to) : left(v, to - from);
}

FRIT_INLINE vec codes_q2_k(block_at b, int quad)
{
    return two_bits(b, 4, quad);
}

FRIT_INLINE scales_256 scales_q2_k(block_at b)
{
    scales_256 s = {.d = low_halves(word(b, 20)), .d_min = low_halves(right(word(b, 20), 16))};
    for (int i = 0; i < 4; i++) {
        s.scales[i] = nibbles(word(b, i), 0);
        s.mins[i] = nibbles(word(b, i), 1);
    }
    return s;
}

// -4..3 as 28..35, or from zero.
FRIT_INLINE vec codes_q3_k(block_at b, int quad)
{
    const vec high = move_bit(word(b, quad % 8), quad / 8, 2);
    const vec codes = masked_or(two_bits(b, 8, quad), high, all_bytes(4));
    return LOW_CODES ? codes : add_bytes(codes, all_bytes(28));
}

FRIT_INLINE scales_256 scales_q3_k(block_at b)
{
    const vec low = word(b, 24), low_too = word(b, 25), high = word(b, 26), two = all_bytes(0x30);
    const vec offset = all_bytes(32);
    return (scales_256){.scales = {sub_bytes(masked_or(nibbles(low, 0), left(high, 4), two), offset),
                                   sub_bytes(masked_or(nibbles(low_too, 0), left(high, 2), two), offset),
                                   sub_bytes(masked_or(nibbles(low, 1), high, two), offset),
                                   sub_bytes(masked_or(nibbles(low_too, 1), right(high, 2), two), offset)},
                        .d = halves(b.rest)};
}

FRIT_INLINE vec codes_q4_k(block_at b, int quad)
{
    return four_bits(b, 4, quad);
}

FRIT_INLINE scales_256 scales_q4_k(block_at b)   // drawn in quant/scales.h
{
    const vec s = word(b, 1), m = word(b, 2), both_low = word(b, 3), six = all_bytes(63), two = all_bytes(0x30);
    return (scales_256){.scales = {both(s, six), masked_or(nibbles(both_low, 0), right(s, 2), two)},
                        .mins = {both(m, six), masked_or(nibbles(both_low, 1), right(m, 2), two)},
                        .d = low_halves(word(b, 0)),
                        .d_min = low_halves(right(word(b, 0), 16))};
}

FRIT_INLINE vec codes_q5_k(block_at b, int quad)
{
    return masked_or(four_bits(b, 12, quad), move_bit(word(b, 4 + quad % 8), quad / 8, 4), all_bytes(16));
}

FRIT_INLINE vec codes_q6_k(block_at b, int quad)
{
    const int half = quad / 32, unit = quad / 8 % 4, i = quad % 8;
    const vec low = nibbles(word(b, 16 * half + unit % 2 * 8 + i), unit / 2);
    return masked_or(low, move_bit(word(b, 32 + 8 * half + i), 2 * unit, 4), all_bytes(0x30));
}

FRIT_INLINE scales_256 scales_q6_k(block_at b)
{
    return (scales_256){.scales = {word(b, 48), word(b, 49), word(b, 50), word(b, 51)}, .d = halves(b.rest)};
}

FRIT_INLINE vec codes_iq4_xs(block_at b, int quad)
{
    return look_up(iq4_levels, nibbles(word(b, 2 + quad / 8 * 4 + quad % 4), quad / 4 % 2));
}

FRIT_INLINE scales_256 scales_iq4_xs(block_at b)
{
    return (scales_256){.scales = {word(b, 1), right(word(b, 0), 16)}, .d = low_halves(word(b, 0))};
}

// Four bits of each scale in one word, two in the other, and 32 added.
FRIT_INLINE vec scale_iq4_xs(const scales_256 *s, int g)
{
    const vec low = both(right(s->scales[0], 4 * g), same_words(15));
    return sub_words(masked_or(low, move_bit(s->scales[1], 2 * g, 4), same_words(0x30)), same_words(32));
}

#include "backend/cpu/tmpl/packed_recoded_tmpl.h"

#define PACKED_32(...)
#define PACKED_256(name, ...)                                                 \
    FRIT_INLINE void open_##name(block_at b, int unit, vec *kept, vec *codes) \
    {                                                                         \
        (void)kept;                                                           \
        FRIT_UNROLL(8)                                                        \
        for (int q = 0; q < 8; q++) {                                         \
            codes[q] = codes_##name(b, 8 * unit + q);                         \
            PIN(&codes[q]);                                                   \
        }                                                                     \
    }
#include "backend/cpu/pack/packed.def"
#undef PACKED_32
#undef PACKED_256
