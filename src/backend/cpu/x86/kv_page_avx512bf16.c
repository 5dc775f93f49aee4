// SPDX-License-Identifier: MIT
// Makes bf16 tiles of keys, values and queries for attend_avx512bf16.h.
#include "backend/cpu/x86/vec/avx512bf16.h"
#include "backend/cpu/x86/vec/math_avx512.h"

#include <stdbool.h>

enum { TILE = 16, STEP = 32, TILE_WORDS = TILE * 16 };
_Static_assert((int)STEP == (int)FRIT_PAGE_TOKENS, "a step is a page");

FRIT_INLINE __mmask32 first_32(int64_t n)
{
    return n >= 32 ? 0xffffffff : n <= 0 ? 0 : (__mmask32)((1u << n) - 1);
}

// Elements [d, d + 32) of a row as bf16; zeros where the mask is not set.
FRIT_INLINE __m512i load_32(frit_dtype type, const uint8_t *row, int64_t d, __mmask32 mask)
{
    if (type == FRIT_DTYPE_BF16) return _mm512_maskz_loadu_epi16(mask, row + 2 * d);
    __m512 low, high;
    if (type == FRIT_DTYPE_F16) {
        low = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)mask, row + 2 * d));
        high = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(mask >> 16), row + 2 * d + 32));
    } else {
        low = _mm512_maskz_loadu_ps((__mmask16)mask, row + 4 * d);
        high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), row + 4 * d + 64);
    }
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Elements [d, d + 16) of two rows, one word for each pair.
FRIT_INLINE __m512i load_pairs(frit_dtype type, const uint8_t *const rows[2], int64_t d, const __mmask16 seen[2])
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i both;
    if (type == FRIT_DTYPE_BF16) {
        const __m256i a = _mm256_maskz_loadu_epi16(seen[0], rows[0] + 2 * d);
        both = _mm512_inserti64x4(_mm512_castsi256_si512(a), _mm256_maskz_loadu_epi16(seen[1], rows[1] + 2 * d), 1);
    } else {
        __m512 x[2];
        for (int i = 0; i < 2; i++)
            x[i] = type == FRIT_DTYPE_F16 ? _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(seen[i], rows[i] + 2 * d))
                                          : _mm512_maskz_loadu_ps(seen[i], rows[i] + 4 * d);
        both = (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]);
    }
    return _mm512_permutexvar_epi16(order, both);
}

