// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/float_tmpl.h: products of f32 activations with f32, f16, bf16 and fp8_128 weights, which are read
// where the file has them. The including file defines vec_f, LANES, the loads of each type, sums of lanes and the sizes
// of tiles.
//
// There are two ways, by the number of tokens:
//
//     up to TILE_TOKENS    reads the file's rows directly, several rows side by side, and prefetches the next rows.
// With
//                          in_order (processors.def) it reads as few rows at a time as the sums allow, and prefetches
//                          bytes in order
//     more                 converts COLUMNS columns of BAND_ROWS rows to f32 once, then multiplies tiles of
//                          TILE_ROWS x TILE_TOKENS
//
// The activations of a tile of COLUMNS columns fit the L1 cache, whatever the stride of their rows. Both ways add each
// COLUMNS columns separately, so a result does not depend on the other tokens and rows.
#include "quant/blocks.h"

enum {
    FEW_TOKENS = 2 * TILE_TOKENS,
    AHEAD = 8,   // rows to prefetch
};

typedef struct source {   // loads of a type
    load_fn load;
    load_tail_fn load_tail;
    size_t elem_bytes, scale_bytes;   // of an element; of the scale of 128 elements
} source;

static const source f32 = {load_f32, load_tail_f32, 4, 0};

typedef enum prefetch_kind { PREFETCH_NOTHING, PREFETCH_ROWS, PREFETCH_IN_ORDER } prefetch_kind;

typedef struct tile {
    const uint8_t *w, *x;
    size_t w_stride, x_stride;   // bytes
    int64_t n;
    float *y;
    size_t y_stride;   // floats
    bool add;          // adds to y instead of overwriting it
    prefetch_kind prefetch;
} tile;

// Addresses to prefetch: for row a and column k, at + a * row_bytes + k * column_bytes.
typedef struct wanted {
    const uint8_t *at;
    size_t row_bytes, column_bytes;
} wanted;

FRIT_INLINE wanted wanted_after(tile t, source w, int n_w)
{
    const size_t stride = t.w_stride;
    if (t.prefetch == PREFETCH_ROWS) return (wanted){t.w + AHEAD * stride, stride, w.elem_bytes};
    return (wanted){t.w + (size_t)(n_w - 1) * stride + IN_ORDER_AHEAD, LANES * w.elem_bytes,
                    (size_t)n_w * w.elem_bytes};
}

FRIT_INLINE void store_sums(tile t, int n_w, int n_x, const vec_f *sums)
{
    for (int b = 0; b < n_x; b++) {
        float *y = t.y + (size_t)b * t.y_stride;
        for (int a = 0; a + 4 <= n_w; a += 4) {
            const vec_f *s = sums + a * n_x + b;
            store_4(y + a, sum_4(s[0], s[n_x], s[2 * n_x], s[3 * n_x]), t.add);
        }
        for (int a = n_w / 4 * 4; a < n_w; a++) y[a] = (t.add ? y[a] : 0) + sum_1(sums[a * n_x + b]);
    }
}

// Multiplies columns [k, end) of n_w rows and n_x tokens. n_w and n_x are constants where this is inlined, so all sums
// stay in registers.
FRIT_INLINE void multiply_columns(tile t, source w, int64_t k, int64_t end, int n_w, int n_x)
{
    vec_f sums[MAX_SUMS], xs[MAX_SUMS];
    const wanted next = wanted_after(t, w, n_w);
    for (int i = 0; i < n_w * n_x; i++) sums[i] = zero_f();
    for (; k + LANES <= end; k += LANES) {
        for (int b = 0; b < n_x; b++) xs[b] = load_f32(t.x + (size_t)b * t.x_stride, k);
        for (int a = 0; a < n_w; a++) {
            const uint8_t *row = t.w + (size_t)a * t.w_stride;
            const vec_f ws = w.load(row, k);
            if (t.prefetch) prefetch(next.at + (size_t)a * next.row_bytes + (size_t)k * next.column_bytes);
            for (int b = 0; b < n_x; b++) sums[a * n_x + b] = mul_add(ws, xs[b], sums[a * n_x + b]);
        }
    }
    if (k < end) {
        for (int b = 0; b < n_x; b++) xs[b] = load_tail_f32(t.x + (size_t)b * t.x_stride, k, end - k);
        for (int a = 0; a < n_w; a++) {
            const vec_f ws = w.load_tail(t.w + (size_t)a * t.w_stride, k, end - k);
            for (int b = 0; b < n_x; b++) sums[a * n_x + b] = mul_add(ws, xs[b], sums[a * n_x + b]);
        }
    }
    store_sums(t, n_w, n_x, sums);
}

