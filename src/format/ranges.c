// SPDX-License-Identifier: MIT
// Tensors in files that are read by ranges.
#include "format/ranges.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SMALL_BYTES = 16 << 10,           // tensors of at most this size are read at once
    SMALL_FLOATS_BYTES = 256 << 10,   // floats: parameters of recurrent layers, and small matrices
    NARROW = 64,                      // elements: floats in such rows are parameters, as of convolutions
};

typedef struct range_rows {
    frit_recipe base;
    const frit_range_file *file;
    uint64_t at, row_bytes;
    _Atomic bool failed;
} range_rows;

frit_status frit_range_read(const frit_range_file *file, uint64_t at, void *bytes, size_t n)
{
    if (n == 0 || file->read(file->ctx, file->index, at, bytes, n)) return FRIT_OK;
    return frit_fail_file(FRIT_E_IO, "%s: bytes %" PRIu64 " to %" PRIu64 " of file %zu cannot be read", file->path, at,
                          at + n, file->index + 1);
}

static void make_rows(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    (void)scratch;
    range_rows *r = (range_rows *)(uintptr_t)recipe;
    const size_t n_bytes = (size_t)((uint64_t)n * r->row_bytes);
    if (r->file->read(r->file->ctx, r->file->index, r->at + (uint64_t)begin * r->row_bytes, rows, n_bytes)) return;
    memset(rows, 0, n_bytes);
    atomic_store(&r->failed, true);
}

static frit_status check_rows(const frit_recipe *recipe, const char *name)
{
    const range_rows *r = (const range_rows *)recipe;
    if (!atomic_load(&r->failed)) return FRIT_OK;
    return frit_fail_file(FRIT_E_IO, "%s: tensor '%s' in file %zu cannot be read", r->file->path, name,
                          r->file->index + 1);
}

static bool is_small(const frit_tensor *tensor)
{
    const bool is_float = frit_dtype_get(tensor->dtype)->block_elems == 1;
    return tensor->n_dims == 1 || tensor->n_bytes <= SMALL_BYTES ||
           (is_float && (tensor->n_bytes <= SMALL_FLOATS_BYTES || frit_tensor_width(tensor) <= NARROW));
}

frit_status frit_range_tensor(frit_arena *arena, frit_tensor *tensor, const frit_range_file *file, uint64_t at)
{
    if (is_small(tensor)) {
        void *data = tensor->n_bytes <= SIZE_MAX ? frit_arena_alloc(arena, 1, (size_t)tensor->n_bytes) : NULL;
        if (!data) return frit_fail_memory((size_t)tensor->n_bytes, tensor->name);
        tensor->data = data;
        return frit_range_read(file, at, data, (size_t)tensor->n_bytes);
    }
    range_rows *r = frit_arena_new(arena, range_rows, 1);
    if (!r) return frit_fail_memory(sizeof *r, tensor->name);
    r->base = (frit_recipe){.make = make_rows, .check = check_rows, .by_caller = true};
    r->file = file;
    r->at = at;
    r->row_bytes = frit_tensor_row_bytes(tensor);
    tensor->recipe = &r->base;
    return FRIT_OK;
}
