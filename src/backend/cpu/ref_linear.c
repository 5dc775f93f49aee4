// SPDX-License-Identifier: MIT
// Reference products: each row of the matrix is decoded to f32 once and multiplied by every row of x; sums in double.
#include "backend/cpu/adapt.h"
#include "backend/cpu/ref.h"

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void decode_row(const frit_task *task, int source, int64_t row, int64_t n, float *values)
{
    const frit_dtype dtype = task->node->src[source]->tensor->dtype;
    frit_dtype_get(dtype)->decode(task->w[source] + (uint64_t)row * frit_dtype_row_bytes(dtype, n), values, n);
}

// y = x w^T plus bias, times factor or through the activation, plus residual, where they are given.
static void linear(const frit_task *task, const float *bias, const float *residual, frit_share share)
{
    const int64_t n_in = frit_node_width(task->node->src[0]), n_out = frit_node_width(task->node);
    const int64_t n_rows = frit_node_height(task->node);
    const bool act = task->node->op == FRIT_OP_LINEAR_ACT;
    float *w = frit_task_workspace(task, share);

    frit_range r = frit_split(n_out, 1, share);
    for (int64_t o = r.begin; o < r.end; o++) {
        decode_row(task, 1, o, n_in, w);
        for (int64_t t = 0; t < n_rows; t++) {
            double sum = dot(task->x[0] + t * n_in, w, n_in);
            if (bias) sum += bias[o];
            sum += frit_ref_adapt(task, 0, t, t, 0, o);
            if (act)
                sum = frit_ref_act_value(task->node->act, sum);
            else if (task->node->factor != 0)
                sum *= task->node->factor;
            if (residual) sum += residual[t * n_out + o];
            task->y[t * n_out + o] = (float)sum;
        }
    }
}

void frit_ref_linear(const frit_task *task, frit_share share)
{
    linear(task, frit_node_n_own(task->node) > 2 ? task->x[2] : NULL, NULL, share);
}

void frit_ref_linear_act(const frit_task *task, frit_share share)
{
    linear(task, frit_node_n_own(task->node) > 2 ? task->x[2] : NULL, NULL, share);
}

void frit_ref_linear_add(const frit_task *task, frit_share share)
{
    linear(task, frit_node_n_own(task->node) > 3 ? task->x[3] : NULL, task->x[2], share);
}

void frit_ref_linear_glu(const frit_task *task, frit_share share)
{
    const int64_t n_in = frit_node_width(task->node->src[0]), n_out = frit_node_width(task->node);
    const int64_t n_rows = frit_node_height(task->node);
    float *gate = frit_task_workspace(task, share), *up = gate + n_in;

    frit_range r = frit_split(n_out, 1, share);
    for (int64_t o = r.begin; o < r.end; o++) {
        decode_row(task, 1, o, n_in, gate);
        decode_row(task, 2, o, n_in, up);
        for (int64_t t = 0; t < n_rows; t++) {
            const float *x = task->x[0] + t * n_in;
            const double g = dot(x, gate, n_in) + frit_ref_adapt(task, 0, t, t, 0, o);
            const double u = dot(x, up, n_in) + frit_ref_adapt(task, 1, t, t, 0, o);
            task->y[t * n_out + o] = (float)(frit_ref_act_value(task->node->act, g) * u);
        }
    }
}
