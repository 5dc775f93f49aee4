// SPDX-License-Identifier: MIT
// backend/cuda/ops/f16_input.h: results that only gemms read are written in f16, where the node's f32 would be. Each
// row is scaled by a power of two; `scales` has the factors that undo it.
#pragma once
#include "backend/cuda/step.h"

typedef struct frit_cuda_f16_input {
    frit_cuda_address rows;
    frit_cuda_address scales;    // f32 [rows]; FRIT_CUDA_NOWHERE: rows are not scaled
    frit_cuda_address squares;   // f32 [rows]: sums of the squares of each row; FRIT_CUDA_NOWHERE: unknown
} frit_cuda_f16_input;

// A norm whose result is a gemm's input.
typedef struct frit_cuda_f16_norm {
    frit_cuda_kernel *kernel;         // NULL: none
    frit_cuda_kernel *small_kernel;   // for steps of up to FRIT_CUDA_GEMM_SMALL_ROWS rows
    frit_cuda_address weight, bias;
    frit_cuda_f16_input y;
    float epsilon;
} frit_cuda_f16_norm;

// Rows of a slab (kernels/include/slabs.cuh) of a gemm's input that has n_rows rows of `width`; 0: rows follow each
// other. What writes the input and what reads it both call this.
int frit_cuda_slab_rows(const frit_cuda_device *device, int64_t width, int64_t n_rows);
// Bytes of the rows of a gemm's input of up to max_rows rows, in slabs or not.
uint64_t frit_cuda_f16_input_bytes(const frit_cuda_device *device, int64_t width, int64_t max_rows);
// True if gemms are the only readers of the node's rows. The lowering of the node may then write f16, and sets
// exec->is_f16_input.
bool frit_cuda_feeds_gemm(const frit_exec *exec, const frit_node *node);
// Where the node's f16 rows, scales and squares lie.
frit_cuda_f16_input frit_cuda_f16_input_of(const frit_exec *exec, const frit_node *node);
const frit_cuda_kernel *frit_cuda_f16_norm_kernel(const frit_cuda_f16_norm *norm, int64_t n_rows);
// Adds the norm to the gemm that computes its rows, if it can, and otherwise as a launch.
frit_status frit_cuda_lower_f16_norm(frit_exec *exec, const frit_node *norm);
