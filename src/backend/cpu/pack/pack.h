// SPDX-License-Identifier: MIT
// backend/cpu/pack/pack.h: matrices in the order in which vector kernels read them: sixteen rows at a time.
//
// A packed matrix is a list of panels of 16 rows; missing rows of the last one are zeros. A panel holds the blocks of
// its rows, interleaved: first the 4-byte words that the type's row of the table names, word 0 of all 16 rows, then
// word 1, ..; then what is left of the blocks, 16 times (mostly a half-precision scale):
//
//     q4_0 in a file     d0 d0 q0 q0 q0 q0 q1 q1 q1 q1 ..           one row, blocks of 18 bytes
//     packed             q0 of rows 0..15 | q1 of rows 0..15 | q2 | q3 | d of rows 0..15             288 bytes
//
// So one vector register holds the same four columns of 16 rows, or of 8 rows in each half. Kernels read a panel from
// front to back. For most types a panel has the size of its rows in the file, and packing moves bytes and computes
// nothing. Types whose blocks hold indices into grids, digits to the base of 3 or bits in another order are recoded on
// the way (quant/recode.c): the same values as plain codes of one to four bits with the same scales, so that kernels
// need no table that is larger than a register. Instruction sets that look up bytes in larger tables keep indices and
// digits (packed_indexed.def): such panels are as small as the file. Floats are not packed: their rows are read as they
// lie, in the file or, where that is faster and they leave room, in a copy in huge pages.
#pragma once
#include "backend/backend.h"
#include "backend/store_cache.h"
#include "backend/cpu/task.h"
#include "base/thread/thread.h"

// How one block of a type is split.
typedef struct frit_interleave {
    const char *name;   // unlike that of any other row
    frit_dtype dtype;
    uint8_t words_at, n_words;     // bytes, words
    uint8_t rest_at, rest_bytes;   // 0, 1 or 2 bytes
    // Makes n_to blocks, each of words and a rest, of n_from blocks of the file first. NULL: blocks as they are.
    void (*recode)(const void *blocks, uint8_t *out);
    uint8_t n_from, n_to;
} frit_interleave;

const frit_interleave *frit_interleave_get(frit_dtype dtype);       // of packed.def; NULL: not packed
const frit_interleave *frit_interleave_indexed(frit_dtype dtype);   // of packed_indexed.def; NULL: it has no row there
// Whether rows of n elements can be packed.
bool frit_pack_fits(const frit_interleave *layout, int64_t n);
// A sixteenth of a panel of rows of n elements.
size_t frit_pack_row_bytes(const frit_interleave *layout, int64_t n);
// The panel of n_rows rows (1..16) of n elements, which lie one after the other: 16 * frit_pack_row_bytes bytes.
void frit_pack_panel(const frit_interleave *layout, const uint8_t *rows, int n_rows, int64_t n, uint8_t *panel);

// ------------------------------------------------------------------------------- the store of packed matrices

// The store (backend/store.h) of the CPU's devices that pack the same types and keep them in the same folder: a matrix
// is packed once, whichever device asks first. What is loaded together is a block; blocks are added and never change,
// so devices find matrices without a lock while another one packs.
typedef struct frit_packs frit_packs;

typedef struct frit_packs_options {
    const frit_kernels *kernels;   // that read panels; NULL: no matrix is packed
    const char *folder;            // of the weights' cache, or NULL
    uint64_t source;               // what the engine knows of the model's files
    const frit_log *log;
    uint64_t most_floats;   // bytes: floats of files that products read are copied if all of them are no more
} frit_packs_options;

frit_status frit_packs_open(frit_packs **out, frit_stores *stores, const frit_packs_options *options);
// Whether linear ops read this matrix packed.
bool frit_packs_want(const frit_kernels *kernels, const frit_tensor *tensor);
frit_status frit_packs_measure(frit_packs *packs, const frit_weight_uses *uses, frit_weight_bytes *out);
// Packs what products want and is not packed yet, on all threads of the pool, or takes it from the cache. Each thread
// writes the rows that it will read. Pages of mapped files are given back as soon as they have been read. Where rows
// are only made when they are read (format/rows.h) and no product wants panels, they are kept as rows; so are floats
// that are copied to huge pages. Waits for
// another thread that packs into the same store; `progress` may end the wait, too.
frit_status frit_packs_load(frit_packs *packs, frit_pool *pool, const frit_weight_uses *uses, frit_progress progress);
// FRIT_E_IO if a file of the cache has shrunk. Touching what is gone raises SIGBUS, so look before reading weights.
frit_status frit_packs_check(const frit_packs *packs);
// The largest piece of memory with packed matrices; NULL: no matrix is packed.
const uint8_t *frit_packs_largest(const frit_packs *packs, uint64_t *n_bytes);
const uint8_t *frit_packs_find(const frit_packs *packs, const frit_tensor *tensor);   // NULL: not packed
// Rows as they are; NULL: each matrix of a stack lies by itself.
const uint8_t *frit_packs_rows(const frit_packs *packs, const frit_tensor *tensor);
