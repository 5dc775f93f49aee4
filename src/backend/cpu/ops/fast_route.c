// SPDX-License-Identifier: MIT
// Chooses experts, and adds their results.
#include "backend/cpu/ops/fast.h"

#include <string.h>

// Softmax keeps the order of the scores, so the best scores are found without it.
static bool is_plain(const frit_node *node)
{
    const frit_route *r = &node->route;
    const bool softmax = r->gating == FRIT_GATING_SOFTMAX || r->gating == FRIT_GATING_SOFTMAX_SELECTED;
    return softmax && node->n_src == 1 && r->n_groups <= 1 && !r->by_sigmoid && r->divisor <= 1;
}

// Indices of the n_top largest values, largest first; the lower index of equals first.
static void find_best(const float *x, int64_t n, int64_t n_top, int32_t *top)
{
    int64_t n_found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (n_found == n_top && !(x[i] > x[top[n_top - 1]])) continue;
        int64_t at = n_found < n_top ? n_found++ : n_top - 1;
        for (; at > 0 && x[i] > x[top[at - 1]]; at--) top[at] = top[at - 1];
        top[at] = (int32_t)i;
    }
}

static void route_row(const frit_kernels *k, const frit_route *r, const float *x, int64_t n, float *p, float *y)
{
    int32_t *top = (int32_t *)(void *)(p + n);
    float *weights = y + r->n_used, sum = 0;
    find_best(x, n, r->n_used, top);
    for (int32_t i = 0; i < r->n_used; i++) {
        y[i] = (float)top[i];
        weights[i] = x[top[i]];
    }
    const float max = weights[0];
    if (r->gating == FRIT_GATING_SOFTMAX) {
        memcpy(p, x, (size_t)n * sizeof *p);
        const float all = k->exp_sum(p, max, n);
        for (int32_t i = 0; i < r->n_used; i++) sum += weights[i] = p[top[i]] / all;
    } else {
        const float all = k->exp_sum(weights, max, r->n_used);
        for (int32_t i = 0; i < r->n_used; i++) sum += weights[i] /= all;
    }
    const float scale = (r->normalize ? 1 / fmaxf(sum, 0x1p-14f) : 1) * (r->scale != 0 ? r->scale : 1);
    k->scale(weights, weights, scale, r->n_used);
}

void frit_fast_route(const frit_task *task, frit_share share)
{
    const frit_route *route = &task->node->route;
    const int64_t n = frit_node_width(task->node->src[0]);
    if (!is_plain(task->node)) {
        frit_ref_route(task, share);
        return;
    }
    frit_range r = frit_split(task->node->shape[0], 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        route_row(task->env->kernels, route, task->x[0] + t * n, n, frit_task_workspace(task, share),
                  task->y + t * 2 * route->n_used);
}

void frit_fast_mix(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_kernels *k = task->env->kernels;
    const int64_t n_used = node->src[0]->shape[1], n = node->shape[1];
    float weighed[256];
    const frit_range r = frit_split(node->shape[0] * n, FRIT_COUNT(weighed), share);
    for (int64_t i = r.begin, n_here; i < r.end; i += n_here) {
        const int64_t t = i / n, at = i % n, left = n - at < r.end - i ? n - at : r.end - i;
        const float *x = task->x[0] + t * n_used * n + at, *weights = task->x[1] + t * 2 * n_used + n_used;
        n_here = left < (int64_t)FRIT_COUNT(weighed) ? left : (int64_t)FRIT_COUNT(weighed);
        for (int64_t e = 0; e < n_used; e++) {
            k->scale(e == 0 ? task->y + i : weighed, x + e * n, node->plain ? 1 : weights[e], n_here);
            if (e > 0) k->add(task->y + i, task->y + i, weighed, n_here);
        }
    }
}
