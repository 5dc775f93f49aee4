// SPDX-License-Identifier: MIT
// Adapters on the kernels of the installed instruction set. h = x a^T is a product with a matrix of few rows: a piece
// is some ranks by some rows of the batch. h b adds rows of b times elements of h to a row of results, as attention
// adds values times weights.
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ops/act_input.h"
#include "base/minmax.h"

#include <string.h>

enum {
    PIECE_RANKS = 8,
    PIECE_TOKENS = 32,
    UP_ROWS = 16,   // rows of results that are computed together
    UP_COLUMNS = 128,
    NEAR_RANKS = 64,   // rows of b that are read together
};

static int64_t pieces_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

static size_t bytes_of(frit_dtype type)
{
    return frit_dtype_get(type)->block_bytes;
}

// ------------------------------------------------------------------------------- down

bool frit_adapt_down_fits(const frit_node *node)
{
    return !frit_node_is_ids(node->src[0]);
}

// Decodes a row of a matrix whose type has no kernel.
size_t frit_adapt_down_workspace_bytes(const frit_node *node)
{
    return (size_t)frit_node_width(node->src[0]) * sizeof(float);
}

// 0 if no row has an adapter for the matrix, unless the task stores a sum that others read.
int frit_adapt_down_pieces(const frit_task *task)
{
    const frit_node *node = task->node;
    const int64_t width = frit_adapt_width(task->env, &node->adapted[0]);
    if (width == 0) return task->stores ? 1 : 0;
    const int64_t n = node->n_src > 1 ? node->shape[0] * node->shape[1]
                                      : pieces_of(node->shape[0], PIECE_TOKENS) * pieces_of(width, PIECE_RANKS);
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

// Multiplies rows [j, j + n_j) of an adapter's matrix by n_x rows. Always uses decode kernels, which read f32.
static void multiply_low_rank(const frit_task *task, const frit_adapt_walk *p, int64_t matrix, int64_t j, int64_t n_j,
                              const float *x, int64_t n_x, float *y, frit_share share)
{
    const frit_kernels *k = task->env->decode_kernels;
    const frit_tensor *tensor = p->low_rank->a;
    const int64_t n_in = frit_node_width(task->node->src[0]), n_h = task->node->adapted[0].n_h;
    const size_t row_bytes = (size_t)n_in * bytes_of(tensor->dtype);
    const uint8_t *a = (const uint8_t *)tensor->data + (size_t)(matrix * p->low_rank->rank + j) * row_bytes;
    const frit_product_kernel *kernel = &k->product[tensor->dtype];
    frit_product product = {.w = a,
                            .w_stride = row_bytes,
                            .x = (const uint8_t *)x,
                            .x_stride = (size_t)n_in * sizeof(float),
                            .y = y,
                            .y_stride = (size_t)n_h,
                            .n_w = n_j,
                            .n_x = n_x,
                            .n = n_in};
    float *row = frit_task_workspace(task, share);
    if (kernel->run && kernel->form == FRIT_FORM_F32) {
        kernel->run(&product);
    } else {
        product.w = (const uint8_t *)row;
        product.n_w = 1;
        for (int64_t i = 0; i < n_j; i++, product.y++) {
            frit_dtype_get(tensor->dtype)->decode(a + (size_t)i * row_bytes, row, n_in);
            k->product[FRIT_DTYPE_F32].run(&product);
        }
    }
    for (int64_t i = 0; i < n_x; i++, y += n_h) k->scale(y, y, p->scale, n_j);
}

// Computes ranks [first, last) of all adapters for rows [t, end), which have equal adapters.
static void down_rows(const frit_task *task, const float *x, int64_t t, int64_t end, const float *scales, int64_t first,
                      int64_t last, frit_share share)
{
    const frit_adapted *adapted = &task->node->adapted[0];
    const int64_t n_in = frit_node_width(task->node->src[0]);
    for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, scales, adapted->matrix, &p);) {
        const int64_t j = first > p.first ? first - p.first : 0,
                      n_j = frit_min_i64(p.low_rank->rank, last - p.first) - j;
        if (n_j > 0)
            multiply_low_rank(task, &p, 0, j, n_j, x + t * n_in, end - t, task->y + t * adapted->n_h + p.first + j,
                              share);
    }
}

// The end of the rows of the sequence of row t, at most n.
static int64_t same_until(const frit_task *task, int64_t t, int64_t n, const float *scales)
{
    int64_t end = t + 1;
    while (end < n && frit_adapt_scales(task, end) == scales) end++;
    return end;
}

