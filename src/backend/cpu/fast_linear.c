// SPDX-License-Identifier: MIT
// Products of activations with the model's matrices.
//
// Threads share the matrix by its rows. A thread walks blocks of tokens whose activations stay in its second cache, and
// for each of them its rows in tiles that stay in the first:
//
//     for each block of tokens                 ~ 512 KiB of activations
//         for each tile of 16 rows             product kernel: 16 rows x the block
//             bias, residual, gate             while the results are in cache
//
// Kernels that unpack (form BF16_TILES) get larger blocks and tiles, and block their work themselves.
#include "backend/cpu/fast.h"
#include "backend/cpu/pack.h"

enum {
    TILE_ROWS = FRIT_PANEL_ROWS,
    DECODE_ROWS = 4,   // rows decoded together, for types without a kernel
    TILE_TOKENS = 8,   // what kernels take at once, or a multiple of it
    BLOCK_BYTES = 512 << 10,
    MAX_BLOCK_TOKENS = 512,
    UNPACK_ROWS = 128,   // rows that kernels which unpack get at once
};

typedef struct matrix {   // one matrix of a task, with what its kernel needs
    frit_product_kernel kernel;
    const uint8_t *w, *x;
    size_t row_bytes, w_stride, x_stride;
    int64_t n_in;
    frit_dtype dtype;
    float *decoded;     // [DECODE_ROWS, n_in], if the kernel cannot read the type
    uint8_t *scratch;   // of kernels that unpack
    const frit_product_kernel *f32;
} matrix;

static frit_product_kernel kernel_of(const frit_kernels *kernels, const frit_tensor *tensor)
{
    return frit_packs_want(kernels, tensor) ? kernels->packed[tensor->dtype] : kernels->product[tensor->dtype];
}

frit_form frit_linear_form(const frit_kernels *kernels, const frit_node *node, int i)
{
    const frit_product_kernel kernel = kernel_of(kernels, node->src[i]->tensor);
    return kernel.run ? kernel.form : FRIT_FORM_F32;
}

size_t frit_linear_workspace_bytes(const frit_node *node)
{
    const size_t decoded = (size_t)frit_node_width(node->src[0]) * DECODE_ROWS * sizeof(float);
    return FRIT_PRODUCT_SCRATCH + (size_t)MAX_BLOCK_TOKENS * UNPACK_ROWS * sizeof(float) + decoded;
}

static bool unpacks(const matrix *m)
{
    return m->kernel.run && m->kernel.form == FRIT_FORM_BF16_TILES;
}

// Rows that the kernel gets at once.
static int64_t tile_rows(const matrix *m)
{
    return unpacks(m) ? UNPACK_ROWS : TILE_ROWS;
}

// The workspace: scratch, a tile of results, decoded rows.
static matrix open_matrix(const frit_task *task, int source, uint8_t *workspace)
{
    const frit_kernels *k = task->env->kernels;
    const frit_node *node = task->node;
    const int64_t n_in = frit_node_width(node->src[0]);
    const frit_tensor *tensor = node->src[source]->tensor;
    const bool packed = frit_packs_want(k, tensor);
    const size_t row_bytes =
        packed ? frit_pack_row_bytes(tensor->dtype, n_in) : (size_t)frit_dtype_row_bytes(tensor->dtype, n_in);
    const frit_form form = frit_linear_form(k, node, source);
    const uint8_t *x = form == FRIT_FORM_F32 ? (const uint8_t *)task->x[0] : task->forms[form];
    return (matrix){.kernel = kernel_of(k, tensor),
                    .w = task->w[source],
                    .x = x,
                    .row_bytes = row_bytes,
                    .w_stride = packed ? FRIT_PANEL_ROWS * row_bytes : row_bytes,
                    .x_stride = frit_form_bytes(form, n_in),
                    .n_in = n_in,
                    .dtype = tensor->dtype,
                    .decoded = (float *)(void *)(workspace + FRIT_PRODUCT_SCRATCH) + MAX_BLOCK_TOKENS * UNPACK_ROWS,
                    .scratch = workspace,
                    .f32 = &k->product[FRIT_DTYPE_F32]};
}