// Transposes sixteen rows of sixteen words.
FRIT_INLINE void transpose_keys(__m512i v[16])
{
    __m512i w[16];
    for (int i = 0; i < 16; i += 2) {
        w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            v[i + 2 * j] = _mm512_unpacklo_epi64(w[i + j], w[i + j + 2]);
            v[i + 2 * j + 1] = _mm512_unpackhi_epi64(w[i + j], w[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {   // lane c of v[i + 4 * j]: column 4 * c + i of rows 4 * j ...
        const __m512i a = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88), b = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
        w[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        w[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        w[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        w[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < 16; i++) v[i] = w[i];
}

// Address of row i of a page. If it may not be read, its memory is undefined, *may is false, and the address is row 0.
FRIT_INLINE const uint8_t *row_at(const frit_bf16_page *page, const uint8_t *rows, uint64_t row_bytes, int i, bool *may)
{
    *may = i >= page->begin && i < page->end;
    return *may ? rows + (uint64_t)i * row_bytes : rows;
}

// Tiles of transposed keys: pairs of dimensions of sixteen positions are already rows of a tile.
FRIT_INLINE void pack_transposed_keys_of(const frit_bf16_page *page, frit_dtype type)
{
    const int64_t step = FRIT_PAGE_TOKENS * (type == FRIT_DTYPE_F32 ? 4 : 2);
    uint32_t *tile = (uint32_t *)(void *)page->tiles;
    for (int p = 0; p < FRIT_PAGE_TOKENS; p += TILE) {
        const __mmask16 positions = (__mmask16)(first_32(page->end - p) & ~first_32(page->begin - p));
        for (int64_t d = 0; d < page->k_dim; d += STEP, tile += TILE_WORDS)
            for (int i = 0; i < TILE; i++) {
                const int64_t at = d + 2 * i;
                const uint8_t *const rows[2] = {page->k + at * step, page->k + (at + 1) * step};
                const __mmask16 seen[2] = {at < page->k_dim ? positions : 0, at + 1 < page->k_dim ? positions : 0};
                _mm512_store_si512(tile + i * 16, load_pairs(type, rows, p, seen));
            }
    }
}

FRIT_INLINE void pack_keys_of(const frit_bf16_page *page, frit_dtype type)
{
    if (page->k_transposed) {
        pack_transposed_keys_of(page, type);
        return;
    }
    uint32_t *tile = (uint32_t *)(void *)page->tiles;
    for (int p = 0; p < FRIT_PAGE_TOKENS; p += TILE) {
        for (int64_t d = 0; d < page->k_dim; d += STEP, tile += TILE_WORDS) {
            const __mmask32 mask = first_32(page->k_dim - d);
            __m512i rows[TILE];
            for (int i = 0; i < TILE; i++) {
                bool may;
                const uint8_t *row = row_at(page, page->k, page->k_bytes, p + i, &may);
                rows[i] = load_32(type, row, d, may ? mask : 0);
            }
            transpose_keys(rows);
            for (int i = 0; i < TILE; i++) _mm512_store_si512(tile + i * 16, rows[i]);
        }
    }
}

FRIT_INLINE void pack_values_of(const frit_bf16_page *page, frit_dtype type)
{
    uint32_t *tiles = (uint32_t *)(void *)page->tiles + 2 * ((page->k_dim + STEP - 1) / STEP) * TILE_WORDS;
    for (int i = 0; i < TILE; i++) {   // the order of packed weights (attend_avx512bf16.h)
        const int p = i % 4 < 2 ? i / 4 * 4 + i % 4 * 2 : TILE + i / 4 * 4 + (i % 4 - 2) * 2;
        bool may[2];
        const uint8_t *const rows[2] = {row_at(page, page->v, page->v_bytes, p, &may[0]),
                                        row_at(page, page->v, page->v_bytes, p + 1, &may[1])};
        const __mmask16 seen[2] = {may[0] ? 0xffff : 0, may[1] ? 0xffff : 0};
        for (int64_t d = 0; d < page->v_dim; d += TILE)
            _mm512_store_si512(tiles + d / TILE * TILE_WORDS + i * 16, load_pairs(type, rows, d, seen));
    }
}

static void pack_kv_page(const frit_bf16_page *page)
{
    if (page->k_type == FRIT_DTYPE_F16)
        pack_keys_of(page, FRIT_DTYPE_F16);
    else if (page->k_type == FRIT_DTYPE_BF16)
        pack_keys_of(page, FRIT_DTYPE_BF16);
    else
        pack_keys_of(page, FRIT_DTYPE_F32);
    if (page->v_type == FRIT_DTYPE_F16)
        pack_values_of(page, FRIT_DTYPE_F16);
    else if (page->v_type == FRIT_DTYPE_BF16)
        pack_values_of(page, FRIT_DTYPE_BF16);
    else
        pack_values_of(page, FRIT_DTYPE_F32);
}

// Writes one row of a tile for every 32 elements.
static void convert_bf16_tiles(const float *x, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += FRIT_TILE_COLUMNS, out += FRIT_TILE_BYTES) {
        const __m512 low = _mm512_loadu_ps(x + i), high = _mm512_loadu_ps(x + i + 16);
        _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

void frit_install_avx512bf16(frit_kernels *k)
{
    frit_install_avx512bf16_attend(k);
    k->pack_kv_page = pack_kv_page;
    k->convert[FRIT_FORM_BF16_TILES] = convert_bf16_tiles;
}
