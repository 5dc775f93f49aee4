// SPDX-License-Identifier: MIT
// backend/cuda/runtime/libraries.h: which libraries of NVIDIA's devices use that are opened next.
#pragma once

// Where the libraries are looked for; NULL: where the system's loader looks. For tests.
typedef struct frit_cuda_libraries {
    const char *driver;   // a file
    const char *nvrtc;    // a folder, as the next ones
    const char *blas;
    const char *cubins;    // in which compiled kernels are kept
    const char *package;   // in which compiled kernels came with frit
} frit_cuda_libraries;
void frit_cuda_use_libraries(const frit_cuda_libraries *libraries);
