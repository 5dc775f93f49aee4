// SPDX-License-Identifier: MIT
// backend/cuda/runtime/kernel.h: a kernel: what to compile, and how to launch it.
//
//     frit_cuda_kernel kernel = {.file = "take_rows.cu", .name = "take_rows", .grid = {1, 1, 1}, .threads = 256};
//     frit_cuda_define(&kernel, "WIDTH", 4096);
//     frit_cuda_kernel *all[] = {&kernel};
//     FRIT_TRY(frit_cuda_kernels_make(&gpu, &compiler, pool, all, 1));
//     FRIT_TRY(frit_cuda_kernel_launch(&gpu, &kernel, stream, &args, FRIT_CUDA_OVERLAPPING));
//     frit_cuda_kernels_free(&gpu, all, 1);
#pragma once
#include "backend/cuda/runtime/compile.h"
#include "backend/cuda/runtime/driver.h"

enum { FRIT_CUDA_MAX_DEFINES = 40 };

typedef struct frit_cuda_kernel {
    const char *file, *name;   // file in kernels/; function
    char defines[FRIT_CUDA_MAX_DEFINES][40];
    int n_defines;
    unsigned grid[3], threads, shared_bytes;
    // Set by frit_cuda_kernels_make:
    frit_cuda_module module;
    frit_cuda_function function;
} frit_cuda_kernel;

void frit_cuda_define(frit_cuda_kernel *kernel, const char *name, int64_t value);
// Compiles and loads all kernels, or none if one fails.
frit_status frit_cuda_kernels_make(const frit_cuda_gpu *gpu, const frit_cuda_compiler *compiler, frit_pool *pool,
                                   frit_cuda_kernel *const *kernels, size_t n);
void frit_cuda_kernels_free(const frit_cuda_gpu *gpu, frit_cuda_kernel *const *kernels, size_t n);
typedef enum frit_cuda_launch_order {
    FRIT_CUDA_IN_ORDER,     // starts when the kernel before it on the stream has ended
    FRIT_CUDA_OVERLAPPING   // may start before that, which the kernels of a step allow; before sm_90: IN_ORDER
} frit_cuda_launch_order;

// args: the kernel's struct of kernels/args.h.
frit_status frit_cuda_kernel_launch(const frit_cuda_gpu *gpu, const frit_cuda_kernel *kernel, frit_cuda_stream stream,
                                    const void *args, frit_cuda_launch_order order);
