// SPDX-License-Identifier: MIT
// backend/cuda/ops/cache.h: writing the cache and attention to it, in all of its types, by kernels without tensor cores
// (plain_cache.cu). heads.h and attend.h are faster where they apply.
#pragma once
#include "backend/cuda/device.h"

int frit_cuda_cache_kind(frit_dtype dtype);   // FRIT_GPU_CACHE_F16 ...; -1: GPUs do not read the type
bool frit_cuda_cache_fits(const frit_node *node);
frit_status frit_cuda_lower_cache_write(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_cache_attend(frit_exec *exec, const frit_node *node);
// Bytes that a plan allocates for a CHOOSE node.
uint64_t frit_cuda_choose_bytes(const frit_node *choose);
frit_status frit_cuda_lower_choose(frit_exec *exec, const frit_node *node);
