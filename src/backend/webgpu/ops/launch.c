// SPDX-License-Identifier: MIT
// Making launches.
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/weights/weights.h"
#include "base/grow.h"

#include <stdio.h>
#include <string.h>

void frit_webgpu_define(frit_webgpu_kernel *kernel, const char *name, int64_t value)
{
    if (kernel->n_defines == FRIT_WEBGPU_DEFINES) return;   // a missing definition does not compile
    snprintf(kernel->defines[kernel->n_defines], sizeof kernel->defines[0], "%s=%lld", name, (long long)value);
    kernel->n_defines++;
}

frit_status frit_webgpu_launch_new(frit_exec *exec, const frit_node *node, const char *file, frit_webgpu_launch **out)
{
    FRIT_TRY(FRIT_GROW(exec->launches, exec->launches_capacity, exec->n_launches + 1, "the launches of a plan"));
    frit_webgpu_launch *l = *out = &exec->launches[exec->n_launches++];
    *l = (frit_webgpu_launch){.node = node, .wanted.file = file};
    frit_webgpu_define(&l->wanted, "ROWS_OF",
                       node->rows == FRIT_SHAPE_BATCH  ? 0
                       : node->rows == FRIT_SHAPE_OUTS ? 1
                                                       : 2);
    l->params[PARAM_ROWS] = (uint32_t)node->shape[0];
    l->bindings[0].where = FRIT_WEBGPU_AT_PARAMS;
    l->wanted.kinds[0] = 'u';
    l->n_bindings = 1;
    frit_webgpu_bind_shared(l, 'r', FRIT_WEBGPU_STEP);
    frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_SCRATCH);
    return FRIT_OK;
}

void frit_webgpu_bind_shared(frit_webgpu_launch *l, char kind, frit_webgpu_shared which)
{
    l->wanted.kinds[l->n_bindings] = kind;
    l->bindings[l->n_bindings++] = (frit_webgpu_binding){.where = FRIT_WEBGPU_AT_SHARED, .which = which};
}

void frit_webgpu_bind_buffer(frit_webgpu_launch *l, char kind, const frit_gpu_buffer *buffer)
{
    l->wanted.kinds[l->n_bindings] = kind;
    l->bindings[l->n_bindings++] = (frit_webgpu_binding){.where = FRIT_WEBGPU_AT_BUFFER, .buffer = buffer};
}

frit_status frit_webgpu_bind_source(frit_exec *exec, frit_webgpu_launch *l, int i, const frit_node *source)
{
    const frit_node *storage = frit_node_storage(source);
    const frit_webgpu_tensor *tensor;
    char name[16];
    if (storage->op != FRIT_OP_WEIGHT) {
        l->params[PARAM_X0 + i] = frit_webgpu_offset(exec, source);
        return FRIT_OK;
    }
    FRIT_TRY(frit_webgpu_tensor_get(exec->device, storage->tensor, false, &tensor));
    snprintf(name, sizeof name, "X%d_AT", i);
    frit_webgpu_define(&l->wanted, name, 1);
    snprintf(name, sizeof name, "X%d_BINDING", i);
    frit_webgpu_define(&l->wanted, name, l->n_bindings);
    frit_webgpu_bind_buffer(l, 'r', &tensor->parts[0]);
    return FRIT_OK;
}

uint32_t frit_webgpu_offset(const frit_exec *exec, const frit_node *node)
{
    const frit_node *storage = frit_node_storage(node);
    return (
        uint32_t)((exec->plan->offsets[storage->id] + (frit_node_is_result_input(storage) ? exec->inputs_offset : 0)) /
                  4);
}

uint32_t frit_webgpu_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void frit_webgpu_grid_numbers(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    enum { MOST = 32768 };
    const int64_t n = frit_webgpu_rows(l->node, step->batch) * l->n[0], groups = (n + l->n[1] - 1) / l->n[1];
    grid[0] = (uint32_t)(groups < MOST ? groups : MOST);
    grid[1] = (uint32_t)((groups + MOST - 1) / MOST);
    grid[2] = 1;
}

void frit_webgpu_grid_rows(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)l->n[0];
    grid[1] = (uint32_t)frit_webgpu_rows(l->node, step->batch);
    grid[2] = (uint32_t)(l->n[1] > 0 ? l->n[1] : 1);
}
