// SPDX-License-Identifier: MIT
// backend/cuda/runtime/libraries.h: where devices that are opened next look for NVIDIA's libraries.
#pragma once

// NULL: where the system's loader looks. Tests set paths.
typedef struct frit_cuda_libraries {
    const char *driver;   // a file
    const char *nvrtc;    // a folder
    const char *blas;
    const char *cubins;    // folder: the cache of compiled kernels
    const char *package;   // folder: archives of compiled kernels that came with frit
} frit_cuda_libraries;
void frit_cuda_use_libraries(const frit_cuda_libraries *libraries);
