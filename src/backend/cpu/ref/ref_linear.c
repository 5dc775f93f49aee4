// SPDX-License-Identifier: MIT
// Reference products: each row of the matrix is decoded to f32 once and multiplied by every row of x; sums in double.
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ref/ref.h"

double frit_ref_dot(const float *a, const float *b, int64_t n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += (double)a[i] * b[i];
        s1 += (double)a[i + 1] * b[i + 1];
        s2 += (double)a[i + 2] * b[i + 2];
        s3 += (double)a[i + 3] * b[i + 3];
    }
    for (; i < n; i++) s0 += (double)a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

static void decode_row(const frit_task *task, int source, int64_t row, int64_t n, float *values)
{
    const frit_dtype dtype = task->node->src[source]->tensor->dtype;
    frit_dtype_get(dtype)->decode(task->w[source] + (uint64_t)row * frit_dtype_row_bytes(dtype, n), values, n);
}

void frit_ref_linear(const frit_task *task, frit_share share)
{
    const int64_t n_in = frit_node_width(task->node->src[0]), n_out = frit_node_width(task->node);
    const int64_t n_rows = frit_node_height(task->node);
    const float *bias = frit_node_n_own(task->node) > 2 ? task->x[2] : NULL;
    float *w = frit_task_workspace(task, share);

    frit_range r = frit_split(n_out, 1, share);
    for (int64_t o = r.begin; o < r.end; o++) {
        decode_row(task, 1, o, n_in, w);
        for (int64_t t = 0; t < n_rows; t++) {
            double sum = frit_ref_dot(task->x[0] + t * n_in, w, n_in);
            if (bias) sum += bias[o];
            sum += frit_ref_adapt(task, 0, t, t, 0, o, sum);
            if (task->node->factor != 0) sum *= task->node->factor;
            task->y[t * n_out + o] = (float)sum;
        }
    }
}
