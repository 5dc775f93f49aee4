// SPDX-License-Identifier: MIT
// Ops that work on vectors, on the kernels of the installed instruction set: norms, elementwise ops, rope.
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ops/act_input.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static void make_forms(const frit_task *task, int64_t t, const float *y)
{
    const int64_t n = frit_node_width(task->node);
    for (int form = 0; form < FRIT_FORM_COUNT; form++) {
        uint8_t *row = task->produced[form] ? frit_act_input_row(task->produced[form], t) : NULL;
        if (row) task->env->kernels->convert[form](y, row, n);
    }
}

// ------------------------------------------------------------------------------- fused nodes

// The source of the fused node that the task does not compute, from element `at` on.
static const float *other_at(const frit_fused_node *fused, int64_t at, int64_t o)
{
    const frit_node *node = fused->node, *right = node->src[1];
    const bool is_one_row = right->n_dims != node->n_dims || right->rows != node->rows;
    return fused->x[0] ? fused->x[0] + at : fused->x[1] + (is_one_row ? o : at);
}

void frit_fused_norm(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                     const float *x, int64_t n)
{
    (void)at;
    (void)o;
    (void)n;
    frit_norm_row(k, fused->node, y, x, fused->x[1], fused->x[2]);
}

void frit_fused_add(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                    const float *x, int64_t n)
{
    k->add(y, x, other_at(fused, at, o), n);
}

void frit_fused_mul(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                    const float *x, int64_t n)
{
    k->mul(y, x, other_at(fused, at, o), n);
}

void frit_fused_scale(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                      const float *x, int64_t n)
{
    (void)at;
    (void)o;
    k->scale(y, x, fused->node->factor, n);
}

void frit_fused_softcap(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                        const float *x, int64_t n)
{
    (void)at;
    (void)o;
    k->softcap(y, x, fused->node->factor, n);
}

void frit_fused_act(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                    const float *x, int64_t n)
{
    (void)at;
    (void)o;
    k->act[fused->node->act](y, x, n);
}

void frit_fused_xielu(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                      const float *x, int64_t n)
{
    (void)at;
    (void)o;
    k->xielu(y, x, &fused->node->xielu, n);
}

void frit_fused_clamp(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                      const float *x, int64_t n)
{
    (void)k;
    (void)at;
    (void)o;
    const float low = fused->node->clamp.low, high = fused->node->clamp.high;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < low ? low : x[i] > high ? high : x[i];   // NaN stays
}

// ------------------------------------------------------------------------------- rows

// The node as a fused node that is applied to its source 0.
static frit_fused_node first_fused(const frit_task *task)
{
    frit_fused_node fused = {.node = task->node, .y = task->y};
    for (int i = 1; i < task->node->n_src; i++) fused.x[i] = task->x[i];
    return fused;
}

// The destination of a fused node: its own result if it is stored, else the result of the last fused node, which is not
// needed yet, else the row of the thread.
static const float *apply_fused(const frit_task *task, const frit_fused_node *fused, float *last, int64_t t,
                                const float *x)
{
    const int64_t n = frit_node_width(task->node);
    float *y = fused->y ? fused->y + t * n : last;
    frit_cpu_ops[fused->node->op].fused(task->env->kernels, fused, t * n, 0, y, x, n);
    return y;
}

static void fused_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    const frit_fused_node first = first_fused(task);
    const int64_t n = frit_node_width(task->node);
    float *result = task->n_fused > 0 ? task->fused[task->n_fused - 1].y : task->y;
    for (int64_t t = begin; t < end; t++) {
        float *last = result ? result + t * n : frit_thread_row(task->env, thread);
        const float *y = apply_fused(task, &first, last, t, task->x[0] + t * n);
        for (int i = 0; i < task->n_fused; i++) y = apply_fused(task, &task->fused[i], last, t, y);
        make_forms(task, t, y);
    }
}

void frit_fast_rows(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, fused_rows);
}

void frit_fast_rms_norm(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, fused_rows);
}

void frit_fast_layer_norm(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, fused_rows);
}

// Elements are split at cache lines, so that no two threads write one line.
enum { LINE = 16 };

typedef void (*binary_fn)(float *y, const float *a, const float *b, int64_t n);

