// SPDX-License-Identifier: MIT
// backend/cuda/ops/experts_rows.h: products of experts in f16, for plans of many rows (kernels/experts_rows.cu).
#pragma once
#include "backend/cuda/ops/experts.h"

// For groups of up to product->rows assignments of an expert, a multiple of 8. grid[1] is the number of groups, which
// the caller sets before a launch.
frit_status frit_cuda_expert_rows_kernel(const frit_cuda_experts_product *product, const frit_cuda_gpu *gpu,
                                         frit_cuda_kernel *kernel);
