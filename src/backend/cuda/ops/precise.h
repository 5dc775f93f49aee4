// SPDX-License-Identifier: MIT
// backend/cuda/ops/precise.h: graphs whose activations need more bits than gemv and gemm keep, and the product in f32
// for them (kernels/precise_rows.cu). It needs no tensor cores, so GPUs without frit_cuda_has_tensor_products use it
// for all graphs.
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/weights/repack.h"
#include "graph/graph.h"

enum { FRIT_CUDA_PRECISE_ROWS = 8 };   // rows that a block of threads multiplies

bool frit_cuda_is_precise(const frit_cuda_gpu *gpu, const frit_graph *graph);
// For any number of rows: the caller sets grid[1] to ceil(rows / FRIT_CUDA_PRECISE_ROWS).
frit_status frit_cuda_precise_kernel(frit_dtype dtype, int k, int n_tiles, frit_cuda_kernel *kernel);
