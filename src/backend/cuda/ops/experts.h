// SPDX-License-Identifier: MIT
// backend/cuda/ops/experts.h: mixtures of experts. Routes are computed and read on the GPU; the host never knows them.
#pragma once
#include "backend/cuda/device.h"

// A route, and the memory for its assignments sorted by expert (dispatch.cu).
typedef struct frit_cuda_dispatch {
    const frit_node *route;
    uint64_t groups, order;   // 0: no launch of the plan sorts assignments
    int group_rows;           // assignments of a group, at most
} frit_cuda_dispatch;

// A product with matrices of experts (experts.cu, experts_rows.cu). Operands of the launch: 0 rows, 1 tiles, 2 route,
// 3 residual.
typedef struct frit_cuda_experts {
    frit_cuda_kernel *each;       // one block row for each assignment, or for each row with is_sum
    frit_cuda_kernel *groups;     // for groups of assignments; NULL: none
    frit_cuda_kernel *rows;       // for groups of assignments, in f16; runs instead of the others; NULL: none
    frit_cuda_kernel *convert;    // input of `rows` to f16 (gemm.cu)
    uint64_t converted, scales;   // results of `convert`: offsets in the device's work memory
    int k;                        // columns
    bool has_own_rows;            // the input has a row for each assignment
    frit_cuda_kernel *mix;        // adds the results of assignments; NULL: they are not added
    bool is_sum;                  // `each` adds them itself
    int n_used, parts, width;     // experts of a row; parts of a group; numbers of a row of results
    uint64_t expert_bytes;
    frit_cuda_dispatch dispatch;
} frit_cuda_experts;

// Shape of a product with matrices of experts (kernels/experts.cu).
typedef struct frit_cuda_experts_product {
    frit_dtype dtype;
    int rows, k, n_tiles;   // row tiles of an expert
    int n_used;             // experts of a row
    int parts;              // parts of a group of assignments, of `rows` assignments each
    int grid;               // blocks of threads that share an expert; 0: chosen
    frit_act act;           // of the gate, with is_gated
    bool is_gated;          // weights in FRIT_CUDA_ORDER_GATED
    bool is_sum;            // results are added over the experts of a row; only with one row (rows == 1)
    bool adds;              // with is_sum: a residual is added too
    bool has_own_rows;      // each assignment has a row of the input; otherwise each row
    bool is_weighed;        // rows of the input are multiplied with the weights of the route
    bool is_by_heads;       // n_used heads in place of experts, all of which each row has
} frit_cuda_experts_product;
frit_status frit_cuda_experts_kernel(const frit_cuda_experts_product *product, const frit_cuda_gpu *gpu,
                                     frit_cuda_kernel *kernel);
frit_status frit_cuda_route_kernel(const frit_route *route, int n_scores, frit_cuda_kernel *kernel);

bool frit_cuda_route_fits(const frit_node *node);
uint64_t frit_cuda_route_bytes(const frit_node *route);    // bytes that a plan allocates for it
uint64_t frit_cuda_experts_bytes(const frit_node *node);   // bytes of work memory
bool frit_cuda_experts_fit(const frit_node *node);
frit_status frit_cuda_lower_route(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_experts(frit_exec *exec, const frit_node *node);
// Lowers the node, adds `residual` (NULL: nothing), and stores the sum as `result`.
frit_status frit_cuda_lower_experts_to(frit_exec *exec, const frit_node *node, const frit_node *residual,
                                       const frit_node *result);
frit_status frit_cuda_lower_heads_product(frit_exec *exec, const frit_node *node);   // HEADS
// Rows of a stack of matrices that the node reads as source i; zero: it reads a single matrix.
frit_cuda_cut frit_cuda_cut_of(const frit_node *node, int source);
