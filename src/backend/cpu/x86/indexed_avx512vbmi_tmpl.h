// SPDX-License-Identifier: MIT
// backend/cpu/x86/indexed_avx512vbmi_tmpl.h: codes of panels that keep the file's indices into grids, or its digits
// (packed_indexed.def).
//
// One instruction looks up 64 bytes in a table of 128: a word of 16 rows has one byte for each of four spans of eight
// columns (or four lower or upper parts of spans). The table entry of a span is
//
//     a byte for each two of its columns: each nibble is the index of a column's level, with the sign in its highest
// bit
//     a byte for each four of its columns: two bits a column; signs are added later
//
// Where the four spans have one scale, quad c of a unit is column c of each span, and activations have the form
// FRIT_FORM_Q8_TRANSPOSED. Where they have two, bits are moved to the order of the columns.
//
// The including file includes tmpl/packed_codes_tmpl.h first.

// 2 * n + 1, where n is the lowest four bits of each word.
FRIT_INLINE vec odd_of(vec nibbles_at)
{
    const vec odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutexvar_epi32(nibbles_at, odds);
}

FRIT_INLINE vec scale_index(const scales_256 *s, int g)
{
    return odd_of(shift_right(s->scales[g / 8], g % 8 * 4));
}

FRIT_INLINE vec shuffle_128(const uint8_t *table, vec index)   // ignores bit 7 of an index
{
    return _mm512_permutex2var_epi8(load(table), index, load(table + 64));
}

FRIT_INLINE vec shuffle_256(const uint8_t *table, vec index, __mmask64 bit_7)
{
    return _mm512_mask_blend_epi8(bit_7, shuffle_128(table, index), shuffle_128(table + 128, index));
}

// Indices of two units, so that a table is loaded once for both. bits[k] is the mask of the indices whose bit 7 + k is
// set.
typedef struct lookups {
    vec index[2];
    __mmask64 bits[4][2];
} lookups;

FRIT_INLINE void find_128(const uint8_t *table, const lookups *at, vec out[2])
{
    const vec low = load(table), high = load(table + 64);
    FRIT_UNROLL(2)
    for (int u = 0; u < 2; u++) out[u] = _mm512_permutex2var_epi8(low, at->index[u], high);
}

#define FIND(n, part, bit)                                                                              \
    FRIT_INLINE void find_##n(const uint8_t *table, const lookups *at, vec out[2])                      \
    {                                                                                                   \
        vec low[2], high[2];                                                                            \
        find_##part(table, at, low);                                                                    \
        find_##part(table + part, at, high);                                                            \
        for (int u = 0; u < 2; u++) out[u] = _mm512_mask_blend_epi8(at->bits[bit][u], low[u], high[u]); \
    }
FIND(256, 128, 0)
FIND(512, 256, 1)
FIND(1024, 512, 2)
FIND(2048, 1024, 3)

// Codes of a unit. pairs[k] has the nibbles of columns 2 k and 2 k + 1 of each span.
FRIT_INLINE void unpack_pairs(const vec pairs[4], const uint8_t levels[16], vec *codes)
{
    const vec of_nibble = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)levels));
    FRIT_UNROLL(4)
    for (int k = 0; k < 4; k++) {
        // The instruction reads six bits of an index; the table repeats, so the upper two of them do not matter.
        codes[2 * k] = _mm512_permutexvar_epi8(pairs[k], of_nibble);
        codes[2 * k + 1] = _mm512_permutexvar_epi8(shift_right(pairs[k], 4), of_nibble);
    }
}

#define FOURS(of, i)   of(i), of((i) + 1), of((i) + 2), of((i) + 3)
#define SIXTEEN(of, i) FOURS(of, i), FOURS(of, (i) + 4), FOURS(of, (i) + 8), FOURS(of, (i) + 12)
#define FROM_128(of, i)                                                                                         \
    SIXTEEN(of, i), SIXTEEN(of, (i) + 16), SIXTEEN(of, (i) + 32), SIXTEEN(of, (i) + 48), SIXTEEN(of, (i) + 64), \
        SIXTEEN(of, (i) + 80), SIXTEEN(of, (i) + 96), SIXTEEN(of, (i) + 112)
#define ALL_64(of)                                                         \
    {                                                                      \
        SIXTEEN(of, 0), SIXTEEN(of, 16), SIXTEEN(of, 32), SIXTEEN(of, 48), \
    }
#define ALL_128(of)     \
    {                   \
        FROM_128(of, 0) \
    }
