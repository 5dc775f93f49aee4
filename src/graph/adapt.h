// SPDX-License-Identifier: MIT
// graph/adapt.h: what adapters add to a model's matrices and hidden states, for those rows of a step whose sessions
// have chosen them.
//
// A low-rank adapter (LoRA) stands beside a matrix w: y = x w^T + scale * (x a^T) b. The model's matrix stays as it
// is. One with magnitudes (DoRA) also gives each row of w + scale * b a a length of its own, that is y times a number.
// A graph says it in two nodes: ADAPT_DOWN makes h = scale * x a^T, and ADAPT_UP adds h b; fusion joins the latter
// with the product before it. The nodes name the matrix, and no adapter: which adapters there are is a table that
// devices have (frit_backend.set_adapter), and how much of each a sequence has is a row of the batch
// (frit_batch.scales). So plans stay when adapters come and go. Graphs leave room for the sum of the ranks of a
// sequence's adapters; the elements of h of several follow each other:
//
//     row of h    [ rank of the first | rank of the second | ... | not used ]
//
// Where a row does not have an adapter, that adapter's elements of h are neither computed nor read, so such a row is
// to the bit what it would be without any adapter.
#pragma once
#include "format/checkpoint.h"

// Of ADAPT_DOWN, ADAPT_UP, and products that an ADAPT_UP has become part of.
typedef struct frit_adapted {
    int32_t matrix;      // place in an adapter's list
    int32_t n_h;         // numbers in a row of h
    int64_t first_row;   // of the matrix, where the product is by rows that are cut from a larger one
} frit_adapted;

// What one adapter adds to one matrix.
typedef struct frit_low_rank {
    const frit_tensor
        *a;   // [rank, n_in]; of experts [n_experts, rank, n_in]; of a table [n_vocab, rank]. NULL: nothing
    const frit_tensor *b;   // transposed, [rank, n_out]; of experts [n_experts, rank, n_out]. Both are F32, F16 or BF16
    int32_t rank;
    float scale;   // the file's own: alpha / rank
    // The magnitudes of a DoRA adapter as f32 [n_out], in the model's order of rows; NULL for plain LoRA. A product y
    // becomes y + gain * y + shift before b is added. shift undoes the gain on the product's bias. b includes the gain.
    const frit_tensor *gain, *shift;
} frit_low_rank;

// One adapter: of every matrix of the model, and what it adds to hidden states after each layer (a control vector).
typedef struct frit_adapter_table {
    frit_low_rank *matrices;          // [n_matrices]
    const frit_tensor **directions;   // [n_layers]: f32 [n_embd]; NULL: nothing
    int32_t n_matrices, n_layers;
} frit_adapter_table;