static void down_assignments(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_adapted *adapted = &node->adapted[0];
    const int64_t n_used = node->shape[1], n_in = frit_node_width(node->src[0]);
    const frit_range r = frit_split(node->shape[0] * n_used, 1, share);
    for (int64_t assignment = r.begin; assignment < r.end; assignment++) {
        const float *scales = frit_adapt_scales(task, assignment / n_used);
        const float *x = task->x[0] + (node->src[0]->n_dims == 3 ? assignment : assignment / n_used) * n_in;
        const int64_t expert = (int64_t)task->x[1][assignment / n_used * 2 * n_used + assignment % n_used];
        for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, scales, adapted->matrix, &p);)
            multiply_low_rank(task, &p, expert, 0, p.low_rank->rank, x, 1,
                              task->y + assignment * adapted->n_h + p.first, share);
    }
}

void frit_fast_adapt_down(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    if (node->n_src > 1) {
        down_assignments(task, share);
        return;
    }
    const int64_t n_rows = node->shape[0];
    const int64_t n_ranks = pieces_of(frit_adapt_width(task->env, &node->adapted[0]), PIECE_RANKS);
    if (n_ranks == 0) return;
    const frit_act_input *input = task->inputs[FRIT_FORM_F32];
    const frit_range r = frit_split(pieces_of(n_rows, PIECE_TOKENS) * n_ranks, 1, share);
    const float *x = NULL;
    for (int64_t i = r.begin, next; i < r.end; i = next) {
        next = frit_min_i64((i / n_ranks + 1) * n_ranks, r.end);
        const int64_t first = i % n_ranks * PIECE_RANKS, last = first + (next - i) * PIECE_RANKS;
        const int64_t until = frit_min_i64((i / n_ranks + 1) * PIECE_TOKENS, n_rows);
        for (int64_t t = i / n_ranks * PIECE_TOKENS, end; t < until; t = end) {
            const float *scales = frit_adapt_scales(task, t);
            end = same_until(task, t, until, scales);
            if (scales && !x)
                x = input ? (const float *)(const void *)frit_act_input_rows(input, share.thread) : task->x[0];
            if (scales) down_rows(task, x, t, end, scales, first, last, share);
        }
    }
}

// ------------------------------------------------------------------------------- up

// Rows of results with equal adapters: row i is at y + i * y_stride, its elements of h at h + i * n_h.
typedef struct rows_up {
    const frit_adapted *adapted;
    const float *scales, *h;
    float *y;
    size_t y_stride;
    int64_t expert, n_rows;
} rows_up;

// sums[i] += h[i] b for columns [o, o + n) of one adapter.
static void sum_part(const frit_task *task, const frit_adapt_walk *p, const rows_up *u, int64_t first, int64_t n_rows,
                     int64_t o, int64_t n, float *sums)
{
    const frit_kernels *k = task->env->decode_kernels;
    const frit_tensor *tensor = p->low_rank->b;
    const frit_dtype type = tensor->dtype;
    const bool direct = k->attend_values[type] != NULL;
    const int64_t rank = p->low_rank->rank;
    const size_t b_bytes = (size_t)tensor->shape[tensor->n_dims - 1] * bytes_of(type);
    const uint8_t *b = (const uint8_t *)tensor->data + (size_t)(u->expert * rank) * b_bytes +
                       (size_t)(u->adapted->first_row + o) * bytes_of(type);
    const int64_t n_at_once = direct ? NEAR_RANKS : 1;
    float weights[UP_ROWS * FRIT_ATTEND_ROWS], decoded[UP_COLUMNS];
    const uint8_t *rows[NEAR_RANKS];
    for (int64_t j = 0; j < rank; j += n_at_once) {
        const int64_t n_j = frit_min_i64(n_at_once, rank - j);
        for (int64_t i = 0; i < n_j; i++) rows[i] = b + (size_t)(j + i) * b_bytes;
        for (int64_t i = 0; i < n_rows; i++)
            memcpy(weights + i * FRIT_ATTEND_ROWS, u->h + (first + i) * u->adapted->n_h + p->first + j,
                   (size_t)n_j * sizeof *weights);
        if (!direct) {
            frit_dtype_get(type)->decode(rows[0], decoded, n);
            rows[0] = (const uint8_t *)decoded;
        }
        k->attend_values[direct ? type : FRIT_DTYPE_F32](sums, weights, n_rows, rows, n_j, n);
    }
}

// Computes `factor` and `shift` of columns [o, o + n) from adapters with gains. False if no adapter has gains.
static bool find_gains(const frit_task *task, const rows_up *u, int64_t o, int64_t n, float *factor, float *shift)
{
    bool any = false;
    for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, u->scales, u->adapted->matrix, &p);) {
        if (!p.low_rank->gain) continue;
        const float *gain = (const float *)p.low_rank->gain->data + u->adapted->first_row + o;
        const float *more =
            p.low_rank->shift ? (const float *)p.low_rank->shift->data + u->adapted->first_row + o : NULL;
        for (int64_t c = 0; c < n && !any; c++) factor[c] = 1, shift[c] = 0;
        any = true;
        for (int64_t c = 0; c < n; c++) factor[c] += p.of_row * gain[c];
        for (int64_t c = 0; c < n && more; c++) shift[c] += p.of_row * more[c];
    }
    return any;
}

