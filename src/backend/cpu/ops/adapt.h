// SPDX-License-Identifier: MIT
// backend/cpu/ops/adapt.h: adds the terms of adapters (graph/adapt.h) to products. The kernels of products call it
// after each tile of results, while the tile is in the cache. Rows whose session has no adapter do not change.
#pragma once
#include "backend/cpu/task.h"

// The scales of all adapters for row t of a task's node; NULL: all are off.
const float *frit_adapt_scales(const frit_task *task, int64_t t);

// Walks the adapters of a row for one matrix, in the order of their elements of h:
//     for (frit_adapt_walk p = {0}; frit_adapt_next(env, scales, matrix, &p);) ...
typedef struct frit_adapt_walk {
    const frit_low_rank *low_rank;
    float scale;     // scale of the file times scale of the row
    float of_row;    // scale of the row
    int32_t first;   // index of its first element in a row of h
    int32_t n_seen;
} frit_adapt_walk;

static inline bool frit_adapt_next(const frit_task_env *env, const float *scales, int32_t matrix, frit_adapt_walk *p)
{
    if (p->low_rank) p->first += p->low_rank->rank;
    while (scales && p->n_seen < env->adapters->n_used) {
        const int32_t i = env->adapters->used[p->n_seen++];
        const frit_low_rank *low_rank = &env->adapters->tables[i].matrices[matrix];
        if (!low_rank->a || low_rank->scale * scales[i] == 0) continue;
        p->low_rank = low_rank;
        p->scale = low_rank->scale * scales[i];
        p->of_row = scales[i];
        return true;
    }
    return false;
}

// The most elements of a row of h that this step uses; 0: no row has an adapter for the matrix.
int64_t frit_adapt_width(const frit_task_env *env, const frit_adapted *adapted);

// Adds the terms of matrix i to rows [t, t + n_x), columns [o, o + n_w) of the result; y is the address of the first.
void frit_adapt_rows(const frit_task *task, int i, int64_t t, int64_t n_x, int64_t o, int64_t n_w, float *y,
                     size_t y_stride);
// Adds the terms of matrix `expert` of a stack to one assignment of a route.
void frit_adapt_assignment(const frit_task *task, int i, int64_t assignment, int64_t expert, int64_t o, int64_t n_w,
                           float *y);

// The reference: the term for y, element o of a product's row t of the batch. Its elements of h are in row `row`.
double frit_ref_adapt(const frit_task *task, int i, int64_t row, int64_t t, int64_t expert, int64_t o, double y);

// The direction of adapter used[u] for the layer of a STEER node, and its scale for the row; NULL: none.
const float *frit_adapt_direction(const frit_task *task, const float *scales, int32_t u, float *scale);

size_t frit_adapt_down_workspace_bytes(const frit_node *node);
bool frit_adapt_down_fits(const frit_node *node);
int frit_adapt_down_pieces(const frit_task *task);