#define ALL_256(of)                        \
    {                                      \
        FROM_128(of, 0), FROM_128(of, 128) \
    }

// A span has seven sign bits; the eighth makes the number of signs even. Table k has the signs of columns 2 k and
// 2 k + 1 in the highest bits of the nibbles.
#define PARITY(i)  (((i) ^ (i) >> 1 ^ (i) >> 2 ^ (i) >> 3 ^ (i) >> 4 ^ (i) >> 5 ^ (i) >> 6) & 1)
#define SIGNS(i)   ((i) | PARITY(i) << 7)
#define SIGNS_0(i) ((SIGNS(i) & 1) << 3 | (SIGNS(i) & 2) << 6)
#define SIGNS_1(i) ((SIGNS(i) & 4) << 1 | (SIGNS(i) & 8) << 4)
#define SIGNS_2(i) ((SIGNS(i) & 16) >> 1 | (SIGNS(i) & 32) << 2)
#define SIGNS_3(i) ((SIGNS(i) & 64) >> 3 | (SIGNS(i) & 128))
static const _Alignas(64) uint8_t even_signs[4][128] = {ALL_128(SIGNS_0), ALL_128(SIGNS_1), ALL_128(SIGNS_2),
                                                        ALL_128(SIGNS_3)};

// A word has the seven sign bits of four spans in its lower 28 bits.
FRIT_INLINE void add_even_signs(vec fours, vec pairs[4])
{
    const vec places = _mm512_set1_epi64(0x352e2720150e0700);
    const vec sevens = _mm512_multishift_epi64_epi8(places, fours);
    FRIT_UNROLL(4)
    for (int k = 0; k < 4; k++) pairs[k] = bit_or(pairs[k], shuffle_128(even_signs[k], sevens));
}

// ------------------------------------------------------------------------------- IQ2_XXS

// Levels with 128 added.
static const uint8_t iq2_levels_128[16] = {136, 153, 171, 0, 0, 0, 0, 0, 120, 103, 85, 0, 0, 0, 0, 0};

// Two levels of a row of the grid as nibbles.
#define NIBBLES_2(row, at) ((row) >> (at)&3) | ((row) >> ((at) + 2) & 3) << 4,
// clang-format off
static const _Alignas(64) uint8_t iq2_xxs_pairs[4][256] = {{
#define IQ2_XXS(row) NIBBLES_2(row, 0)
#include "quant/grids.def"
}, {
#define IQ2_XXS(row) NIBBLES_2(row, 4)
#include "quant/grids.def"
}, {
#define IQ2_XXS(row) NIBBLES_2(row, 8)
#include "quant/grids.def"
}, {
#define IQ2_XXS(row) NIBBLES_2(row, 12)
#include "quant/grids.def"
}};
// clang-format on

FRIT_INLINE void unpack_iq2_xxs_index(block_at b, int i, vec *carry, vec *codes)
{
    (void)carry;
    const vec index = word(b, 2 * i);
    const __mmask64 bit_7 = _mm512_movepi8_mask(index);
    vec pairs[4];
    FRIT_UNROLL(4)
    for (int k = 0; k < 4; k++) pairs[k] = shuffle_256(iq2_xxs_pairs[k], index, bit_7);
    add_even_signs(word(b, 2 * i + 1), pairs);
    unpack_pairs(pairs, iq2_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq2_xxs_index(block_at b)
{
    return (scales_256){.d = mul(load_f16s(b.rest), splat_f(0.125f)), .at = b};
}

FRIT_INLINE vec scale_iq2_xxs_index(const scales_256 *s, int g)
{
    return odd_of(shift_right(word(s->at, 2 * g + 1), 28));
}

// ------------------------------------------------------------------------------- IQ2_XS, IQ2_S

// Byte c of a word gets eight bits from bit `first` + `step` * c on.
#define PLACE(first, step, c) ((uint64_t)(((first) + (step) * ((c) % 4) + (c) / 4 * 32) & 63) << 8 * (c))
#define PLACES(first, step)                                                                          \
    (PLACE(first, step, 0) | PLACE(first, step, 1) | PLACE(first, step, 2) | PLACE(first, step, 3) | \
     PLACE(first, step, 4) | PLACE(first, step, 5) | PLACE(first, step, 6) | PLACE(first, step, 7))

FRIT_INLINE vec bits_from(vec v, uint64_t places)
{
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64((int64_t)places), v);
}

// The level whose index in a table of 64 has bits 1 and 2 of `two_bits` and the other bits of `rest`.
FRIT_INLINE vec level_of(vec two_bits, vec rest, const uint8_t levels[64])
{
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(two_bits, rest, splat_bytes(6), 0xe4), load(levels));
}

