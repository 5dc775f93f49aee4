// SPDX-License-Identifier: MIT
// backend/cpu/x86/indexed_avx512vbmi_tmpl.h: codes of panels that keep the file's indices into grids
// (packed_indexed.def).
//
// One instruction looks up 64 bytes in 128 others: a word of 16 rows by four runs of eight columns (or halves of runs).
// What is found for a run is a byte for each two of its columns, whose nibbles are the places of the columns' levels,
// and in the highest bit of a nibble is the sign. So quad c of a unit is column c of each of the four runs, and
// activations are turned likewise (FRIT_FORM_Q8_TURNED).
//
// The including file has tmpl/packed_codes_tmpl.h before this.

FRIT_INLINE vec look_up_128(const uint8_t *table, vec index)   // bit 7 of an index does not count
{
    return _mm512_permutex2var_epi8(load(table), index, load(table + 64));
}

FRIT_INLINE vec look_up_256(const uint8_t *table, vec index, __mmask64 bit_7)
{
    return _mm512_mask_blend_epi8(bit_7, look_up_128(table, index), look_up_128(table + 128, index));
}

// Codes of a unit: pairs[k] has the nibbles of columns 2 k and 2 k + 1 of each run.
FRIT_INLINE void open_pairs(const vec pairs[4], const uint8_t levels[16], vec *codes)
{
    const vec of_nibble = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)levels));
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        // Six bits of an index count, and the upper two change nothing.
        codes[2 * k] = _mm512_permutexvar_epi8(pairs[k], of_nibble);
        codes[2 * k + 1] = _mm512_permutexvar_epi8(right(pairs[k], 4), of_nibble);
    }
}

#define FOURS(of, i)   of(i), of((i) + 1), of((i) + 2), of((i) + 3)
#define SIXTEEN(of, i) FOURS(of, i), FOURS(of, (i) + 4), FOURS(of, (i) + 8), FOURS(of, (i) + 12)
#define ALL_128(of)                                                                                          \
    {                                                                                                        \
        SIXTEEN(of, 0), SIXTEEN(of, 16), SIXTEEN(of, 32), SIXTEEN(of, 48), SIXTEEN(of, 64), SIXTEEN(of, 80), \
            SIXTEEN(of, 96), SIXTEEN(of, 112)                                                                \
    }

// Signs of columns 2 k and 2 k + 1 in the highest bits of the nibbles, of seven bits; the eighth makes them even.
#define PARITY(i)  (((i) ^ (i) >> 1 ^ (i) >> 2 ^ (i) >> 3 ^ (i) >> 4 ^ (i) >> 5 ^ (i) >> 6) & 1)
#define SIGNS(i)   ((i) | PARITY(i) << 7)
#define SIGNS_0(i) ((SIGNS(i) & 1) << 3 | (SIGNS(i) & 2) << 6)
#define SIGNS_1(i) ((SIGNS(i) & 4) << 1 | (SIGNS(i) & 8) << 4)
#define SIGNS_2(i) ((SIGNS(i) & 16) >> 1 | (SIGNS(i) & 32) << 2)
#define SIGNS_3(i) ((SIGNS(i) & 64) >> 3 | (SIGNS(i) & 128))
static const _Alignas(64) uint8_t even_signs[4][128] = {ALL_128(SIGNS_0), ALL_128(SIGNS_1), ALL_128(SIGNS_2),
                                                        ALL_128(SIGNS_3)};

// The four times seven bits of a word: its highest four are something else.
FRIT_INLINE void add_even_signs(vec fours, vec pairs[4])
{
    const vec places = _mm512_set1_epi64(0x352e2720150e0700);
    const vec sevens = _mm512_multishift_epi64_epi8(places, fours);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) pairs[k] = either(pairs[k], look_up_128(even_signs[k], sevens));
}

// ------------------------------------------------------------------------------- IQ2_XXS

static const uint8_t iq2_levels_128[16] = {136, 153, 171, 0, 0, 0, 0, 0, 120, 103, 85, 0, 0, 0, 0, 0};   // 128 added

// Two levels of a row's number as nibbles.
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

FRIT_INLINE void open_iq2_xxs_index(block_at b, int i, vec *codes)
{
    const vec index = word(b, 2 * i);
    const __mmask64 bit_7 = _mm512_movepi8_mask(index);
    vec pairs[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) pairs[k] = look_up_256(iq2_xxs_pairs[k], index, bit_7);
    add_even_signs(word(b, 2 * i + 1), pairs);
    open_pairs(pairs, iq2_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq2_xxs_index(block_at b)
{
    return (scales_256){.d = mul(halves(b.rest), all_f(0.125f)), .at = b};
}

FRIT_INLINE vec scale_iq2_xxs_index(const scales_256 *s, int g)
{
    return either(left(right(word(s->at, 2 * g + 1), 28), 1), same_words(1));
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

// Words of a unit: indices of the first halves of the four runs, of the second halves, signs and scale.
FRIT_INLINE void open_iq3_xxs_index(block_at b, int i, vec *codes)
{
    vec pairs[4];
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        const vec index = word(b, 3 * i + half);
        const __mmask64 bit_7 = _mm512_movepi8_mask(index);
        pairs[2 * half] = look_up_256(iq3_xxs_pairs[0], index, bit_7);
        pairs[2 * half + 1] = look_up_256(iq3_xxs_pairs[1], index, bit_7);
    }
    add_even_signs(word(b, 3 * i + 2), pairs);
    open_pairs(pairs, iq3_xxs_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq3_xxs_index(block_at b)
{
    return (scales_256){.d = mul(halves(b.rest), all_f(0.25f)), .at = b};
}

FRIT_INLINE vec scale_iq3_xxs_index(const scales_256 *s, int g)
{
    return either(left(right(word(s->at, 3 * g + 2), 28), 1), same_words(1));
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

FRIT_INLINE vec look_up_512(const uint8_t *table, vec index, __mmask64 bit_7, __mmask64 bit_8)
{
    return _mm512_mask_blend_epi8(bit_8, look_up_256(table, index, bit_7), look_up_256(table + 256, index, bit_7));
}

// Words of a unit: indices of the first halves of the four runs, of the second halves; signs: bits 3 - k and 7 - k of a
// byte are those of columns 2 k and 2 k + 1. Words 24 and 25: a byte of each unit, bit l the ninth bit of the first
// half of run l, bit 4 + l of its second half. Word 26: a nibble of each unit, its scale.
FRIT_INLINE void open_iq3_s_index(block_at b, int i, vec *codes)
{
    const vec signs = word(b, 3 * i + 2), bits = spread_byte(word(b, 24 + i / 4), i % 4), ones = all_bytes(0x88);
    vec pairs[4];
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        const vec index = word(b, 3 * i + half);
        const __mmask64 bit_7 = _mm512_movepi8_mask(index);
        const __mmask64 bit_8 = _mm512_test_epi8_mask(bits, same_words(half ? (int)0x80402010 : 0x08040201));
        pairs[2 * half] = look_up_512(iq3_s_pairs[0], index, bit_7, bit_8);
        pairs[2 * half + 1] = look_up_512(iq3_s_pairs[1], index, bit_7, bit_8);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) pairs[k] = masked_or(pairs[k], left(signs, k), ones);
    open_pairs(pairs, iq3_s_levels_128, codes);
}

FRIT_INLINE scales_256 scales_iq3_s_index(block_at b)
{
    return (scales_256){.scales = {word(b, 26)}, .d = halves(b.rest)};
}
