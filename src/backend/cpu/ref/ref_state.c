// SPDX-License-Identifier: MIT
// Reference kernels of recurrent ops: sequence by sequence and row by row, with the state between rows.
#include "backend/cpu/task.h"

#include <math.h>
#include <string.h>

// ------------------------------------------------------------------------------- conv

// Row t of a sequence. Rows before the first one (t < 0) are in the state, [n - 1, C].
static double earlier_value(const float *x, const float *state, int64_t n_state, int64_t n_channels, int64_t t,
                            int64_t c)
{
    return t >= 0 ? x[t * n_channels + c] : state[(n_state + t) * n_channels + c];
}

void frit_ref_conv(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_channels = frit_node_width(task->node), n = frit_node_elems(task->node->src[1]) / n_channels;
    frit_range r = frit_split(n_channels, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const float *x = task->x[0] + seq->first_row * n_channels;
        float *state = frit_state_at(task, seq), *copy = frit_state_in(task, seq->copy_state),
              *y = task->y + seq->first_row * n_channels;
        for (int64_t c = r.begin; c < r.end; c++) {
            if (seq->n_past == 0)
                for (int64_t i = 0; i < n - 1; i++) state[i * n_channels + c] = 0;
            for (int64_t t = 0; t < seq->n_rows; t++) {
                double sum = task->x[2] ? task->x[2][c] : 0;
                for (int64_t i = 0; i < n; i++)
                    sum += task->x[1][c * n + i] * earlier_value(x, state, n - 1, n_channels, t - n + 1 + i, c);
                y[t * n_channels + c] = (float)sum;
            }
            for (int64_t i = 0; seq->n_copied > 0 && i < n - 1; i++)
                copy[i * n_channels + c] =
                    (float)earlier_value(x, state, n - 1, n_channels, seq->n_copied - (n - 1) + i, c);
            for (int64_t i = 0; i < n - 1; i++)   // each row is read before it is overwritten
                state[i * n_channels + c] =
                    (float)earlier_value(x, state, n - 1, n_channels, seq->n_rows - (n - 1) + i, c);
        }
    }
}

// ------------------------------------------------------------------------------- scan, delta

typedef struct sizes {
    int64_t n_head, dim, n_group, n;   // x [T, n_head, dim]; keys [T, n_group, n]
} sizes;

static sizes sizes_of(const frit_node *x, const frit_node *k)
{
    return (sizes){x->shape[1], x->shape[2], k->shape[1], k->shape[2]};
}

// The state of one head, [dim, n]. It is zero before the first row of a session.
static float *head_state(const frit_task *task, const frit_seq *seq, sizes s, int64_t head)
{
    float *state = frit_state_at(task, seq) + head * s.dim * s.n;
    if (seq->n_past == 0) memset(state, 0, (size_t)(s.dim * s.n) * sizeof *state);
    return state;
}

// Called after each row t of the step.
static void copy_state(const frit_task *task, const frit_seq *seq, sizes s, int64_t head, int64_t t)
{
    if (t - seq->first_row + 1 != seq->n_copied) return;
    const int64_t at = head * s.dim * s.n;
    memcpy(frit_state_in(task, seq->copy_state) + at, frit_state_at(task, seq) + at,
           (size_t)(s.dim * s.n) * sizeof(float));
}

void frit_ref_scan(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const sizes s = sizes_of(task->node->src[0], task->node->src[3]);
    const int64_t n_a = frit_node_elems(task->node->src[2]) / s.n_head;
    frit_range r = frit_split(batch->n_seqs * s.n_head, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const frit_seq *seq = &batch->seqs[i / s.n_head];
        const int64_t head = i % s.n_head, group = head / (s.n_head / s.n_group);
        float *state = head_state(task, seq, s, head);
        for (int64_t t = seq->first_row; t < seq->first_row + seq->n_rows; t++) {
            const float *x = task->x[0] + (t * s.n_head + head) * s.dim, *a = task->x[2] + head * n_a;
            const float *b = task->x[3] + (t * s.n_group + group) * s.n,
                        *c = task->x[4] + (t * s.n_group + group) * s.n;
            const double dt = task->x[1][t * s.n_head + head];
            for (int64_t p = 0; p < s.dim; p++) {
                float *row = state + p * s.n;
                double sum = 0;
                for (int64_t k = 0; k < s.n; k++) {
                    row[k] = (float)(exp(dt * a[n_a == 1 ? 0 : k]) * row[k] + dt * x[p] * b[k]);
                    sum += (double)row[k] * c[k];
                }
                task->y[(t * s.n_head + head) * s.dim + p] = (float)sum;
            }
            copy_state(task, seq, s, head, t);
        }
    }
}

