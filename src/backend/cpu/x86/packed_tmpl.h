// SPDX-License-Identifier: MIT
// backend/cpu/x86/packed_tmpl.h: products of packed weights, written in operations on `vec`, which each including
// file defines for its instruction set: words of LANES rows. With eight lanes the two halves of a panel are read one
// after the other.
//
// A type is a handful of functions that know where its codes and scales are. A tile is LANES rows times a few tokens:
//
//     for each block
//         for each group of columns with one scale
//             for each quad of four columns         codes of all rows, unpacked once
//                 for each token                    dot += codes * x         x: one word, broadcast
//             for each token                        sum += scale * dot
//
// The dots are whole numbers and exact. All loops but the first are unrolled.
//
//     dot         sum + the products of each word's four bytes, codes 0..63 times signed x
//     *_wide      the same for codes 0..255 with 128 added: open_wide prepares codes, start_wide begins the sum
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

// ------------------------------------------------------------------------------- types with blocks of 32

typedef struct type_32 {
    int n_words, rest_bytes;
    vec (*codes)(block_at b, int quad);   // quad 0..7
    vec_f (*scale)(block_at b);
    vec_f (*shift)(block_at b);   // NULL: codes have 128 added
} type_32;

static const uint8_t q4_0_levels[16] = {120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135};
// frit_iq4_levels and frit_fp4_levels, 128 added.
static const uint8_t iq4_levels[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t fp4_levels[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};

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

FRIT_INLINE vec codes_q4_0(block_at b, int quad)
{
    return look_up(q4_0_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_iq4_nl(block_at b, int quad)
{
    return look_up(iq4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_mxfp4(block_at b, int quad)
{
    return look_up(fp4_levels, nibbles(word(b, quad % 4), quad / 4));
}

FRIT_INLINE vec codes_q8_0(block_at b, int quad)
{
    return flip(word(b, quad), all_bytes(128));
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
    const vec low = nibbles(word(b, 1 + quad % 4), quad / 4);
    return add_bytes(either(low, fifth_bits(word(b, 0), quad)), all_bytes(112));
}

FRIT_INLINE vec codes_q5_1(block_at b, int quad)
{
    return either(nibbles(word(b, 2 + quad % 4), quad / 4), fifth_bits(word(b, 1), quad));
}

// ------------------------------------------------------------------------------- types with blocks of 256

typedef struct scales_256 {
    vec scales[4], mins[4];   // what holds those of a row; bytes, mostly
    vec_f d, d_min;
} scales_256;

typedef struct type_256 {
    int n_words, rest_bytes;
    int group;                            // columns with one scale: 16 or 32
    bool has_bias;                        // 32 was added to the codes of groups of 16, 128 to those of 32
    vec (*codes)(block_at b, int quad);   // quad 0..63
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

// -4..3 as 28..35.
FRIT_INLINE vec codes_q3_k(block_at b, int quad)
{
    const vec high = move_bit(word(b, quad % 8), quad / 8, 2);
    return add_bytes(masked_or(two_bits(b, 8, quad), high, all_bytes(4)), all_bytes(28));
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

// ------------------------------------------------------------------------------- tiles

typedef struct tile {
    block_at w;
    const uint8_t *x;   // of the first token
    size_t x_stride;
    int64_t n_blocks;
} tile;

FRIT_INLINE const frit_q8_line *token(tile t, int j)
{
    return (const void *)(t.x + (size_t)j * t.x_stride);
}

FRIT_INLINE void tile_32(tile t, type_32 type, int n_x, vec_f *sums)
{
    const int block_bytes = 64 * type.n_words + FRIT_PANEL_ROWS * type.rest_bytes;
    for (int j = 0; j < n_x; j++) sums[j] = zero_f();
    for (int64_t i = 0; i < t.n_blocks; i++) {
        vec dots[MAX_TOKENS];
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) dots[j] = type.shift ? zero() : start_wide(&token(t, j)->minus_128);
#pragma GCC unroll 8
        for (int q = 0; q < 8; q++) {
            const vec codes = type.shift ? type.codes(t.w, q) : open_wide(type.codes(t.w, q));
#pragma GCC unroll 16
            for (int j = 0; j < n_x; j++) {
                const vec x = all_words(token(t, j)->codes + 4 * q);
                dots[j] = type.shift ? dot(dots[j], codes, x) : dot_wide(dots[j], codes, x);
            }
        }
        const vec_f scale = type.scale(t.w);
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++)
            sums[j] = mul_add(mul(to_float(dots[j]), all_f(token(t, j)->scale)), scale, sums[j]);
        if (type.shift) {
            const vec_f shift = type.shift(t.w);
#pragma GCC unroll 16
            for (int j = 0; j < n_x; j++) sums[j] = mul_add(shift, all_f(token(t, j)->sum), sums[j]);
        }
        if (n_x == 1) prefetch(t.w.words, block_bytes);
        t.w.words += block_bytes;
        t.w.rest += block_bytes;
        t.x += sizeof(frit_q8_line);
    }
}

// Products of the codes of one group of columns, in whole numbers.
FRIT_INLINE void dot_group(tile t, type_256 type, int g, int n_x, vec *dots)
{
    const int quads = type.group / 4, at = g * type.group / 32;
    const bool wide = type.has_bias && type.group == 32;
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j++)
        dots[j] = !type.has_bias ? zero()
                  : wide         ? start_wide(&token(t, j)[at].minus_128)
                                 : all_words(&token(t, j)[at].minus_32[g % 2]);
#pragma GCC unroll 8
    for (int q = g * quads; q < (g + 1) * quads; q++) {
        const vec codes = wide ? open_wide(type.codes(t.w, q)) : type.codes(t.w, q);
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) {
            const vec x = all_words(token(t, j)[at].codes + q % 8 * 4);
            dots[j] = wide ? dot_wide(dots[j], codes, x) : dot(dots[j], codes, x);
        }
    }
}

// 32 columns: two groups of 16, or one.
FRIT_INLINE void unit_256(tile t, type_256 type, const scales_256 *scales, int unit, int n_x, vec_f *sums)
{
    const int n_groups = 32 / type.group, g = unit * n_groups;
    vec dots[MAX_TOKENS];
    vec_f parts[MAX_TOKENS];
    dot_group(t, type, g, n_x, dots);
    const vec_f scale = mul(to_float(type.scale(scales, g)), scales->d);
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j++) parts[j] = mul(to_float(dots[j]), scale);
    if (n_groups == 2) {
        dot_group(t, type, g + 1, n_x, dots);
        const vec_f second = mul(to_float(type.scale(scales, g + 1)), scales->d);
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) parts[j] = mul_add(to_float(dots[j]), second, parts[j]);
    }
#pragma GCC unroll 16
    for (int j = 0; j < n_x; j++) sums[j] = mul_add(parts[j], all_f(token(t, j)[unit].scale), sums[j]);
    for (int i = 0; type.min && i < n_groups; i++) {
        const vec_f min = mul(to_float(type.min(scales, g + i)), scales->d_min);
#pragma GCC unroll 16
        for (int j = 0; j < n_x; j++) {
            const frit_q8_line *x = &token(t, j)[unit];
            sums[j] = mul_sub_from(min, all_f(n_groups == 2 ? x->sums_16[i] : x->sum), sums[j]);
        }
    }
}

FRIT_INLINE void tile_256(tile t, type_256 type, int n_x, vec_f *sums)
{
    for (int j = 0; j < n_x; j++) sums[j] = zero_f();
    const int block_bytes = 64 * type.n_words + FRIT_PANEL_ROWS * type.rest_bytes;
    for (int64_t i = 0; i < t.n_blocks; i++) {
        const scales_256 scales = type.scales(t.w);
#pragma GCC unroll 8
        for (int unit = 0; unit < 8; unit++) unit_256(t, type, &scales, unit, n_x, sums);
        if (n_x == 1) prefetch(t.w.words, block_bytes);
        t.w.words += block_bytes;
        t.w.rest += block_bytes;
        t.x += 8 * sizeof(frit_q8_line);
    }
}

typedef void (*tile_fn)(tile t, int n_x, vec_f *sums);

// The rows of one half of a panel by n_x tokens; n_x is a constant where this is inlined.
FRIT_INLINE void store_tile(const frit_product *p, tile_fn run, const uint8_t *panel, int n_rows, int half, int n_words,
                            int rest_bytes, int block_elems, int64_t j, int n_x)
{
    vec_f sums[MAX_TOKENS];
    const tile t = {{panel + 4 * LANES * half, panel + 64 * n_words + LANES * rest_bytes * half},
                    p->x + (size_t)j * p->x_stride,
                    p->x_stride,
                    p->n / block_elems};
    run(t, n_x, sums);
#pragma GCC unroll 16
    for (int i = 0; i < n_x; i++) store(p->y + (size_t)(j + i) * p->y_stride + LANES * half, sums[i], n_rows);
}

FRIT_INLINE void product(const frit_product *p, tile_fn run, int n_words, int rest_bytes, int block_elems)
{
    for (int64_t i = 0; i < p->n_w; i += FRIT_PANEL_ROWS) {
        frit_product panel = *p;
        const uint8_t *w = p->w + (size_t)(i / FRIT_PANEL_ROWS) * p->w_stride;
        panel.y += i;
        for (int half = 0; half < HALVES; half++) {
            const int64_t left_rows = p->n_w - i - half * LANES;
            if (left_rows <= 0) break;
            const int n_rows = left_rows < LANES ? (int)left_rows : LANES;
            int64_t j = 0;
            for (; j + MAX_TOKENS <= p->n_x; j += MAX_TOKENS)
                store_tile(&panel, run, w, n_rows, half, n_words, rest_bytes, block_elems, j, MAX_TOKENS);
            switch (p->n_x - j) {
#define TAIL(n)                                                                                               \
    case n:                                                                                                   \
        if (n < MAX_TOKENS) store_tile(&panel, run, w, n_rows, half, n_words, rest_bytes, block_elems, j, n); \
        break;
                TAIL(1)
                TAIL(2)
                TAIL(3)
                TAIL(4)
                TAIL(5)
                TAIL(6)
                TAIL(7)
#undef TAIL
            }
        }
    }
}

#define PRODUCT_32(name, words, rest, scale_fn, shift_fn)                                \
    FRIT_INLINE void run_##name(tile t, int n_x, vec_f *sums)                            \
    {                                                                                    \
        tile_32(t, (type_32){words, rest, codes_##name, scale_fn, shift_fn}, n_x, sums); \
    }                                                                                    \
    static void product_##name(const frit_product *p)                                    \
    {                                                                                    \
        product(p, run_##name, words, rest, 32);                                         \
    }

#define PRODUCT_256(name, words, rest, group, has_bias, scales_fn, scale_fn, min_fn)                                 \
    FRIT_INLINE void run_##name(tile t, int n_x, vec_f *sums)                                                        \
    {                                                                                                                \
        tile_256(t, (type_256){words, rest, group, has_bias, codes_##name, scales_fn, scale_fn, min_fn}, n_x, sums); \
    }                                                                                                                \
    static void product_##name(const frit_product *p)                                                                \
    {                                                                                                                \
        product(p, run_##name, words, rest, 256);                                                                    \
    }

PRODUCT_32(q4_0, 4, 2, scale_half, NULL)
PRODUCT_32(q4_1, 5, 0, scale_first_half, shift_second_half)
PRODUCT_32(q5_0, 5, 2, scale_half, NULL)
PRODUCT_32(q5_1, 6, 0, scale_first_half, shift_second_half)
PRODUCT_32(q8_0, 8, 2, scale_half, NULL)
PRODUCT_32(iq4_nl, 4, 2, scale_half, NULL)
PRODUCT_32(mxfp4, 4, 1, scale_mxfp4, NULL)
PRODUCT_256(q2_k, 21, 0, 16, false, scales_q2_k, scale_unsigned, min_unsigned)
PRODUCT_256(q3_k, 27, 2, 16, true, scales_q3_k, scale_signed, NULL)
PRODUCT_256(q4_k, 36, 0, 32, false, scales_q4_k, scale_unsigned, min_unsigned)
PRODUCT_256(q5_k, 44, 0, 32, false, scales_q4_k, scale_unsigned, min_unsigned)
PRODUCT_256(q6_k, 52, 2, 16, true, scales_q6_k, scale_signed, NULL)
PRODUCT_256(iq4_xs, 34, 0, 32, true, scales_iq4_xs, scale_iq4_xs, NULL)

static void install(frit_kernels *k)
{
    static const struct {
        frit_dtype dtype;
        frit_form form;
        void (*run)(const frit_product *p);
    } rows[] = {
        {FRIT_DTYPE_Q4_0, FRIT_FORM_Q8_LINES, product_q4_0},
        {FRIT_DTYPE_Q4_1, FRIT_FORM_Q8_LINES, product_q4_1},
        {FRIT_DTYPE_Q5_0, FRIT_FORM_Q8_LINES, product_q5_0},
        {FRIT_DTYPE_Q5_1, FRIT_FORM_Q8_LINES, product_q5_1},
        {FRIT_DTYPE_Q8_0, FRIT_FORM_Q8_LINES, product_q8_0},
        {FRIT_DTYPE_IQ4_NL, FRIT_FORM_Q8_LINES, product_iq4_nl},
        {FRIT_DTYPE_MXFP4, FRIT_FORM_Q8_LINES, product_mxfp4},
        {FRIT_DTYPE_Q2_K, FRIT_FORM_Q8_LINES, product_q2_k},
        {FRIT_DTYPE_Q3_K, FRIT_FORM_Q8_LINES, product_q3_k},
        {FRIT_DTYPE_Q4_K, FRIT_FORM_Q8_LINES, product_q4_k},
        {FRIT_DTYPE_Q5_K, FRIT_FORM_Q8_LINES, product_q5_k},
        {FRIT_DTYPE_Q6_K, FRIT_FORM_Q8_LINES, product_q6_k},
        {FRIT_DTYPE_IQ4_XS, FRIT_FORM_Q8_LINES, product_iq4_xs},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        k->packed[rows[i].dtype] = (frit_product_kernel){rows[i].run, rows[i].form, isa};
}
