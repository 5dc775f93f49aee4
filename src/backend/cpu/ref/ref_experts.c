// SPDX-License-Identifier: MIT
// Reference kernels of mixtures of experts. A route is [T, 2, k]: for each row the indices of k experts, then their
// weights.
//
//     scores x -> probabilities p -> chosen by p + bias, within the best groups -> weights p of the chosen,
//     softmax over them, divided by their sum, scaled
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ref/ref.h"
#include "format/rows.h"
#include "quant/dtype.h"

#include <math.h>
#include <string.h>

// At least the smallest normal f16, because the engines that trained these models divide by it.
static const double min_sum = 6.103515625e-5;

static void softmax(double *p, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, p[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(p[i] - max);
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void to_probabilities(frit_gating gating, double *p, int64_t n)
{
    if (gating == FRIT_GATING_SOFTMAX) softmax(p, n);
    for (int64_t i = 0; i < n; i++) {
        if (gating == FRIT_GATING_SIGMOID) p[i] = sigmoid(p[i]);
        if (gating == FRIT_GATING_SQRT_SOFTPLUS) p[i] = sqrt(p[i] > 20 ? p[i] : log1p(exp(p[i])));
    }
}

// Index of the largest score, the first of equals.
static int64_t best_expert(const double *s, int64_t n)
{
    int64_t top = 0;
    for (int64_t i = 1; i < n; i++)
        if (s[i] > s[top]) top = i;
    return top;
}

static double best_two(const double *s, int64_t n)
{
    const int64_t first = best_expert(s, n);
    double second = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (i != first) second = fmax(second, s[i]);
    return s[first] + second;
}

// Excludes all experts outside of the best groups. `sums` has room for one value per group.
static void keep_best_groups(const frit_route *r, double *s, int64_t n, double *sums)
{
    const int64_t size = n / r->n_groups;
    for (int32_t g = 0; g < r->n_groups; g++) sums[g] = best_two(s + g * size, size);
    for (int32_t i = 0; i < r->n_groups_used; i++) sums[best_expert(sums, r->n_groups)] = -INFINITY;
    for (int32_t g = 0; g < r->n_groups; g++)
        for (int64_t i = 0; i < size && sums[g] != -INFINITY; i++) s[g * size + i] = -INFINITY;
}

static void weigh_experts(const frit_route *r, double *weights)
{
    double sum = 0;
    if (r->gating == FRIT_GATING_SOFTMAX_SELECTED) softmax(weights, r->n_used);
    for (int32_t k = 0; k < r->n_used; k++) sum += weights[k];
    for (int32_t k = 0; k < r->n_used && r->normalize; k++) weights[k] /= fmax(sum, min_sum);
    for (int32_t k = 0; k < r->n_used && r->scale != 0; k++) weights[k] *= r->scale;
}

// Sets the weight of the best remaining score, and excludes the score.
static double weigh_near_best(const frit_route *r, double *s, int64_t e, int64_t n)
{
    const double top = s[e];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double magnitude = fmax(fabs(s[i]), top);
        if (s[i] != -INFINITY && (top - s[i]) / magnitude <= 2 * (double)r->jitter) sum += exp(s[i] - top);
    }
    return 1 / sum;
}

static void route_row(const frit_route *r, const float *x, const float *bias, int64_t n, double *p, float *y)
{
    double *s = p + n, *weights = s + n;
    const int64_t divisor = r->divisor > 0 ? r->divisor : 1;
    for (int64_t i = 0; i < n; i++) p[i] = x[i];
    to_probabilities(r->gating, p, n);
    for (int64_t i = 0; i < n; i++) {
        s[i] = r->by_logit ? x[i] : r->by_sigmoid ? sigmoid(x[i]) : p[i];
        if (bias) s[i] += bias[i];
    }
    if (r->n_groups > 1) keep_best_groups(r, s, n, weights);
    for (int32_t k = 0; k < r->n_used; k++) {
        const int64_t e = best_expert(s, n);
        y[k] = (float)(e / divisor);
        weights[k] = r->gating == FRIT_GATING_NEAR_BEST ? weigh_near_best(r, s, e, n) : p[e / divisor];
        s[e] = -INFINITY;
    }
    weigh_experts(r, weights);
    for (int32_t k = 0; k < r->n_used; k++) y[r->n_used + k] = (float)weights[k];
}

void frit_ref_route(const frit_task *task, frit_share share)
{
    const frit_route *route = &task->node->route;
    const int64_t n = frit_node_width(task->node->src[0]);
    frit_range r = frit_split(task->node->shape[0], 1, share);
    for (int64_t t = r.begin; t < r.end; t++)
        route_row(route, task->x[0] + t * n, task->x[1], n, frit_task_workspace(task, share),
                  task->y + t * 2 * route->n_used);
}

// ------------------------------------------------------------------------------- products

// The adapters' term of matrix i for output o of assignment tk.
static double add_adapters(const frit_task *task, int i, int64_t tk, int64_t n_used, int64_t expert, int64_t o)
{
    return task->node->adapts ? frit_ref_adapt(task, i, tk, tk / n_used, expert, o, 0) : 0;   // a stack has no gains
}

static void decode_row(const frit_task *task, int source, int64_t matrix, int64_t row, float *values)
{
    const frit_tensor *w = task->node->src[source]->tensor;
    const int64_t n = w->shape[2];
    const int64_t i = matrix * w->shape[1] + row;
    const uint8_t *first = task->w[source];   // NULL: matrices are at separate addresses
    frit_dtype_get(w->dtype)->decode(
        first ? first + (uint64_t)i * frit_dtype_row_bytes(w->dtype, n) : frit_stack_row(w, i), values, n);
}

void frit_ref_experts(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node, *x = node->src[0];
    const int64_t n_rows = node->shape[0], n_used = node->shape[1], n_out = node->shape[2], n_in = frit_node_width(x);
    const int64_t n_experts = node->src[1]->tensor->shape[0];
    const bool own_rows = x->n_dims == 3;
    float *w = frit_task_workspace(task, share);

    frit_range r = frit_split(n_experts * n_out, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const int64_t e = i / n_out, o = i % n_out;
        bool decoded = false;
        for (int64_t tk = 0; tk < n_rows * n_used; tk++) {
            const float *route = task->x[2] + tk / n_used * 2 * n_used + tk % n_used;
            if ((int64_t)route[0] != e) continue;
            if (!decoded) decode_row(task, 1, e, node->experts.begin + o, w);
            decoded = true;
            const float *row = task->x[0] + (own_rows ? tk : tk / n_used) * n_in;
            const double sum = frit_ref_dot(row, w, n_in) + add_adapters(task, 0, tk, n_used, e, o);
            task->y[tk * n_out + o] = (float)(sum * (node->experts.weigh ? route[n_used] : 1));
        }
    }
}

void frit_ref_experts_glu(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node, *x = node->src[0];
    const frit_experts_glu *glu = &node->experts_glu;
    const int64_t n_used = node->shape[1], n_out = node->shape[2], n_in = frit_node_width(x);
    const int64_t n_experts = node->src[1]->tensor->shape[0];
    float *gate = frit_task_workspace(task, share), *up = gate + n_in;

    frit_range r = frit_split(n_experts * n_out, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const int64_t e = i / n_out, o = i % n_out;
        bool decoded = false;
        for (int64_t tk = 0; tk < node->shape[0] * n_used; tk++) {
            const float *route = task->x[3] + tk / n_used * 2 * n_used + tk % n_used;
            if ((int64_t)route[0] != e) continue;
            if (!decoded) decode_row(task, 1, e, glu->gate + o, gate), decode_row(task, 2, e, glu->up + o, up);
            decoded = true;
            const float *row = task->x[0] + (x->n_dims == 3 ? tk : tk / n_used) * n_in;
            const double weight = glu->weigh ? route[n_used] : 1;
            const double g = weight * (frit_ref_dot(row, gate, n_in) + add_adapters(task, 0, tk, n_used, e, o));
            const double u = weight * (frit_ref_dot(row, up, n_in) + add_adapters(task, 1, tk, n_used, e, o));
            task->y[tk * n_out + o] = (float)(frit_ref_act_value(glu->act, g) * u);
        }
    }
}

// Workspace: sums of all rows, and a row of weights.
size_t frit_ref_experts_mix_workspace_bytes(const frit_node *node)
{
    return (size_t)node->shape[0] * sizeof(double) + (size_t)frit_node_width(node->src[0]) * sizeof(float);
}

void frit_ref_experts_mix(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n_rows = node->shape[0], n_out = node->shape[1], n_in = frit_node_width(node->src[0]);
    const int64_t n_used = node->src[0]->shape[1], n_experts = node->src[1]->tensor->shape[0];
    double *sums = frit_task_workspace(task, share);
    float *w = (float *)(void *)(sums + n_rows);

    frit_range r = frit_split(n_out, 1, share);
    for (int64_t o = r.begin; o < r.end; o++) {
        for (int64_t t = 0; t < n_rows; t++) sums[t] = 0;
        for (int64_t e = 0; e < n_experts; e++) {
            bool decoded = false;
            for (int64_t tk = 0; tk < n_rows * n_used; tk++) {
                const float *route = task->x[2] + tk / n_used * 2 * n_used + tk % n_used;
                if ((int64_t)route[0] != e) continue;
                if (!decoded) decode_row(task, 1, e, node->experts.begin + o, w);
                decoded = true;
                const double sum =
                    frit_ref_dot(task->x[0] + tk * n_in, w, n_in) + add_adapters(task, 0, tk, n_used, e, o);
                sums[tk / n_used] += sum * (node->experts.weigh ? route[n_used] : 1);
            }
        }
        for (int64_t t = 0; t < n_rows; t++) task->y[t * n_out + o] = (float)sums[t];
    }
}

void frit_ref_heads(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n_rows = node->shape[0], n_head = node->shape[1], n_out = node->shape[2];
    const int64_t n_in = frit_node_width(node->src[0]);
    float *w = frit_task_workspace(task, share);

    frit_range r = frit_split(n_head * n_out, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        decode_row(task, 1, i / n_out, i % n_out, w);
        for (int64_t t = 0; t < n_rows; t++)
            task->y[t * n_head * n_out + i] =
                (float)frit_ref_dot(task->x[0] + (t * n_head + i / n_out) * n_in, w, n_in);
    }
}

// ------------------------------------------------------------------------------- by route

void frit_ref_gather_experts(const frit_task *task, frit_share share)
{
    const int64_t n_used = task->node->shape[1], n = task->node->shape[2];
    frit_range r = frit_split(task->node->shape[0] * n_used, 1, share);
    for (int64_t tk = r.begin; tk < r.end; tk++) {
        const int64_t e = (int64_t)task->x[1][tk / n_used * 2 * n_used + tk % n_used];
        memcpy(task->y + tk * n, task->x[0] + e * n, (size_t)n * sizeof(float));
    }
}

void frit_ref_mix(const frit_task *task, frit_share share)
{
    const int64_t n_used = task->node->src[0]->shape[1], n = task->node->shape[1];
    frit_range r = frit_split(task->node->shape[0] * n, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const int64_t t = i / n;
        const float *weights = task->x[1] + t * 2 * n_used + n_used;
        double sum = 0;
        for (int64_t k = 0; k < n_used; k++)
            sum += (double)task->x[0][(t * n_used + k) * n + i % n] * (task->node->plain ? 1 : weights[k]);
        task->y[i] = (float)sum;
    }
}