static void apply_binary(const frit_task *task, binary_fn fn, frit_share share)
{
    const int64_t n = frit_node_elems(task->node), n1 = frit_node_elems(task->node->src[1]);
    const float *a = task->x[0], *b = task->x[1];
    if (n1 == n) {
        frit_range r = frit_split(n, LINE, share);
        fn(task->y + r.begin, a + r.begin, b + r.begin, r.end - r.begin);
        return;
    }
    frit_range r = frit_split(n / n1, 1, share);   // b is one row
    for (int64_t t = r.begin; t < r.end; t++) fn(task->y + t * n1, a + t * n1, b, n1);
}

void frit_fast_add(const frit_task *task, frit_share share)
{
    apply_binary(task, task->env->kernels->add, share);
}

void frit_fast_mul(const frit_task *task, frit_share share)
{
    apply_binary(task, task->env->kernels->mul, share);
}

void frit_fast_scale(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    task->env->kernels->scale(task->y + r.begin, task->x[0] + r.begin, task->node->factor, r.end - r.begin);
}

void frit_fast_softcap(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    task->env->kernels->softcap(task->y + r.begin, task->x[0] + r.begin, task->node->factor, r.end - r.begin);
}

void frit_fast_act(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    task->env->kernels->act[task->node->act](task->y + r.begin, task->x[0] + r.begin, r.end - r.begin);
}

void frit_fast_clamp(const frit_task *task, frit_share share)
{
    const frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    const frit_fused_node fused = {.node = task->node};
    frit_fused_clamp(task->env->kernels, &fused, r.begin, 0, task->y + r.begin, task->x[0] + r.begin, r.end - r.begin);
}

void frit_fast_xielu(const frit_task *task, frit_share share)
{
    frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    task->env->kernels->xielu(task->y + r.begin, task->x[0] + r.begin, &task->node->xielu, r.end - r.begin);
}

void frit_fast_glu(const frit_task *task, frit_share share)
{
    enum { PIECE = 1024 };   // fits the L1 cache between the two passes
    const frit_kernels *k = task->env->kernels;
    frit_range r = frit_split(frit_node_elems(task->node), LINE, share);
    for (int64_t i = r.begin; i < r.end; i += PIECE) {
        const int64_t n = r.end - i < PIECE ? r.end - i : PIECE;
        k->act[task->node->act](task->y + i, task->x[0] + i, n);
        k->mul(task->y + i, task->y + i, task->x[1] + i, n);
    }
}

static void softmax_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const frit_kernels *k = task->env->kernels;
    const int64_t n = frit_node_width(task->node);
    for (int64_t t = begin; t < end; t++) {
        float *y = task->y + t * n;
        memcpy(y, task->x[0] + t * n, (size_t)n * sizeof(float));
        const float sum = k->exp_sum(y, k->max(y, n), n);
        k->scale(y, y, 1 / sum, n);
    }
}

void frit_fast_softmax(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, softmax_rows);
}

// Independent accumulators, so that the compiler may use vectors.
static float sum_of(const float *x, float from, bool squares, int64_t n)
{
    float sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) sums[l] += (x[i + l] - from) * (squares ? x[i + l] - from : 1);
    for (; i < n; i++) sum += (x[i] - from) * (squares ? x[i] - from : 1);
    for (int l = 0; l < 8; l++) sum += sums[l];
    return sum;
}

static void gaussian_topk_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const int64_t n = frit_node_width(task->node);
    for (int64_t t = begin; t < end; t++) {
        const float *x = task->x[0] + t * n;
        const float mean = sum_of(x, 0, false, n) / (float)n;
        const float cut = mean + task->node->factor * sqrtf(sum_of(x, mean, true, n) / (float)n);
        for (int64_t i = 0; i < n; i++) task->y[t * n + i] = x[i] < cut ? 0 : x[i] - cut;
    }
}

void frit_fast_gaussian_topk(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, gaussian_topk_rows);
}

static void match_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const int64_t n = frit_node_width(task->node);
    for (int64_t t = begin; t < end; t++) {
        const float *x = task->x[0] + t * n;
        const float of_x = sum_of(x, 0, true, n) / (float)n, wanted = sum_of(task->x[1] + t * n, 0, true, n) / (float)n;
        const float scale = sqrtf(wanted / fmaxf(of_x, task->node->eps));
        task->env->kernels->scale(task->y + t * n, x, scale, n);
    }
}

