// SPDX-License-Identifier: MIT
// graph/batch.h: the input of one step: rows of many sessions, and the addresses of their cached state.
//
// A row is one token at one position of one session. The rows of a session are consecutive and form a sequence:
//
//     rows   0 1 2 | 3 | 4 5 6 7 ...          seqs   {first_row 0, n_rows 3, n_past 17} {3, 1, ...} ...
//
// Keys and values are stored in pages of FRIT_PAGE_TOKENS positions. Layers with the same attention window form a group
// with its own pages. A sequence has a page table for each group: position p is in page table[p / FRIT_PAGE_TOKENS], at
// p % FRIT_PAGE_TOKENS. Tables and scales are arrays of the batch, so that a step's input contains no pointers.
//
// Recurrent layers have a state of constant size instead: f32 values at an index that the session has in every such
// layer. It is the state after n_past tokens; with n_past 0 it counts as zero, whatever its memory holds.
//
// A batch points to its arrays. frit_batch_pack copies all of it to one block without pointers, for a device that runs
// the step later; frit_batch_view finds the arrays in such a block.
#pragma once
#include "quant/dtype.h"
#include "sample/pick.h"

#include <assert.h>

enum { FRIT_PAGE_TOKENS = 32 };

// The arithmetic of a sequence's rows. Kernels for prompts are faster with many rows and round differently from the
// kernels for decoding, so a row's class depends on its own session alone, never on what else runs in the step: results
// do not change with other sessions. A session is of a class while it has frit_device_info.least_rows[class] queued
// tokens or more; a long prompt stays one until all of it has run, however it is cut into steps. Steps have decode rows
// or prefill rows (long or not) or, where every device can mix the classes, decode rows first and prefill rows after
// them.
typedef enum frit_row_class {
    FRIT_ROWS_DECODE,         // single tokens, drafts and short prompts
    FRIT_ROWS_PREFILL,        // prompts: products by other kernels
    FRIT_ROWS_LONG_PREFILL,   // long prompts: attention by other kernels too
    FRIT_ROW_CLASSES
} frit_row_class;

typedef struct frit_seq {
    int32_t first_row, n_rows;
    int32_t n_past;     // tokens already in the cache; its first row is at position n_past
    int32_t state;      // index of the session's states in every recurrent layer
    int32_t n_copied;   // after n_copied rows the states are also written to index copy_state; 0: no copy
    int32_t copy_state;
    int32_t n_source;    // encoder-decoders: positions of the encoded source
    int32_t row_class;   // frit_row_class
} frit_seq;

typedef struct frit_batch {
    int32_t n_rows, n_outs, n_seqs;
    const int32_t *tokens;      // [n_rows]: ids, or ~i: the token of pick i of the previous step
    const int32_t *positions;   // [n_rows]: row k of a sequence has position n_past + k
    const int32_t *out_rows;    // [n_outs]: rows whose logits are computed, ascending
    // In steps that mix row classes: the first n_decode_rows rows, whole sequences, are decode rows, and the first
    // n_decode_outs outputs are theirs. 0 in other steps, whose rows are all of the plan's class.
    int32_t n_decode_rows, n_decode_outs;
    const frit_seq *seqs;   // [n_seqs]
    // [n_groups, n_seqs, page_stride]: page numbers; -1: no page, because no row of the step looks at its positions.
    const int32_t *pages;
    int32_t n_groups, page_stride;
    // [n_seqs, n_adapters]: scale of each adapter for the rows of a sequence; 0: off. NULL: all are off.
    const float *scales;
    int32_t n_adapters;
    const frit_pick *picks;   // [n_picks]: tokens to sample from rows of the output
    int32_t n_picks;
    frit_pick_lists lists;   // lists of the picks; `saved` is scratch of the device, `tops` are in the step's output
} frit_batch;

uint64_t frit_batch_bytes(const frit_batch *batch);           // bytes of the block
void frit_batch_pack(void *block, const frit_batch *batch);   // aligned to FRIT_BATCH_ALIGN
frit_batch frit_batch_view(void *block);
enum { FRIT_BATCH_ALIGN = 16 };

// A row of results at the end of a step.
typedef struct frit_out_row {
    float *copy;        // a further copy on the host; NULL: none
    _Atomic bool bad;   // the step sets it if some value is not finite
    bool is_late;       // frit_backend.pick may pick from the row after the step, and finds values that are not finite
} frit_out_row;

// The page table of a sequence of the batch.
static inline const int32_t *frit_batch_pages(const frit_batch *batch, int32_t group, const frit_seq *seq)
{
    assert(group < batch->n_groups && seq >= batch->seqs && seq < batch->seqs + batch->n_seqs);
    return batch->pages + ((int64_t)group * batch->n_seqs + (seq - batch->seqs)) * batch->page_stride;
}

// The memory of one layer between steps: keys and values of positions, a state of n_state f32 values, both, or neither.
typedef enum frit_cache_kind { FRIT_CACHE_NONE, FRIT_CACHE_KV } frit_cache_kind;

typedef struct frit_cache_spec {
    frit_cache_kind kind;
    int32_t n_head_kv, k_dim, v_dim;   // one position has k [n_head_kv, k_dim] and v [n_head_kv, v_dim]
    int32_t window;                    // attention window, including the own position; 0: all positions
    int32_t n_state;                   // f32 values of a session's state; the ops of the layer define them
    bool v_in_k;                       // values are the first v_dim elements of keys
    int32_t index_dim;                 // elements of an index key (op choose); 0: none
    bool of_source;                    // positions of an encoder-decoder's source instead of the text
    int32_t n_parts;                   // equal parts of the heads that the ranks of a group have; 0, 1: all heads each
} frit_cache_spec;

// The keys or the values of one layer: page i starts at pages + i * page_bytes, with other layers between, and has rows
// of `dim` elements, [n_head_kv, FRIT_PAGE_TOKENS]. Quantized types spread outliers first: each row is written after
// frit_hadamard over blocks of `hadamard` elements. Scores do not change if the query is transformed too; a sum of
// values is transformed back.
//
// A transposed side has pages of [n_head_kv, dim, FRIT_PAGE_TOKENS]. CPUs transpose keys: products with a few queries
// then need no sum across lanes, and add in the same order as products with many queries.
typedef struct frit_cache_side {
    frit_dtype dtype;
    bool transposed;        // only types without blocks
    bool file_transposed;   // transposed in session files
    int32_t dim;
    int32_t hadamard;   // block size, a power of two; 1: rows are written as they are
    uint64_t offset;    // offset of page 0 in the cache's memory
    uint8_t *pages;     // address of page 0; NULL if devices set it in their copies of the layers (frit_cache.memory)
    uint64_t page_bytes, row_bytes;
} frit_cache_side;

typedef struct frit_cache_layer {
    frit_cache_spec spec;
    int32_t group;   // index of its page tables
    frit_cache_side k, v;
    frit_cache_side index;   // index keys: one head, in the type of keys
    uint64_t states_offset;
    float *states;   // [n_states, spec.n_state]
} frit_cache_layer;

// The cache as a device sees it: all layers, of which some are in its memory.
typedef struct frit_cache {
    const frit_cache_layer *layers;   // [n_layers]
    int32_t n_layers;
    struct frit_memory *memory;   // backend.h; NULL: the layers have addresses
} frit_cache;
