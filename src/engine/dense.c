// SPDX-License-Identifier: MIT
// Products of f32 matrices.
#include "engine/dense.h"

#include "backend/cpu/kernels.h"

#include <string.h>

enum { TILE = 64 };   // rows of both at a time

// Kernels for tiles of bfloat16 are left out: they are for steps of many rows.
void frit_dense_init(frit_dense *dense)
{
    frit_kernels kernels;
    memset(&kernels, 0, sizeof kernels);
    frit_isa_install(&kernels, NULL, 1);
    dense->run = kernels.product[FRIT_DTYPE_F32].run;
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
