// SPDX-License-Identifier: MIT
// quantize/covariance.h: for each matrix the sum of x x^T over its input rows x, and the number of rows.
//
// An error E of a weight matrix changes results by sum |E x|^2 = trace(E H E^T), where H is this sum. H is symmetric
// and stored in full. Matrices with the same input (q, k and v; gate and up) share one H. Experts, and heads of latent
// attention, have one each.
//
// Sums are f32. The rows of a step, or of several steps with `gathers`, are summed before they are added. Each thread
// computes tiles of H of its own, so sums do not depend on the number of threads. Wide matrices are summed in tiles of
// bfloat16 if the processor has them (covariance_tiles.c).
//
// `against` is the covariance of another engine whose steps have the same tokens. Its input rows z are stored, and
// `cross` is the sum of x (z - x)^T. It tells how the inputs of the other model follow from those of this one.
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "base/thread/thread.h"
#include "engine/observe.h"
#include "quantize/dense.h"
#include "frit_tools.h"

typedef struct frit_covariance_entry {
    const char *name;        // of the matrix
    int64_t width, n_each;   // columns; experts or heads, or 1
    int64_t source;          // index of the entry with the sums: this one, or a matrix with the same input
    float *sums;             // [n_each, width, width], in huge pages
    float *cross;            // [width, width], in huge pages, row by x and column by z - x; NULL: none
    int64_t *counts;         // [n_each]: number of rows
    float *kept;             // [n_kept, width]: rows since frit_covariance_drop_rows
    int64_t n_kept, kept_capacity;
    int64_t n_taken;   // rows that were compared with the other engine's
} frit_covariance_entry;

// Rows of one entry that are in the scratch, as columns, and not in the sums yet.
typedef struct frit_covariance_rest {
    int64_t entry, each, n;
} frit_covariance_rest;

struct frit_covariance {
    frit_covariance_options options;
    frit_covariance_entry *entries;
    int64_t n;
    size_t capacity;
    frit_map index;   // name -> index in `entries`
    uint64_t n_bytes;
    bool keeps_rows;                   // stores rows instead of sums, for a covariance that is `against` this one
    struct frit_covariance *against;   // NULL: no other engine
    frit_dense dense;
    bool gathers;   // rows are added when there are many, or by frit_covariance_finish; suits few matrices
    frit_covariance_rest rest;
    int64_t n_formed;   // rows of the current expert or head that are in tiles already
    float *scratch;     // rows, transposed to columns
    size_t n_scratch;
    int64_t tiles_from;   // width of a matrix from which tiles are used
    uint64_t spent_ns;    // time spent adding rows
    uint8_t *tiles;       // columns in the forms of tiles, and scratch of each thread
    size_t tiles_bytes;
    frit_arena arena;   // for names and counts
};

// Returns the entry with the sums of a matrix; NULL if there is no such name.
const frit_covariance_entry *frit_covariance_find(const frit_covariance *covariance, const char *name);
// Sets the engine to compare with. Called before the first step of both. `other` outlives `covariance`, stores rows and
// has no sums.
void frit_covariance_set_against(frit_covariance *covariance, frit_covariance *other);
// Frees sums or cross sums of an entry with one matrix, which are not read again.
void frit_covariance_free_sums(frit_covariance *covariance, const float *matrix);
// Drops the stored rows. Called before each text, for both engines.
void frit_covariance_drop_rows(frit_covariance *covariance);

// Enters a matrix. *index becomes -1 if its sums are not wanted. `same` is an entry with the same input, or -1.
frit_status frit_covariance_enter(frit_covariance *covariance, const char *name, int64_t width, int64_t n_each,
                                  int64_t same, int64_t *index);

frit_status frit_covariance_add(frit_covariance *covariance, int64_t index, const frit_input_rows *rows,
                                frit_pool *pool);
// Called after the last rows: adds gathered rows to the sums and frees the memory that they were gathered in.
frit_status frit_covariance_finish(frit_covariance *covariance, frit_pool *pool);

// Rows as columns x [width, n], and differences to the other engine's rows, z; NULL: none. The distance between columns
// is `stride` floats, a multiple of 32 and at least n.
typedef struct frit_covariance_columns {
    float *x, *z;
    int64_t n, stride, width;
    float *sums, *cross;   // [width, width]
} frit_covariance_columns;

// Rounds the columns to bfloat16 and appends them to columns that were rounded before and are not added yet.
frit_status frit_covariance_form_tiles(frit_covariance *covariance, const frit_covariance_columns *columns,
                                       frit_pool *pool);
// Adds the rounded columns to the lower triangle of the sums.
void frit_covariance_add_tiles(frit_covariance *covariance, const frit_covariance_columns *columns, frit_pool *pool);
// Copies the lower triangle of [width, width] sums to the upper one.
void frit_covariance_mirror(float *sums, int64_t width, frit_pool *pool);
