// SPDX-License-Identifier: MIT
// backend/cuda/runtime/target.h: GPUs that kernels are compiled for on a machine without such a GPU.
//
// The driver of a target has a GPU for each row of gpus.def. Its memory is not there: addresses are never read, copies
// and launches do nothing, and modules have no code. A device on this driver lowers plans and compiles their kernels.
//
//     frit_cuda_driver_open_target(&driver);
//     FRIT_TRY(frit_cuda_gpu_open(&gpu, &driver, frit_cuda_target_find("h100")));
#pragma once
#include "backend/cuda/runtime/driver.h"

typedef struct frit_cuda_target {
    const char *name;
    int arch, n_multiprocessors, shared_kib, l2_mib;
} frit_cuda_target;

const frit_cuda_target *frit_cuda_target_get(size_t i);   // NULL past the end
int frit_cuda_target_find(const char *name);              // the row of a name; -1: unknown
void frit_cuda_driver_open_target(frit_cuda_driver *driver);
