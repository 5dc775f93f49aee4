// SPDX-License-Identifier: MIT
// backend/webgpu/ops/launch.h: making a launch: its kernel, its bindings, its parameters.
//
//     FRIT_TRY(frit_webgpu_launch_new(exec, node, "rope.wgsl", &l));
//     FRIT_TRY(frit_webgpu_bind_source(exec, l, 0, node->src[0]));
//     l->params[PARAM_Y] = frit_webgpu_offset(exec, node);
//
// All launches bind their parameters, the step's input and the scratch memory first.
#pragma once
#include "backend/webgpu/exec.h"
#include "backend/webgpu/ops/params.h"

frit_status frit_webgpu_launch_new(frit_exec *exec, const frit_node *node, const char *file, frit_webgpu_launch **out);
void frit_webgpu_bind_shared(frit_webgpu_launch *launch, char kind, frit_webgpu_shared which);
void frit_webgpu_bind_buffer(frit_webgpu_launch *launch, char kind, const frit_gpu_buffer *buffer);
// Source i as kernels/sources.wgsl has it: an offset in parameter PARAM_X0 + i, or a binding of a tensor.
frit_status frit_webgpu_bind_source(frit_exec *exec, frit_webgpu_launch *launch, int i, const frit_node *source);
// The offset of a result or of an input in the scratch memory, in numbers of 4 bytes.
uint32_t frit_webgpu_offset(const frit_exec *exec, const frit_node *node);
uint32_t frit_webgpu_float(float x);   // its bits

static inline int64_t frit_webgpu_rows(const frit_node *node, const frit_batch *batch)   // that a step has
{
    return node->rows == FRIT_SHAPE_BATCH  ? batch->n_rows
           : node->rows == FRIT_SHAPE_OUTS ? batch->n_outs
                                           : node->shape[0];
}

static inline int64_t frit_webgpu_each(const frit_node *node)   // numbers of a row of the batch
{
    return frit_node_elems(node) / (node->shape[0] > 0 ? node->shape[0] : 1);
}

// Grids of groups of n[1] threads for n[0] numbers of each row; the dimensions x and y are one number.
void frit_webgpu_grid_numbers(const frit_webgpu_launch *launch, const frit_webgpu_step *step, uint32_t *grid);
// n[0] x rows x n[1] groups
void frit_webgpu_grid_rows(const frit_webgpu_launch *launch, const frit_webgpu_step *step, uint32_t *grid);
