// SPDX-License-Identifier: MIT
// backend/cuda/ops/adapt.h: adapters on a GPU. Kernels find an adapter's matrices in a table, by the index of the
// adapter and of the matrix (kernels/adapt.cu), so plans stay valid when adapters are added and removed.
#pragma once
#include "backend/cuda/device.h"

typedef struct frit_cuda_adapters {
    uint64_t *memory;                   // [n]: the matrices of adapter i; 0: no adapter
    frit_gpu_low_rank *parts;           // [n, n_matrices]
    uint64_t *directions;               // [n, n_layers]
    uint64_t parts_on, directions_on;   // copies of parts and directions on the GPU
    int32_t n, n_matrices, n_layers;
} frit_cuda_adapters;

frit_status frit_cuda_set_adapter(frit_device *device, int32_t i, const frit_adapter_table *adapter);
void frit_cuda_adapters_free(frit_cuda_device *device);
bool frit_cuda_adapt_fits(const frit_node *node);
frit_status frit_cuda_lower_adapt(frit_exec *exec, const frit_node *node);
// Adds to the results of a product what adapters add to them.
frit_status frit_cuda_lower_adapted(frit_exec *exec, const frit_node *linear);
