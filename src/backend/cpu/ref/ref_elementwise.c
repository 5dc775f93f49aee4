// SPDX-License-Identifier: MIT
// Reference kernels of elementwise ops: add, mul, scale, softcap, activation functions.
#include "backend/cpu/ref/ref.h"

#include <math.h>

double frit_ref_act_value(frit_act act, double x)
{
    switch (act) {
    case FRIT_ACT_SILU:
        return x / (1 + exp(-x));
    case FRIT_ACT_GELU:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case FRIT_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));   // sqrt(2 / pi)
    case FRIT_ACT_GELU_QUICK:
        return x / (1 + exp(-1.702 * x));
    case FRIT_ACT_RELU:
        return x > 0 || isnan(x) ? x : 0;
    case FRIT_ACT_RELU2:
        return x > 0 || isnan(x) ? x * x : 0;
    case FRIT_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case FRIT_ACT_TANH:
        return tanh(x);
    case FRIT_ACT_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    case FRIT_ACT_COUNT:
        break;
    }
    return NAN;
}

void frit_ref_add(const frit_task *task, frit_share share)
{
    const int64_t n1 = frit_node_elems(task->node->src[1]);   // one row repeats
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) task->y[i] = task->x[0][i] + task->x[1][i % n1];
}

void frit_ref_mul(const frit_task *task, frit_share share)
{
    const int64_t n1 = frit_node_elems(task->node->src[1]);
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) task->y[i] = task->x[0][i] * task->x[1][i % n1];
}

void frit_ref_scale(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) task->y[i] = task->x[0][i] * task->node->factor;
}

void frit_ref_softcap(const frit_task *task, frit_share share)
{
    const double cap = task->node->factor;
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) task->y[i] = (float)(cap * tanh(task->x[0][i] / cap));
}

void frit_ref_act(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) task->y[i] = (float)frit_ref_act_value(task->node->act, task->x[0][i]);
}

void frit_ref_xielu(const frit_task *task, frit_share share)
{
    const frit_xielu *p = &task->node->xielu;
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const double x = task->x[0][i], bent = x > 0 ? p->positive * x * x : p->negative * (expm1(fmin(x, p->eps)) - x);
        task->y[i] = (float)(bent + p->beta * x);
    }
}

void frit_ref_glu(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++)
        task->y[i] = (float)(frit_ref_act_value(task->node->act, task->x[0][i]) * task->x[1][i]);
}

void frit_ref_clamp(const frit_task *task, frit_share share)
{
    const float low = task->node->clamp.low, high = task->node->clamp.high;
    frit_range r = frit_split(frit_node_elems(task->node), 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const float x = task->x[0][i];
        task->y[i] = x < low ? low : x > high ? high : x;   // keeps NaN
    }
}

void frit_ref_scale_rows(const frit_task *task, frit_share share)
{
    const int64_t n = frit_node_width(task->node);
    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        for (int64_t i = 0; i < n; i++) task->y[t * n + i] = task->x[0][t * n + i] * task->x[1][t];
}
