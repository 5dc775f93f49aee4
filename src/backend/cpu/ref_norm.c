// SPDX-License-Identifier: MIT
// Reference norms, over the last dimension; sums in double.
#include "backend/cpu/ref.h"

#include <math.h>

static void rms_norm_row(float *y, const float *x, const float *w, int64_t n, float eps)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    const double scale = 1 / sqrt(sum / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = (float)(x[i] * scale * (w ? w[i] : 1));
}

void frit_ref_rms_norm(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        rms_norm_row(task->y + t * n, task->x[0] + t * n, task->x[1], n, task->node->eps);
}

void frit_ref_layer_norm(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    const float *w = task->x[1], *b = task->x[2];

    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *x = task->x[0] + t * n;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i];
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
        const double scale = 1 / sqrt(variance / (double)n + task->node->eps);
        for (int64_t i = 0; i < n; i++)
            task->y[t * n + i] = (float)((x[i] - mean) * scale * (w ? w[i] : 1) + (b ? b[i] : 0));
    }
}

void frit_ref_add_norm(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        float *sum = task->second + t * n;
        for (int64_t i = 0; i < n; i++) sum[i] = task->x[0][t * n + i] + task->x[1][t * n + i];
        rms_norm_row(task->y + t * n, sum, task->x[2], n, task->node->eps);
    }
}
