// SPDX-License-Identifier: MIT
// graph/adapt.h: terms that adapters add to a model's matrices and hidden states, for the rows of a step whose sessions
// have chosen the adapter.
//
// A low-rank adapter (LoRA) adds to the product of a matrix w: y = x w^T + scale * (x a^T) b. The model's matrix does
// not change. An adapter with magnitudes (DoRA) also scales each row of w + scale * b a, that is, it multiplies y. A
// graph has two nodes for it: ADAPT_DOWN computes h = scale * x a^T, and ADAPT_UP adds h b; fusion joins ADAPT_UP with
// the product. The nodes name the matrix but no adapter. Devices have a table of adapters (frit_backend.set_adapter),
// and the batch has the scale of each adapter for each sequence (frit_batch.scales), so plans stay valid when adapters
// are loaded or freed. A row of h has room for the sum of the ranks of a sequence's adapters:
//
//     row of h    [ rank of the first | rank of the second | ... | not used ]
//
// The elements of h of an adapter that a row does not use are neither computed nor read, so such a row has the same
// bits as without any adapter.
#pragma once
#include "format/checkpoint.h"

// Attribute of ADAPT_DOWN, ADAPT_UP, and products that an ADAPT_UP was fused into.
typedef struct frit_adapted {
    int32_t matrix;      // index in an adapter's list
    int32_t n_h;         // elements of a row of h
    int64_t first_row;   // first row of the matrix, if the product uses rows of a larger one
} frit_adapted;

// The term of one adapter for one matrix.
typedef struct frit_low_rank {
    const frit_tensor *a;   // [rank, n_in]; experts: [n_experts, rank, n_in]; a table: [n_vocab, rank]. NULL: no term
    const frit_tensor
        *b;   // transposed, [rank, n_out]; experts: [n_experts, rank, n_out]. a and b are F32, F16 or BF16
    int32_t rank;
    float scale;   // alpha / rank of the file
    // The magnitudes of a DoRA adapter as f32 [n_out], in the model's order of rows; NULL for plain LoRA. A product y
    // becomes y + gain * y + shift before b is added. shift undoes the gain on the product's bias. b includes the gain.
    const frit_tensor *gain, *shift;
} frit_low_rank;

// One adapter: terms for the matrices of the model, and vectors that are added to the hidden states after each layer (a
// control vector).
typedef struct frit_adapter_table {
    frit_low_rank *matrices;          // [n_matrices]
    const frit_tensor **directions;   // [n_layers]: f32 [n_embd]; NULL: none
    int32_t n_matrices, n_layers;
} frit_adapter_table;
