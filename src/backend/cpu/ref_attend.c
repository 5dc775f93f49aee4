// SPDX-License-Identifier: MIT
// Reference attention over the paged cache: for each row and head two passes, the largest score, then the weighted sum.
#include "backend/cpu/ref.h"
#include "quant/half.h"

#include <math.h>
#include <string.h>

typedef struct head_view {   // the keys and values that one query head of one row looks at
    const frit_cache_layer *layer;
    const frit_run *run;
    int64_t head;   // of the cache
    int64_t slot;
    float scale, slope;
    size_t elem_bytes;
} head_view;

static double cached(const uint8_t *elems, frit_dtype dtype, int64_t i)
{
    if (dtype == FRIT_DTYPE_F32) {
        float value;
        memcpy(&value, elems + 4 * i, 4);
        return value;
    }
    uint16_t half;
    memcpy(&half, elems + 2 * i, 2);
    return frit_half_to_float(half);
}

static double score(const head_view *view, const frit_attend *attend, const float *q, int64_t p)
{
    const frit_cache_layer *layer = view->layer;
    const uint8_t *k =
        frit_cache_at(layer->k, layer->k_page_bytes, view->run, p, view->head, layer->spec.k_dim, view->elem_bytes);
    double sum = 0;
    for (int64_t i = 0; i < layer->spec.k_dim; i++) sum += q[i] * cached(k, layer->dtype, i);
    sum *= view->scale;
    if (attend->softcap != 0) sum = attend->softcap * tanh(sum / attend->softcap);
    return sum - view->slope * (double)(p > view->slot ? p - view->slot : view->slot - p);
}

static void attend_head(const head_view *view, const frit_attend *attend, const float *q, const float *sink,
                        frit_range span, float *y, double *acc)
{
    const frit_cache_layer *layer = view->layer;
    const int64_t v_dim = layer->spec.v_dim;
    double max = -INFINITY, total = 0;
    for (int64_t p = span.begin; p < span.end; p++) max = fmax(max, score(view, attend, q, p));
    if (sink) {
        max = fmax(max, *sink);
        total = exp(*sink - max);
    }

    for (int64_t i = 0; i < v_dim; i++) acc[i] = 0;
    for (int64_t p = span.begin; p < span.end; p++) {
        const double weight = exp(score(view, attend, q, p) - max);
        const uint8_t *v =
            frit_cache_at(layer->v, layer->v_page_bytes, view->run, p, view->head, v_dim, view->elem_bytes);
        for (int64_t i = 0; i < v_dim; i++) acc[i] += weight * cached(v, layer->dtype, i);
        total += weight;
    }
    for (int64_t i = 0; i < v_dim; i++) y[i] = (float)(acc[i] / total);
}

void frit_ref_attend(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_batch *batch = task->env->batch;
    const frit_cache_layer *layer = &task->env->cache->layers[node->attend.layer];
    const int64_t n_head = node->src[0]->shape[1], group = n_head / layer->spec.n_head_kv;
    const int64_t k_dim = layer->spec.k_dim, v_dim = layer->spec.v_dim;

    for (int i_run = 0; i_run < batch->n_runs; i_run++) {
        const frit_run *run = &batch->runs[i_run];
        frit_range r = frit_split(run->n_rows * n_head, 1, share);
        for (int64_t i = r.begin; i < r.end; i++) {
            const int64_t row = run->first_row * n_head + i, slot = run->n_past + i / n_head;
            const int64_t head = i % n_head;
            head_view view = {.layer = layer,
                              .run = run,
                              .head = head / group,
                              .slot = slot,
                              .scale = frit_attend_scale(&node->attend, slot),
                              .slope = frit_attend_slope(&node->attend, head, n_head),
                              .elem_bytes = layer->dtype == FRIT_DTYPE_F32 ? 4 : 2};
            attend_head(&view, &node->attend, task->x[0] + row * k_dim, task->x[2] ? task->x[2] + head : NULL,
                        frit_attend_span(&node->attend, run, slot), task->y + row * v_dim,
                        frit_task_workspace(task, share));
        }
    }
}
