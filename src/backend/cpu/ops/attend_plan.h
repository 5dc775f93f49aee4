// SPDX-License-Identifier: MIT
// backend/cpu/ops/attend_plan.h: how the attention of a step is cut into items that do not depend on the number of
// threads:
//
//     sequence - block of rows - head of the cache - chunk of positions
//
// A chunk has sums of its own, which are folded together in the order of the positions. Chunks begin at fixed positions
// of a text, so a result is the same whatever else the step holds and however the text is cut into steps. (In bf16,
// the length of the sequence decides.) The step only decides which thread computes the chunks: if there is memory for
// their sums, each chunk is an item, and frit_fast_attend_merge folds. If a step has enough items without, one item
// computes a block's chunks one after the other and folds them.
//
//     for (frit_attend_walk w = frit_attend_walk_begin(task); frit_attend_walk_next(&w);)
//         ... w.block ...
#pragma once
#include "backend/cpu/ops/attend.h"

enum {
    FRIT_ATTEND_CHUNKS = 128,         // chunks of a block that may be separate items
    FRIT_ATTEND_CHUNKED_ROWS = 512,   // rows x chunks of a step with sums in shared memory
    FRIT_ATTEND_TILE_QUERIES = 384,   // queries of a block, unless one group alone has more
};

typedef struct frit_attend_block {   // neighbouring rows of one sequence
    const frit_seq *seq;
    int64_t first, n_rows;   // rows of the sequence
    frit_range seen;         // positions that some row looks at; memory before them is undefined
    int64_t chunk;           // bf16: positions of a chunk, counted from the page of seen.begin; else 0
    int64_t first_chunk;     // not bf16: the first chunk, counted from the start of the text
    int64_t n_chunks;
    int64_t sums;   // index of the sums of its chunks in shared memory; -1: the block is one item for each head
    int64_t n_items;
} frit_attend_block;

// Pages of a sequence whose keys and values are stored as tiles, one head after the other.
typedef struct frit_attend_tiled {
    frit_range seen;   // positions
    frit_range pages;
    int64_t first;   // index of the first tile in shared memory, in pages
} frit_attend_tiled;

typedef struct frit_attend_walk {   // over the blocks of a step
    const frit_task *task;
    frit_attend_shape shape;
    int seq;                   // sequence of the next block
    int64_t next_row;          // its first row
    int64_t block_rows;        // rows of the blocks of this sequence
    int64_t n_sums;            // rows x chunks with sums in shared memory so far
    int64_t n_tiled;           // pages x heads of the cache with tiles in shared memory so far
    frit_attend_tiled tiled;   // tiles of this sequence
    frit_attend_block block;   // the current block
} frit_attend_walk;

frit_attend_walk frit_attend_walk_begin(const frit_task *task);
bool frit_attend_walk_next(frit_attend_walk *w);   // moves to the next block; false at the end

// How rows of a sequence are computed. Depends on the length of the sequence only, so the last row of a prompt sums in
// the same order as the rows before it.
const frit_attend_way *frit_attend_way_of(const frit_attend_walk *w, const frit_seq *seq);
// True if rows of this sequence look at chosen positions only. While all positions can be chosen, all are looked at.
bool frit_attend_is_sparse(const frit_attend_walk *w, const frit_seq *seq);
frit_range frit_attend_block_chunk(const frit_attend_block *b, int64_t i);   // positions of chunk i
// The most pages x heads of a node that are stored as tiles.
int64_t frit_attend_tile_pages(const frit_node *node, const frit_kernels *kernels);
