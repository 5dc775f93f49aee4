// SPDX-License-Identifier: MIT
// backend/cuda/runtime/sources.h: the files of kernels/, which the build turns into strings
// (cmake/FritKernelSources.cmake).
#pragma once
#include <stddef.h>

typedef struct frit_cuda_source {
    const char *name;   // "product.cu"
    const char *text;
} frit_cuda_source;

extern const frit_cuda_source frit_cuda_sources[];
extern const size_t frit_cuda_n_sources;
