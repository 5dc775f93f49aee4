// SPDX-License-Identifier: MIT
// graph/adapt.h: what adapters add to a model's matrices and hidden states, for those rows of a step whose sessions
// have chosen them.
//
// A low-rank adapter (LoRA) stands beside a matrix w: y = x w^T + scale * (x a^T) b. The model's matrix stays as it
// is. A graph says it in two nodes: ADAPT_DOWN makes h = scale * x a^T, and ADAPT_UP adds h b; fusion joins the latter
// with the product before it. Several adapters of one matrix have their numbers of h in sequence:
//
//     row of h    [ rank of the first | rank of the second | ... ]
//
// A sequence of the batch says by how much its rows have each adapter (frit_batch.scales). Of an adapter that a row has not,
// its numbers of h are neither made nor read, so such a row is to the bit what it would be without any adapter.
#pragma once
#include "format/checkpoint.h"

typedef struct frit_low_rank {
    int32_t adapter;   // whose it is: index in a sequence's scales
    int32_t rank;
    int32_t first;               // its place in a row of h
    float scale;                 // the file's own: alpha / rank
    frit_dtype a_type, b_type;   // F32, F16 or BF16
    const uint8_t *a;            // [rank, n_in]; of experts [n_experts, rank, n_in]; of a table [n_vocab, rank]
    const uint8_t *b;            // [rank, b_width], turned; of experts [n_experts, rank, b_width]
    int64_t b_width;   // numbers of a row of b: more than the result has where its matrix is cut from a larger one
    int64_t b_first;   // where the result's begin
} frit_low_rank;

// What all adapters of an engine add to one matrix.
typedef struct frit_adapted {
    const frit_low_rank *parts;
    int32_t n;
    int32_t n_h;           // numbers in a row of h
    int64_t n_in, n_out;   // of the matrix, or of the rows that are cut from it
} frit_adapted;

// Control vectors of one layer: y = x + the sum of their directions, each times the sequence's scale of its adapter.
typedef struct frit_direction {
    int32_t adapter;
    const float *x;   // [n_embd]
} frit_direction;

typedef struct frit_steering {
    const frit_direction *parts;
    int32_t n;
    int64_t n_embd;
} frit_steering;
