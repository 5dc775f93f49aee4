// SPDX-License-Identifier: MIT
// backend/cuda/runtime/cublaslt.h: cuBLASLt, NVIDIA's library of matrix products, opened at run time if it is
// installed. Prompts use it.
//
//     frit_cublaslt blas;
//     FRIT_TRY(frit_cublaslt_open(&blas, NULL));                  // NULL: where the system's loader looks; or a folder
//     frit_cublaslt_product product;
//     FRIT_TRY(frit_cublaslt_prepare(&blas, &(frit_cublaslt_shape){.n_tokens = 2048, .n_rows = 4096, .k = 14336},
//                                    &product));
//     FRIT_TRY(frit_cublaslt_run(&product, x, weights, y, workspace, stream));
#pragma once
#include "backend/cuda/runtime/driver.h"

typedef struct frit_cublaslt_handle_ *frit_cublaslt_handle;
typedef struct frit_cublaslt_object_ *frit_cublaslt_object;

enum { FRIT_CUBLASLT_WORKSPACE_BYTES = 32 << 20 };

typedef struct frit_cublaslt_choice {   // cublasLtMatmulHeuristicResult_t
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} frit_cublaslt_choice;

typedef struct frit_cublaslt {
    frit_library *library;
    frit_cublaslt_handle handle;
#define CUBLASLT(member, symbol, parameters) int(*member) parameters;
#include "backend/cuda/runtime/cublaslt.def"
#undef CUBLASLT
} frit_cublaslt;

// FRIT_E_NOT_FOUND: not installed. A GPU's context must be current.
frit_status frit_cublaslt_open(frit_cublaslt *blas, const char *folder);
void frit_cublaslt_close(frit_cublaslt *blas);

// y[n_tokens, n_rows] = x[n_tokens, k] times weights[n_rows, k] transposed, in bf16 with sums in f32.
typedef struct frit_cublaslt_shape {
    int n_tokens, n_rows, k;
    bool is_f16;       // x and weights are f16
    bool is_out_f32;   // y is f32; otherwise it has the type of x
    bool adds;         // y += ..
    int choice;   // index of the algorithm, in the order of cuBLASLt's estimate; FRIT_E_UNSUPPORTED: there are fewer
} frit_cublaslt_shape;

enum { FRIT_CUBLASLT_MOST_CHOICES = 8 };

typedef struct frit_cublaslt_product {
    const frit_cublaslt *blas;
    bool adds;
    frit_cublaslt_object desc, weights, x, y;
    frit_cublaslt_choice choice;
} frit_cublaslt_product;

frit_status frit_cublaslt_prepare(const frit_cublaslt *blas, const frit_cublaslt_shape *shape,
                                  frit_cublaslt_product *product);
// workspace: FRIT_CUBLASLT_WORKSPACE_BYTES.
frit_status frit_cublaslt_run(const frit_cublaslt_product *product, uint64_t x, uint64_t weights, uint64_t y,
                              uint64_t workspace, frit_cuda_stream stream);
void frit_cublaslt_product_free(frit_cublaslt_product *product);
