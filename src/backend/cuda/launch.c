// SPDX-License-Identifier: MIT
// The list of a plan's launches, and where their operands lie.
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/weights/weights.h"
#include "base/grow.h"

#include <stdlib.h>

int64_t frit_cuda_width(const frit_node *node)
{
    return node->shape[node->n_dims - 1];
}

int64_t frit_cuda_row_elems(const frit_node *node)
{
    int64_t n = 1;
    for (int d = node->rows == FRIT_SHAPE_FIXED ? 0 : 1; d < node->n_dims; d++) n *= node->shape[d];
    return n;
}

frit_status frit_cuda_launch_new(frit_exec *exec, const frit_node *node, frit_cuda_launch **out)
{
    FRIT_TRY(FRIT_GROW(exec->launches, exec->launches_capacity, exec->n_launches + 1, "the launches of a plan"));
    *out = &exec->launches[exec->n_launches++];
    **out = (frit_cuda_launch){.node = node};
    return FRIT_OK;
}

frit_status frit_cuda_address_of(frit_exec *exec, const frit_node *node, bool is_tiled, frit_cuda_address *out)
{
    static const frit_cuda_step_array arrays[] = {[FRIT_INPUT_TOKENS] = FRIT_CUDA_TOKENS,
                                                  [FRIT_INPUT_POSITIONS] = FRIT_CUDA_ANGLES,
                                                  [FRIT_INPUT_OUT_ROWS] = FRIT_CUDA_OUT_ROWS};
    const frit_node *storage = frit_node_storage(node);
    if (storage->op == FRIT_OP_WEIGHT) return frit_cuda_tensor_get(exec, storage->tensor, is_tiled, out);
    if (storage->op == FRIT_OP_INPUT && !frit_node_is_result_input(storage)) {
        if (storage->input == FRIT_INPUT_WRITTEN) return FRIT_OK;
        *out = (frit_cuda_address){FRIT_CUDA_STEP, arrays[storage->input]};
        return FRIT_OK;
    }
    *out = (frit_cuda_address){frit_node_is_result_input(storage) ? FRIT_CUDA_INPUTS : FRIT_CUDA_SCRATCH,
                               exec->plan->offsets[storage->id]};
    return FRIT_OK;
}

frit_status frit_cuda_kernel_get_named(frit_exec *exec, const char *file, const char *name, unsigned threads,
                                       unsigned shared, frit_cuda_kernel **out)
{
    const frit_cuda_kernel wanted = {
        .file = file, .name = name, .grid = {1, 1, 1}, .threads = threads, .shared_bytes = shared};
    return frit_cuda_kernel_get(exec->device, &wanted, out);
}

frit_status frit_cuda_run_kernel(frit_cuda_device *d, const frit_cuda_kernel *kernel, unsigned x, unsigned y,
                                 const void *args)
{
    frit_cuda_kernel one = *kernel;
    one.grid[0] = x;
    one.grid[1] = y;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, args, FRIT_CUDA_IN_ORDER);
}

uint64_t frit_cuda_pages_of(const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const uint64_t before = (uint64_t)l->group * (uint64_t)(step->batch->n_seqs * step->page_stride);
    return step->arrays[FRIT_CUDA_PAGES] + before * sizeof(int32_t);
}
