// SPDX-License-Identifier: MIT
// format/rows.h: tensors whose rows are computed when they are read.
//
// Files may store a tensor in another form: experts one by one, transposed, codes and scales in separate tensors. Such
// a tensor has a recipe instead of data: its part tensors, and a function that computes some of its rows. Recipes nest:
//
//     q8_0  <-  rows in another order  <-  all experts  <-  [mapped bf16, mapped bf16, ...]
//
// Nothing is computed or copied before a reader (packing, conversion) asks for rows, a few at a time. So files stay
// mapped, and no tensor is in memory twice. Any number of threads may read, each with its own scratch memory.
//
//     uint8_t *scratch = malloc(frit_tensor_scratch_bytes(tensor));
//     frit_tensor_read(tensor, first, n, rows, scratch);
//
// Rows are those of the tensor seen as [n_elems / shape[last], shape[last]].
#pragma once
#include "format/checkpoint.h"

typedef struct frit_recipe frit_recipe;
struct frit_recipe {
    // Computes rows [begin, begin + n) of the whole tensor, contiguously.
    void (*make)(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch);
    frit_tensor *parts;   // the part tensors; may be empty where parts are optional
    size_t n_parts;
    size_t scratch_bytes;   // of `make`, aligned to 16
    bool is_stack;          // equal parts in sequence, rows unchanged
    bool by_caller;         // `make` may run only on threads that call the library (format/ranges.h)
    // Returns the error that `make` noted, if any; NULL: `make` never fails.
    frit_status (*check)(const frit_recipe *recipe, const char *name);
};

int64_t frit_tensor_n_rows(const frit_tensor *tensor);
int64_t frit_tensor_width(const frit_tensor *tensor);   // elements of a row
uint64_t frit_tensor_row_bytes(const frit_tensor *tensor);
size_t frit_tensor_scratch_bytes(const frit_tensor *tensor);   // 0 if the data is in memory
void frit_tensor_read(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch);
// A pointer into the data if it is in memory; otherwise the rows are computed into `rows`.
const uint8_t *frit_tensor_rows(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch);
// True if both tensors have the same rows.
bool frit_tensor_is_same(const frit_tensor *a, const frit_tensor *b);
// Row `row` of a stack whose parts are all in memory; NULL for other tensors.
const uint8_t *frit_stack_row(const frit_tensor *tensor, int64_t row);
// Rows [begin, begin + n) of the outermost dimension.
frit_tensor frit_tensor_cut(const frit_tensor *whole, int64_t begin, int64_t n);

// ------------------------------------------------------------------------------------------------- recipes
// Each function below replaces `tensor` by one computed from it. Memory is from `arena`.

// A stack [n, shape of part] of n tensors like `part`, which are set one by one before the first read.
frit_status frit_stack_new(frit_arena *arena, frit_tensor *tensor, const frit_tensor *part, int64_t n);
frit_status frit_stack_set(const frit_tensor *stack, int64_t i, const frit_tensor *part);   // FRIT_E_FORMAT: no match
bool frit_stack_is_whole(const frit_tensor *stack);

// Row i of the n_rows rows is row source(order, i) of the part. Rows are permuted within groups of `group` rows; 0:
// anywhere.
typedef int64_t (*frit_row_source_fn)(const void *order, int64_t i);
frit_status frit_reorder(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                         int64_t n_rows, int64_t group);
// Element i of each row is element source(order, i).
frit_status frit_reorder_columns(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order);
// Element i of a vector is element source(order, i) of the old one. Computed at once.
frit_status frit_reorder_numbers(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                                 int64_t n);
// Indices [begin, begin + n) of a dimension after the first; of the last dimension whole blocks.
frit_status frit_tensor_range(frit_arena *arena, frit_tensor *tensor, int axis, int64_t begin, int64_t n);
// Transposes the last two dimensions. The data must be in memory.
frit_status frit_transpose(frit_arena *arena, frit_tensor *tensor);
// Converts to f32 and multiplies each row by its own of n factors, or all rows by one. Factors are borrowed.
frit_status frit_multiply_rows(frit_arena *arena, frit_tensor *tensor, const float *factors, int64_t n);
// Converts to another number format; no change if the tensor has that format.
frit_status frit_encode(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype);
// Encodes like frit_encode, but errors in a column are weighted by its importance: [n_matrices, width] for the tensor's
// matrices, or [width] for all. The importance is borrowed.
frit_status frit_encode_weighted(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype, const float *importance,
                                 int64_t n_matrices);

// The source of a tensor that is encoded when it is read. frit_tensor_get_origin returns false for other tensors.
typedef struct frit_encode_origin {
    const frit_tensor *from;
    const float *importance;   // [n_importance]; NULL: columns are equal
    int64_t n_importance;
} frit_encode_origin;
bool frit_tensor_get_origin(const frit_tensor *tensor, frit_encode_origin *out);
// True if rows of the tensor, or of its parts, may be read only on threads that call the library.
bool frit_tensor_is_by_caller(const frit_tensor *tensor);
// Encoded rows hide a number of the source that is not finite, or that their type cannot hold. So a tensor notes the
// first one of the rows that were read: FRIT_E_FORMAT or FRIT_E_UNSUPPORTED if there is one, in it or in its parts.
// FRIT_E_IO if rows could not be read.
frit_status frit_tensor_check(const frit_tensor *tensor);
// The error of element `at` of a tensor whose numbers become `type`.
frit_status frit_tensor_fail_number(const char *name, int64_t at, int64_t width, float value,
                                    const frit_dtype_info *type);
