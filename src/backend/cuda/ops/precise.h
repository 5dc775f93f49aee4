// SPDX-License-Identifier: MIT
// backend/cuda/ops/precise.h: graphs whose activations must keep more bits than products of few or many rows give them,
// and the product in f32 that they have (kernels/precise_rows.cu). It needs no tensor cores, so it is the product of
// all graphs where these have none of the shapes that the others use (driver.h).
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/weights/repack.h"
#include "graph/graph.h"

enum { FRIT_CUDA_PRECISE_ROWS = 8 };   // of a block of threads

bool frit_cuda_is_precise(const frit_cuda_gpu *gpu, const frit_graph *graph);
// For any number of rows: grid[1] is theirs by FRIT_CUDA_PRECISE_ROWS.
frit_status frit_cuda_precise_kernel(frit_dtype dtype, int k, int n_tiles, frit_cuda_kernel *kernel);
