// SPDX-License-Identifier: MIT
// backend/cuda/ops/gemm_tiles.h: shared by the gemms that read weights as tiles (gemm_small.h, gemm_wgmma.h): their
// segments, and the list of candidates that are cheapest by an estimate.
#pragma once
#include "backend/cuda/ops/product.h"

// FRIT_E_UNSUPPORTED: k is no multiple of 32, or a type has no tiles or 32 bits.
frit_status frit_cuda_gemm_check(int k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS]);
// Bytes of the largest tile of the segments.
int frit_cuda_gemm_tile_bytes(const frit_cuda_segment segments[FRIT_GPU_SEGMENTS]);
// Groups of `group` row tiles; the last group of a segment may have fewer.
int frit_cuda_gemm_groups(const frit_cuda_segment segments[FRIT_GPU_SEGMENTS], int group);
// Defines TYPE0, TILES0, TYPE1, TILES1 and K. Without a second segment TYPE1 is the first one's type.
void frit_cuda_gemm_define(frit_cuda_kernel *kernel, int k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS]);

// The cheapest candidates, in ascending order of cost.
typedef struct frit_cuda_cheapest {
    void *items;     // [most] of item_bytes each
    double *costs;   // [most]
    size_t item_bytes;
    int n, most;
} frit_cuda_cheapest;

void frit_cuda_cheapest_add(frit_cuda_cheapest *list, const void *item, double cost);
