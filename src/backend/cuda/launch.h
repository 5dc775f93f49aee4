// SPDX-License-Identifier: MIT
// backend/cuda/launch.h: a launch: a function that launches kernels for the rows of a step, its operands, and what the
// op needs to know. A plan is a list of launches (exec.h).
#pragma once
#include "backend/cuda/ops/attend.h"
#include "backend/cuda/ops/experts.h"
#include "backend/cuda/ops/gemm.h"
#include "backend/cuda/ops/gemv.h"
#include "backend/cuda/ops/heads.h"

enum { FRIT_CUDA_MATRICES = 3, FRIT_CUDA_OPERANDS = 6 };

typedef struct frit_cuda_launch frit_cuda_launch;

struct frit_cuda_launch {
    // Launches kernels for the rows of the step.
    frit_status (*run)(frit_cuda_device *device, const frit_cuda_launch *launch, const frit_cuda_step *step);
    const frit_node *node;
    frit_cuda_kernel *kernel;
    const frit_tensor *matrices[FRIT_CUDA_MATRICES];   // matrices that are read as a whole; for profiles
    frit_cuda_address x[FRIT_CUDA_OPERANDS], y;
    int64_t each;   // numbers of a row of the node
    union {         // which one: `run` knows
        frit_plain_args plain;
        frit_cache_args cache;
        frit_attend_plain_args attend;
        frit_choose_args choose;
        frit_recurrent_args recurrent;
        frit_adapt_args adapt;
        frit_cuda_gemv gemv;
        frit_cuda_gemm gemm;
        frit_cuda_f16_norm norm;
        frit_cuda_heads_args heads;
        frit_cuda_attend_fast attend_fast;
        frit_cuda_experts experts;
        frit_cuda_kernel *exchange_small;   // of REDUCE, for few numbers
    };
    int group;   // of page tables
};

int64_t frit_cuda_width(const frit_node *node);       // the last dimension
int64_t frit_cuda_row_elems(const frit_node *node);   // numbers of a row of the node
// Adds a launch to the plan. It stays where it is until the next one is added.
frit_status frit_cuda_launch_new(frit_exec *exec, const frit_node *node, frit_cuda_launch **out);
// Where the numbers of a node lie; weights are loaded if they are not there yet.
frit_status frit_cuda_address_of(frit_exec *exec, const frit_node *node, bool is_tiled, frit_cuda_address *out);
// A kernel without defines, built with the plan's others.
frit_status frit_cuda_kernel_get_named(frit_exec *exec, const char *file, const char *name, unsigned threads,
                                       unsigned shared, frit_cuda_kernel **out);
// Launches a kernel with a grid of x * y blocks after the one before it has ended.
frit_status frit_cuda_run_kernel(frit_cuda_device *device, const frit_cuda_kernel *kernel, unsigned x, unsigned y,
                                 const void *args);
// The page tables of the launch's group.
uint64_t frit_cuda_pages_of(const frit_cuda_launch *launch, const frit_cuda_step *step);
