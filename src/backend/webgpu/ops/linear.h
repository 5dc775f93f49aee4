// SPDX-License-Identifier: MIT
// backend/webgpu/ops/linear.h: products with matrices, and rows of tables.
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_linear_fits(const frit_node *node);
bool frit_webgpu_embed_fits(const frit_node *node);
// Nodes that join a product: a factor, an activation, a residual, a gate.
bool frit_webgpu_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other);
// Lowers the first fusions of a phase as one launch if they are products of the same rows with matrices of one type,
// such as q, k and v. *n_done: how many; 0: they are not.
frit_status frit_webgpu_lower_stack(frit_exec *exec, const frit_fusion *fusions, int n, int *n_done);
frit_status frit_webgpu_lower_linear(frit_exec *exec, const frit_fusion *fusion);
// The source of ADD number i of a fusion that is not the fusion's own.
int frit_webgpu_residual_of(const frit_fusion *fusion, int i);
frit_status frit_webgpu_lower_embed(frit_exec *exec, const frit_fusion *fusion);
// True if products of the graph are in f32, because its attention scores are large (T5).
bool frit_webgpu_is_precise(const frit_graph *graph);