// The sums are separate from y, so that they do not depend on how many rows are computed together.
static void add_rows(const frit_task *task, const rows_up *u, int64_t o, int64_t n)
{
    const frit_kernels *k = task->env->decode_kernels;
    float sums[UP_ROWS * UP_COLUMNS], factor[UP_COLUMNS], shift[UP_COLUMNS];
    for (int64_t first = 0; first < u->n_rows; first += UP_ROWS) {
        const int64_t n_rows = frit_min_i64(UP_ROWS, u->n_rows - first);
        for (int64_t c = 0; c < n; c += UP_COLUMNS) {
            const int64_t n_c = frit_min_i64(UP_COLUMNS, n - c);
            memset(sums, 0, (size_t)(n_rows * n_c) * sizeof *sums);
            for (frit_adapt_walk p = {0}; frit_adapt_next(task->env, u->scales, u->adapted->matrix, &p);)
                sum_part(task, &p, u, first, n_rows, o + c, n_c, sums);
            const bool has_gains = find_gains(task, u, o + c, n_c, factor, shift);
            for (int64_t i = 0; i < n_rows; i++) {
                float *y = u->y + (size_t)(first + i) * u->y_stride + c;
                if (has_gains) k->mul(y, y, factor, n_c), k->add(y, y, shift, n_c);
                k->add(y, y, sums + i * n_c, n_c);
            }
        }
    }
}

// Only rows with an adapter are touched: 0 times a value that is not finite would change the others.
static bool has_any(const frit_task *task, const frit_adapted *adapted, const float *scales)
{
    return frit_adapt_next(task->env, scales, adapted->matrix, &(frit_adapt_walk){0});
}

void frit_adapt_rows(const frit_task *task, int i, int64_t t, int64_t n_x, int64_t o, int64_t n_w, float *y,
                     size_t y_stride)
{
    const int source = frit_node_adapts(task->node, i);
    if (source < 0) return;
    const frit_adapted *adapted = &task->node->adapted[i];
    if (frit_adapt_width(task->env, adapted) == 0) return;
    for (int64_t row = t, end; row < t + n_x; row = end) {
        const float *scales = frit_adapt_scales(task, row);
        end = same_until(task, row, t + n_x, scales);
        if (!has_any(task, adapted, scales)) continue;
        const rows_up u = {.adapted = adapted,
                           .scales = scales,
                           .h = task->x[source] + row * adapted->n_h,
                           .y = y + (size_t)(row - t) * y_stride,
                           .y_stride = y_stride,
                           .n_rows = end - row};
        add_rows(task, &u, o, n_w);
    }
}

void frit_adapt_assignment(const frit_task *task, int i, int64_t assignment, int64_t expert, int64_t o, int64_t n_w,
                           float *y)
{
    const int source = frit_node_adapts(task->node, i);
    if (source < 0) return;
    const frit_adapted *adapted = &task->node->adapted[i];
    if (frit_adapt_width(task->env, adapted) == 0) return;
    const float *scales = frit_adapt_scales(task, assignment / task->node->src[source]->shape[1]);
    if (!has_any(task, adapted, scales)) return;
    const rows_up u = {.adapted = adapted,
                       .scales = scales,
                       .h = task->x[source] + assignment * adapted->n_h,
                       .y = y,
                       .expert = expert,
                       .n_rows = 1};
    add_rows(task, &u, o, n_w);
}

void frit_fast_adapt_up(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_adapted *adapted = &node->adapted[0];
    const int64_t n = frit_node_width(node), n_used = node->n_dims == 3 ? node->shape[1] : 1;
    const frit_range r = frit_split(frit_node_height(node), 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *scales = frit_adapt_scales(task, row / n_used);
        const float *route = node->n_src == 3 ? task->x[2] + row / n_used * 2 * n_used + row % n_used : NULL;
        float *y = task->y + row * n;
        memcpy(y, task->x[0] + row * n, (size_t)n * sizeof *y);
        if (!has_any(task, adapted, scales)) continue;
        const rows_up u = {.adapted = adapted,
                           .scales = scales,
                           .h = task->x[1] + row * adapted->n_h,
                           .y = y,
                           .expert = route ? (int64_t)*route : 0,
                           .n_rows = 1};
        add_rows(task, &u, 0, n);
    }
}

void frit_fast_steer(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *scales = frit_adapt_scales(task, t);
        float *y = task->y + t * n;
        memcpy(y, task->x[0] + t * n, (size_t)n * sizeof *y);
        for (int32_t u = 0; scales && u < task->env->adapters->n_used; u++) {
            float scale;
            const uint8_t *x = (const uint8_t *)frit_adapt_direction(task, scales, u, &scale);
            if (x) task->env->decode_kernels->attend_values[FRIT_DTYPE_F32](y, &scale, 1, &x, 1, n);
        }
    }
}