// Levels with 64 added. The sign is bit 0 of the index for the first four columns of a span, bit 4 for the last four.
#define IQ2_MAGNITUDE(i)  ((((i) >> 1) & 3) == 0 ? 8 : (((i) >> 1) & 3) == 1 ? 25 : 43)
#define IQ2_LEVEL(i, bit) ((i) >> (bit)&1 ? 64 - IQ2_MAGNITUDE(i) : 64 + IQ2_MAGNITUDE(i))
#define IQ2_FIRST(i)      IQ2_LEVEL(i, 0)
#define IQ2_SECOND(i)     IQ2_LEVEL(i, 4)
static const _Alignas(64) uint8_t iq2_levels_64[2][64] = {ALL_64(IQ2_FIRST), ALL_64(IQ2_SECOND)};

// Codes in the order of the columns. `first` and `second` have two bits a column of the lower and upper parts of the
// four spans, `signs` a bit a column.
FRIT_INLINE void unpack_iq2(vec first, vec second, vec signs, vec *codes)
{
    FRIT_UNROLL(4)
    for (int span = 0; span < 4; span++) {
        const vec rest = bits_from(signs, PLACES(8 * span, 1));
        codes[2 * span] = level_of(bits_from(first, PLACES(8 * span + 63, 2)), rest, iq2_levels_64[0]);
        codes[2 * span + 1] = level_of(bits_from(second, PLACES(8 * span + 63, 2)), rest, iq2_levels_64[1]);
    }
}

// clang-format off
static const _Alignas(64) uint8_t iq2_xs_parts[2][512] = {{
#define IQ2_XS(row) (row) & 255,
#include "quant/grids.def"
}, {
#define IQ2_XS(row) (row) >> 8,
#include "quant/grids.def"
}};
static const _Alignas(64) uint8_t iq2_s_parts[2][1024] = {{
#define IQ2_S(row) (row) & 255,
#include "quant/grids.def"
}, {
#define IQ2_S(row) (row) >> 8,
#include "quant/grids.def"
}};
// clang-format on

static const _Alignas(64) uint8_t all_even_signs[128] = ALL_128(SIGNS);

FRIT_INLINE void unpack_iq2_xs_index(block_at b, int i, vec *carry, vec *codes)
{
    if (i % 2 == 0) {
        lookups at = {.index = {word(b, 2 * i), word(b, 2 * i + 2)}};
        FRIT_UNROLL(2)
        for (int u = 0; u < 2; u++) {
            at.bits[0][u] = _mm512_movepi8_mask(at.index[u]);
            at.bits[1][u] = _mm512_movepi8_mask(word(b, 2 * (i + u) + 1));
        }
        find_512(iq2_xs_parts[0], &at, carry);
        find_512(iq2_xs_parts[1], &at, carry + 2);
    }
    unpack_iq2(carry[i % 2], carry[2 + i % 2], shuffle_128(all_even_signs, word(b, 2 * i + 1)), codes);
}

FRIT_INLINE scales_256 scales_iq2_xs_index(block_at b)
{
    return scales_from(b, 16, 2, 0.125f);
}

// Words 0..7: indices, 8..15: signs, 16 and 17: a byte of each unit, two more bits of its indices.
FRIT_INLINE void unpack_iq2_s_index(block_at b, int i, vec *carry, vec *codes)
{
    if (i % 2 == 0) {
        lookups at = {.index = {word(b, i), word(b, i + 1)}};
        FRIT_UNROLL(2)
        for (int u = 0; u < 2; u++) {
            const vec high = broadcast_byte(word(b, 16 + i / 4), i % 4 + u);
            at.bits[0][u] = _mm512_movepi8_mask(at.index[u]);
            at.bits[1][u] = _mm512_test_epi8_mask(high, splat_words(0x40100401));
            at.bits[2][u] = _mm512_test_epi8_mask(high, splat_words((int)0x80200802));
        }
        find_1024(iq2_s_parts[0], &at, carry);
        find_1024(iq2_s_parts[1], &at, carry + 2);
    }
    unpack_iq2(carry[i % 2], carry[2 + i % 2], word(b, 8 + i), codes);
}

FRIT_INLINE scales_256 scales_iq2_s_index(block_at b)
{
    return scales_from(b, 18, 2, 0.125f);
}

