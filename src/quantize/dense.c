// SPDX-License-Identifier: MIT
// Products of f32 matrices.
#include "quantize/dense.h"

#include "backend/cpu/kernels.h"

#include <string.h>

enum { TILE = 64 };   // rows of both factors at a time

_Static_assert((int)FRIT_DENSE_TILE_ROWS == (int)FRIT_TILE_ROWS, "rows of a tile");

static void set_tiles(frit_dense *dense, const frit_kernels *kernels, const frit_product_kernel *tiles)
{
    dense->run_tiles = tiles->run;
    dense->tiled_form = tiles->form;
    dense->make_tiled = tiles->form == FRIT_FORM_F32 ? NULL : kernels->convert[tiles->form];
}

static void round_row(const float *x, uint8_t *out, int64_t n)
{
    const frit_dtype_info *type = frit_dtype_get(FRIT_DTYPE_BF16);
    uint8_t word[sizeof(uint16_t)];
    for (int64_t i = 0; i < n; i++) {
        type->encode(x + i, word, 1, NULL);
        type->decode(word, (float *)(void *)out + i, 1);
    }
}

void frit_dense_use_tiles(frit_dense *dense)
{
    frit_kernels kernels = {0};
    frit_isa_install(&kernels, NULL, FRIT_FOR_ALL);
    if (dense->run_tiles) return;
    set_tiles(dense, &kernels, &kernels.product[FRIT_DTYPE_BF16]);
    if (!dense->make_tiled) dense->make_tiled = round_row;
}

void frit_dense_init(frit_dense *dense)
{
    frit_kernels kernels = {0};
    frit_isa_install(&kernels, NULL, FRIT_FOR_ANY);
    dense->run = kernels.product[FRIT_DTYPE_F32].run;
    frit_isa_install(&kernels, NULL, FRIT_FOR_ALL);
    set_tiles(dense, &kernels, &kernels.coarse[FRIT_DTYPE_BF16]);   // without tiles bfloat16 gains nothing
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

size_t frit_dense_tiled_bytes(const frit_dense *dense, int64_t n_rows, int64_t width)
{
    const int64_t n = (n_rows + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
    return (frit_form_bytes_of_rows((frit_form)dense->tiled_form, n, width) + 63) / 64 * 64;
}

size_t frit_dense_plain_bytes(int64_t n_rows, int64_t width)
{
    return ((size_t)(n_rows * width) * sizeof(uint16_t) + 63) / 64 * 64;
}

size_t frit_dense_tile_scratch_bytes(void)
{
    return FRIT_PRODUCT_SCRATCH;
}

void frit_dense_make_tiled(const frit_dense *dense, frit_dense_forms forms, int64_t i, const float *row, int64_t first,
                           int64_t n)
{
    const frit_form form = (frit_form)dense->tiled_form;
    uint8_t *to = frit_form_row(form, forms.tiled, i, forms.width) + (size_t)first / 32 * frit_form_column_bytes(form);
    if (dense->make_tiled)
        dense->make_tiled(row, to, n);
    else
        memcpy(to, row, (size_t)n * sizeof *row);
}

void frit_dense_make_plain(frit_dense_forms forms, int64_t i, const float *row, int64_t first, int64_t n)
{
    uint8_t *to = forms.plain + (size_t)(i * forms.width + first) * sizeof(uint16_t);
    frit_dtype_get(FRIT_DTYPE_BF16)->encode(row, to, n, NULL);
}

void frit_dense_tile_dots(const frit_dense *dense, frit_dense_forms x, frit_dense_block a, frit_dense_forms z,
                          frit_dense_block b, float *y, int64_t y_stride, uint8_t *scratch)
{
    const frit_form form = (frit_form)dense->tiled_form;
    const frit_product product = {.w = z.plain + (size_t)(b.first * z.width) * sizeof(uint16_t),
                                  .w_stride = (size_t)z.width * sizeof(uint16_t),
                                  .x = frit_form_row(form, x.tiled, a.first, x.width),
                                  .x_stride = frit_form_bytes(form, x.width),
                                  .y = y,
                                  .y_stride = (size_t)y_stride,
                                  .n_w = b.n,
                                  .n_x = a.n,
                                  .n = x.n > 0 ? x.n : x.width,
                                  .scratch = scratch};
    dense->run_tiles(&product);
}
