// SPDX-License-Identifier: MIT
// Reference attention over the paged cache: for each row and head two passes, the largest score, then the weighted sum.
#include "backend/cpu/ops/cache.h"
#include "backend/cpu/ref/ref.h"
#include "quant/hadamard.h"

#include <math.h>
#include <string.h>

typedef struct head_view {   // the keys and values of one query head of one row
    const frit_cache_layer *layer;
    const int32_t *pages;
    int64_t head;   // head of the cache
    int64_t own_position, query_head;
    const float *chosen;   // sparse attention: the chosen positions, or blocks; else NULL
    int64_t block;         // positions of a block; 0: positions are chosen
    float scale, slope;
    // In the workspace: sums [v_dim], the transformed query [k_dim], a decoded row [k_dim or v_dim].
    double *acc;
    float *q, *row;
} head_view;

static const float *decode_cached(const head_view *view, const frit_cache_side *side, int64_t p)
{
    frit_cache_read(&(frit_cache_row){side, view->pages, p, view->head}, view->row);
    return view->row;
}

// Position i of the chosen positions or blocks, or i itself.
static int64_t position_at(const head_view *view, int64_t i)
{
    if (view->block > 0) return (int64_t)view->chosen[i / view->block] * view->block + i % view->block;
    return view->chosen ? (int64_t)view->chosen[i] : i;
}

static double score_position(const head_view *view, const frit_task *task, int64_t p)
{
    const frit_attend *attend = &task->node->attend;
    const frit_cache_side *side = &view->layer->k;
    const float *k = decode_cached(view, side, p);
    double sum = view->scale * frit_ref_dot(view->q, k, side->dim);
    if (attend->softcap != 0) sum = attend->softcap * tanh(sum / attend->softcap);
    if (attend->reach > 0) sum += frit_attend_gain(task, view->query_head, p - view->own_position);
    return sum - view->slope * (double)(p > view->own_position ? p - view->own_position : view->own_position - p);
}

static void attend_head(const head_view *view, const frit_task *task, const float *sink, frit_range span, float *y)
{
    const frit_cache_side *side = &view->layer->v;
    double max = -INFINITY, total = 0;
    for (int64_t p = span.begin; p < span.end; p++) max = fmax(max, score_position(view, task, position_at(view, p)));
    if (sink) {
        max = fmax(max, *sink);
        total = exp(*sink - max);
    }

    for (int64_t i = 0; i < side->dim; i++) view->acc[i] = 0;
    for (int64_t p = span.begin; p < span.end; p++) {
        const double weight = exp(score_position(view, task, position_at(view, p)) - max);
        const float *v = decode_cached(view, side, position_at(view, p));
        for (int64_t i = 0; i < side->dim; i++) view->acc[i] += weight * v[i];
        total += weight;
    }
    for (int64_t i = 0; i < side->dim; i++) y[i] = (float)(view->acc[i] / total);
    frit_hadamard(y, side->dim, side->hadamard);
}

size_t frit_ref_attend_workspace_bytes(const frit_node *node)
{
    const size_t k_dim = (size_t)frit_node_width(node->src[0]), v_dim = (size_t)frit_node_width(node);
    return v_dim * sizeof(double) + (2 * k_dim + v_dim) * sizeof(float);
}

void frit_ref_attend_sparse(const frit_task *task, frit_share share)
{
    frit_ref_attend(task, share);
}

void frit_ref_attend_in_blocks(const frit_task *task, frit_share share)
{
    frit_ref_attend(task, share);
}

// Sets the chosen blocks [n] of a head. Returns the number of their positions up to its own.
static int64_t view_blocks(head_view *view, const frit_task *task, const float *chosen, int64_t n)
{
    const int64_t block = task->node->attend.block, own = view->own_position;
    int64_t m = 0;
    while (m < n && chosen[m] >= 0) m++;
    view->chosen = chosen;
    view->block = block;
    return m > 0 && (int64_t)chosen[m - 1] == own / block ? (m - 1) * block + own % block + 1 : m * block;
}

void frit_ref_attend(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[node->attend.layer];
    const int64_t n_head = node->src[0]->shape[1], group = n_head / layer->spec.n_head_kv;
    const int64_t k_dim = layer->k.dim, v_dim = layer->v.dim;

    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        frit_range r = frit_split(seq->n_rows * n_head, 1, share);
        for (int64_t i = r.begin; i < r.end; i++) {
            const int64_t row = seq->first_row * n_head + i, own_position = seq->n_past + i / n_head;
            const int64_t head = i % n_head;
            head_view view = {.layer = layer,
                              .pages = frit_layer_pages(task, layer, seq),
                              .head = head / group,
                              .own_position = own_position,
                              .query_head = head,
                              .scale = frit_attend_scale(&node->attend, own_position),
                              .slope = frit_attend_slope(&node->attend, head, n_head)};
            view.acc = frit_task_workspace(task, share);
            view.q = (float *)(void *)(view.acc + v_dim);
            view.row = view.q + k_dim;
            memcpy(view.q, task->x[0] + row * k_dim, (size_t)k_dim * sizeof(float));
            frit_hadamard(view.q, k_dim, layer->k.hadamard);
            const bool is_sparse = node->op == FRIT_OP_ATTEND_SPARSE;
            const float *sinks = frit_attend_sinks(task), *sink = sinks ? sinks + head : NULL;
            frit_range span = frit_attend_seen(task, seq, own_position);
            if (is_sparse) {
                const int64_t most = node->src[2]->shape[1];
                view.chosen = task->x[2] + row / n_head * most;
                span.end = span.end < most ? span.end : most;
            }
            if (node->op == FRIT_OP_ATTEND_IN_BLOCKS) {
                const int64_t n_all = node->src[2]->shape[1], n = n_all * group / n_head;
                span.begin = 0;
                span.end = view_blocks(&view, task, task->x[2] + row / n_head * n_all + head / group * n, n);
            }
            attend_head(&view, task, sink, span, task->y + row * v_dim);
        }
    }
}
