// SPDX-License-Identifier: MIT
// backend/cuda/ops/linear.h: phases with products, and LINEAR nodes outside of phases. Small plans run them by
// gemv.h, others by gemm.h.
#pragma once
#include "backend/cuda/device.h"

// Products that read the same rows, and what is done to their results.
typedef struct frit_cuda_products {
    const frit_node *node;                           // LINEAR; the products have as many rows as this node
    const frit_node *norm;                           // computed by the product on its rows; NULL: no norm
    int k, n;                                        // columns; rows of the matrices
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    frit_cuda_epilogue epilogue;
    frit_cuda_heads heads;   // FRIT_GPU_QKV
} frit_cuda_products;

// True if the matrix of a LINEAR node can be tiles.
bool frit_cuda_linear_fits(const frit_node *node);
frit_status frit_cuda_lower_linear(frit_exec *exec, const frit_node *node);
// The launches of a phase, in order.
frit_status frit_cuda_lower_phase(frit_exec *exec, const frit_phase *phase);
// `can_join` of frit_backend.
bool frit_cuda_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other);
