// SPDX-License-Identifier: MIT
// quantize/covariance.h: for each matrix the sum of x x^T over the rows x that it reads, and how many rows these were.
//
// Differences E between a weight matrix and what becomes of it change results by sum |E x|^2 = trace(E H E^T), with
// these sums H. H is symmetric, and all of it is stored. Matrices that read the same rows (q, k and v; gate and up)
// share one. Experts, and heads of latent attention, have one each.
//
// Sums are f32; the rows of a step, and of several where it gathers them, are added up by themselves first. A thread
// computes tiles of H of its own, so they do not depend on how many threads there are. Wide matrices are added up in
// tiles of bfloat16 where the processor has these (covariance_tiles.c).
//
// With `against`, the sums of another engine whose steps have the same tokens: the rows z that it has read are kept,
// and `cross` is the sum of x (z - x)^T. It tells how inputs of the other model follow from those of this one.
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
    int64_t source;          // the entry that has the sums: its own index, or that of a matrix that reads the same rows
    float *sums;             // [n_each, width, width], in huge pages, as `cross` is
    float *cross;            // [width, width], row by x and column by z - x; NULL: none
    int64_t *counts;         // [n_each]: rows
    float *kept;             // [n_kept, width]: rows since frit_covariance_forget
    int64_t n_kept, kept_capacity;
    int64_t n_taken;   // of the other one's rows
} frit_covariance_entry;

// Rows of one entry, as columns in the scratch, that are not in its sums yet.
typedef struct frit_covariance_rest {
    int64_t entry, each, n;
} frit_covariance_rest;

struct frit_covariance {
    frit_covariance_options options;
    frit_covariance_entry *entries;
    int64_t n, capacity;
    frit_map index;   // name -> index in `entries`
    uint64_t n_bytes;
    bool keeps_rows;                   // instead of sums, for one that is against this
    struct frit_covariance *against;   // NULL: none
    frit_dense dense;
    bool gathers;   // of few matrices: rows are added up when there are many, or by frit_covariance_finish
    frit_covariance_rest rest;
    int64_t n_formed;   // rows of the same expert or head that were there before, in tiles
    float *scratch;     // rows turned into columns
    size_t n_scratch;
    int64_t tiles_from;   // width of a matrix from which tiles of bfloat16 are used
    uint64_t spent_ns;    // in adding rows up
    uint8_t *tiles;       // columns in the forms that these read, and room for each thread
    size_t tiles_bytes;
    frit_arena arena;   // of names and counts
};

// The entry with the sums for a matrix; NULL: none of this name.
const frit_covariance_entry *frit_covariance_find(const frit_covariance *covariance, const char *name);
// Before the first step of both. `other`, which outlives `covariance`, keeps rows and has no sums.
void frit_covariance_set_against(frit_covariance *covariance, frit_covariance *other);
// Frees sums, or cross ones, of an entry that has no others: nothing reads them again.
void frit_covariance_drop(frit_covariance *covariance, const float *matrix);
// Drops the rows that were kept; before each text, of both.
void frit_covariance_forget(frit_covariance *covariance);

// The entry of a matrix; *index -1: it is not wanted. `same`: an entry that reads the same rows, or -1.
frit_status frit_covariance_enter(frit_covariance *covariance, const char *name, int64_t width, int64_t n_each,
                                  int64_t same, int64_t *index);

frit_status frit_covariance_add(frit_covariance *covariance, int64_t index, const frit_input_rows *rows,
                                frit_pool *pool);
// After the last rows, if it gathers them: then the sums have all, and what they were gathered in is free.
frit_status frit_covariance_finish(frit_covariance *covariance, frit_pool *pool);

// Within it: rows as columns x [width, n], and what those of the other engine differ by, z; NULL: none. From a column
// to the next there are `stride` numbers, a multiple of 32 at least as large as n.
typedef struct frit_covariance_columns {
    float *x, *z;
    int64_t n, stride, width;
    float *sums, *cross;   // [width, width], added to
} frit_covariance_columns;

// Rounds the columns, after those that were rounded before and are not added up yet.
frit_status frit_covariance_form_tiles(frit_covariance *covariance, const frit_covariance_columns *columns,
                                       frit_pool *pool);
// Adds those up: of the sums the lower triangle.
void frit_covariance_add_tiles(frit_covariance *covariance, const frit_covariance_columns *columns, frit_pool *pool);
// The lower triangle of [width, width] sums to the upper one.
void frit_covariance_mirror(float *sums, int64_t width, frit_pool *pool);