// ------------------------------------------------------------------------------- IQ1_S, IQ1_M

// Row k of the grid is row k / 16 of table k % 16, two bits a column. iq1_lower has its first four columns, iq1_upper
// the last four.
enum { BEFORE_LOWER = __COUNTER__ };
#define AT_ROW(k, bits) [(k) % 16][(k) / 16] = (bits),
// clang-format off
static const _Alignas(64) uint8_t iq1_lower[16][128] = {
#define IQ1(row) AT_ROW(__COUNTER__ - BEFORE_LOWER - 1, (row) & 255)
#include "quant/grids.def"
};
enum { BEFORE_UPPER = __COUNTER__ };
static const _Alignas(64) uint8_t iq1_upper[16][128] = {
#define IQ1(row) AT_ROW(__COUNTER__ - BEFORE_UPPER - 1, (row) >> 8)
#include "quant/grids.def"
};
// clang-format on

// Sixteen neighbouring rows of the grid have at most two upper parts: the one of table 0 up to some row, then the one
// of table 15. This is the first such row, with bits 2..0 in place and bit 3 as the highest bit, as look_up_iq1
// compares it. 0: all rows have one upper part.
static const _Alignas(64) uint8_t iq1_cuts[128] = {
    0,   129, 0,   0,   129, 6,   0,   6,   6,   132, 134, 0,   6,   130, 0,   5,   7,   0,   129, 0,   0, 6,
    0,   7,   131, 0,   6,   128, 0,   1,   5,   132, 0,   0,   128, 7,   132, 135, 0,   5,   5,   0,   7, 5,
    134, 0,   0,   128, 0,   7,   131, 0,   134, 129, 0,   6,   0,   0,   2,   130, 0,   0,   6,   0,   0, 0,
    3,   0,   0,   128, 0,   6,   0,   133, 0,   129, 131, 0,   5,   3,   0,   6,   0,   128, 0,   128, 5, 0,
    2,   4,   132, 0,   4,   130, 6,   0,   4,   7,   0,   0,   4,   130, 134, 0,   133, 135, 0,   130, 0, 0,
    130, 0,   6,   128, 0,   130, 129, 0,   0,   4,   130, 129, 0,   2,   129, 134, 132, 0,
};

// Looks up units i and i + 1. low: bits 2..0 of a span's index in each byte. Words i and i + 1 have bits 10..4, and bit
// 3 as the highest bit. Writes to `carry` the lower parts of both units, their upper parts, and low.
FRIT_INLINE void look_up_iq1(block_at b, int i, const vec low[2], vec *carry)
{
    lookups at = {.index = {word(b, i), word(b, i + 1)}};
    FRIT_UNROLL(2)
    for (int u = 0; u < 2; u++) {
        const vec place = masked_or(bit_and(low[u], splat_bytes(7)), at.index[u], splat_bytes(0x80));
        const __mmask64 is_after = _mm512_cmpge_epu8_mask(place, shuffle_128(iq1_cuts, at.index[u]));
        carry[2 + u] = _mm512_mask_blend_epi8(is_after, shuffle_128(iq1_upper[0], at.index[u]),
                                              shuffle_128(iq1_upper[15], at.index[u]));
        carry[4 + u] = low[u];
        for (int k = 0; k < 3; k++) at.bits[k][u] = _mm512_test_epi8_mask(low[u], splat_bytes(1 << k));
        at.bits[3][u] = _mm512_movepi8_mask(at.index[u]);
    }
    find_2048(iq1_lower[0], &at, carry);
}

// Words 0..7: indices. Words 8..11: 16 bits for each unit: three bits of each index, then scale and shift.
FRIT_INLINE void unpack_iq1_s_index(block_at b, int i, vec *carry, vec *codes)
{
    const vec three = splat_bytes(3), high = word(b, 8 + i / 2);
    if (i % 2 == 0) look_up_iq1(b, i, (vec[2]){bits_from(high, PLACES(0, 3)), bits_from(high, PLACES(16, 3))}, carry);
    FRIT_UNROLL(8)
    for (int q = 0; q < 8; q++) codes[q] = bit_and(shift_right(carry[q / 4 * 2 + i % 2], q % 4 * 2), three);
}

FRIT_INLINE scales_256 scales_iq1_s_index(block_at b)
{
    const vec_f d = load_f16s(b.rest);
    return (scales_256){.d = d, .d_min = mul(d, splat_f(0.125f)), .at = b};
}