// y[t, o] for n_w rows from `o` and n_x tokens from `t`; y points to the first result.
static void multiply(const matrix *m, int64_t o, int64_t n_w, int64_t t, int64_t n_x, float *y, size_t y_stride)
{
    const uint8_t *w = m->w + (size_t)o * m->row_bytes;
    frit_product p = {w,       m->w_stride, m->x + (size_t)t * m->x_stride, m->x_stride, y, y_stride, n_w, n_x,
                      m->n_in, m->scratch};
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

// Tokens whose activations fill BLOCK_BYTES; four times that where each block costs decoding the matrix again.
static int64_t block_tokens(const matrix *m)
{
    if (unpacks(m)) return MAX_BLOCK_TOKENS;
    const int64_t bytes = m->kernel.run ? BLOCK_BYTES : 4 * BLOCK_BYTES;
    const int64_t n = bytes / (int64_t)m->x_stride / TILE_TOKENS * TILE_TOKENS;
    return n < TILE_TOKENS ? TILE_TOKENS : n > MAX_BLOCK_TOKENS ? MAX_BLOCK_TOKENS : n;
}

// The rows of this part: whole tiles where there are enough of them, and of packed matrices always.
static frit_range my_rows(const matrix *m, int64_t n_out, int part, int parts)
{
    const bool whole = m->w_stride != m->row_bytes || n_out >= (int64_t)TILE_ROWS * 2 * parts;
    return frit_split(n_out, whole ? TILE_ROWS : 4, part, parts);
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void linear(const frit_task *task, const float *bias, const float *residual, int part, int parts)
{
    const frit_kernels *k = task->env->kernels;
    const matrix m = open_matrix(task, 1, frit_task_workspace(task, part));
    const int64_t n_tile = tile_rows(&m);
    const int64_t n_out = frit_node_width(task->node), n_tokens = frit_node_height(task->node);
    const int64_t n_block = block_tokens(&m);
    const frit_range rows = my_rows(&m, n_out, part, parts);

    for (int64_t t = 0; t < n_tokens; t += n_block) {
        const int64_t n_x = min(n_block, n_tokens - t);
        for (int64_t o = rows.begin; o < rows.end; o += n_tile) {
            const int64_t n_w = min(n_tile, rows.end - o), first = t * n_out + o;
            multiply(&m, o, n_w, t, n_x, task->y + first, (size_t)n_out);
            for (int64_t i = 0; bias && i < n_x; i++) {
                float *y = task->y + first + i * n_out;
                k->add(y, y, bias + o, n_w);
            }
            for (int64_t i = 0; residual && i < n_x; i++) {
                float *y = task->y + first + i * n_out;
                k->add(y, y, residual + first + i * n_out, n_w);
            }
        }
    }
}

void frit_fast_linear(const frit_task *task, int part, int parts)
{
    linear(task, task->x[2], NULL, part, parts);
}

void frit_fast_linear_add(const frit_task *task, int part, int parts)
{
    linear(task, task->x[3], task->x[2], part, parts);
}

void frit_fast_linear_glu(const frit_task *task, int part, int parts)
{
    const frit_kernels *k = task->env->kernels;
    uint8_t *workspace = frit_task_workspace(task, part);
    float *ups = (float *)(void *)(workspace + FRIT_PRODUCT_SCRATCH);   // [n_x, n_tile]
    const matrix gate = open_matrix(task, 1, workspace), up = open_matrix(task, 2, workspace);
    const int64_t n_tile = min(tile_rows(&gate), tile_rows(&up));
    const int64_t n_out = frit_node_width(task->node), n_tokens = frit_node_height(task->node);
    const int64_t n_block = min(block_tokens(&gate), block_tokens(&up));
    const frit_range rows = my_rows(gate.w_stride != gate.row_bytes ? &gate : &up, n_out, part, parts);

    for (int64_t t = 0; t < n_tokens; t += n_block) {
        const int64_t n_x = min(n_block, n_tokens - t);
        for (int64_t o = rows.begin; o < rows.end; o += n_tile) {
            const int64_t n_w = min(n_tile, rows.end - o);
            multiply(&gate, o, n_w, t, n_x, task->y + t * n_out + o, (size_t)n_out);
            multiply(&up, o, n_w, t, n_x, ups, (size_t)n_tile);
            for (int64_t i = 0; i < n_x; i++) {
                float *y = task->y + (t + i) * n_out + o;
                k->act[task->node->act](y, y, n_w);
                k->mul(y, y, ups + i * n_tile, n_w);
            }
        }
    }
}

void frit_fast_convert(const frit_task *task, int part, int parts)
{
    const frit_node *x = task->node->src[0];
    const int64_t n = frit_node_width(x);
    frit_range r = frit_split(frit_node_height(x), 1, part, parts);
    for (int64_t t = r.begin; t < r.end; t++)
        task->env->kernels->convert[task->form](task->x[0] + t * n, frit_form_row(task->form, task->shared, t, n), n);
}
