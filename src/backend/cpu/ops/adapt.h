// SPDX-License-Identifier: MIT
// backend/cpu/ops/adapt.h: what adapters add to products (graph/adapt.h), for the kernels of these products: after each
// tile of results, while these are in cache. Rows whose session has no adapter stay as they are.
#pragma once
#include "backend/cpu/task.h"

// The scales of the adapters of row t of a task's node; NULL: none.
const float *frit_adapt_scales(const frit_task *task, int64_t t);

// Walks the adapters that a row has at one matrix, in the order of their numbers of h:
//     for (frit_adapt_walk p = {0}; frit_adapt_next(env, scales, matrix, &p);) ...
typedef struct frit_adapt_walk {
    const frit_low_rank *part;
    float scale;     // the file's, times the row's
    float of_row;    // the row's alone
    int32_t first;   // place of its numbers in a row of h
    int32_t n_seen;
} frit_adapt_walk;

static inline bool frit_adapt_next(const frit_task_env *env, const float *scales, int32_t matrix, frit_adapt_walk *p)
{
    if (p->part) p->first += p->part->rank;
    while (scales && p->n_seen < env->adapters->n_used) {
        const int32_t i = env->adapters->used[p->n_seen++];
        const frit_low_rank *part = &env->adapters->tables[i].matrices[matrix];
        if (!part->a || part->scale * scales[i] == 0) continue;
        p->part = part;
        p->scale = part->scale * scales[i];
        p->of_row = scales[i];
        return true;
    }
    return false;
}

// How far rows of h are used at most, in this step; 0: no row has an adapter of the matrix.
int64_t frit_adapt_width(const frit_task_env *env, const frit_adapted *adapted);

// What the adapters of matrix i add to rows [t, t + n_x), columns [o, o + n_w): y points to the first.
void frit_adapt_rows(const frit_task *task, int i, int64_t t, int64_t n_x, int64_t o, int64_t n_w, float *y,
                     size_t y_stride);
// The same to one assignment of a route, by matrix `expert` of a stack.
void frit_adapt_assignment(const frit_task *task, int i, int64_t assignment, int64_t expert, int64_t o, int64_t n_w,
                           float *y);

// The reference: what is added to y, number o of a product's row t of the batch; its numbers of h are in row `row`.
double frit_ref_adapt(const frit_task *task, int i, int64_t row, int64_t t, int64_t expert, int64_t o, double y);

// Of the layer that a STEER node follows, by adapter used[u], and the row's scale of it; NULL: nothing.
const float *frit_adapt_direction(const frit_task *task, const float *scales, int32_t u, float *scale);

size_t frit_adapt_down_workspace_bytes(const frit_node *node);
bool frit_adapt_down_fits(const frit_node *node);
int frit_adapt_down_pieces(const frit_task *task);
