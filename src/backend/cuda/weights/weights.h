// SPDX-License-Identifier: MIT
// backend/cuda/weights/weights.h: the model's tensors on the GPU, as tiles (repack.h) or as they are. Each is loaded
// once, whatever number of plans read it.
#pragma once
#include "backend/cuda/step.h"

// Two matrices of one type that become one: their rows alternate in each tile (FRIT_CUDA_ORDER_GATED), or the tiles of
// the second follow those of the first.
typedef struct frit_cuda_pair {
    const frit_tensor *first, *second;   // second: NULL: there is one matrix
    frit_cuda_row_order order;
    int head_size;   // FRIT_CUDA_ORDER_ADJACENT and _NEOX
    frit_cuda_cut cut;
} frit_cuda_pair;

// Loads the tensor if no plan has, and returns its address. For a plan that streams weights, tiles get an offset in its
// stream buffer instead.
frit_status frit_cuda_tensor_get(frit_exec *exec, const frit_tensor *tensor, bool is_tiled, frit_cuda_address *out);
frit_status frit_cuda_tiles_get(frit_exec *exec, const frit_cuda_pair *pair, frit_cuda_address *out);
// True if both have the same rows in the same order.
bool frit_cuda_tensor_equals(const frit_cuda_tensor *a, const frit_cuda_tensor *b);
// Starts the copy of the tensor to t->address. It is complete after frit_cuda_loader_wait.
frit_status frit_cuda_tensor_fill(frit_cuda_device *device, const frit_cuda_tensor *t);
// Bytes of the tiles, and of the other tensors, that a plan reads.
frit_status frit_cuda_plan_weights(const frit_plan *plan, uint64_t *tiles, uint64_t *rest);
// `weight_bytes` of frit_backend.
frit_status frit_cuda_weight_bytes(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
void frit_cuda_tensors_free(frit_cuda_device *device);
