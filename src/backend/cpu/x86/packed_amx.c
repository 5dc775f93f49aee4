// SPDX-License-Identifier: MIT
// Products of packed weights with AMX, for steps of many tokens.
//
// The tile unit multiplies 16 x 32 by 32 x 16 numbers in bf16 and adds to f32. Weights are turned into such numbers 32
// rows at a time, once for all tokens of the call; the sums of a stretch of columns stay in tiles, and wait in scratch
// between stretches:
//
//     for each stretch of 1024 columns              activations of 512 tokens: 1 MiB
//         for each 32 rows                          unpack to 64 KiB
//             for each 32 tokens                    2 x 2 tiles of sums
//                 for each step of 32 columns       2 tiles of weights, 2 of activations, 4 products
//
// A tile of weights holds words of 16 rows, as a panel does: two columns of each row to a word. So unpacking shuffles
// nothing: a register of codes becomes two rows of a tile.
#include "backend/cpu/x86/vec_avx512vnni.h"

#include "backend/cpu/x86/packed_codes_tmpl.h"

#include <stdatomic.h>

enum {
    STRETCH = 1024,                                            // columns
    STEP_BYTES = 2 * FRIT_TILE_BYTES,                          // of weights
    WEIGHT_BYTES = STRETCH / FRIT_TILE_COLUMNS * STEP_BYTES,   // of 32 rows
    SUM_BYTES = 4 * FRIT_TILE_BYTES,                           // of 32 rows and tokens
    MAX_ROWS = 128,
    MAX_TOKENS = 512,
};

_Static_assert((int)WEIGHT_BYTES + MAX_ROWS / 32 * (MAX_TOKENS / 32) * SUM_BYTES <= (int)FRIT_PRODUCT_SCRATCH,
               "scratch");

static const char isa[] = "amx";

// ------------------------------------------------------------------------------- tiles

// All eight registers hold 16 rows of 64 bytes.
static void open_tiles(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config);
}

static void close_tiles(void)   // so that switching threads saves no tiles
{
    _tile_release();
}

// Registers: 0..3 sums, 4 and 5 activations of 16 tokens each, 6 and 7 weights of 16 rows each.
typedef struct block {
    const uint8_t *a;   // tiles of 16 tokens
    size_t a_stride;    // bytes to those of the next 16
    const uint8_t *b;   // steps of two tiles
    int64_t n_steps;
    uint8_t *sums;
    bool fresh;   // sums begin at zero
} block;

