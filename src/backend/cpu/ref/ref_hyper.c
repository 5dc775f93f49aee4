// SPDX-License-Identifier: MIT
// The reference of op hyper: weights with which residual streams are read and written.
#include "backend/cpu/ref/ref.h"

#include <math.h>

enum { MOST = 16 };   // streams

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// Divides by the sums of rows, or of columns.
static void divide_by_sums(double m[MOST][MOST], int n, bool by_columns, double eps)
{
    for (int a = 0; a < n; a++) {
        double sum = eps;
        for (int b = 0; b < n; b++) sum += by_columns ? m[b][a] : m[a][b];
        for (int b = 0; b < n; b++) *(by_columns ? &m[b][a] : &m[a][b]) /= sum;
    }
}

// Row i of m has the weights of input stream i in each output stream.
static void mix_streams(const frit_hyper *hyper, const float *x, const float *bias, double scale, double m[MOST][MOST])
{
    const int n = hyper->n;
    for (int i = 0; i < n; i++) {
        double max = -INFINITY, sum = 0;
        for (int o = 0; o < n; o++) {
            m[i][o] = x[i * n + o] * scale + bias[i * n + o];
            max = fmax(max, m[i][o]);
        }
        for (int o = 0; o < n; o++) sum += m[i][o] = exp(m[i][o] - max);
        for (int o = 0; o < n; o++) m[i][o] = m[i][o] / sum + hyper->eps;
    }
    divide_by_sums(m, n, true, hyper->eps);
    for (int k = 1; k < hyper->n_iterations; k++) {
        divide_by_sums(m, n, false, hyper->eps);
        divide_by_sums(m, n, true, hyper->eps);
    }
}

void frit_ref_hyper(const frit_task *task, frit_share share)
{
    const frit_hyper *hyper = &task->node->hyper;
    const int n = hyper->n;
    const int64_t width = frit_node_width(task->node->src[0]), n_out = frit_node_width(task->node);
    const float *scales = task->x[1], *bias = task->x[2];
    frit_range r = frit_split(task->node->shape[0], 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        const float *x = task->x[0] + t * width;
        float *y = task->y + t * n_out;
        for (int i = 0; i < n; i++) y[i] = (float)(sigmoid(x[i] * (double)scales[0] + bias[i]) + hyper->eps);
        if (width == n) continue;
        double m[MOST][MOST];
        mix_streams(hyper, x + 2 * n, bias + 2 * n, scales[2], m);
        for (int o = 0; o < n; o++) {
            float *row = y + n + o * (n + 1);
            for (int i = 0; i < n; i++) row[i] = (float)m[i][o];
            row[n] = (float)(2 * sigmoid(x[n + o] * (double)scales[1] + bias[n + o]));
        }
    }
}