FRIT_INLINE void multiply(tile t, source w, int n_w, int n_x)
{
    for (int64_t k = 0; k < t.n; k += COLUMNS, t.add = true)
        multiply_columns(t, w, k, t.n - k < COLUMNS ? t.n : k + COLUMNS, n_w, n_x);
}

// Multiplies all rows by n_x tokens, `rows` rows at a time.
FRIT_INLINE void multiply_rows(tile t, source w, int64_t n_w, int rows, int n_x)
{
    int64_t i = 0;
    for (; i + rows <= n_w; i += rows, t.w += (size_t)rows * t.w_stride, t.y += rows) multiply(t, w, rows, n_x);
    for (; i < n_w; i++, t.w += t.w_stride, t.y++) multiply(t, w, 1, n_x);
}

#define CASE(n)                                                     \
    case n:                                                         \
        if (n <= TILE_TOKENS) multiply_rows(t, type, n_w, rows, n); \
        break;

// Multiplies 1 to TILE_TOKENS tokens, a constant in each call, by `rows` rows at a time.
FRIT_INLINE void multiply_tokens(tile t, source type, int64_t n_w, int rows, int64_t n_x)
{
    switch (n_x) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#undef CASE
    }
}

static void multiply_band(tile t, int64_t n_w, int64_t n_x)
{
    for (; n_x > TILE_TOKENS; n_x -= TILE_TOKENS) {
        multiply_rows(t, f32, n_w, TILE_ROWS, TILE_TOKENS);
        t.x += TILE_TOKENS * t.x_stride;
        t.y += TILE_TOKENS * t.y_stride;
    }
    multiply_tokens(t, f32, n_w, TILE_ROWS, n_x);
}

FRIT_INLINE void decode(const uint8_t *w, source type, int64_t n, float *out)
{
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) store_f32(out + k, type.load(w, k));
    if (k < n) store_f32(out + k, type.load_tail(w, k, n - k));
}

FRIT_INLINE void product_many(const frit_product *p, source type)
{
    float band[BAND_ROWS][COLUMNS];
    for (int64_t k = 0; k < p->n; k += COLUMNS) {
        const int64_t n = p->n - k < COLUMNS ? p->n - k : COLUMNS;
        for (int64_t i = 0; i < p->n_w; i += BAND_ROWS) {
            const int64_t n_w = p->n_w - i < BAND_ROWS ? p->n_w - i : BAND_ROWS;
            const uint8_t *w = p->w + (size_t)i * p->w_stride + (size_t)k * type.elem_bytes +
                               (size_t)k / 128 * type.scale_bytes;   // COLUMNS is a multiple of 128
            tile t = {w, p->x + 4 * k, p->w_stride, p->x_stride, n, p->y + i, p->y_stride, k > 0, PREFETCH_NOTHING};
            if (type.elem_bytes != 4) {
                for (int64_t a = 0; a < n_w; a++) decode(w + (size_t)a * p->w_stride, type, n, band[a]);
                t.w = (const uint8_t *)band;
                t.w_stride = sizeof band[0];
            }
            multiply_band(t, n_w, p->n_x);
        }
    }
}

