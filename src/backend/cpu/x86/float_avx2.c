// SPDX-License-Identifier: MIT
// Products of f32 activations with f32, f16 and bf16 weights: register tiles of up to 3 rows x 4 tokens, or 4 x 1.
#include "backend/cpu/x86/avx2.h"

// n_w and n_x are constants where this is inlined.
FRIT_INLINE void tile(const frit_product *p, int64_t i, int64_t j, int n_w, int n_x, load_fn load,
                      load_tail_fn load_tail)
{
    const uint8_t *w = p->w + (size_t)i * p->w_stride, *x = p->x + (size_t)j * p->x_stride;
    __m256 sums[4][4], ws[4];
    for (int a = 0; a < n_w; a++)
        for (int b = 0; b < n_x; b++) sums[a][b] = _mm256_setzero_ps();

    int64_t k = 0;
    for (; k + 8 <= p->n; k += 8) {
        for (int a = 0; a < n_w; a++) ws[a] = load(w + (size_t)a * p->w_stride, k);
        for (int b = 0; b < n_x; b++) {
            const __m256 xs = load_f32(x + (size_t)b * p->x_stride, k);
            for (int a = 0; a < n_w; a++) sums[a][b] = _mm256_fmadd_ps(ws[a], xs, sums[a][b]);
        }
    }
    if (k < p->n) {
        for (int a = 0; a < n_w; a++) ws[a] = load_tail(w + (size_t)a * p->w_stride, k, p->n - k);
        for (int b = 0; b < n_x; b++) {
            const __m256 xs = load_tail_f32(x + (size_t)b * p->x_stride, k, p->n - k);
            for (int a = 0; a < n_w; a++) sums[a][b] = _mm256_fmadd_ps(ws[a], xs, sums[a][b]);
        }
    }
    for (int a = 0; a < n_w; a++)
        for (int b = 0; b < n_x; b++) p->y[(size_t)(j + b) * p->y_stride + (size_t)(i + a)] = sum_8(sums[a][b]);
}

FRIT_INLINE void product(const frit_product *p, load_fn load, load_tail_fn load_tail)
{
    int64_t j = 0;
    for (; j + 4 <= p->n_x; j += 4) {
        int64_t i = 0;
        for (; i + 3 <= p->n_w; i += 3) tile(p, i, j, 3, 4, load, load_tail);
        for (; i < p->n_w; i++) tile(p, i, j, 1, 4, load, load_tail);
    }
    for (; j < p->n_x; j++) {
        int64_t i = 0;
        for (; i + 4 <= p->n_w; i += 4) tile(p, i, j, 4, 1, load, load_tail);
        for (; i < p->n_w; i++) tile(p, i, j, 1, 1, load, load_tail);
    }
}

static void product_f32(const frit_product *p)
{
    product(p, load_f32, load_tail_f32);
}

static void product_f16(const frit_product *p)
{
    product(p, load_f16, load_tail_f16);
}

static void product_bf16(const frit_product *p)
{
    product(p, load_bf16, load_tail_bf16);
}

void frit_install_avx2_float(frit_kernels *k)
{
    k->product[FRIT_DTYPE_F32] = (frit_product_kernel){product_f32, FRIT_FORM_F32, "avx2"};
    k->product[FRIT_DTYPE_F16] = (frit_product_kernel){product_f16, FRIT_FORM_F32, "avx2"};
    k->product[FRIT_DTYPE_BF16] = (frit_product_kernel){product_bf16, FRIT_FORM_F32, "avx2"};
}
