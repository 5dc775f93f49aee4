// SPDX-License-Identifier: MIT
// backend/cpu/adapt.h: what adapters add to products (graph/adapt.h), for the kernels of these products: after each
// tile of results, while these are in cache. Rows whose session has no adapter stay as they are.
#pragma once
#include "backend/cpu/task.h"

// The scales of the adapters of row t of a task's node; NULL: none.
const float *frit_adapt_scales(const frit_task *task, int64_t t);

// What the adapters of matrix i add to rows [t, t + n_x), columns [o, o + n_w): y points to the first.
void frit_adapt_rows(const frit_task *task, int i, int64_t t, int64_t n_x, int64_t o, int64_t n_w, float *y,
                     size_t y_stride);
// The same to one assignment of a route, by matrix `expert` of a stack.
void frit_adapt_assignment(const frit_task *task, int i, int64_t assignment, int64_t expert, int64_t o, int64_t n_w,
                           float *y);

// The reference: what is added to number o of a row of h, `row`, of the batch's row t.
double frit_ref_adapt(const frit_task *task, int i, int64_t row, int64_t t, int64_t expert, int64_t o);

size_t frit_adapt_down_workspace_bytes(const frit_node *node);
bool frit_adapt_down_fits(const frit_node *node);
int frit_adapt_down_pieces(const frit_task *task);
