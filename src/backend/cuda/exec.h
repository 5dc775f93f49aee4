// SPDX-License-Identifier: MIT
// backend/cuda/exec.h: a plan as a list of launches. A launch has a kernel, its arguments, of which addresses are
// named by what lies there, and how its grid follows from the rows of a step.
#pragma once
#include "backend/cuda/device.h"
#include "backend/cuda/kernels/args.h"
#include "backend/cuda/matmul.h"

typedef enum frit_cuda_where {
    FRIT_CUDA_NOWHERE,   // address 0
    FRIT_CUDA_FIXED,     // an address: of weights and constants, the cache
    FRIT_CUDA_SCRATCH,   // an offset in the device's scratch memory
    FRIT_CUDA_GIVEN,     // an offset in the plan's inputs
    FRIT_CUDA_STEP,      // one of frit_cuda_step's arrays
    FRIT_CUDA_WORK,      // an offset in the device's work memory
} frit_cuda_where;

typedef enum frit_cuda_step_array {   // a step's input on the GPU
    FRIT_CUDA_TOKENS,
    FRIT_CUDA_POSITIONS,
    FRIT_CUDA_OUT_ROWS,
    FRIT_CUDA_SEQ_OF,   // [n_rows]: the sequence of each row
    FRIT_CUDA_SEQS,     // frit_gpu_seq
    FRIT_CUDA_PAGES,    // all groups
    FRIT_CUDA_STEP_ARRAYS
} frit_cuda_step_array;

typedef struct frit_cuda_address {
    frit_cuda_where where;
    uint64_t at;
} frit_cuda_address;

typedef struct frit_cuda_launch frit_cuda_launch;

typedef struct frit_cuda_step {   // what a launch needs to know of the step
    const frit_batch *batch;
    uint64_t arrays[FRIT_CUDA_STEP_ARRAYS];
    int32_t page_stride;   // of the GPU's page tables: a power of two
    uint64_t scratch, given, work;
} frit_cuda_step;

// The launches of a step as one graph of the driver's. It can be launched again while all that they depend on is the
// same; a change of the key makes it anew.
typedef struct frit_cuda_graph_key {
    int32_t n_rows, n_outs, n_seqs, page_stride;
    uint64_t input, scratch, work;
} frit_cuda_graph_key;

typedef struct frit_cuda_recording {
    frit_cuda_graph_key key;
    frit_cuda_graph_exec graph;   // NULL: the key was seen once
} frit_cuda_recording;

enum { FRIT_CUDA_OPERANDS = 6, FRIT_CUDA_PARTS = 8 };

// A product of a few rows (product.h). Operands: 0 rows, 1 tiles, 2 norm, 3 residual.
typedef struct frit_cuda_few {
    frit_cuda_kernel *parts[FRIT_CUDA_PARTS];   // kernels of parts of the columns
    int n_parts, rows, k, tile_bytes;           // rows at once; columns of a part, and of all
    int whole, n;                               // columns of all, numbers of a row of results
    float epsilon;
} frit_cuda_few;

// A product of many rows (matmul.h). Operands: 0 rows, 1 tiles, 3 residual.
typedef struct frit_cuda_many {
    frit_cuda_matmul *matmul;
    frit_cuda_kernel *convert, *finish;                        // of many_rows.cu
    int k, n, n_products;                                      // columns; rows of the tiles; 2: gates and values
    uint64_t converted, scales, weights, product, workspace;   // offsets in the device's work memory
} frit_cuda_many;

struct frit_cuda_launch {
    // Launches the kernel for the rows of the step.
    frit_status (*run)(frit_cuda_device *device, const frit_cuda_launch *launch, const frit_cuda_step *step);
    const frit_node *node;
    frit_cuda_kernel *kernel;
    frit_cuda_address x[FRIT_CUDA_OPERANDS], y;
    int64_t each;   // numbers, or rows, that a row of the step has
    union {
        frit_plain_args plain;
        frit_embed_rows_args embed;
        frit_cache_args cache;
        frit_attend_plain_args attend;
        frit_cuda_few few;
        frit_cuda_many many;
    };
    int group;   // of page tables
};

struct frit_exec {
    frit_cuda_device *device;
    frit_plan *plan;
    const frit_cache *cache;
    frit_cuda_launch *launches;
    int n_launches, launches_room;
    frit_cuda_matmul **matmuls;   // [n_matmuls], of launches
    int n_matmuls;
    uint64_t work_bytes;                                 // that its launches need
    frit_cuda_recording recordings[FRIT_CUDA_FLIGHTS];   // steps of few rows, by the flight whose input they read
    frit_cuda_memory given;
};

static inline uint64_t frit_cuda_resolve(const frit_cuda_step *step, frit_cuda_address a)
{
    switch (a.where) {
    case FRIT_CUDA_FIXED:
        return a.at;
    case FRIT_CUDA_SCRATCH:
        return step->scratch + a.at;
    case FRIT_CUDA_GIVEN:
        return step->given + a.at;
    case FRIT_CUDA_STEP:
        return step->arrays[a.at];
    case FRIT_CUDA_WORK:
        return step->work + a.at;
    default:
        return 0;
    }
}

// Rows of the node in the step.
static inline int64_t frit_cuda_rows(const frit_node *node, const frit_batch *batch)
{
    return node->rows == FRIT_ROWS_BATCH  ? batch->n_rows
           : node->rows == FRIT_ROWS_OUTS ? batch->n_outs
                                          : node->shape[0];
}

// The launches of a node by itself, and of a phase, in order (ops.c, products.c).
frit_status frit_cuda_lower(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_phase(frit_exec *exec, const frit_phase *phase);
// ops.c
int64_t frit_cuda_width(const frit_node *node);
int64_t frit_cuda_each(const frit_node *node);   // numbers that a row of the step has
frit_status frit_cuda_launch_new(frit_exec *exec, const frit_node *node, frit_cuda_launch **out);
frit_status frit_cuda_address_of(frit_exec *exec, const frit_node *node, bool is_tiled, frit_cuda_address *out);
frit_status frit_cuda_add_plain(frit_exec *exec, const frit_node *node, const char *name, frit_cuda_launch **out);
frit_status frit_cuda_run_kernel(frit_cuda_device *device, const frit_cuda_kernel *kernel, unsigned x, unsigned y,
                                 const void *args);
// products.c
void frit_cuda_matmuls_free(frit_exec *exec);
bool frit_cuda_linear_fits(const frit_node *node);
frit_status frit_cuda_lower_linear(frit_exec *exec, const frit_node *node);
