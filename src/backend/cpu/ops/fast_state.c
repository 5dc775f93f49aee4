// SPDX-License-Identifier: MIT
// Recurrent ops on the kernels of the installed instruction set. Work is cut by channels and by heads, because the rows
// of a sequence depend on each other.
#include "backend/cpu/ops/fast.h"

#include <string.h>

// ------------------------------------------------------------------------------- conv

enum { CHANNELS = 256 };   // channels that are convolved together

int frit_conv_pieces(const frit_task *task)
{
    const int64_t n = (frit_node_width(task->node) + CHANNELS - 1) / CHANNELS * task->env->batch->n_seqs;
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

static int64_t taps_of(const frit_node *node)
{
    const frit_node *w = node->src[1];
    return frit_node_elems(w) / frit_node_width(node);
}

// Workspace: the taps of CHANNELS channels, the rows before the sequence, and one product.
size_t frit_conv_workspace_bytes(const frit_node *node)
{
    return (size_t)(2 * taps_of(node) + 1) * CHANNELS * sizeof(float);
}

typedef struct convolution {
    const frit_kernels *kernels;
    int64_t n_taps, n_channels, first, n;   // channels [first, first + n)
    float *taps, *earlier, *product;        // [n_taps, n], [n_taps - 1, n], [n]
    const float *bias;
} convolution;

// Row t of the sequence, or of the state if t is negative.
static const float *row_of(const convolution *c, const float *x, int64_t t)
{
    return t >= 0 ? x + t * c->n_channels + c->first : c->earlier + (c->n_taps - 1 + t) * c->n;
}

static void convolve(const convolution *c, const float *x, float *y, int64_t n_rows)
{
    for (int64_t t = 0; t < n_rows; t++) {
        float *row = y + t * c->n_channels + c->first;
        c->kernels->mul(row, row_of(c, x, t - c->n_taps + 1), c->taps, c->n);
        for (int64_t i = 1; i < c->n_taps; i++) {
            c->kernels->mul(c->product, row_of(c, x, t - c->n_taps + 1 + i), c->taps + i * c->n, c->n);
            c->kernels->add(row, row, c->product, c->n);
        }
        if (c->bias) c->kernels->add(row, row, c->bias + c->first, c->n);
    }
}

static void convolve_seq(convolution *c, const frit_task *task, const frit_seq *seq)
{
    const float *x = task->x[0] + seq->first_row * c->n_channels;
    float *state = frit_state_at(task, seq) + c->first;
    for (int64_t i = 0; i < c->n_taps; i++)
        for (int64_t k = 0; k < c->n; k++) c->taps[i * c->n + k] = task->x[1][(c->first + k) * c->n_taps + i];
    const size_t n_bytes = (size_t)c->n * sizeof(float);
    for (int64_t i = 0; i < c->n_taps - 1; i++) {
        if (seq->n_past == 0)
            memset(c->earlier + i * c->n, 0, n_bytes);
        else
            memcpy(c->earlier + i * c->n, state + i * c->n_channels, n_bytes);
    }
    convolve(c, x, task->y + seq->first_row * c->n_channels, seq->n_rows);
    float *copy = frit_state_in(task, seq->copy_state) + c->first;
    for (int64_t i = 0; seq->n_copied > 0 && i < c->n_taps - 1; i++)
        memcpy(copy + i * c->n_channels, row_of(c, x, seq->n_copied - (c->n_taps - 1) + i), n_bytes);
    for (int64_t i = 0; i < c->n_taps - 1; i++)
        memcpy(state + i * c->n_channels, row_of(c, x, seq->n_rows - (c->n_taps - 1) + i), n_bytes);
}

void frit_fast_conv(const frit_task *task, frit_share share)
{
    convolution c = {.kernels = task->env->kernels,
                     .n_taps = taps_of(task->node),
                     .n_channels = frit_node_width(task->node),
                     .taps = frit_task_workspace(task, share),
                     .bias = task->x[2]};
    c.earlier = c.taps + c.n_taps * CHANNELS;
    c.product = c.earlier + c.n_taps * CHANNELS;
    const int64_t n_blocks = (c.n_channels + CHANNELS - 1) / CHANNELS;
    frit_range r = frit_split(n_blocks * task->env->batch->n_seqs, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        c.first = i % n_blocks * CHANNELS;
        c.n = c.n_channels - c.first < CHANNELS ? c.n_channels - c.first : CHANNELS;
        convolve_seq(&c, task, &task->env->batch->seqs[i / n_blocks]);
    }
}

// ------------------------------------------------------------------------------- scan, delta

int frit_state_pieces(const frit_task *task)
{
    const int64_t n = task->node->shape[1] * task->env->batch->n_seqs;
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

size_t frit_state_workspace_bytes(const frit_node *node)
{
    const frit_node *keys = node->src[node->op == FRIT_OP_SCAN ? 3 : 1];
    return (size_t)keys->shape[2] * FRIT_STATE_CHUNK * sizeof(float);
}

static void skip_rows(frit_state_rows *rows, int64_t n)
{
    rows->n_rows -= n;
    rows->x += n * rows->x_row;
    rows->y += n * rows->x_row;
    rows->k += n * rows->k_row;
    rows->q += n * rows->k_row;
    rows->g += n * rows->g_row;
    if (rows->step) rows->step += n * rows->head_row;
    if (rows->beta) rows->beta += n * rows->head_row;
}

// Runs the rows in two parts if the state between them is copied.
static void run_rows(const frit_kernels *kernels, frit_state_rows *rows, int64_t n_copied, float *copy)
{
    if (n_copied > 0) {
        frit_state_rows first = *rows;
        first.n_rows = n_copied;
        kernels->state_rows(&first);
        memcpy(copy, rows->state, (size_t)(rows->dim * rows->n) * sizeof(float));
        skip_rows(rows, n_copied);
    }
    if (rows->n_rows > 0) kernels->state_rows(rows);
}

// Fills the fields that do not depend on the head. `at` is a head in a row of values, `key` a head in a row of keys.
static void run_heads(const frit_task *task, frit_share share, frit_state_rows all, const frit_node *keys,
                      void (*point)(const frit_task *task, frit_state_rows *rows, int64_t head, int64_t at,
                                    int64_t key))
{
    const int64_t n_head = task->node->shape[1], n_group = keys->shape[1];
    all.dim = task->node->shape[2];
    all.n = keys->shape[2];
    all.x_row = n_head * all.dim;
    all.k_row = n_group * all.n;
    all.head_row = n_head;
    all.scratch = frit_task_workspace(task, share);
    frit_range r = frit_split(n_head * task->env->batch->n_seqs, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const frit_seq *seq = &task->env->batch->seqs[i / n_head];
        const int64_t head = i % n_head;
        const int64_t group = task->node->state.interleaved ? head % n_group : head / (n_head / n_group);
        frit_state_rows rows = all;
        rows.n_rows = seq->n_rows;
        rows.state = frit_state_at(task, seq) + head * all.dim * all.n;
        if (seq->n_past == 0) memset(rows.state, 0, (size_t)(all.dim * all.n) * sizeof(float));
        const int64_t at = seq->first_row * n_head + head;
        rows.x = task->x[0] + at * all.dim;
        rows.y = task->y + at * all.dim;
        point(task, &rows, head, at, (seq->first_row * n_group + group) * all.n);
        run_rows(task->env->kernels, &rows, seq->n_copied,
                 frit_state_in(task, seq->copy_state) + head * all.dim * all.n);
    }
}

static void point_scan(const frit_task *task, frit_state_rows *rows, int64_t head, int64_t at, int64_t key)
{
    rows->step = task->x[1] + at;
    rows->g = task->x[2] + head * rows->n_g;
    rows->k = task->x[3] + key;
    rows->q = task->x[4] + key;
}

void frit_fast_scan(const frit_task *task, frit_share share)
{
    const frit_node *const *src = (const frit_node *const *)task->node->src;
    const frit_state_rows all = {.n_g = frit_node_elems(src[2]) / task->node->shape[1]};
    run_heads(task, share, all, src[3], point_scan);
}

static void point_delta(const frit_task *task, frit_state_rows *rows, int64_t head, int64_t at, int64_t key)
{
    rows->k = task->x[1] + key;
    rows->q = task->x[2] + key;
    rows->g = task->x[3] + (rows->g_row == 0 ? head : at * rows->n_g);
    if (task->x[4]) rows->beta = task->x[4] + at;
}

void frit_fast_delta(const frit_task *task, frit_share share)
{
    const frit_node *decay = task->node->src[3];
    const bool fixed = decay->op == FRIT_OP_WEIGHT;
    frit_state_rows all = {.n_g = fixed || decay->n_dims == 2 ? 1 : decay->shape[2]};
    if (!fixed) all.g_row = task->node->shape[1] * all.n_g;
    run_heads(task, share, all, task->node->src[1], point_delta);
}
