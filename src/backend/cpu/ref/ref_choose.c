// SPDX-License-Identifier: MIT
// References of choose and choose_blocks: score all earlier positions, and list the best, or the best blocks, in
// ascending order.
#include "backend/cpu/ops/cache.h"
#include "backend/cpu/ops/best.h"
#include "backend/cpu/ref/ref.h"
#include "quant/hadamard.h"

#include <math.h>
#include <string.h>

typedef struct room {   // the workspace
    float *q, *key;     // [heads, dim] transformed as keys are, [dim]
    frit_best best;
    int32_t *scratch;   // [n]
} room;

static room take_room(const frit_node *node, void *workspace)
{
    const frit_node *q = node->src[0];
    const int64_t n = node->shape[1];
    room r = {.q = workspace};
    r.key = r.q + q->shape[1] * q->shape[2];
    r.best = (frit_best){.scores = r.key + q->shape[2], .most = n};
    r.best.ids = (int32_t *)(void *)(r.best.scores + n);
    r.scratch = r.best.ids + n;
    return r;
}

size_t frit_ref_choose_workspace_bytes(const frit_node *node)
{
    const frit_node *q = node->src[0];
    return (size_t)((q->shape[1] + 1) * q->shape[2] + 3 * node->shape[1]) * sizeof(float);
}

void frit_ref_choose(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[node->choose.layer];
    const frit_cache_side *side = &layer->index;
    const int64_t n_head = node->src[0]->shape[1], dim = side->dim, n = node->shape[1];
    const int64_t block = node->choose.block > 1 ? node->choose.block : 1;
    room r = take_room(node, frit_task_workspace(task, share));
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        frit_range mine = frit_split(seq->n_rows, 1, share);
        for (int64_t i = mine.begin; i < mine.end; i++) {
            const int64_t t = seq->first_row + i;
            const float *w = task->x[1] + t * n_head;
            memcpy(r.q, task->x[0] + t * n_head * dim, (size_t)(n_head * dim) * sizeof(float));
            for (int64_t h = 0; h < n_head; h++) frit_hadamard(r.q + h * dim, dim, side->hadamard);
            r.best.n = 0;
            for (int64_t p = block - 1; p <= seq->n_past + i; p += block) {
                double score = 0;
                frit_dtype_get(side->dtype)->decode(frit_cache_at(side, pages, p, 0), r.key, dim);
                for (int64_t h = 0; h < n_head; h++) {
                    double dot = 0;
                    for (int64_t d = 0; d < dim; d++) dot += (double)r.q[h * dim + d] * r.key[d];
                    if (dot > 0) score += w[h] * dot;
                }
                frit_best_offer(&r.best, (float)score, (int32_t)p);
            }
            frit_best_sort(&r.best, r.scratch);
            for (int64_t k = 0; k < n; k++) task->y[t * n + k] = k < r.best.n ? (float)r.best.ids[k] : -1;
        }
    }
}

// ------------------------------------------------------------------------------- choose_blocks

size_t frit_ref_choose_blocks_workspace_bytes(const frit_node *node)
{
    return (size_t)(2 * node->src[0]->shape[2] + 3 * (int64_t)node->choose.n) * sizeof(float);
}

// The largest score of positions [begin, end) for a transformed query.
static float score_block(const frit_cache_side *side, const int32_t *pages, const float *q, float *key, int64_t begin,
                         int64_t end)
{
    double max = -INFINITY;
    for (int64_t p = begin; p < end; p++) {
        double dot = 0;
        frit_dtype_get(side->dtype)->decode(frit_cache_at(side, pages, p, 0), key, side->dim);
        for (int64_t d = 0; d < side->dim; d++) dot += (double)q[d] * key[d];
        max = fmax(max, dot);
    }
    return (float)max;
}

static void choose_blocks_of(const frit_choose *choose, const frit_cache_side *side, const int32_t *pages,
                             int64_t position, room *r, float *y)
{
    const int64_t block = choose->block, own = position / block, n = choose->n;
    frit_hadamard(r->q, side->dim, side->hadamard);
    r->best.n = 0;
    for (int64_t b = 0; b <= own; b++) {
        const int64_t end = (b + 1) * block < position + 1 ? (b + 1) * block : position + 1;
        const bool is_latest = b > own - choose->n_latest;
        const float score = is_latest ? INFINITY : score_block(side, pages, r->q, r->key, b * block, end);
        frit_best_offer(&r->best, score, (int32_t)b);
    }
    frit_best_sort(&r->best, r->scratch);
    for (int64_t k = 0; k < n; k++) y[k] = k < r->best.n ? (float)r->best.ids[k] : -1;
}

void frit_ref_choose_blocks(const frit_task *task, frit_share share)
{
    const frit_choose *choose = &task->node->choose;
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[choose->layer];
    const int64_t n_head = task->node->src[0]->shape[1], dim = layer->index.dim, n = choose->n;
    room r = {.q = frit_task_workspace(task, share)};
    r.key = r.q + dim;
    r.best = (frit_best){.scores = r.key + dim, .most = n};
    r.best.ids = (int32_t *)(void *)(r.best.scores + n);
    r.scratch = r.best.ids + n;
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const int32_t *pages = frit_layer_pages(task, layer, seq);
        frit_range mine = frit_split(seq->n_rows * n_head, 1, share);
        for (int64_t i = mine.begin; i < mine.end; i++) {
            const int64_t at = seq->first_row * n_head + i;
            memcpy(r.q, task->x[0] + at * dim, (size_t)dim * sizeof(float));
            choose_blocks_of(choose, &layer->index, pages, seq->n_past + i / n_head, &r, task->y + at * n);
        }
    }
}
