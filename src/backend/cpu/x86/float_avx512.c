// SPDX-License-Identifier: MIT
// Products of f32 activations with f32, f16 and bf16 weights for AVX-512: tiles of 4 rows x 4 tokens, or 4 x 1.
#include "backend/cpu/kernels.h"

#include <immintrin.h>

// Sixteen numbers as f32: elements [i, i + 16) where the mask is set, zeros elsewhere.
typedef __m512 (*load_fn)(const uint8_t *elems, int64_t i, __mmask16 mask);

FRIT_INLINE __m512 load_f32(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    return _mm512_maskz_loadu_ps(mask, elems + 4 * i);
}

FRIT_INLINE __m512 load_f16(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, elems + 2 * i));
}

FRIT_INLINE __m512 load_bf16(const uint8_t *elems, int64_t i, __mmask16 mask)
{
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, elems + 2 * i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

FRIT_INLINE void add_products(__m512 sums[4][4], const uint8_t *w, size_t w_stride, int n_w, const uint8_t *x,
                              size_t x_stride, int n_x, int64_t k, __mmask16 mask, load_fn load)
{
    __m512 ws[4];
    for (int a = 0; a < n_w; a++) ws[a] = load(w + (size_t)a * w_stride, k, mask);
    for (int b = 0; b < n_x; b++) {
        const __m512 xs = load_f32(x + (size_t)b * x_stride, k, mask);
        for (int a = 0; a < n_w; a++) sums[a][b] = _mm512_fmadd_ps(ws[a], xs, sums[a][b]);
    }
}

// n_w and n_x are constants where this is inlined.
FRIT_INLINE void tile(const frit_product *p, int64_t i, int64_t j, int n_w, int n_x, load_fn load)
{
    const uint8_t *w = p->w + (size_t)i * p->w_stride, *x = p->x + (size_t)j * p->x_stride;
    __m512 sums[4][4];
    for (int a = 0; a < n_w; a++)
        for (int b = 0; b < n_x; b++) sums[a][b] = _mm512_setzero_ps();
    int64_t k = 0;
    for (; k + 16 <= p->n; k += 16) add_products(sums, w, p->w_stride, n_w, x, p->x_stride, n_x, k, 0xffff, load);
    const __mmask16 rest = (__mmask16)((1u << (p->n - k)) - 1);
    if (rest) add_products(sums, w, p->w_stride, n_w, x, p->x_stride, n_x, k, rest, load);
    for (int a = 0; a < n_w; a++)
        for (int b = 0; b < n_x; b++)
            p->y[(size_t)(j + b) * p->y_stride + (size_t)(i + a)] = _mm512_reduce_add_ps(sums[a][b]);
}

FRIT_INLINE void product(const frit_product *p, load_fn load)
{
    int64_t j = 0;
    for (; j + 4 <= p->n_x; j += 4) {
        int64_t i = 0;
        for (; i + 4 <= p->n_w; i += 4) tile(p, i, j, 4, 4, load);
        for (; i < p->n_w; i++) tile(p, i, j, 1, 4, load);
    }
    for (; j < p->n_x; j++) {
        int64_t i = 0;
        for (; i + 4 <= p->n_w; i += 4) tile(p, i, j, 4, 1, load);
        for (; i < p->n_w; i++) tile(p, i, j, 1, 1, load);
    }
}

static void product_f32(const frit_product *p)
{
    product(p, load_f32);
}

static void product_f16(const frit_product *p)
{
    product(p, load_f16);
}

static void product_bf16(const frit_product *p)
{
    product(p, load_bf16);
}

void frit_install_avx512(frit_kernels *k)
{
    k->product[FRIT_DTYPE_F32] = (frit_product_kernel){product_f32, FRIT_FORM_F32, "avx512"};
    k->product[FRIT_DTYPE_F16] = (frit_product_kernel){product_f16, FRIT_FORM_F32, "avx512"};
    k->product[FRIT_DTYPE_BF16] = (frit_product_kernel){product_bf16, FRIT_FORM_F32, "avx512"};
}
