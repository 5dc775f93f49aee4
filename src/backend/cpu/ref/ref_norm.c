// SPDX-License-Identifier: MIT
// Reference norms, over the last dimension; sums in double.
#include "backend/cpu/ref/ref.h"

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

void frit_ref_softmax(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *x = task->x[0] + t * n;
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) max = fmax(max, x[i]);
        for (int64_t i = 0; i < n; i++) sum += exp(x[i] - max);
        for (int64_t i = 0; i < n; i++) task->y[t * n + i] = (float)(exp(x[i] - max) / sum);
    }
}

void frit_ref_gaussian_topk(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *x = task->x[0] + t * n;
        double mean = 0, var = 0;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean) / (double)n;
        const double cut = mean + task->node->factor * sqrt(var);
        for (int64_t i = 0; i < n; i++) task->y[t * n + i] = (float)fmax(x[i] - cut, 0);
    }
}

void frit_ref_rms_match(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *x = task->x[0] + t * n, *like = task->x[1] + t * n;
        double of_x = 0, wanted = 0;
        for (int64_t i = 0; i < n; i++) of_x += (double)x[i] * x[i], wanted += (double)like[i] * like[i];
        const double scale = sqrt(wanted / (double)n / fmax(of_x / (double)n, task->node->eps));
        for (int64_t i = 0; i < n; i++) task->y[t * n + i] = (float)(x[i] * scale);
    }
}

void frit_ref_mix_streams(const frit_task *task, frit_share share)
{
    const int64_t n = task->node->src[0]->shape[1], m = task->node->shape[1], dim = task->node->shape[2];
    frit_range r = frit_split(task->node->shape[0] * m, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const float *x = task->x[0] + i / m * n * dim, *c = task->x[1] + i * n;
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) sum += (double)c[k] * x[k * dim + d];
            task->y[i * dim + d] = (float)sum;
        }
    }
}
