// SPDX-License-Identifier: MIT
// backend/cuda/group/exchange.h: launches of REDUCE, GATHER and PART, by which the ranks of a group exchange values
// (graph/shard.h, kernels/exchange.cu).
#pragma once
#include "backend/cuda/exec.h"

// `join` of frit_backend.
frit_status frit_cuda_join(frit_device *device, const frit_rank *rank);
bool frit_cuda_exchange_fits(const frit_node *node);
frit_status frit_cuda_lower_exchange(frit_exec *exec, const frit_node *node);
// REDUCE with a residual: `sum` is the ADD of both.
frit_status frit_cuda_lower_reduce(frit_exec *exec, const frit_node *reduce, const frit_node *sum,
                                   const frit_node *residual);
