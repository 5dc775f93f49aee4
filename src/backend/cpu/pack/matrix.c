// SPDX-License-Identifier: MIT
// Chooses the kernel of a matrix, and multiplies.
#include "backend/cpu/pack/matrix.h"
#include "backend/cpu/pack/pack.h"
#include "format/rows.h"

enum {
    DECODE_ROWS = 4,   // rows decoded together, for types without a kernel
    TILE_TOKENS = 8,   // a multiple of the tokens that kernels multiply at once
    BLOCK_BYTES = 512 << 10,
    FLOAT_TOKENS =
        96,   // tokens for kernels of floats, which read a few columns of all tokens at a time (float_tmpl.h)
};

static frit_product_kernel kernel_of(const frit_kernels *kernels, const frit_tensor *tensor)
{
    const bool is_coarse = kernels->is_coarse && kernels->coarse[tensor->dtype].run &&
                           tensor->shape[tensor->n_dims - 1] % FRIT_TILE_COLUMNS == 0;
    if (is_coarse) return kernels->coarse[tensor->dtype];
    return frit_packs_needs(kernels, tensor) ? kernels->packed[tensor->dtype] : kernels->product[tensor->dtype];
}

frit_form frit_matrix_form(const frit_kernels *kernels, const frit_tensor *tensor)
{
    const frit_product_kernel kernel = kernel_of(kernels, tensor);
    return kernel.run ? kernel.form : FRIT_FORM_F32;
}

size_t frit_matrix_workspace_bytes(int64_t n_in)
{
    const size_t results = (size_t)FRIT_MATRIX_TOKENS * FRIT_MATRIX_UNPACKED_ROWS * sizeof(float);
    return FRIT_PRODUCT_SCRATCH + results + (size_t)n_in * DECODE_ROWS * sizeof(float);
}

float *frit_matrix_results(uint8_t *workspace)
{
    return (float *)(void *)(workspace + FRIT_PRODUCT_SCRATCH);
}

// The workspace: scratch, results, decoded rows.
frit_matrix frit_matrix_open(const frit_kernels *kernels, const frit_tensor *tensor, const uint8_t *w,
                             uint8_t *workspace)
{
    const int64_t n_in = tensor->shape[tensor->n_dims - 1];
    const bool packed = frit_packs_needs(kernels, tensor);
    const size_t row_bytes = packed ? frit_pack_row_bytes(kernels->packed[tensor->dtype].layout, n_in)
                                    : (size_t)frit_dtype_row_bytes(tensor->dtype, n_in);
    const frit_form form = frit_matrix_form(kernels, tensor);
    return (frit_matrix){.kernel = kernel_of(kernels, tensor),
                         .form = form,
                         .w = w,
                         .stack = w ? NULL : tensor,
                         .row_bytes = row_bytes,
                         .w_stride = packed ? FRIT_PANEL_ROWS * row_bytes : row_bytes,
                         .x_stride = frit_form_bytes(form, n_in),
                         .n_in = n_in,
                         .dtype = tensor->dtype,
                         .in_order = kernels->in_order,
                         .unpacks = frit_form_is_tiled(form),
                         .decoded = frit_matrix_results(workspace) + FRIT_MATRIX_TOKENS * FRIT_MATRIX_UNPACKED_ROWS,
                         .scratch = workspace,
                         .f32 = &kernels->product[FRIT_DTYPE_F32]};
}

void frit_matrix_multiply(const frit_matrix *m, int64_t o, int64_t n_w, const uint8_t *x, int64_t n_x, float *y,
                          size_t y_stride)
{
    const uint8_t *w = m->w ? m->w + (size_t)o * m->row_bytes : frit_stack_row(m->stack, o);
    frit_product p = {w, m->w_stride, x, m->x_stride, y, y_stride, n_w, n_x, m->n_in, m->scratch, 0, m->in_order};
    if (m->end > o + n_w) p.n_ahead = m->end - o - n_w;
    if (m->kernel.run) {
        m->kernel.run(&p);
        return;
    }
    const frit_dtype_info *type = frit_dtype_get(m->dtype);
    p.w = (const uint8_t *)m->decoded;
    p.w_stride = (size_t)m->n_in * sizeof(float);
    for (int64_t i = 0; i < n_w; i += DECODE_ROWS) {
        p.n_w = n_w - i < DECODE_ROWS ? n_w - i : DECODE_ROWS;
        p.y = y + i;
        for (int64_t j = 0; j < p.n_w; j++)
            type->decode(w + (size_t)(i + j) * m->row_bytes, m->decoded + j * m->n_in, m->n_in);
        m->f32->run(&p);
    }
}

// Four times as many tokens if each block decodes the matrix again.
int64_t frit_matrix_block_tokens(const frit_matrix *m)
{
    if (m->unpacks) return FRIT_MATRIX_TOKENS;
    if (m->form == FRIT_FORM_F32 && m->kernel.run) return FLOAT_TOKENS;
    const int64_t bytes = m->kernel.run ? BLOCK_BYTES : 4 * BLOCK_BYTES;
    const int64_t n = bytes / (int64_t)m->x_stride / TILE_TOKENS * TILE_TOKENS;
    return n < TILE_TOKENS ? TILE_TOKENS : n > FRIT_MATRIX_TOKENS ? FRIT_MATRIX_TOKENS : n;
}