FRIT_INLINE vec nibble_iq1_s_index(const scales_256 *s, int g)
{
    return shift_right(word(s->at, 8 + g / 2), g % 2 * 16 + 12);
}

FRIT_INLINE vec scale_iq1_s_index(const scales_256 *s, int g)
{
    const vec odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm512_permutexvar_epi32(nibble_iq1_s_index(s, g), odds);
}

// Codes are 1 too large, so the min is 7 eighths of the scale, or 9 eighths if the fourth bit is set.
FRIT_INLINE vec min_iq1_s_index(const scales_256 *s, int g)
{
    const vec eighths = _mm512_setr_epi32(7, 21, 35, 49, 63, 77, 91, 105, 9, 27, 45, 63, 81, 99, 117, 135);
    return _mm512_permutexvar_epi32(nibble_iq1_s_index(s, g), eighths);
}

// Levels in eighths with 32 added. Bit 0 of an index: the shift is negative.
#define IQ1_M_LEVEL(i) (24 + 8 * ((i) >> 1 & 3) + ((i)&1 ? -1 : 1))
static const _Alignas(64) uint8_t iq1_m_levels[64] = ALL_64(IQ1_M_LEVEL);

// Words 0..7: indices. Words 8..11: a nibble for each span: three bits of its index, and the sign of its shift.
FRIT_INLINE void unpack_iq1_m_index(block_at b, int i, vec *carry, vec *codes)
{
    const vec high = word(b, 8 + i / 2);
    if (i % 2 == 0) look_up_iq1(b, i, (vec[2]){bits_from(high, PLACES(0, 4)), bits_from(high, PLACES(16, 4))}, carry);
    FRIT_UNROLL(4)
    for (int span = 0; span < 4; span++) {
        const vec rest = bits_from(carry[4 + i % 2], PLACES(8 * span + 3, 0));
        FRIT_UNROLL(2)
        for (int part = 0; part < 2; part++)
            codes[2 * span + part] =
                level_of(bits_from(carry[2 * part + i % 2], PLACES(8 * span + 63, 2)), rest, iq1_m_levels);
    }
}

// Words 12 and 13: four times 16 bits: the 3-bit scales of four groups, then four bits of d.
FRIT_INLINE scales_256 scales_iq1_m_index(block_at b)
{
    const vec first = word(b, 12), second = word(b, 13);
    const vec low =
        masked_or(bit_and(shift_right(first, 12), splat_words(15)), shift_right(first, 24), splat_words(0xf0));
    const vec high =
        masked_or(bit_and(shift_right(second, 4), splat_words(0xf00)), shift_right(second, 16), splat_words(0xf000));
    return (scales_256){.scales = {first, second}, .d = mul(low_f16s(bit_or(low, high)), splat_f(0.125f))};
}

FRIT_INLINE vec scale_iq1_m_index(const scales_256 *s, int g)
{
    const vec odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm512_permutexvar_epi32(shift_right(s->scales[g / 8], g / 4 % 2 * 16 + g % 4 * 3), odds);
}

// ------------------------------------------------------------------------------- TQ1_0

// The first four base-3 digits of a byte, two bits each, and the fifth (quant/low_bits.c).
#define DIGIT(i, power) ((((i) * (power)) & 255) * 3 >> 8)
#define FOUR_DIGITS(i)  (DIGIT(i, 1) | DIGIT(i, 3) << 2 | DIGIT(i, 9) << 4 | DIGIT(i, 27) << 6)
#define LAST_DIGIT(i)   DIGIT(i, 81)
static const _Alignas(64) uint8_t tq1_digits[2][256] = {ALL_256(FOUR_DIGITS), ALL_256(LAST_DIGIT)};

FRIT_INLINE vec digits_of(block_at b, int at, bool last)
{
    const vec bytes = word(b, at);
    return shuffle_256(tq1_digits[last], bytes, _mm512_movepi8_mask(bytes));
}

// A byte of words 0..7 has a digit for each of units 0..4. Words 8..11 have the digits of units 5, 6 and half of 7, and
// word 12 the last four.
FRIT_INLINE void unpack_tq1_0_digits(block_at b, int i, vec *carry, vec *codes)
{
    FRIT_UNROLL(8)
    for (int q = 0; q < 8; q++) {
        const int k = 8 * (i - 5) + q;   // quads after unit 4
        const int at = i < 5 ? q : k < 20 ? 8 + k % 4 : 12, digit = i < 5 ? i : k < 20 ? k / 4 : k - 20;
        if (digit == 0) carry[at % 8] = digits_of(b, at, false);
        codes[q] = digit < 4 ? bit_and(shift_right(carry[at % 8], 2 * digit), splat_bytes(3)) : digits_of(b, at, true);
    }
}