// Two passes over the tokens: the second finds the rows in the L1 cache.
FRIT_INLINE void product_few(const frit_product *p, source type)
{
    tile t = {p->w, p->x, p->w_stride, p->x_stride, p->n, p->y, p->y_stride, false, PREFETCH_ROWS};
    const int64_t n_first = p->n_x <= TILE_TOKENS ? p->n_x : (p->n_x + 1) / 2;
    for (int64_t i = 0; i < p->n_w; i += TILE_ROWS) {
        const int64_t n_w = p->n_w - i < TILE_ROWS ? p->n_w - i : TILE_ROWS;
        multiply_tokens(t, type, n_w, TILE_ROWS, n_first);
        tile second = t;
        second.prefetch = PREFETCH_NOTHING;
        second.x += (size_t)n_first * t.x_stride;
        second.y += (size_t)n_first * t.y_stride;
        multiply_tokens(second, type, n_w, TILE_ROWS, p->n_x - n_first);
        t.w += TILE_ROWS * t.w_stride;
        t.y += TILE_ROWS;
    }
}

FRIT_INLINE void product(const frit_product *p, source type)
{
    tile t = {p->w, p->x, p->w_stride, p->x_stride, p->n, p->y, p->y_stride, false, PREFETCH_ROWS};
    if (p->in_order && p->n_x <= TILE_TOKENS) {
        t.prefetch = PREFETCH_IN_ORDER;
        multiply_tokens(t, type, p->n_w, IN_ORDER_ROWS, p->n_x);
    } else if (p->n_x == 1)
        multiply_rows(t, type, p->n_w, 8, 1);
    else if (p->n_x == 2)
        multiply_rows(t, type, p->n_w, ROWS_OF_TWO, 2);
    else if (p->n_x <= FEW_TOKENS)
        product_few(p, type);
    else
        product_many(p, type);
}

static void product_f32(const frit_product *p)
{
    product(p, f32);
}

static void product_f16(const frit_product *p)
{
    product(p, (source){load_f16, load_tail_f16, 2, 0});
}

static void product_bf16(const frit_product *p)
{
    product(p, (source){load_bf16, load_tail_bf16, 2, 0});
}

FRIT_INLINE vec_f load_fp8_128(const uint8_t *row, int64_t i)
{
    const frit_block_fp8_128 *block = (const frit_block_fp8_128 *)(const void *)row + i / 128;
    return load_e4m3(block->qs + i % 128, block->d * 256);
}

// Rows are whole blocks, so there is no tail.
FRIT_INLINE vec_f load_tail_fp8_128(const uint8_t *row, int64_t i, int64_t n)
{
    (void)row, (void)i, (void)n;
    return zero_f();
}

static void product_fp8_128(const frit_product *p)
{
    product(p, (source){load_fp8_128, load_tail_fp8_128, 1, sizeof(frit_block_fp8_128) - 128});
}

// Twelve accumulators keep two products a cycle busy, with a latency of four to six cycles.
static double probe_float(int64_t n_rounds, int32_t *sink)
{
    float numbers[2 * LANES] = {(float)(*sink % 16)};
    const vec_f a = load_f32((const uint8_t *)numbers, 0), b = load_f32((const uint8_t *)numbers, LANES);
    vec_f sums[12];
    for (int i = 0; i < 12; i++) sums[i] = zero_f();
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(12)
        for (int i = 0; i < 12; i++) sums[i] = mul_add(a, b, sums[i]);
    }
    for (int i = 0; i < 12; i++) {
        store_f32(numbers, sums[i]);
        *sink += numbers[0] > 1;
    }
    return (double)n_rounds * 12 * LANES * 2;
}

static void install(frit_kernels *k, const char *isa)
{
    k->probe_float = probe_float;
    k->product[FRIT_DTYPE_F32] = (frit_product_kernel){product_f32, FRIT_FORM_F32, isa, NULL};
    k->product[FRIT_DTYPE_F16] = (frit_product_kernel){product_f16, FRIT_FORM_F32, isa, NULL};
    k->product[FRIT_DTYPE_BF16] = (frit_product_kernel){product_bf16, FRIT_FORM_F32, isa, NULL};
    k->product[FRIT_DTYPE_FP8_128] = (frit_product_kernel){product_fp8_128, FRIT_FORM_F32, isa, NULL};
}
