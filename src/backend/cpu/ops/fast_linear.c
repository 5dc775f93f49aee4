// SPDX-License-Identifier: MIT
// Products of activations with the model's matrices.
//
// A piece is a range of rows of the matrix. A thread walks blocks of tokens whose activations fit its L2 cache, and for
// each block its rows in tiles whose results fit too:
//
//     for each block of tokens                 ~ 512 KiB of activations
//         for each tile of rows                product kernel: few tokens by many rows, or many tokens by few rows
//             bias, residual, gate             while the results are in the cache
//
// With few tokens a kernel is bound by memory, and is faster the more panels it may read side by side. Kernels that
// unpack (forms BF16_*) get larger blocks and tiles, and block their work themselves. With many tokens their pieces are
// cut by tokens too: a piece of 32 rows and 512 tokens would read four times as many activations as a piece of 128 rows
// and 128 tokens, for the same work. In a step that mixes row classes (frit_row_class), each tile of weights is
// multiplied by the prefill rows, then by the decode rows.
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ops/act_input.h"
#include "backend/cpu/pack/matrix.h"
#include "backend/cpu/pack/pack.h"
#include "base/minmax.h"

enum {
    UNIT_ROWS = FRIT_PANEL_ROWS,
    PIECE_ROWS = 2 * UNIT_ROWS,
    TILE_RESULTS = PIECE_ROWS * FRIT_MATRIX_TOKENS,
    GROUP_ROWS = FRIT_MATRIX_UNPACKED_ROWS,
    MOST_CHUNKS = GROUP_ROWS / PIECE_ROWS,   // most chunks of the tokens; a piece has as many times PIECE_ROWS
    CHUNK_TOKENS = 128,                      // least tokens of a chunk
};

typedef struct operand {   // a matrix of a task, and activations in its kernel's form
    frit_matrix matrix;
    const uint8_t *x;
    int64_t first;   // row of the task at x
} operand;

typedef struct class_rows {   // rows of one class, and the kernels that multiply them
    operand a, b;             // b: the second matrix of GLU, else a
    int64_t begin, end, n_block;
} class_rows;

typedef struct results {   // buffers in a workspace
    float *near, *ups;     // results of a task that stores none; results of GLU's second product, or NULL
} results;

static bool unpacks_weights(const frit_task *task)
{
    return frit_form_is_tiled(frit_matrix_form(task->env->kernels, task->node->src[1]->tensor));
}

// Number of chunks of the tokens. A piece has one chunk of the tokens and as many times PIECE_ROWS rows.
static int64_t token_chunks(const frit_task *task)
{
    const int64_t n = frit_node_height(task->node) / CHUNK_TOKENS;
    if (n < 2 || task->continued || !unpacks_weights(task) || frit_decode_height(task->env, task->node) > 0) return 1;
    return n < MOST_CHUNKS ? n : MOST_CHUNKS;
}