FRIT_INLINE void multiply(block m, int n_a, int n_b)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (!m.fresh) {
        _tile_loadd(0, m.sums, 64);
        if (n_b > 1) _tile_loadd(1, m.sums + FRIT_TILE_BYTES, 64);
        if (n_a > 1) _tile_loadd(2, m.sums + 2 * FRIT_TILE_BYTES, 64);
        if (n_a > 1 && n_b > 1) _tile_loadd(3, m.sums + 3 * FRIT_TILE_BYTES, 64);
    }
    for (int64_t k = 0; k < m.n_steps; k++) {
        const uint8_t *a = m.a + k * FRIT_TILE_BYTES, *b = m.b + k * STEP_BYTES;
        _tile_loadd(6, b, 64);
        _tile_loadd(4, a, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (n_b > 1) {
            _tile_loadd(7, b + FRIT_TILE_BYTES, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (n_a > 1) {
            _tile_loadd(5, a + m.a_stride, 64);
            _tile_dpbf16ps(2, 5, 6);
            if (n_b > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, m.sums, 64);
    if (n_b > 1) _tile_stored(1, m.sums + FRIT_TILE_BYTES, 64);
    if (n_a > 1) _tile_stored(2, m.sums + 2 * FRIT_TILE_BYTES, 64);
    if (n_a > 1 && n_b > 1) _tile_stored(3, m.sums + 3 * FRIT_TILE_BYTES, 64);
}

// Sums of up to 32 rows and tokens to their places.
static void put(const uint8_t *sums, float *y, size_t y_stride, int64_t n_rows, int64_t n_tokens)
{
    for (int64_t j = 0; j < n_tokens; j++, y += y_stride) {
        const uint8_t *row = sums + j / FRIT_TILE_ROWS * (2 * FRIT_TILE_BYTES) + j % FRIT_TILE_ROWS * 64;
        store(y, as_float(load(row)), n_rows < 16 ? (int)n_rows : 16);
        if (n_rows > 16) store(y + 16, as_float(load(row + FRIT_TILE_BYTES)), (int)n_rows - 16);
    }
}

// ------------------------------------------------------------------------------- products

// The codes of one panel as numbers: columns [first, first + n), to one tile in each step.
typedef void (*unpack_fn)(const uint8_t *panel, int64_t first, int64_t n, uint8_t *steps);

// 32 rows or less, 512 tokens or less, one stretch of columns.
static void add_stretch(const frit_product *p, unpack_fn unpack, int64_t first, uint8_t *weights, uint8_t *sums)
{
    const int64_t n = p->n - first < STRETCH ? p->n - first : STRETCH;
    const int n_b = p->n_w > 16 ? 2 : 1;
    for (int i = 0; i < n_b; i++) unpack(p->w + (size_t)i * p->w_stride, first, n, weights + i * FRIT_TILE_BYTES);
    atomic_signal_fence(memory_order_seq_cst);   // compilers do not see what tiles load

    block m = {.a = p->x + first / FRIT_TILE_COLUMNS * FRIT_TILE_BYTES,
               .a_stride = FRIT_TILE_ROWS * p->x_stride,
               .b = weights,
               .n_steps = n / FRIT_TILE_COLUMNS,
               .sums = sums,
               .fresh = first == 0};
    for (int64_t t = 0; t < p->n_x; t += 32, m.a += 2 * m.a_stride, m.sums += SUM_BYTES) {
        const int64_t n_tokens = p->n_x - t < 32 ? p->n_x - t : 32;
        if (n_tokens > 16)
            n_b > 1 ? multiply(m, 2, 2) : multiply(m, 2, 1);
        else
            n_b > 1 ? multiply(m, 1, 2) : multiply(m, 1, 1);
        if (first + n == p->n) put(m.sums, p->y + (size_t)t * p->y_stride, p->y_stride, p->n_w, n_tokens);
    }
}

static void product(const frit_product *p, unpack_fn unpack)
{
    uint8_t *weights = p->scratch, *sums = weights + WEIGHT_BYTES;
    open_tiles();
    for (int64_t t = 0; t < p->n_x; t += MAX_TOKENS) {
        for (int64_t o = 0; o < p->n_w; o += MAX_ROWS) {
            const int64_t n_w = p->n_w - o < MAX_ROWS ? p->n_w - o : MAX_ROWS;
            for (int64_t first = 0; first < p->n; first += STRETCH) {
                for (int64_t i = 0; i < n_w; i += 32) {
                    frit_product part = *p;
                    part.w += (size_t)(o + i) / FRIT_PANEL_ROWS * p->w_stride;
                    part.x += (size_t)t * p->x_stride;
                    part.y += (size_t)t * p->y_stride + (size_t)(o + i);
                    part.n_w = n_w - i < 32 ? n_w - i : 32;
                    part.n_x = p->n_x - t < MAX_TOKENS ? p->n_x - t : MAX_TOKENS;
                    add_stretch(&part, unpack, first, weights, sums + i / 32 * (MAX_TOKENS / 32) * SUM_BYTES);
                }
            }
        }
    }
    close_tiles();
}

// ------------------------------------------------------------------------------- unpacking

// scale * code + shift for codes 0..255. Codes become floats without being converted: as bits of the mantissa of
// 128 + code / 2.
typedef struct line {
    vec_f twice_scale, shift;
} line;

FRIT_INLINE line make_line(vec_f scale, vec_f shift)
{
    return (line){_mm512_add_ps(scale, scale), mul_sub_from(scale, all_f(256), shift)};
}

FRIT_INLINE vec number(vec shifted_codes, line l)
{
    const vec half_code =
        _mm512_ternarylogic_epi32(shifted_codes, same_words(0x007f8000), same_words(0x43000000), 0xea);
    return _mm512_castps_si512(mul_add(as_float(half_code), l.twice_scale, l.shift));
}

// Rounded to 16 bits, the first in the lower half.
FRIT_INLINE vec pair(vec first, vec second)
{
    const vec half = same_words(0x8000);
    return masked_or(right(_mm512_add_epi32(first, half), 16), _mm512_add_epi32(second, half),
                     same_words((int)0xffff0000));
}

FRIT_INLINE void put_quad(vec codes, line l, uint8_t *tile)   // two rows of the tile
{
    _mm512_storeu_si512(tile, pair(number(left(codes, 15), l), number(left(codes, 7), l)));
    _mm512_storeu_si512(tile + 64, pair(number(right(codes, 1), l), number(right(codes, 9), l)));
}

FRIT_INLINE block_at block_of(const uint8_t *panel, int64_t i, int n_words, int rest_bytes)
{
    const uint8_t *words = panel + i * (64 * n_words + FRIT_PANEL_ROWS * rest_bytes);
    return (block_at){words, words + 64 * n_words};
}

FRIT_INLINE void unpack_32(type_32 type, const uint8_t *panel, int64_t first, int64_t n, uint8_t *steps)
{
    for (int64_t i = first / 32; i < (first + n) / 32; i++, steps += STEP_BYTES) {
        const block_at b = block_of(panel, i, type.n_words, type.rest_bytes);
        const vec_f scale = type.scale(b);
        const line l = make_line(scale, type.shift ? type.shift(b) : mul(scale, all_f(-128)));
#pragma GCC unroll 8
        for (int q = 0; q < 8; q++) put_quad(type.codes(b, q), l, steps + 128 * q);
    }
}

FRIT_INLINE line line_256(type_256 type, const scales_256 *s, int g)
{
    const vec_f scale = mul(to_float(type.scale(s, g)), s->d);
    vec_f shift = zero_f();
    if (type.has_bias) shift = mul(scale, all_f(type.group == 16 ? -32 : -128));
    if (type.min) shift = mul_sub_from(to_float(type.min(s, g)), s->d_min, shift);
    return make_line(scale, shift);
}

FRIT_INLINE void unpack_256(type_256 type, const uint8_t *panel, int64_t first, int64_t n, uint8_t *steps)
{
    const int quads = type.group / 4;
    for (int64_t i = first / 256; i < (first + n) / 256; i++, steps += 8 * STEP_BYTES) {
        const block_at b = block_of(panel, i, type.n_words, type.rest_bytes);
        const scales_256 scales = type.scales(b);
#pragma GCC unroll 16
        for (int g = 0; g < 256 / type.group; g++) {
            const line l = line_256(type, &scales, g);
#pragma GCC unroll 8
            for (int q = g * quads; q < (g + 1) * quads; q++)
                put_quad(type.codes(b, q), l, steps + q / 8 * STEP_BYTES + q % 8 * 128);
        }
    }
}

#define PRODUCT_32(name, dtype, words, rest, scale_fn, shift_fn)                                     \
    static void unpack_##name(const uint8_t *panel, int64_t first, int64_t n, uint8_t *steps)        \
    {                                                                                                \
        unpack_32((type_32){words, rest, codes_##name, scale_fn, shift_fn}, panel, first, n, steps); \
    }                                                                                                \
    static void product_##name(const frit_product *p)                                                \
    {                                                                                                \
        product(p, unpack_##name);                                                                   \
    }

#define PRODUCT_256(name, dtype, words, rest, group, has_bias, scales_fn, scale_fn, min_fn)              \
    static void unpack_##name(const uint8_t *panel, int64_t first, int64_t n, uint8_t *steps)            \
    {                                                                                                    \
        const type_256 type = {words, rest, group, has_bias, codes_##name, scales_fn, scale_fn, min_fn}; \
        unpack_256(type, panel, first, n, steps);                                                        \
    }                                                                                                    \
    static void product_##name(const frit_product *p)                                                    \
    {                                                                                                    \
        product(p, unpack_##name);                                                                       \
    }

PACKED_TYPES(PRODUCT_32, PRODUCT_256)

// One row of a tile for every 32 numbers.
static void convert_bf16_tiles(const float *x, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += FRIT_TILE_COLUMNS, out += FRIT_TILE_BYTES) {
        const __m512 low = _mm512_loadu_ps(x + i), high = _mm512_loadu_ps(x + i + 16);
        _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

void frit_install_amx(frit_kernels *k)
{
    k->convert[FRIT_FORM_BF16_TILES] = convert_bf16_tiles;
#define INSTALL(name, dtype, ...) \
    k->packed[FRIT_DTYPE_##dtype] = (frit_product_kernel){product_##name, FRIT_FORM_BF16_TILES, isa};
    PACKED_TYPES(INSTALL, INSTALL)
#undef INSTALL
}
