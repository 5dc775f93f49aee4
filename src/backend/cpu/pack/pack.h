// SPDX-License-Identifier: MIT
// backend/cpu/pack/pack.h: matrices packed in the order in which vector kernels read them, sixteen rows at a time.
//
// A packed matrix is a list of panels of 16 rows; missing rows of the last panel are zeros. A panel has the interleaved
// blocks of its rows: first the 4-byte words that packed.def names, word 0 of all 16 rows, then word 1, and so on; then
// the rest of the 16 blocks, mostly an f16 scale:
//
//     q4_0 in a file     d0 d0 q0 q0 q0 q0 q1 q1 q1 q1 ..           one row, blocks of 18 bytes
//     packed             q0 of rows 0..15 | q1 of rows 0..15 | q2 | q3 | d of rows 0..15             288 bytes
//
// One vector register holds four columns of 16 rows, or two registers hold them for 8 rows each. Kernels read a panel
// from front to back. For most types a panel has the size of its rows in the file, and packing only moves bytes. Types
// whose blocks have indices into grids, base-3 digits or bits in another order are recoded (quant/recode.c) to plain
// codes of one to four bits with the same values and scales, so that kernels need no table larger than a register.
// Instruction sets that look up bytes in larger tables keep indices and digits (packed_indexed.def), and such panels
// are as small as the file. Floats are not packed: kernels read their rows in the file, or in a copy in huge pages if
// that is faster and memory suffices.
#pragma once
#include "backend/backend.h"
#include "backend/store_cache.h"
#include "backend/cpu/task.h"
#include "base/thread/thread.h"

// The layout of one block of a type.
typedef struct frit_interleave {
    const char *name;   // unique
    frit_dtype dtype;
    uint8_t words_at, n_words;     // bytes, words
    uint8_t rest_at, rest_bytes;   // 0, 1 or 2 bytes
    // Makes n_to blocks of words and rest from n_from blocks of the file. NULL: blocks stay as they are.
    void (*recode)(const void *blocks, uint8_t *out);
    uint8_t n_from, n_to;
} frit_interleave;

const frit_interleave *frit_interleave_get(frit_dtype dtype);       // row of packed.def; NULL: not packed
const frit_interleave *frit_interleave_indexed(frit_dtype dtype);   // row of packed_indexed.def, or NULL
// True if rows of n elements can be packed.
bool frit_pack_fits(const frit_interleave *layout, int64_t n);
// Bytes of a row of n elements in a panel: a sixteenth of the panel.
size_t frit_pack_row_bytes(const frit_interleave *layout, int64_t n);
// Packs n_rows consecutive rows (1..16) of n elements into a panel of 16 * frit_pack_row_bytes bytes.
void frit_pack_panel(const frit_interleave *layout, const uint8_t *rows, int n_rows, int64_t n, uint8_t *panel);

// ------------------------------------------------------------------------------- the store of packed matrices

// The store (backend/store.h) of CPU devices that pack the same types and use the same cache folder. A matrix is packed
// once, for the first device that needs it. Matrices that are loaded together are a block. Blocks are added and never
// change, so devices find matrices without a lock while another device packs.
typedef struct frit_packs frit_packs;

typedef struct frit_packs_options {
    const frit_kernels *kernels;   // kernels that read the panels; NULL: no matrix is packed
    const char *folder;            // folder of the weights' cache, or NULL
    uint64_t source;               // frit_device_options.weights_source
    const frit_log *log;
    uint64_t most_floats;   // bytes: floats of files are copied if those that products read are at most this large
} frit_packs_options;

frit_status frit_packs_open(frit_packs **out, frit_stores *stores, const frit_packs_options *options);
// True if linear ops read this matrix packed.
bool frit_packs_needs(const frit_kernels *kernels, const frit_tensor *tensor);
frit_status frit_packs_measure(frit_packs *packs, const frit_weight_uses *uses, frit_weight_bytes *out);
// Packs the matrices of products that are not packed yet, on all threads of the pool, or reads them from the cache.
// Each thread writes the rows that it will read. Pages of mapped files are dropped as soon as they have been read. Rows
// that are computed when they are read (format/rows.h) and are not packed are stored as rows, like floats that are
// copied to huge pages. Waits for another thread that packs into the same store; `progress` may end the wait.
frit_status frit_packs_load(frit_packs *packs, frit_pool *pool, const frit_weight_uses *uses, frit_progress progress);
// FRIT_E_IO if a file of the cache has shrunk. Reading the lost bytes raises SIGBUS, so call it before reading weights.
frit_status frit_packs_check(const frit_packs *packs);
// The largest block of packed matrices; NULL: no matrix is packed.
const uint8_t *frit_packs_largest(const frit_packs *packs, uint64_t *n_bytes);
const uint8_t *frit_packs_find(const frit_packs *packs, const frit_tensor *tensor);   // NULL: not packed
// Stored rows of a matrix that is not packed, or of the file; NULL: the matrices of a stack are at separate addresses.
const uint8_t *frit_packs_rows(const frit_packs *packs, const frit_tensor *tensor);