// One row of a head: state, keys and queries, decay in logarithms [n] or [1].
static void delta_row(float *y, float *state, sizes s, const float *v, const float *k, const float *q, const float *g,
                      bool one_g, const float *beta)
{
    for (int64_t p = 0; p < s.dim; p++) {
        float *row = state + p * s.n;
        double known = 0, sum = 0;
        for (int64_t i = 0; i < s.n; i++) {
            row[i] = (float)(exp(g[one_g ? 0 : i]) * row[i]);
            known += (double)row[i] * k[i];
        }
        const double news = beta ? (v[p] - known) * *beta : v[p];
        for (int64_t i = 0; i < s.n; i++) {
            row[i] = (float)(row[i] + news * k[i]);
            sum += (double)row[i] * q[i];
        }
        y[p] = (float)sum;
    }
}

void frit_ref_delta(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_node *decay = task->node->src[3];
    const sizes s = sizes_of(task->node->src[0], task->node->src[1]);
    const bool fixed = decay->op == FRIT_OP_WEIGHT;
    const int64_t n_g = fixed || decay->n_dims == 2 ? 1 : decay->shape[2];
    frit_range r = frit_split(batch->n_seqs * s.n_head, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const frit_seq *seq = &batch->seqs[i / s.n_head];
        const int64_t head = i % s.n_head;
        const int64_t group = task->node->state.interleaved ? head % s.n_group : head / (s.n_head / s.n_group);
        float *state = head_state(task, seq, s, head);
        for (int64_t t = seq->first_row; t < seq->first_row + seq->n_rows; t++) {
            const int64_t h = t * s.n_head + head, at = (t * s.n_group + group) * s.n;
            const float *g = task->x[3] + (fixed ? head : h * n_g);
            delta_row(task->y + h * s.dim, state, s, task->x[0] + h * s.dim, task->x[1] + at, task->x[2] + at, g,
                      n_g == 1, task->x[4] ? task->x[4] + h : NULL);
            copy_state(task, seq, s, head, t);
        }
    }
}

// ------------------------------------------------------------------------------- rwkv

typedef struct rwkv_row {   // one row of a head
    const float *v, *k, *r, *w, *u, *a, *b;
} rwkv_row;

// The decay of element i, and its key.
static double rwkv_decay(const frit_state *state, const rwkv_row *x, int64_t i, double *key)
{
    const double decay = exp(state->nested ? -exp(x->w[i]) : (double)x->w[i]);
    *key = state->complemented ? x->k[i] * (1 - decay) : (double)x->k[i];
    return decay;
}

static void rwkv_head(float *y, float *state, sizes s, const frit_state *options, const rwkv_row *x)
{
    for (int64_t p = 0; p < s.dim; p++) {
        float *row = state + p * s.n;
        double seen = 0, erased = 0, key;
        for (int64_t i = 0; i < s.n && x->a; i++) erased += (double)row[i] * x->a[i];
        for (int64_t i = 0; i < s.n; i++) {
            const double decay = rwkv_decay(options, x, i, &key), old = row[i];
            row[i] = (float)(old * decay + (x->b ? erased * x->b[i] : 0) + x->v[p] * key);
            seen += x->r[i] * (x->u ? old + x->u[i] * key * x->v[p] : (double)row[i]);
        }
        y[p] = (float)seen;
    }
}

void frit_ref_rwkv(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const frit_node *node = task->node;
    const sizes s = {node->shape[1], node->shape[2], node->src[1]->shape[1], node->src[1]->shape[2]};
    const bool has_bonus = node->n_src == 5;
    frit_range range = frit_split(batch->n_seqs * s.n_head, 1, share);
    for (int64_t i = range.begin; i < range.end; i++) {
        const frit_seq *seq = &batch->seqs[i / s.n_head];
        const int64_t head = i % s.n_head, group = head / (s.n_head / s.n_group);
        float *state = head_state(task, seq, s, head);
        for (int64_t t = seq->first_row; t < seq->first_row + seq->n_rows; t++) {
            const int64_t h = t * s.n_head + head, at = h * s.n, in_group = t * s.n_group + group;
            const rwkv_row x = {.v = task->x[0] + in_group * s.dim,
                                .k = task->x[1] + in_group * s.n,
                                .r = task->x[2] + at,
                                .w = task->x[3] + at,
                                .u = has_bonus ? task->x[4] + head * s.n : NULL,
                                .a = node->n_src == 6 ? task->x[4] + at : NULL,
                                .b = node->n_src == 6 ? task->x[5] + at : NULL};
            rwkv_head(task->y + h * s.dim, state, s, &node->state, &x);
            copy_state(task, seq, s, head, t);
        }
    }
}

