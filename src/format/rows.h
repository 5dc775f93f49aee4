// SPDX-License-Identifier: MIT
// format/rows.h: tensors whose rows are made when they are read.
//
// Files may hold a tensor in another way than it is wanted: every expert by itself, columns for rows, codes with scales
// beside them. Such a tensor has no data but a recipe: the tensors that it is made of, and a function that makes some
// of its rows. Recipes stand on each other:
//
//     q8_0  <-  rows in another order  <-  all experts  <-  [mapped bf16, mapped bf16, ...]
//
// Nothing is computed or copied before somebody reads, and whoever does (packing, conversion) takes a few rows at a
// time. So files stay mapped, and no tensor is ever in memory twice. Any number of threads may read; each brings
// scratch memory of its own.
//
//     uint8_t *scratch = malloc(frit_tensor_scratch_bytes(tensor));
//     frit_tensor_read(tensor, first, n, rows, scratch);
//
// Rows are those of the tensor seen as [n_elems / shape[last], shape[last]].
#pragma once
#include "format/checkpoint.h"

typedef struct frit_recipe frit_recipe;
struct frit_recipe {
    // Makes rows [begin, begin + n) of the whole, one behind the other.
    void (*make)(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch);
    frit_tensor *parts;   // what it is made of; may be empty where something may be absent
    size_t n_parts;
    size_t scratch_bytes;   // of `make`, aligned to 16
    bool is_stack;          // parts are alike and lie one behind the other, rows as they are
};

int64_t frit_tensor_n_rows(const frit_tensor *tensor);
int64_t frit_tensor_width(const frit_tensor *tensor);   // elements of a row
uint64_t frit_tensor_row_bytes(const frit_tensor *tensor);
size_t frit_tensor_scratch_bytes(const frit_tensor *tensor);   // 0 where rows lie in memory
void frit_tensor_read(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch);
// Where rows lie in memory, that place; else they are made in `rows`.
const uint8_t *frit_tensor_rows(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch);
// Whether both have the same rows.
bool frit_tensor_is_same(const frit_tensor *a, const frit_tensor *b);
// Row `row` of a stack whose parts all lie in memory; NULL if it is none.
const uint8_t *frit_stack_row(const frit_tensor *tensor, int64_t row);
// [begin, begin + n) of the outermost dimension.
frit_tensor frit_tensor_cut(const frit_tensor *whole, int64_t begin, int64_t n);

// ------------------------------------------------------------------------------------------------- recipes
// Each replaces `tensor` by one that is made of it. What they allocate lives in `arena`.

// [n, shape of part]: n tensors like `part`, which are set one by one before anybody reads.
frit_status frit_stack_new(frit_arena *arena, frit_tensor *tensor, const frit_tensor *part, int64_t n);
frit_status frit_stack_set(const frit_tensor *stack, int64_t i, const frit_tensor *part);   // FRIT_E_FORMAT: no match
bool frit_stack_is_whole(const frit_tensor *stack);

// Row i is row source(order, i) of what is there, of n_rows rows in all. Rows change places within groups of `group`
// rows; 0: anywhere.
typedef int64_t (*frit_row_source_fn)(const void *order, int64_t i);
frit_status frit_reorder(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                         int64_t n_rows, int64_t group);
// Number i of each row is number source(order, i).
frit_status frit_reorder_columns(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order);
// The same with single numbers: done at once.
frit_status frit_reorder_numbers(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                                 int64_t n);
// The last two dimensions change places. What is there must lie in memory.
frit_status frit_transpose(frit_arena *arena, frit_tensor *tensor);
// As f32, each row multiplied by its factor of n, or all by one. Factors are kept, not copied.
frit_status frit_multiply_rows(frit_arena *arena, frit_tensor *tensor, const float *factors, int64_t n);
// In another number format; nothing happens if it has that already.
frit_status frit_encode(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype);
