// SPDX-License-Identifier: MIT
// graph/batch.h: the input of one step: rows taken from many sessions, and where their cached state lies.
//
// A row is one token at one position of one session. Rows of a session are neighbours and form a run:
//
//     rows   0 1 2 | 3 | 4 5 6 7 ...          runs   {first_row 0, n_rows 3, n_past 17, pages} {3, 1, ...} ...
//
// Keys and values live in pages of FRIT_PAGE_TOKENS positions; a run's page table maps its session's positions to
// pages: position p is in pages[p / FRIT_PAGE_TOKENS], at p % FRIT_PAGE_TOKENS.
//
// Recurrent layers keep a state instead, as large after ten tokens as after a million: f32 numbers in the slot that the
// session holds in every such layer. It is that after n_past tokens; of a run with n_past 0 it is zero, whatever the
// slot holds.
#pragma once
#include "quant/dtype.h"

enum { FRIT_PAGE_TOKENS = 32 };

typedef struct frit_run {
    int32_t first_row, n_rows;
    int32_t n_past;         // positions already in the cache; the run's first row is position n_past
    const int32_t *pages;   // page numbers, for n_past + n_rows positions
    int32_t slot;           // of the session's states
    int32_t n_copied;       // after so many of its rows the states are also written to `copy_slot`; 0: they are not
    int32_t copy_slot;
    // How much of each adapter of the plan its rows have; 0: nothing. NULL: none of them.
    const float *scales;
    // Of encoder-decoders: the encoded source, whose keys and values cross attention looks at.
    const int32_t *source_pages;
    int32_t n_source;   // positions
} frit_run;

// A row of results, as it leaves a step.
typedef struct frit_taken {
    float *copy;        // where it also goes; NULL: nowhere
    _Atomic bool bad;   // set by the step: some number is not finite
} frit_taken;

typedef struct frit_batch {
    int32_t n_rows, n_outs, n_runs;
    const int32_t *tokens;      // [n_rows]
    const int32_t *positions;   // [n_rows]
    const int32_t *out_rows;    // [n_outs]: the rows whose logits are wanted, ascending
    const frit_run *runs;       // [n_runs]
    frit_taken *taken;          // [n_outs], or NULL: not requested
} frit_batch;

// What one layer keeps between steps: keys and values of positions, a state of n_state numbers, both, or neither.
typedef enum frit_cache_kind { FRIT_CACHE_NONE, FRIT_CACHE_KV } frit_cache_kind;

typedef struct frit_cache_spec {
    frit_cache_kind kind;
    int32_t n_head_kv, k_dim, v_dim;   // of one position: k [n_head_kv, k_dim], v [n_head_kv, v_dim]
    int32_t window;                    // positions that are ever looked back at, the own one included; 0: all
    int32_t n_state;                   // numbers of a session's state; what they are is up to the ops of the layer
    bool v_in_k;                       // values are the first v_dim numbers of keys and lie there
    int32_t index_dim;                 // numbers by which a position is chosen (op choose); 0: none
} frit_cache_spec;

// The keys or the values of one layer: page i starts at pages + i * page_bytes (other layers lie between) and holds
// rows of `dim` numbers, [n_head_kv, FRIT_PAGE_TOKENS]. Coarse types spread outliers first: each row is written after
// frit_hadamard over blocks of `mix` numbers. Scores do not notice if the query is mixed too; a sum of values is mixed
// back.
//
// Transposed keys lie in a page as [n_head_kv, dim, FRIT_PAGE_TOKENS]: products with a few queries then need no sum
// across lanes, and add in the order in which products with many queries do.
typedef struct frit_cache_side {
    frit_dtype dtype;
    bool transposed;   // of types without blocks only
    int32_t dim;
    int32_t mix;   // a power of two; 1: rows are written as they are
    uint8_t *pages;
    uint64_t page_bytes, row_bytes;
} frit_cache_side;

typedef struct frit_cache_layer {
    frit_cache_spec spec;
    frit_cache_side k, v;
    frit_cache_side index;   // one head, of the type of keys
    float *states;           // [n_slots, spec.n_state]
} frit_cache_layer;

typedef struct frit_cache {
    const frit_cache_layer *layers;   // [n_layers]
    int32_t n_layers, n_pages;
} frit_cache;
