// SPDX-License-Identifier: MIT
// backend/cpu/x86/packed_tmpl.h: products of packed weights, written in operations on `vec`, which each including
// file defines for its instruction set: words of LANES rows. With eight lanes the two halves of a panel are read one
// after the other.
//
// A tile is LANES rows times a few tokens:
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
#include "backend/cpu/x86/packed_codes_tmpl.h"

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

#define PRODUCT_32(name, dtype, words, rest, scale_fn, shift_fn)                         \
    FRIT_INLINE void run_##name(tile t, int n_x, vec_f *sums)                            \
    {                                                                                    \
        tile_32(t, (type_32){words, rest, codes_##name, scale_fn, shift_fn}, n_x, sums); \
    }                                                                                    \
    static void product_##name(const frit_product *p)                                    \
    {                                                                                    \
        product(p, run_##name, words, rest, 32);                                         \
    }

#define PRODUCT_256(name, dtype, words, rest, group, has_bias, scales_fn, scale_fn, min_fn)                          \
    FRIT_INLINE void run_##name(tile t, int n_x, vec_f *sums)                                                        \
    {                                                                                                                \
        tile_256(t, (type_256){words, rest, group, has_bias, codes_##name, scales_fn, scale_fn, min_fn}, n_x, sums); \
    }                                                                                                                \
    static void product_##name(const frit_product *p)                                                                \
    {                                                                                                                \
        product(p, run_##name, words, rest, 256);                                                                    \
    }

PACKED_TYPES(PRODUCT_32, PRODUCT_256)

static void install(frit_kernels *k)
{
#define INSTALL(name, dtype, ...) \
    k->packed[FRIT_DTYPE_##dtype] = (frit_product_kernel){product_##name, FRIT_FORM_Q8_LINES, isa};
    PACKED_TYPES(INSTALL, INSTALL)
#undef INSTALL
}