// ------------------------------------------------------------------------------- IQ3_XXS

static const uint8_t iq3_xxs_levels_128[16] = {132, 140, 148, 156, 164, 172, 180, 190,
                                               124, 116, 108, 100, 92,  84,  76,  66};

#define NIBBLES_3(row, at) ((row) >> (at)&7) | ((row) >> ((at) + 3) & 7) << 4,
// clang-format off
static const _Alignas(64) uint8_t iq3_xxs_pairs[2][256] = {{
#define IQ3_XXS(row) NIBBLES_3(row, 0)
#include "quant/grids.def"
}, {
#define IQ3_XXS(row) NIBBLES_3(row, 6)
#include "quant/grids.def"
}};
// clang-format on

// Words of a unit: indices of the lower parts of the four spans, of the upper parts, then signs and scale.
FRIT_INLINE void unpack_iq3_xxs_index(block_at b, int i, vec *carry, vec *codes)
{
    (void)carry;
    vec pairs[4];
    FRIT_UNROLL(2)
    for (int part = 0; part < 2; part++) {
        const vec index = word(b, 3 * i + part);
        const __mmask64 bit_7 = _mm512_movepi8_mask(index);
        pairs[2 * part] = shuffle_256(iq3_xxs_pairs[0], index, bit_7);
        pairs[2 * part + 1] = shuffle_256(iq3_xxs_pairs[1], index, bit_7);
    }
    add_even_signs(word(b, 3 * i + 2), pairs);
    unpack_pairs(pairs, iq3_xxs_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq3_xxs_index(block_at b)
{
    return (scales_256){.d = mul(load_f16s(b.rest), splat_f(0.25f)), .at = b};
}

FRIT_INLINE vec scale_iq3_xxs_index(const scales_256 *s, int g)
{
    return odd_of(shift_right(word(s->at, 3 * g + 2), 28));
}

// ------------------------------------------------------------------------------- IQ3_S

static const uint8_t iq3_s_levels_128[16] = {129, 131, 133, 135, 137, 139, 141, 143,
                                             127, 125, 123, 121, 119, 117, 115, 113};

// clang-format off
static const _Alignas(64) uint8_t iq3_s_pairs[2][512] = {{
#define IQ3_S(row) NIBBLES_3(row, 0)
#include "quant/grids.def"
}, {
#define IQ3_S(row) NIBBLES_3(row, 6)
#include "quant/grids.def"
}};
// clang-format on

FRIT_INLINE vec shuffle_512(const uint8_t *table, vec index, __mmask64 bit_7, __mmask64 bit_8)
{
    return _mm512_mask_blend_epi8(bit_8, shuffle_256(table, index, bit_7), shuffle_256(table + 256, index, bit_7));
}

// Words of a unit: indices of the lower parts of the four spans, of the upper parts, and signs: bits 3 - k and 7 - k of
// a byte are the signs of columns 2 k and 2 k + 1. Words 24 and 25 have a byte for each unit: bit l is the ninth bit of
// the lower index of span l, bit 4 + l of its upper index. Word 26 has the scale of each unit, a nibble.
FRIT_INLINE void unpack_iq3_s_index(block_at b, int i, vec *carry, vec *codes)
{
    (void)carry;
    const vec signs = word(b, 3 * i + 2), bits = broadcast_byte(word(b, 24 + i / 4), i % 4), ones = splat_bytes(0x88);
    vec pairs[4];
    FRIT_UNROLL(2)
    for (int part = 0; part < 2; part++) {
        const vec index = word(b, 3 * i + part);
        const __mmask64 bit_7 = _mm512_movepi8_mask(index);
        const __mmask64 bit_8 = _mm512_test_epi8_mask(bits, splat_words(part ? (int)0x80402010 : 0x08040201));
        pairs[2 * part] = shuffle_512(iq3_s_pairs[0], index, bit_7, bit_8);
        pairs[2 * part + 1] = shuffle_512(iq3_s_pairs[1], index, bit_7, bit_8);
    }
    FRIT_UNROLL(4)
    for (int k = 0; k < 4; k++) pairs[k] = masked_or(pairs[k], shift_left(signs, k), ones);
    unpack_pairs(pairs, iq3_s_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq3_s_index(block_at b)
{
    return (scales_256){.scales = {word(b, 26)}, .d = load_f16s(b.rest)};
}
