// SPDX-License-Identifier: MIT
// Products of f16 and bf16 weights in AMX tiles, nearly as exact as in f32: values are split in two parts
// (tiles_amx.h). Coarse products do not split values, and need half (bf16) or a third (f16) of the tile products.
#include "backend/cpu/x86/tiles_amx.h"

// Transposes words: word j of row i becomes word i of row j.
static void transpose_rows(__m512i r[16])
{
    __m512i s[16];
    for (int i = 0; i < 16; i += 2) {   // pairs of words
        s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {   // column c of each 128 bits, of rows i .. i + 3, in r[i + c]
        for (int c = 0; c < 2; c++) {
            r[i + 2 * c] = _mm512_unpacklo_epi64(s[i + c], s[i + c + 2]);
            r[i + 2 * c + 1] = _mm512_unpackhi_epi64(s[i + c], s[i + c + 2]);
        }
    }
    for (int c = 0; c < 4; c++) {   // 128 bits 0 and 2, or 1 and 3, of two of them
        s[c] = _mm512_shuffle_i32x4(r[c], r[c + 4], 0x88);
        s[c + 4] = _mm512_shuffle_i32x4(r[c], r[c + 4], 0xdd);
        s[c + 8] = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0x88);
        s[c + 12] = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0xdd);
    }
    for (int c = 0; c < 4; c++) {
        r[c] = _mm512_shuffle_i32x4(s[c], s[c + 8], 0x88);
        r[c + 8] = _mm512_shuffle_i32x4(s[c], s[c + 8], 0xdd);
        r[c + 4] = _mm512_shuffle_i32x4(s[c + 4], s[c + 12], 0x88);
        r[c + 12] = _mm512_shuffle_i32x4(s[c + 4], s[c + 12], 0xdd);
    }
}

static void store_tile(uint8_t *tile, __m512i rows[16])
{
    transpose_rows(rows);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(tile + 64 * i, rows[i]);
}

// 32 elements of 16 bits of a row; zeros from n on.
static __m512i load_row(const frit_product *p, int64_t row, int64_t column, int64_t n)
{
    const __mmask32 mask = n < 32 ? (__mmask32)((1u << n) - 1) : 0xffffffff;
    return _mm512_maskz_loadu_epi16(mask, p->w + (size_t)row * p->w_stride + 2 * column);
}

FRIT_INLINE void fill_words(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,
                            const block *m, int parts)
{
    const int n_rows = p->n_w - row < 16 ? (int)(p->n_w - row) : 16;
    for (int64_t k = 0; k < n; k += FRIT_TILE_COLUMNS, steps += STEP_BYTES) {
        __m512i rows[16];
        for (int i = 0; i < 16; i++)
            rows[i] = i < n_rows ? load_row(p, row + i, first + k, n - k) : _mm512_setzero_si512();
        store_tile(steps, rows);
        after_step(m, k / FRIT_TILE_COLUMNS, parts);
    }
}

static void fill_bf16(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps, const block *m)
{
    fill_words(p, row, first, n, steps, m, 2);
}

static void fill_coarse_bf16(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,
                             const block *m)
{
    fill_words(p, row, first, n, steps, m, 1);
}

// Two vectors of sixteen elements as bf16, and their rounding errors as bf16.
typedef struct parts {
    __m512i number, rest;
} parts;

static parts split_f32(__m512 low, __m512 high)
{
    const __m512i number = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    const __m512i lows = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(number)), 16);
    const __m512i highs = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(number, 1)), 16);
    const __m512i rest = (__m512i)_mm512_cvtne2ps_pbh(_mm512_sub_ps(high, _mm512_castsi512_ps(highs)),
                                                      _mm512_sub_ps(low, _mm512_castsi512_ps(lows)));
    return (parts){number, rest};
}

static void fill_f16(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps, const block *m)
{
    const int n_rows = p->n_w - row < 16 ? (int)(p->n_w - row) : 16;
    for (int64_t k = 0; k < n; k += FRIT_TILE_COLUMNS, steps += 2 * STEP_BYTES) {
        __m512i numbers[16], rests[16];
        for (int i = 0; i < 16; i++) {
            const __m512i f16s = i < n_rows ? load_row(p, row + i, first + k, n - k) : _mm512_setzero_si512();
            const parts s = split_f32(_mm512_cvtph_ps(_mm512_castsi512_si256(f16s)),
                                      _mm512_cvtph_ps(_mm512_extracti64x4_epi64(f16s, 1)));
            numbers[i] = s.number;
            rests[i] = s.rest;
        }
        store_tile(steps, numbers);
        store_tile(steps + STEP_BYTES, rests);
        after_step(m, k / FRIT_TILE_COLUMNS, 3);
    }
}

static void fill_coarse_f16(const frit_product *p, int64_t row, int64_t first, int64_t n, uint8_t *steps,
                            const block *m)
{
    const int n_rows = p->n_w - row < 16 ? (int)(p->n_w - row) : 16;
    for (int64_t k = 0; k < n; k += FRIT_TILE_COLUMNS, steps += STEP_BYTES) {
        __m512i rows[16];
        for (int i = 0; i < 16; i++) {
            const __m512i f16s = i < n_rows ? load_row(p, row + i, first + k, n - k) : _mm512_setzero_si512();
            rows[i] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(f16s, 1)),
                                                   _mm512_cvtph_ps(_mm512_castsi512_si256(f16s)));
        }
        store_tile(steps, rows);
        after_step(m, k / FRIT_TILE_COLUMNS, 1);
    }
}

static void product_bf16(const frit_product *p)
{
    product_in_tiles(p, fill_bf16, 2, false);
}

static void product_f16(const frit_product *p)
{
    product_in_tiles(p, fill_f16, 3, false);
}

static void coarse_bf16(const frit_product *p)
{
    product_in_tiles(p, fill_coarse_bf16, 1, false);
}

static void coarse_f16(const frit_product *p)
{
    product_in_tiles(p, fill_coarse_f16, 1, false);
}

// Elements past the end are zeros.
static void convert_bf16_pairs(const float *x, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += FRIT_TILE_COLUMNS, out += 2 * FRIT_TILE_BYTES) {
        const uint32_t mask = n - i < 32 ? (1u << (n - i)) - 1 : 0xffffffff;
        const parts s = split_f32(_mm512_maskz_loadu_ps((__mmask16)mask, x + i),
                                  _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), x + i + 16));
        _mm512_storeu_si512(out, s.number);
        _mm512_storeu_si512(out + FRIT_TILE_BYTES, s.rest);
    }
}

void frit_install_amx_float(frit_kernels *k)
{
    k->convert[FRIT_FORM_BF16_PAIRS] = convert_bf16_pairs;
    k->product[FRIT_DTYPE_F16] = (frit_product_kernel){product_f16, FRIT_FORM_BF16_PAIRS, "amx", NULL};
    k->product[FRIT_DTYPE_BF16] = (frit_product_kernel){product_bf16, FRIT_FORM_BF16_PAIRS, "amx", NULL};
    k->coarse[FRIT_DTYPE_F16] = (frit_product_kernel){coarse_f16, FRIT_FORM_BF16_TILES, "amx", NULL};
    k->coarse[FRIT_DTYPE_BF16] = (frit_product_kernel){coarse_bf16, FRIT_FORM_BF16_TILES, "amx", NULL};
}