// ------------------------------------------------------------------------------- shift, wkv

void frit_ref_lru(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_channels = frit_node_width(task->node);
    frit_range r = frit_split(n_channels, 1, share);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        float *state = frit_state_at(task, seq), *copy = frit_state_in(task, seq->copy_state);
        for (int64_t c = r.begin; c < r.end; c++) {
            double s = seq->n_past == 0 ? 0 : state[c];
            for (int64_t i = 0; i < seq->n_rows; i++) {
                const int64_t at = (seq->first_row + i) * n_channels + c;
                const double g = task->x[1][at], x = task->x[0][at];
                s = seq->n_past + i == 0 ? x : exp(g) * s + sqrt(-expm1(2 * g)) * x;
                s = (float)s;
                task->y[at] = (float)s;
                if (i + 1 == seq->n_copied) copy[c] = (float)s;
            }
            state[c] = (float)s;
        }
    }
}

void frit_ref_shift(const frit_task *task, frit_share share)
{
    const frit_batch *batch = task->env->batch;
    const int64_t n_channels = frit_node_width(task->node);
    frit_range r = frit_split(n_channels, 1, share);
    const size_t n_bytes = (size_t)(r.end - r.begin) * sizeof(float);
    for (int i_seq = 0; i_seq < batch->n_seqs; i_seq++) {
        const frit_seq *seq = &batch->seqs[i_seq];
        const float *x = task->x[0] + seq->first_row * n_channels + r.begin;
        float *y = task->y + seq->first_row * n_channels + r.begin, *state = frit_state_at(task, seq) + r.begin;
        if (seq->n_past == 0)
            memset(y, 0, n_bytes);
        else
            memcpy(y, state, n_bytes);
        for (int64_t t = 1; t < seq->n_rows; t++) memcpy(y + t * n_channels, x + (t - 1) * n_channels, n_bytes);
        memcpy(state, x + (seq->n_rows - 1) * n_channels, n_bytes);
        if (seq->n_copied > 0)
            memcpy(frit_state_in(task, seq->copy_state) + r.begin, x + (seq->n_copied - 1) * n_channels, n_bytes);
    }
}

typedef struct weighed {   // sums relative to exp(max)
    double sum, weight, max;
} weighed;

// Adds v with the weight exp(k), so that no exponent is above 0.
static weighed weigh_decay(weighed w, double k, double v)
{
    const double max = w.max > k ? w.max : k, old = exp(w.max - max), now = exp(k - max);
    return (weighed){old * w.sum + now * v, old * w.weight + now, max};
}

static weighed get_weighed(const float *state, int64_t n_channels, int64_t c)
{
    return (weighed){state[c], state[n_channels + c], state[2 * n_channels + c]};
}

static void put_weighed(float *state, int64_t n_channels, int64_t c, weighed w)
{
    state[c] = (float)w.sum;
    state[n_channels + c] = (float)w.weight;
    state[2 * n_channels + c] = (float)w.max;
}

// w is the logarithm of a decay, below 0.
void frit_ref_wkv(const frit_task *task, frit_share share)
{
    static const weighed nothing = {0, 0, -1e38};
    const frit_batch *batch = task->env->batch;
    const int64_t n_channels = frit_node_width(task->node);
    const float *decay = task->x[2], *first = task->x[3];
    frit_range r = frit_split(n_channels * batch->n_seqs, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const frit_seq *seq = &batch->seqs[i / n_channels];
        const int64_t c = i % n_channels;
        float *state = frit_state_at(task, seq);
        weighed w = seq->n_past == 0 ? nothing : get_weighed(state, n_channels, c);
        for (int64_t t = 0; t < seq->n_rows; t++) {
            const int64_t at = (seq->first_row + t) * n_channels + c;
            const double k = task->x[0][at], v = task->x[1][at];
            const weighed seen = weigh_decay(w, (double)first[c] + k, v);
            task->y[at] = (float)(seen.sum / seen.weight);
            w.max += decay[c];
            w = weigh_decay(w, k, v);
            if (t + 1 == seq->n_copied) put_weighed(frit_state_in(task, seq->copy_state), n_channels, c, w);
        }
        put_weighed(state, n_channels, c, w);
    }
}
