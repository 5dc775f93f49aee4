// SPDX-License-Identifier: MIT
// References of compress and attend_blocks: keys of blocks of positions, and attention to them.
#include "backend/cpu/ops/cache.h"
#include "backend/cpu/ref/ref.h"
#include "quant/hadamard.h"

#include <math.h>
#include <string.h>

// ------------------------------------------------------------------------------- compress

// The state: a ring of the latest rows, of x and of gates with their biases, [rows, 2, width].
typedef struct ring {
    float *values;
    int64_t n_rows, width;
} ring;

static float *ring_at(const ring *r, int64_t position, int which)
{
    return r->values + (position % r->n_rows * 2 + which) * r->width;
}

// The weighted sum of column c at positions [begin, begin + n), and of column c_before at the n positions before, if
// there are any.
static float compress_column(const ring *r, int64_t begin, int64_t n, int64_t c, int64_t c_before)
{
    const int64_t first = c_before >= 0 && begin >= n ? begin - n : begin;
    double max = -INFINITY, sum = 0, total = 0;
    for (int64_t p = first; p < begin + n; p++) max = fmax(max, ring_at(r, p, 1)[p < begin ? c_before : c]);
    for (int64_t p = first; p < begin + n; p++) {
        const int64_t column = p < begin ? c_before : c;
        const double weight = exp(ring_at(r, p, 1)[column] - max);
        sum += weight * ring_at(r, p, 0)[column];
        total += weight;
    }
    return (float)(sum / total);
}

static void store_row(const frit_task *task, const ring *r, int64_t t, int64_t position, int64_t c)
{
    const int64_t at = position % task->node->state.block * r->width + c;
    ring_at(r, position, 0)[c] = task->x[0][t * r->width + c];
    ring_at(r, position, 1)[c] = task->x[1][t * r->width + c] + task->x[2][at];
}

static void copy_columns(const ring *to, const ring *from, int64_t c)
{
    for (int64_t i = 0; i < 2 * from->n_rows; i++) to->values[i * from->width + c] = from->values[i * from->width + c];
}

void frit_ref_compress(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_batch *batch = task->env->batch;
    const int64_t block = node->state.block, n_out = frit_node_width(node), width = frit_node_width(node->src[0]);
    const bool overlaps = node->state.overlaps;
    ring r = {.n_rows = overlaps ? 2 * block : block, .width = width}, copy = r;
    frit_range mine = frit_split(n_out, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        r.values = frit_state_at(task, seq);
        copy.values = frit_state_in(task, seq->copy_state);
        for (int64_t c = mine.begin; c < mine.end; c++) {
            for (int64_t i = 0; i < 2 * r.n_rows * width && seq->n_past == 0; i += n_out) r.values[i + c] = 0;
            for (int64_t i = 0; i < seq->n_rows; i++) {
                const int64_t t = seq->first_row + i, p = seq->n_past + i;
                for (int64_t k = c; k < width; k += n_out) store_row(task, &r, t, p, k);
                task->y[t * n_out + c] = (p + 1) % block != 0 ? 0
                                         : overlaps           ? compress_column(&r, p + 1 - block, block, n_out + c, c)
                                                              : compress_column(&r, p + 1 - block, block, c, -1);
                for (int64_t k = c; k < width && i + 1 == seq->n_copied; k += n_out) copy_columns(&copy, &r, k);
            }
        }
    }
}

// ------------------------------------------------------------------------------- attend_blocks

typedef struct place {   // of a key, which is a value too
    int64_t position, head;
} place;

typedef struct row_view {
    const frit_cache_side *side;
    const int32_t *pages;
    const float *chosen;   // of the row; NULL: all blocks
    int64_t first, n_near, n_far, block;
} row_view;

// Key i of the row: positions of the window, then blocks.
static place place_at(const row_view *v, int64_t i)
{
    if (i < v->n_near) return (place){v->first + i, 0};
    i -= v->n_near;
    return (place){v->chosen ? (int64_t)v->chosen[i] : (i + 1) * v->block - 1, 1};
}

static row_view view_row(const frit_task *task, const frit_seq *seq, int64_t i)
{
    const frit_attend *attend = &task->node->attend;
    const frit_cache_layer *layer = &task->env->cache->layers[attend->layer];
    const int64_t own = seq->n_past + i, near = own + 1 < attend->window ? own + 1 : attend->window;
    row_view v = {.side = &layer->k, .pages = frit_layer_pages(task, layer, seq), .block = attend->block};
    v.first = own + 1 - near;
    v.n_near = near;
    v.n_far = (own + 1) / v.block;
    if (task->node->n_src < 4) return v;
    const int64_t most = task->node->src[3]->shape[1];
    v.chosen = task->x[3] + (seq->first_row + i) * most;
    if (v.n_far > most) v.n_far = most;
    return v;
}

typedef struct room {   // the workspace
    double *acc;        // [dim]
    float *q, *row;     // [dim]
} room;

size_t frit_ref_attend_blocks_workspace_bytes(const frit_node *node)
{
    return (size_t)frit_node_width(node) * (sizeof(double) + 2 * sizeof(float));
}

static void attend_head(const frit_task *task, const row_view *v, const room *r, double sink, float *y)
{
    const int64_t dim = v->side->dim, n = v->n_near + v->n_far;
    double max = sink, total;
    for (int pass = 0; pass < 2; pass++) {
        total = exp(sink - max);
        for (int64_t d = 0; d < dim; d++) r->acc[d] = 0;
        for (int64_t i = 0; i < n; i++) {
            const place at = place_at(v, i);
            frit_cache_read(&(frit_cache_row){v->side, v->pages, at.position, at.head}, r->row);
            const double score = (double)task->node->attend.scale * frit_ref_dot(r->q, r->row, dim);
            if (pass == 0) {
                max = fmax(max, score);
                continue;
            }
            const double weight = exp(score - max);
            for (int64_t d = 0; d < dim; d++) r->acc[d] += weight * r->row[d];
            total += weight;
        }
    }
    for (int64_t d = 0; d < dim; d++) y[d] = (float)(r->acc[d] / total);
    frit_hadamard(y, dim, v->side->hadamard);
}

void frit_ref_attend_blocks(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_head = task->node->shape[1], dim = task->node->shape[2];
    room r = {.acc = frit_task_workspace(task, share)};
    r.q = (float *)(void *)(r.acc + dim);
    r.row = r.q + dim;
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        frit_range mine = frit_split(seq->n_rows * n_head, 1, share);
        for (int64_t i = mine.begin; i < mine.end; i++) {
            const row_view v = view_row(task, seq, i / n_head);
            const int64_t at = (seq->first_row * n_head + i) * dim;
            memcpy(r.q, task->x[0] + at, (size_t)dim * sizeof(float));
            frit_hadamard(r.q, dim, v.side->hadamard);
            attend_head(task, &v, &r, task->x[2][i % n_head], task->y + at);
        }
    }
}
