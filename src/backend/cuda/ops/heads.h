// SPDX-License-Identifier: MIT
// backend/cuda/ops/heads.h: queries, keys and values of a layer: their product, and bias, norm, rotation and cache
// writes that follow it.
#pragma once
#include "backend/cuda/step.h"

struct frit_cuda_products;

typedef struct frit_cuda_heads_phase {
    const frit_node *products[3];           // LINEAR: of queries, keys, values
    const frit_node *norms[2], *ropes[2];   // of queries, keys; NULL: none
    const frit_node *write, *query, *attend;
    int n_heads, n_kv_heads, head_size;
} frit_cuda_heads_phase;

// A launch of heads_rows.cu. Operands: 0 results of the product, 1 a scale for each row of them, 2 and 3 norms of
// queries and keys, 4 the rope table.
typedef struct frit_cuda_heads_args {
    bool follows_gemm;   // the launch before it is the product, and a gemm
    uint64_t bias[3];    // of queries, keys, values; 0: none
    uint64_t keys, values;
    float epsilon, query_scale;
} frit_cuda_heads_args;

typedef struct frit_cuda_rope_table {   // cosines and sines of a step's positions
    uint64_t frequency, factor;
    int rotated;
    float magnitude;
    uint64_t table;   // f32 [rows, rotated / 2, 2]
} frit_cuda_rope_table;

// True if the phase computes queries, keys and values in a way that heads.c supports; then *heads describes it.
bool frit_cuda_is_heads(const frit_exec *exec, const frit_phase *phase, frit_cuda_heads_phase *heads);
bool frit_cuda_is_of_heads(const frit_cuda_heads_phase *heads, const frit_fusion *fusion);
// Describes the product of the phase, which computes `norm` first (NULL: no norm).
void frit_cuda_describe_heads(const frit_exec *exec, const frit_cuda_heads_phase *heads, const frit_node *norm,
                              struct frit_cuda_products *out);
frit_status frit_cuda_lower_heads(frit_exec *exec, const frit_cuda_heads_phase *heads, const frit_node *norm);
