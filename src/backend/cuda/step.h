// SPDX-License-Identifier: MIT
// backend/cuda/step.h: a step as launches see it, and where the operands of a launch lie. Addresses that differ from
// step to step are stored as a kind of memory and an offset in it, and resolved when the step is launched.
#pragma once
#include "backend/cuda/device.h"

typedef enum frit_cuda_where {
    FRIT_CUDA_NOWHERE,    // address 0: the operand is absent
    FRIT_CUDA_FIXED,      // an address: of weights, constants or the cache
    FRIT_CUDA_SCRATCH,    // an offset in the device's scratch memory
    FRIT_CUDA_INPUTS,     // an offset in the plan's inputs, which are results of other devices
    FRIT_CUDA_STEP,       // one of the step's arrays (frit_cuda_step_array)
    FRIT_CUDA_WORK,       // an offset in the device's work memory
    FRIT_CUDA_STREAMED,   // an offset in the executable's stream buffer (weight_stream.h)
} frit_cuda_where;

typedef enum frit_cuda_step_array {   // arrays of a step's input on the GPU
    FRIT_CUDA_TOKENS,
    FRIT_CUDA_POSITIONS,   // [n_rows]: index of the row's key and value in the page table
    FRIT_CUDA_ANGLES,      // [n_rows]: batch->positions, from which rotations are computed
    FRIT_CUDA_OUT_ROWS,
    FRIT_CUDA_SEQ_OF,         // [n_rows]: the sequence of each row
    FRIT_CUDA_SEQS,           // frit_gpu_seq [n_seqs]
    FRIT_CUDA_PAGES,          // page tables of all groups
    FRIT_CUDA_ROW_TILES,      // frit_row_tile [n_row_tiles]: up to 64 rows each of a sequence of several rows
    FRIT_CUDA_SHARED_TILES,   // frit_shared_tile [n_shared_tiles] (shared_pages.h)
    FRIT_CUDA_SHARED_PAGES,   // [n_single_rows]: pages that the row shares
    FRIT_CUDA_PICKS,          // frit_gpu_pick [n_picks]
    FRIT_CUDA_LISTS,          // biases, counts and masks that picks point to
    FRIT_CUDA_SCALES,         // f32 [n_seqs, n_adapters]
    FRIT_CUDA_STEP_ARRAYS
} frit_cuda_step_array;

typedef struct frit_cuda_address {
    frit_cuda_where where;
    uint64_t at;
} frit_cuda_address;

typedef struct frit_cuda_step {
    const frit_batch *batch;
    uint64_t arrays[FRIT_CUDA_STEP_ARRAYS];
    int32_t page_stride;   // entries of a row of the GPU's page tables: a power of two
    int32_t n_row_tiles;
    int32_t n_single_rows;   // rows at the beginning that are in no row tile
    int32_t shared_group;    // group of layers whose pages are read once for several rows; -1: none
    int32_t n_shared_tiles;
    int32_t n_picks, n_passes;   // launched with the step's other kernels; 0: launched later
    uint64_t scratch, inputs, work, streamed;
    uint64_t picked, picks;   // tokens that the step before picked, and that this one picks
} frit_cuda_step;

static inline uint64_t frit_cuda_resolve(const frit_cuda_step *step, frit_cuda_address a)
{
    switch (a.where) {
    case FRIT_CUDA_FIXED:
        return a.at;
    case FRIT_CUDA_SCRATCH:
        return step->scratch + a.at;
    case FRIT_CUDA_INPUTS:
        return step->inputs + a.at;
    case FRIT_CUDA_STEP:
        return step->arrays[a.at];
    case FRIT_CUDA_WORK:
        return step->work + a.at;
    case FRIT_CUDA_STREAMED:
        return step->streamed + a.at;
    default:
        return 0;
    }
}

// Rows that the node has in the step.
static inline int64_t frit_cuda_rows(const frit_node *node, const frit_batch *batch)
{
    return node->rows == FRIT_SHAPE_BATCH  ? batch->n_rows
           : node->rows == FRIT_SHAPE_OUTS ? batch->n_outs
                                           : node->shape[0];
}
