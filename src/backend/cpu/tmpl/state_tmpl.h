// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/state_tmpl.h: the recurrence of one head (frit_state_rows), in operations of floats_*.h on vec_f:
// load_f, store_f, all_f, mul_f, mul_add, sum_lanes, exp_f, flush_begin and flush_end.
//
// A chunk of the step's rows updates BLOCK rows of the state at a time, so that these stay in the L1 cache.
// Elements beyond whole vectors are computed one by one.
#include <math.h>

enum { BLOCK = 4 };   // rows of the state

// Computes e[t, :] for a chunk.
static void decays(const frit_state_rows *r, int64_t first, int64_t n_rows)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const float *g = r->g + (first + t) * r->g_row;
        const float step = r->step ? r->step[(first + t) * r->head_row] : 1;
        float *e = r->scratch + t * r->n_g;
        int64_t i = 0;
        for (; i + FLOATS <= r->n_g; i += FLOATS) store_f(e + i, exp_f(mul_f(all_f(step), load_f(g + i))));
        for (; i < r->n_g; i++) e[i] = expf(step * g[i]);
    }
}

// Computes known = (e S) k for n_block rows.
FRIT_INLINE void recall(const frit_state_rows *r, const float *state, const float *e, bool same_decay, const float *k,
                        int n_block, float *known)
{
    vec_f sums[BLOCK];
    const vec_f all = all_f(e[0]);
    int64_t i = 0;
    for (int b = 0; b < n_block; b++) sums[b] = all_f(0);
    for (; i + FLOATS <= r->n; i += FLOATS) {
        const vec_f ks = mul_f(same_decay ? all : load_f(e + i), load_f(k + i));
        for (int b = 0; b < n_block; b++) sums[b] = mul_add(load_f(state + b * r->n + i), ks, sums[b]);
    }
    for (int b = 0; b < n_block; b++) known[b] = sum_lanes(sums[b]);
    for (; i < r->n; i++)
        for (int b = 0; b < n_block; b++) known[b] += state[b * r->n + i] * (same_decay ? e[0] : e[i]) * k[i];
}

// Computes S = e S + u k^T for n_block rows, and y = S q.
FRIT_INLINE void update_rows(const frit_state_rows *r, float *state, const float *e, bool same_decay, const float *k,
                             const float *q, int n_block, const float *u, float *y)
{
    vec_f sums[BLOCK];
    const vec_f all = all_f(e[0]);
    int64_t i = 0;
    for (int b = 0; b < n_block; b++) sums[b] = all_f(0);
    for (; i + FLOATS <= r->n; i += FLOATS) {
        const vec_f ks = load_f(k + i), qs = load_f(q + i), es = same_decay ? all : load_f(e + i);
        for (int b = 0; b < n_block; b++) {
            const vec_f s = mul_add(all_f(u[b]), ks, mul_f(es, load_f(state + b * r->n + i)));
            store_f(state + b * r->n + i, s);
            sums[b] = mul_add(s, qs, sums[b]);
        }
    }
    for (int b = 0; b < n_block; b++) y[b] = sum_lanes(sums[b]);
    for (; i < r->n; i++) {
        for (int b = 0; b < n_block; b++) {
            float *s = state + b * r->n + i;
            *s = u[b] * k[i] + (same_decay ? e[0] : e[i]) * *s;
            y[b] += *s * q[i];
        }
    }
}

// Updates rows [p, p + n_block) of the state by rows [first, first + n_rows) of the step.
FRIT_INLINE void walk_rows(const frit_state_rows *r, int64_t p, int n_block, bool same_decay, int64_t first,
                           int64_t n_rows)
{
    float *state = r->state + p * r->n;
    for (int64_t t = first; t < first + n_rows; t++) {
        const float *e = r->scratch + (t - first) * r->n_g, *k = r->k + t * r->k_row, *x = r->x + t * r->x_row + p;
        float u[BLOCK];
        const float step = r->step ? r->step[t * r->head_row] : 1;
        for (int b = 0; b < n_block; b++) u[b] = step * x[b];
        if (r->beta) {
            float known[BLOCK];
            recall(r, state, e, same_decay, k, n_block, known);
            for (int b = 0; b < n_block; b++) u[b] = (u[b] - known[b]) * r->beta[t * r->head_row];
        }
        update_rows(r, state, e, same_decay, k, r->q + t * r->k_row, n_block, u, r->y + t * r->x_row + p);
    }
}

static void all_rows(const frit_state_rows *r)
{
    for (int64_t first = 0; first < r->n_rows; first += FRIT_STATE_CHUNK) {
        const int64_t left = r->n_rows - first, n_rows = left < FRIT_STATE_CHUNK ? left : FRIT_STATE_CHUNK;
        int64_t p = 0;
        decays(r, first, n_rows);
        for (; r->n_g == 1 && p + BLOCK <= r->dim; p += BLOCK) walk_rows(r, p, BLOCK, true, first, n_rows);
        for (; r->n_g == 1 && p < r->dim; p++) walk_rows(r, p, 1, true, first, n_rows);
        for (; p + BLOCK <= r->dim; p += BLOCK) walk_rows(r, p, BLOCK, false, first, n_rows);
        for (; p < r->dim; p++) walk_rows(r, p, 1, false, first, n_rows);
    }
}

static void state_rows(const frit_state_rows *r)
{
    const uint64_t before = flush_begin();
    all_rows(r);
    flush_end(before);
}