void frit_fast_rms_match(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, match_rows);
}

static void mix_streams_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const int64_t n = task->node->src[0]->shape[1], m = task->node->shape[1], dim = task->node->shape[2];
    for (int64_t i = begin; i < end; i++) {
        const float *x = task->x[0] + i / m * n * dim, *c = task->x[1] + i * n;
        float *y = task->y + i * dim;
        task->env->kernels->scale(y, x, c[0], dim);
        for (int64_t k = 1; k < n; k++)
            for (int64_t d = 0; d < dim; d++) y[d] += c[k] * x[k * dim + d];
    }
}

void frit_fast_mix_streams(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, mix_streams_rows);
}

// ------------------------------------------------------------------------------- rope

size_t frit_rope_table_bytes(const frit_node *node)
{
    return (size_t)(node->shape[0] * (node->rope.dim / 2) * 2) * sizeof(float);
}

// Table of a row: the cosines of all pairs, then the sines.
void frit_fast_rope_table(const frit_task *task, frit_share share)
{
    const frit_rope *rope = &task->node->rope;
    const int32_t *positions = frit_task_ids(task, 1);
    const float *inv_freq = task->x[2], *factors = task->x[3];
    const int64_t n_pairs = rope->dim / 2;
    float *table = (float *)(void *)task->shared;

    frit_range r = frit_split(task->node->shape[0], 1, share);
    for (int64_t t = r.begin; t < r.end; t++) {
        float *cosines = table + t * 2 * n_pairs, *sines = cosines + n_pairs;
        for (int64_t i = 0; i < n_pairs; i++) {
            const double angle = (double)(positions[t] + rope->shift) * (rope->is_back ? -inv_freq[i] : inv_freq[i]) /
                                 (factors ? factors[i] : 1);
            cosines[i] = (float)(cos(angle) * rope->magnitude);
            sines[i] = (float)(sin(angle) * rope->magnitude);
        }
    }
}

static void rope_rows(const frit_task *task, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const frit_rope *rope = &task->node->rope;
    const int64_t head_dim = frit_node_width(task->node), n_heads = frit_node_height(task->node) / task->node->shape[0];
    const int64_t n_pairs = rope->dim / 2, before = rope->offset, after = head_dim - before - 2 * n_pairs;
    const float *table = (const float *)(const void *)task->shared;

    for (int64_t row = begin; row < end; row++) {
        const float *x = task->x[0] + row * head_dim;
        float *y = task->y + row * head_dim;
        memcpy(y, x, (size_t)before * sizeof(float));
        task->env->kernels->rope[rope->style](y + before, x + before, table + row / n_heads * 2 * n_pairs, n_pairs);
        memcpy(y + before + 2 * n_pairs, x + before + 2 * n_pairs, (size_t)after * sizeof(float));
    }
}

void frit_fast_rope(const frit_task *task, frit_share share)
{
    frit_by_rows(task, share, rope_rows);
}

// ------------------------------------------------------------------------------- results

enum { RESULTS_PIECE = 8192 };

int frit_results_pieces(const frit_task *task)
{
    const int64_t n = (frit_node_elems(task->node) + RESULTS_PIECE - 1) / RESULTS_PIECE;
    return !task->env->taken ? 0 : n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

static bool any_bad(const float *values, int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bad |= (bits & 0x7f800000) == 0x7f800000;
    }
    return bad != 0;
}

void frit_fast_results(const frit_task *task, frit_share share)
{
    enum { AT_ONCE = 2048 };   // fits the L1 cache between copy and check
    const int64_t width = frit_node_elems(task->node) / task->node->shape[0];
    const frit_range mine = frit_split(frit_node_elems(task->node), LINE, share);
    for (int64_t i = mine.begin, n; i < mine.end; i += n) {
        const int64_t row = i / width, column = i % width;
        frit_out_row *taken = &task->env->taken[row];
        n = mine.end - i < AT_ONCE ? mine.end - i : AT_ONCE;
        n = width - column < n ? width - column : n;
        if (taken->copy) memcpy(taken->copy + column, task->x[0] + i, (size_t)n * sizeof(float));
        if (any_bad(task->x[0] + i, n)) atomic_store_explicit(&taken->bad, true, memory_order_relaxed);
    }
}
