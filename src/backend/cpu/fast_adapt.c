// SPDX-License-Identifier: MIT
// Adapters on the kernels of the installed instruction set. h = x a^T is a product of a few rows of a matrix: pieces
// are some ranks by some rows of the batch. h b adds rows of b to a row of results, each times a number of h, which is
// what attention does with values.
#include "backend/cpu/adapt.h"
#include "backend/cpu/fast.h"
#include "backend/cpu/act_input.h"

#include <string.h>

enum {
    PIECE_RANKS = 8,
    PIECE_TOKENS = 32,
    UP_ROWS = 16,   // of results, together
    UP_COLUMNS = 128,
    NEAR_RANKS = 64,   // rows of b, together
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

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

// A row of a matrix whose type no kernel reads.
size_t frit_adapt_down_workspace_bytes(const frit_node *node)
{
    return (size_t)node->adapted->n_in * sizeof(float);
}

int frit_adapt_down_pieces(const frit_task *task)
{
    const frit_node *node = task->node;
    const int64_t n = node->n_src > 1
                          ? node->shape[0] * node->shape[1]
                          : pieces_of(node->shape[0], PIECE_TOKENS) * pieces_of(node->adapted->n_h, PIECE_RANKS);
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

// Rows [j, j + n_j) of an adapter's matrix by n_x rows. The kernels for few rows read f32 as it is, whatever the rows
// of the step.
static void multiply(const frit_task *task, const frit_low_rank *part, int64_t matrix, int64_t j, int64_t n_j,
                     const float *x, int64_t n_x, float *y, frit_share share)
{
    const frit_kernels *k = task->env->decode_kernels;
    const int64_t n_in = task->node->adapted->n_in;
    const size_t row_bytes = (size_t)n_in * bytes_of(part->a_type);
    const uint8_t *a = part->a + (size_t)(matrix * part->rank + j) * row_bytes;
    const frit_product_kernel *kernel = &k->product[part->a_type];
    frit_product p = {.w = a,
                      .w_stride = row_bytes,
                      .x = (const uint8_t *)x,
                      .x_stride = (size_t)n_in * sizeof(float),
                      .y = y,
                      .y_stride = (size_t)task->node->adapted->n_h,
                      .n_w = n_j,
                      .n_x = n_x,
                      .n = n_in};
    if (kernel->run && kernel->form == FRIT_FORM_F32) {
        kernel->run(&p);
        return;
    }
    float *row = frit_task_workspace(task, share);
    p.w = (const uint8_t *)row;
    p.n_w = 1;
    for (int64_t i = 0; i < n_j; i++, p.y++) {
        frit_dtype_get(part->a_type)->decode(a + (size_t)i * row_bytes, row, n_in);
        k->product[FRIT_DTYPE_F32].run(&p);
    }
}

static void scale_rows(const frit_task *task, float *y, int64_t n_rows, int64_t n, float scale)
{
    for (int64_t i = 0; i < n_rows; i++, y += task->node->adapted->n_h)
        task->env->decode_kernels->scale(y, y, scale, n);
}

// Rows [t, end) that have the same adapters, ranks [first, last) of all of them.
static void down_rows(const frit_task *task, const float *x, int64_t t, int64_t end, const float *scales, int64_t first,
                      int64_t last, frit_share share)
{
    const frit_adapted *adapted = task->node->adapted;
    for (int32_t p = 0; p < adapted->n; p++) {
        const frit_low_rank *part = &adapted->parts[p];
        const float scale = part->scale * scales[part->adapter];
        const int64_t j = first > part->first ? first - part->first : 0, n_j = min(part->rank, last - part->first) - j;
        if (scale == 0 || n_j <= 0) continue;
        float *y = task->y + t * adapted->n_h + part->first + j;
        multiply(task, part, 0, j, n_j, x + t * adapted->n_in, end - t, y, share);
        scale_rows(task, y, end - t, n_j, scale);
    }
}

// The first row from t on that is not of the same sequence, at most n.
static int64_t same_until(const frit_task *task, int64_t t, int64_t n, const float *scales)
{
    int64_t end = t + 1;
    while (end < n && frit_adapt_scales(task, end) == scales) end++;
    return end;
}

static void down_assignments(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_adapted *adapted = node->adapted;
    const int64_t n_used = node->shape[1], n_in = adapted->n_in;
    const frit_range r = frit_split(node->shape[0] * n_used, 1, share);
    for (int64_t assignment = r.begin; assignment < r.end; assignment++) {
        const float *scales = frit_adapt_scales(task, assignment / n_used);
        const float *x = task->x[0] + (node->src[0]->n_dims == 3 ? assignment : assignment / n_used) * n_in;
        const int64_t expert = (int64_t)task->x[1][assignment / n_used * 2 * n_used + assignment % n_used];
        for (int32_t p = 0; scales && p < adapted->n; p++) {
            const frit_low_rank *part = &adapted->parts[p];
            const float scale = part->scale * scales[part->adapter];
            float *y = task->y + assignment * adapted->n_h + part->first;
            if (scale == 0) continue;
            multiply(task, part, expert, 0, part->rank, x, 1, y, share);
            scale_rows(task, y, 1, part->rank, scale);
        }
    }
}

void frit_fast_adapt_down(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    if (node->n_src > 1) {
        down_assignments(task, share);
        return;
    }
    const int64_t n_rows = node->shape[0], n_h = node->adapted->n_h, n_ranks = pieces_of(n_h, PIECE_RANKS);
    const frit_act_input *input = task->inputs[FRIT_FORM_F32];
    const frit_range r = frit_split(pieces_of(n_rows, PIECE_TOKENS) * n_ranks, 1, share);
    const float *x = NULL;
    for (int64_t i = r.begin, next; i < r.end; i = next) {
        next = min((i / n_ranks + 1) * n_ranks, r.end);
        const int64_t first = i % n_ranks * PIECE_RANKS, last = first + (next - i) * PIECE_RANKS;
        const int64_t until = min((i / n_ranks + 1) * PIECE_TOKENS, n_rows);
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

// Rows of results to which the same adapters add: row i is at y + i * y_stride, its numbers of h at h + i * n_h.
typedef struct rows_up {
    const frit_adapted *adapted;
    const float *scales, *h;
    float *y;
    size_t y_stride;
    int64_t expert, n_rows;
} rows_up;

// sums[i] += h[i] b, columns [o, o + n) of one adapter.
static void sum_part(const frit_task *task, const frit_low_rank *part, const rows_up *u, int64_t first, int64_t n_rows,
                     int64_t o, int64_t n, float *sums)
{
    const frit_kernels *k = task->env->decode_kernels;
    const bool direct = k->attend_values[part->b_type] != NULL;
    const size_t b_bytes = (size_t)part->b_width * bytes_of(part->b_type);
    const uint8_t *b =
        part->b + (size_t)(u->expert * part->rank) * b_bytes + (size_t)(part->b_first + o) * bytes_of(part->b_type);
    const int64_t n_at_once = direct ? NEAR_RANKS : 1;
    float weights[UP_ROWS * FRIT_ATTEND_ROWS], decoded[UP_COLUMNS];
    const uint8_t *rows[NEAR_RANKS];
    for (int64_t j = 0; j < part->rank; j += n_at_once) {
        const int64_t n_j = min(n_at_once, part->rank - j);
        for (int64_t i = 0; i < n_j; i++) rows[i] = b + (size_t)(j + i) * b_bytes;
        for (int64_t i = 0; i < n_rows; i++)
            memcpy(weights + i * FRIT_ATTEND_ROWS, u->h + (first + i) * u->adapted->n_h + part->first + j,
                   (size_t)n_j * sizeof *weights);
        if (!direct) {
            frit_dtype_get(part->b_type)->decode(rows[0], decoded, n);
            rows[0] = (const uint8_t *)decoded;
        }
        k->attend_values[direct ? part->b_type : FRIT_DTYPE_F32](sums, weights, n_rows, rows, n_j, n);
    }
}

// The sums are made apart, so that they do not depend on how many rows come together.
static void add_rows(const frit_task *task, const rows_up *u, int64_t o, int64_t n)
{
    float sums[UP_ROWS * UP_COLUMNS];
    for (int64_t first = 0; first < u->n_rows; first += UP_ROWS) {
        const int64_t n_rows = min(UP_ROWS, u->n_rows - first);
        for (int64_t c = 0; c < n; c += UP_COLUMNS) {
            const int64_t n_c = min(UP_COLUMNS, n - c);
            memset(sums, 0, (size_t)(n_rows * n_c) * sizeof *sums);
            for (int32_t p = 0; p < u->adapted->n; p++) {
                const frit_low_rank *part = &u->adapted->parts[p];
                if (part->scale * u->scales[part->adapter] != 0)
                    sum_part(task, part, u, first, n_rows, o + c, n_c, sums);
            }
            for (int64_t i = 0; i < n_rows; i++) {
                float *y = u->y + (size_t)(first + i) * u->y_stride + c;
                task->env->decode_kernels->add(y, y, sums + i * n_c, n_c);
            }
        }
    }
}

// Of rows that have an adapter at all: what is 0 times something may not be finite.
static bool has_any(const frit_adapted *adapted, const float *scales)
{
    for (int32_t p = 0; scales && p < adapted->n; p++)
        if (adapted->parts[p].scale * scales[adapted->parts[p].adapter] != 0) return true;
    return false;
}

void frit_adapt_rows(const frit_task *task, int i, int64_t t, int64_t n_x, int64_t o, int64_t n_w, float *y,
                     size_t y_stride)
{
    const int source = frit_node_adapts(task->node, i);
    if (source < 0) return;
    const frit_adapted *adapted = task->node->src[source]->adapted;
    for (int64_t row = t, end; row < t + n_x; row = end) {
        const float *scales = frit_adapt_scales(task, row);
        end = same_until(task, row, t + n_x, scales);
        if (!has_any(adapted, scales)) continue;
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
    const frit_node *h = task->node->src[source];
    const float *scales = frit_adapt_scales(task, assignment / h->shape[1]);
    if (!has_any(h->adapted, scales)) return;
    const rows_up u = {.adapted = h->adapted,
                       .scales = scales,
                       .h = task->x[source] + assignment * h->adapted->n_h,
                       .y = y,
                       .expert = expert,
                       .n_rows = 1};
    add_rows(task, &u, o, n_w);
}

void frit_fast_adapt_up(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_adapted *adapted = node->adapted;
    const int64_t n = frit_node_width(node), n_used = node->n_dims == 3 ? node->shape[1] : 1;
    const frit_range r = frit_split(frit_node_height(node), 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *scales = frit_adapt_scales(task, row / n_used);
        const float *route = node->n_src == 3 ? task->x[2] + row / n_used * 2 * n_used + row % n_used : NULL;
        float *y = task->y + row * n;
        memcpy(y, task->x[0] + row * n, (size_t)n * sizeof *y);
        if (!has_any(adapted, scales)) continue;
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
    const frit_steering *steering = task->node->steering;
    const int64_t n = steering->n_embd;
    const frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *scales = frit_adapt_scales(task, t);
        float *y = task->y + t * n;
        memcpy(y, task->x[0] + t * n, (size_t)n * sizeof *y);
        for (int32_t p = 0; scales && p < steering->n; p++) {
            const uint8_t *x = (const uint8_t *)steering->parts[p].x;
            const float *scale = &scales[steering->parts[p].adapter];
            if (*scale != 0) task->env->decode_kernels->attend_values[FRIT_DTYPE_F32](y, scale, 1, &x, 1, n);
        }
    }
}