int frit_linear_pieces(const frit_task *task)
{
    const int64_t chunks = frit_node_height(task->node) > 0 ? token_chunks(task) : 0;
    const int64_t piece = chunks > 1 ? chunks * PIECE_ROWS : task->unit > PIECE_ROWS ? task->unit : PIECE_ROWS;
    const int64_t n = (frit_node_width(task->node) + piece - 1) / piece * chunks;
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

frit_form frit_linear_form(const frit_kernels *kernels, const frit_node *node, int i)
{
    if (node->op == FRIT_OP_ADAPT_DOWN) return FRIT_FORM_F32;
    return frit_matrix_form(kernels, node->src[i]->tensor);
}

static size_t first_bytes(const frit_node *node)
{
    return (frit_matrix_workspace_bytes(frit_node_width(node->src[0])) + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN *
           FRIT_CPU_ALIGN;
}

size_t frit_linear_workspace_bytes(const frit_node *node)
{
    return first_bytes(node);
}

size_t frit_glu_workspace_bytes(const frit_node *node)
{
    return first_bytes(node) + (size_t)FRIT_MATRIX_TOKENS * FRIT_MATRIX_UNPACKED_ROWS * sizeof(float);
}

// The second tile of results, after the workspace of matrices.
static float *second_results(const frit_task *task, uint8_t *workspace)
{
    return (float *)(void *)(workspace + first_bytes(task->node));
}

// Rows of weights in one call of the kernel.
static int64_t tile_rows(const operand *a, int64_t n_tokens)
{
    return a->matrix.unpacks ? FRIT_MATRIX_UNPACKED_ROWS : TILE_RESULTS / n_tokens / PIECE_ROWS * PIECE_ROWS;
}

static frit_range rows_of(const frit_task *task, frit_share share)
{
    return frit_split(frit_node_width(task->node), task->unit ? task->unit : UNIT_ROWS, share);
}

// A thread claims half of its pieces, then half of the rest, so that many pieces follow a claim.
static operand open_operand(const frit_task *task, const frit_kernels *kernels, frit_share share)
{
    uint8_t *workspace = frit_task_workspace(task, share);
    const int n = share.end - share.begin, end = share.end + n - 1 < share.of ? share.end + n - 1 : share.of;
    frit_matrix m = frit_matrix_open(kernels, task->node->src[1]->tensor, task->w[1], workspace);
    m.end = rows_of(task, (frit_share){share.begin, end, share.of, share.thread}).end;
    const frit_act_input *input = task->inputs[m.form];
    if (!input) return (operand){m, (const uint8_t *)task->x[0], 0};
    return (operand){m, frit_act_input_rows(input, share.thread), frit_act_input_range(input).begin};
}

static class_rows open_class(const frit_task *task, const frit_kernels *kernels, frit_range rows, frit_share share)
{
    class_rows k = {.a = open_operand(task, kernels, share), .begin = rows.begin, .end = rows.end};
    k.b = task->up ? open_operand(task->up, kernels, share) : k.a;
    k.n_block = frit_min_i64(frit_matrix_block_tokens(&k.a.matrix), frit_matrix_block_tokens(&k.b.matrix));
    return k;
}

// Computes y[t, o] for n_w rows from `o` on and n_x tokens from `t` on. y is the address of the first result.
static void multiply(const operand *a, int64_t o, int64_t n_w, int64_t t, int64_t n_x, float *y, size_t y_stride)
{
    frit_matrix_multiply(&a->matrix, o, n_w, a->x + (size_t)(t - a->first) * a->matrix.x_stride, n_x, y, y_stride);
}

// Converts elements [o, o + n) of row t to the forms that others read.
static void make_forms(const frit_task *task, int64_t t, int64_t o, const float *y, int64_t n)
{
    for (int i = 0; i < FRIT_FORM_COUNT; i++) {
        const frit_form form = (frit_form)i;
        uint8_t *row = task->produced[form] ? frit_act_input_row(task->produced[form], t) : NULL;
        if (!row) continue;
        task->env->kernels->convert[form](y, row + (size_t)o / 32 * frit_form_column_bytes(form), n);
    }
}

// Multiplies tokens [t, t + n_x) by rows [o, o + n_w) of the matrix, adds bias and adapters, and applies the factor.
static void compute_columns(const frit_task *task, const operand *a, int64_t o, int64_t n_w, int64_t t, int64_t n_x,
                            float *y, int64_t stride)
{
    const frit_kernels *k = task->env->kernels;
    const float *bias = frit_node_n_own(task->node) > 2 ? task->x[2] : NULL;
    multiply(a, o, n_w, t, n_x, y, (size_t)stride);
    for (int64_t i = 0; bias && i < n_x; i++) k->add(y + i * stride, y + i * stride, bias + o, n_w);
    frit_adapt_rows(task, 0, t, n_x, o, n_w, y, (size_t)stride);
    const float factor = task->node->factor;
    for (int64_t i = 0; factor != 0 && i < n_x; i++) k->scale(y + i * stride, y + i * stride, factor, n_w);
}

// Applies the fused nodes of the task to n results of row t from column o on. `up` has the results of GLU's second
// product.
static void finish(const frit_task *task, int64_t t, int64_t o, float *y, const float *up, int64_t n)
{
    const frit_kernels *k = task->env->kernels;
    if (up) {
        k->act[task->fused[0].node->act](y, y, n);
        k->mul(y, y, up, n);
    }
    for (int i = up ? 1 : 0; i < task->n_fused; i++) {
        const frit_fused_node *fused = &task->fused[i];
        frit_cpu_ops[fused->node->op].fused(k, fused, t * frit_node_width(task->node) + o, o, y, y, n);
    }
    make_forms(task, t, o, y, n);
}

// Computes rows [o, o + n_w) of the matrices for tokens [t, t + n_x). If y is NULL, the results are only converted to
// other forms and do not leave the cache.
static void compute_tile(const frit_task *task, const class_rows *k, int64_t o, int64_t n_w, int64_t t, int64_t n_x,
                         const results *to)
{
    const int64_t n_out = frit_node_width(task->node), stride = task->y ? n_out : n_w;
    float *y = task->y ? task->y + t * n_out + o : to->near;
    compute_columns(task, &k->a, o, n_w, t, n_x, y, stride);
    if (to->ups) compute_columns(task->up, &k->b, o, n_w, t, n_x, to->ups, n_w);
    for (int64_t i = 0; i < n_x; i++) finish(task, t + i, o, y + i * stride, to->ups ? to->ups + i * n_w : NULL, n_w);
}

static int64_t tile_of(const class_rows *k, int64_t n_x)
{
    return frit_min_i64(tile_rows(&k->a, n_x), tile_rows(&k->b, n_x));
}

static void multiply_class(const frit_task *task, const class_rows *k, frit_range rows, const results *to)
{
    for (int64_t t = k->begin; t < k->end; t += k->n_block) {
        const int64_t n_x = frit_min_i64(k->n_block, k->end - t), n_tile = tile_of(k, n_x);
        for (int64_t o = rows.begin; o < rows.end; o += n_tile)
            compute_tile(task, k, o, frit_min_i64(n_tile, rows.end - o), t, n_x, to);
    }
}

// Multiplies rows of both classes: prefill kernels read the weights, decode kernels find each tile in the cache.
static void multiply_both(const frit_task *task, class_rows *prefill, class_rows *decode, frit_range rows,
                          const results *to)
{
    const int64_t n_x = frit_min_i64(prefill->n_block, prefill->end - prefill->begin);
    const int64_t n_tile =
        frit_min_i64(tile_of(prefill, n_x), tile_of(decode, frit_min_i64(decode->n_block, decode->end)));
    decode->a.matrix.end = decode->b.matrix.end = 0;
    for (int64_t o = rows.begin, n_w; o < rows.end; o += n_w) {
        n_w = frit_min_i64(n_tile, rows.end - o);
        compute_tile(task, prefill, o, n_w, prefill->begin, n_x, to);
        multiply_class(task, decode, (frit_range){o, o + n_w}, to);
    }
    prefill->begin += n_x;
    multiply_class(task, prefill, rows, to);
}

// Computes pieces that are cut by tokens. Consecutive pieces of the same rows are multiplied together.
static void multiply_chunks(const frit_task *task, class_rows *k, int64_t n_chunks, frit_share share, const results *to)
{
    const int64_t n_out = frit_node_width(task->node), n_tokens = k->end, n_rows = n_chunks * PIECE_ROWS;
    const frit_range mine = frit_split((n_out + n_rows - 1) / n_rows * n_chunks, 1, share);
    for (int64_t i = mine.begin, n; i < mine.end; i += n) {
        const int64_t o = i / n_chunks * n_rows, chunk = i % n_chunks;
        n = frit_min_i64(n_chunks - chunk, mine.end - i);
        const frit_share tokens = {(int)chunk, (int)(chunk + n), (int)n_chunks, share.thread};
        const frit_range range = frit_split(n_tokens, FRIT_TILE_ROWS, tokens);
        k->begin = range.begin;
        k->end = range.end;
        multiply_class(task, k, (frit_range){o, frit_min_i64(o + n_rows, n_out)}, to);
    }
}

static bool reads_same(const class_rows *x, const class_rows *y)
{
    return x->a.matrix.form == y->a.matrix.form && x->b.matrix.form == y->b.matrix.form;
}

void frit_fast_linear(const frit_task *task, frit_share share)
{
    uint8_t *workspace = frit_task_workspace(task, share);
    const results to = {.near = task->up ? second_results(task, workspace) : frit_matrix_results(workspace),
                        .ups = task->up ? frit_matrix_results(workspace) : NULL};
    const int64_t n_tokens = frit_node_height(task->node), n_decode = frit_decode_height(task->env, task->node);
    const int64_t n_chunks = token_chunks(task);
    const frit_range rows = rows_of(task, share);
    class_rows prefill = open_class(task, task->env->kernels, (frit_range){n_decode, n_tokens}, share);
    class_rows decode = prefill;
    if (n_decode > 0) decode = open_class(task, task->env->decode_kernels, (frit_range){0, n_decode}, share);
    if (n_chunks > 1) {
        multiply_chunks(task, &prefill, n_chunks, share, &to);
    } else if (reads_same(&prefill, &decode)) {
        prefill.begin = 0;
        multiply_class(task, &prefill, rows, &to);
    } else if (n_decode < n_tokens) {
        multiply_both(task, &prefill, &decode, rows, &to);
    } else {
        multiply_class(task, &decode, rows, &to);
    }
}

void frit_fast_convert(const frit_task *task, frit_share share)
{
    const frit_act_input *input = task->inputs[task->form];
    const int64_t n = frit_node_width(input->source);
    const frit_range all = frit_act_input_range(input), r = frit_split(all.end - all.begin, 1, share);
    for (int64_t t = all.begin + r.begin; t < all.begin + r.end; t++)
        task->env->kernels->convert[task->form](task->x[0] + t * n, frit_act_input_row(input, t), n);
}
