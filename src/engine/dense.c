// SPDX-License-Identifier: MIT
// Products of f32 matrices.
#include "engine/dense.h"

#include "backend/cpu/kernels.h"

#include <string.h>

enum { TILE = 64 };   // rows of both at a time

_Static_assert((int)FRIT_DENSE_TILE_ROWS == (int)FRIT_TILE_ROWS, "rows of a tile");

static frit_product_kernel kernel_of(frit_dense *dense, int64_t n_rows, frit_dtype type)
{
    frit_kernels kernels;
    memset(&kernels, 0, sizeof kernels);
    frit_isa_install(&kernels, NULL, n_rows);
    const frit_product_kernel product = kernels.product[type];
    dense->fine_form = product.form;
    dense->make_fine = product.form == FRIT_FORM_F32 ? NULL : kernels.convert[product.form];
    return product;
}

void frit_dense_use_tiles(frit_dense *dense)
{
    dense->run_tiles = kernel_of(dense, FRIT_PREFILL_ROWS, FRIT_DTYPE_BF16).run;
}

void frit_dense_init(frit_dense *dense)
{
    dense->run = kernel_of(dense, 1, FRIT_DTYPE_F32).run;
    const frit_product_kernel tiles = kernel_of(dense, FRIT_PREFILL_ROWS, FRIT_DTYPE_BF16);
    dense->run_tiles = tiles.form == FRIT_FORM_BF16_PAIRS ? tiles.run : NULL;   // of others, none gains by it
}

void frit_dense_dots(const frit_dense *dense, frit_dense_rows a, frit_dense_rows b, int64_t width, float *y,
                     int64_t y_stride)
{
    for (int64_t i = 0; i < a.n; i += TILE)
        for (int64_t j = 0; j < b.n; j += TILE) {
            const frit_product product = {.w = (const uint8_t *)(b.at + j * b.stride),
                                          .w_stride = (size_t)b.stride * sizeof(float),
                                          .x = (const uint8_t *)(a.at + i * a.stride),
                                          .x_stride = (size_t)a.stride * sizeof(float),
                                          .y = y + i * y_stride + j,
                                          .y_stride = (size_t)y_stride,
                                          .n_w = b.n - j < TILE ? b.n - j : TILE,
                                          .n_x = a.n - i < TILE ? a.n - i : TILE,
                                          .n = width};
            dense->run(&product);
        }
}

// ------------------------------------------------------------------------------------- tiles

size_t frit_dense_fine_bytes(const frit_dense *dense, int64_t n_rows, int64_t width)
{
    const int64_t n = (n_rows + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
    return (frit_form_bytes_of_rows((frit_form)dense->fine_form, n, width) + 63) / 64 * 64;
}

size_t frit_dense_coarse_bytes(int64_t n_rows, int64_t width)
{
    return ((size_t)(n_rows * width) * sizeof(uint16_t) + 63) / 64 * 64;
}

size_t frit_dense_tile_scratch_bytes(void)
{
    return FRIT_PRODUCT_SCRATCH;
}

void frit_dense_make_fine(const frit_dense *dense, frit_dense_forms forms, int64_t i, const float *row)
{
    uint8_t *to = frit_form_row((frit_form)dense->fine_form, forms.fine, i, forms.width);
    if (dense->make_fine)
        dense->make_fine(row, to, forms.width);
    else
        memcpy(to, row, (size_t)forms.width * sizeof *row);
}

void frit_dense_make_coarse(frit_dense_forms forms, int64_t i, const float *row)
{
    uint8_t *to = forms.coarse + (size_t)(i * forms.width) * sizeof(uint16_t);
    frit_dtype_get(FRIT_DTYPE_BF16)->encode(row, to, forms.width, NULL);
}

void frit_dense_tile_dots(const frit_dense *dense, frit_dense_forms x, frit_dense_block a, frit_dense_forms z,
                          frit_dense_block b, float *y, int64_t y_stride, uint8_t *scratch)
{
    const frit_form form = (frit_form)dense->fine_form;
    const frit_product product = {.w = z.coarse + (size_t)(b.first * z.width) * sizeof(uint16_t),
                                  .w_stride = (size_t)z.width * sizeof(uint16_t),
                                  .x = frit_form_row(form, x.fine, a.first, x.width),
                                  .x_stride = frit_form_bytes(form, x.width),
                                  .y = y,
                                  .y_stride = (size_t)y_stride,
                                  .n_w = b.n,
                                  .n_x = a.n,
                                  .n = x.width,
                                  .scratch = scratch};
    dense->run_tiles(&product);
}
