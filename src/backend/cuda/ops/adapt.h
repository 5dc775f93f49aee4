// SPDX-License-Identifier: MIT
// backend/cuda/ops/adapt.h: adapters on a GPU: their matrices in its memory, and a table by slot and matrix that
// kernels read (kernels/adapt.cu), so that plans stay when adapters come and go.
#pragma once
#include "backend/cuda/device.h"

typedef struct frit_cuda_adapters {
    uint64_t *memory;                   // [n]: the numbers of a slot; 0: it has no adapter
    frit_gpu_low_rank *parts;           // [n, n_matrices]
    uint64_t *directions;               // [n, n_layers]
    uint64_t parts_on, directions_on;   // the same on the GPU
    int32_t n, n_matrices, n_layers;
} frit_cuda_adapters;

frit_status frit_cuda_set_adapter(frit_device *device, int32_t i, const frit_adapter_table *adapter);
void frit_cuda_adapters_free(frit_cuda_device *device);
bool frit_cuda_adapt_fits(const frit_node *node);
frit_status frit_cuda_lower_adapt(frit_exec *exec, const frit_node *node);
// Adds to the results of a product what adapters add to them.
frit_status frit_cuda_lower_adapted(frit_exec *exec, const frit_node *linear);
