// SPDX-License-Identifier: MIT
// The list of tensors on the GPU, and loading them. Stacks of matrices are loaded matrix by matrix.
#include "backend/cuda/weights/weights.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/experts.h"
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/weights/weight_stream.h"
#include "base/check.h"
#include "base/grow.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

static frit_tile_source source_of(const frit_tensor *tensor)
{
    return (frit_tile_source){.n_rows = frit_tensor_n_rows(tensor), .n_columns = frit_tensor_width(tensor)};
}

// Bytes of the tiles of one matrix of a stack. The number of its rows fills whole tiles, also in a pair.
static uint64_t matrix_bytes(const frit_tensor *tensor, const frit_cuda_cut *cut, bool is_pair)
{
    const frit_tile_source source = {.n_rows = cut->n, .n_columns = frit_tensor_width(tensor)};
    return (uint64_t)cut->n * (is_pair ? 2 : 1) / FRIT_TILE_ROWS *
           frit_tile_bytes(frit_tile_format_of(tensor->dtype), &source);
}

static uint64_t bytes_of(const frit_tensor *tensor, bool is_tiled)
{
    const frit_tile_source source = source_of(tensor);
    if (is_tiled)
        return frit_tile_bytes(frit_tile_format_of(tensor->dtype), &source) * (uint64_t)frit_tile_count(&source);
    return (uint64_t)frit_tensor_n_rows(tensor) * frit_tensor_row_bytes(tensor);
}

static bool has_rows(const frit_tensor *tensor)
{
    return tensor->data || tensor->recipe;
}

static bool is_same_second(const frit_cuda_tensor *t, const frit_tensor *second)
{
    return second ? has_rows(&t->second) && frit_tensor_is_same(&t->second, second) : !has_rows(&t->second);
}

bool frit_cuda_tensor_equals(const frit_cuda_tensor *a, const frit_cuda_tensor *b)
{
    return a->is_tiled == b->is_tiled && a->order == b->order && a->head_size == b->head_size &&
           memcmp(&a->cut, &b->cut, sizeof a->cut) == 0 && frit_tensor_is_same(&a->tensor, &b->tensor) &&
           is_same_second(a, has_rows(&b->second) ? &b->second : NULL);
}

static const frit_cuda_tensor *find_tensor(const frit_cuda_device *d, const frit_cuda_tensor *wanted)
{
    for (size_t i = 0; i < d->n_tensors; i++)
        if (frit_cuda_tensor_equals(&d->tensors[i], wanted)) return &d->tensors[i];
    return NULL;
}

// True if the tensor is loaded, alone or in a pair.
static bool is_there(const frit_cuda_device *d, const frit_tensor *tensor, bool is_tiled)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        const frit_cuda_tensor *t = &d->tensors[i];
        if (t->is_tiled != is_tiled) continue;
        if (frit_tensor_is_same(&t->tensor, tensor) || is_same_second(t, tensor)) return true;
    }
    return false;
}

static frit_status reserve_tensors(frit_cuda_device *d)
{
    return FRIT_GROW(d->tensors, d->tensors_capacity, d->n_tensors + 1, "the list of weights");
}

// The tensor's rows: in memory, or computed into *made, which the caller frees.
static frit_status rows_of(const frit_tensor *tensor, uint8_t **made, const uint8_t **rows)
{
    *made = NULL;
    *rows = tensor->data;
    if (tensor->data) return FRIT_OK;
    const uint64_t n_bytes = bytes_of(tensor, false);
    uint8_t *scratch = malloc(frit_tensor_scratch_bytes(tensor) + 1);
    *rows = *made = malloc((size_t)n_bytes + 1);
    if (*made && scratch) frit_tensor_read(tensor, 0, frit_tensor_n_rows(tensor), *made, scratch);
    free(scratch);
    return *made && scratch ? FRIT_OK : frit_fail_memory((size_t)n_bytes, "rows of a tensor");
}

// Rows `begin` to `begin + cut.n` of matrix i.
static const uint8_t *rows_of_matrix(const frit_tensor *tensor, const frit_cuda_cut *cut, int64_t i, int64_t begin,
                                     uint8_t *made, uint8_t *scratch)
{
    return frit_tensor_rows(tensor, i * tensor->shape[1] + begin, cut->n, made, scratch);
}

// True if the rows of all matrices follow each other in memory, so that the stack can be loaded as one tall matrix.
static bool is_tall(const frit_cuda_tensor *t)
{
    const bool is_pair = has_rows(&t->second);
    return t->tensor.data && t->cut.begin[0] == 0 && t->cut.n == t->tensor.shape[1] &&
           (!is_pair || (t->second.data && t->cut.begin[1] == 0 && t->cut.n == t->second.shape[1]));
}

static frit_status copy_stack(frit_cuda_device *d, const frit_cuda_tensor *t, uint8_t *made, uint8_t *scratch)
{
    const bool is_pair = has_rows(&t->second);
    const uint64_t n_bytes = (uint64_t)t->cut.n * frit_tensor_row_bytes(&t->tensor);
    const uint64_t step = matrix_bytes(&t->tensor, &t->cut, is_pair);
    frit_tile_source source = {
        .n_rows = t->cut.n, .n_columns = frit_tensor_width(&t->tensor), .order = t->order, .head_size = 0};
    if (is_tall(t)) {
        source.n_rows *= t->cut.n_matrices;
        source.blocks = t->tensor.data;
        source.second = is_pair ? t->second.data : NULL;
        return frit_cuda_load_tiles(&d->loader, t->tensor.dtype, &source, t->address);
    }
    for (int64_t i = 0; i < t->cut.n_matrices; i++) {
        source.blocks = rows_of_matrix(&t->tensor, &t->cut, i, t->cut.begin[0], made, scratch);
        if (is_pair) source.second = rows_of_matrix(&t->second, &t->cut, i, t->cut.begin[1], made + n_bytes, scratch);
        FRIT_TRY(frit_cuda_load_tiles(&d->loader, t->tensor.dtype, &source, t->address + (uint64_t)i * step));
    }
    return FRIT_OK;
}

static frit_status fill_stack(frit_cuda_device *d, const frit_cuda_tensor *t)
{
    const size_t n_bytes = (size_t)t->cut.n * (size_t)frit_tensor_row_bytes(&t->tensor);
    const size_t a = frit_tensor_scratch_bytes(&t->tensor);
    const size_t b = has_rows(&t->second) ? frit_tensor_scratch_bytes(&t->second) : 0;
    uint8_t *made = malloc(2 * n_bytes + 1), *scratch = malloc((a > b ? a : b) + 1);
    const frit_status status =
        made && scratch ? copy_stack(d, t, made, scratch) : frit_fail_memory(2 * n_bytes, "rows of experts");
    free(made);
    free(scratch);
    return status;
}

static frit_status copy_tiles(frit_cuda_device *d, const frit_cuda_tensor *t, const uint8_t *rows,
                              const uint8_t *second)
{
    const bool is_gated = t->order == FRIT_CUDA_ORDER_GATED;
    frit_tile_source source = source_of(&t->tensor);
    source.blocks = rows;
    source.second = is_gated ? second : NULL;
    source.order = t->order;
    source.head_size = t->head_size;
    FRIT_TRY(frit_cuda_load_tiles(&d->loader, t->tensor.dtype, &source, t->address));
    if (!second || is_gated) return FRIT_OK;
    source = source_of(&t->second);
    source.blocks = second;
    source.order = t->order;
    source.head_size = t->head_size;
    return frit_cuda_load_tiles(&d->loader, t->second.dtype, &source, t->address + bytes_of(&t->tensor, true));
}

static frit_status copy_rows(frit_cuda_device *d, const frit_cuda_tensor *t, const uint8_t *rows, const uint8_t *second)
{
    if (t->is_tiled) return copy_tiles(d, t, rows, second);
    return frit_cuda_load_bytes(&d->loader, rows, t->n_bytes, t->address);
}

frit_status frit_cuda_tensor_fill(frit_cuda_device *d, const frit_cuda_tensor *t)
{
    if (t->cut.n_matrices > 0) return fill_stack(d, t);
    uint8_t *made[2] = {NULL, NULL};
    const uint8_t *rows[2] = {NULL, NULL};
    frit_status status = rows_of(&t->tensor, &made[0], &rows[0]);
    if (status == FRIT_OK && has_rows(&t->second)) status = rows_of(&t->second, &made[1], &rows[1]);
    if (status == FRIT_OK) status = copy_rows(d, t, rows[0], rows[1]);
    free(made[0]);
    free(made[1]);
    return status;
}

static frit_cuda_tensor describe_tensor(const frit_cuda_pair *pair, bool is_tiled)
{
    frit_cuda_tensor t = {.tensor = *pair->first,
                          .is_tiled = is_tiled,
                          .order = pair->order,
                          .head_size = pair->head_size,
                          .cut = pair->cut,
                          .n_bytes = bytes_of(pair->first, is_tiled)};
    if (pair->second) t.second = *pair->second, t.n_bytes += bytes_of(pair->second, is_tiled);
    if (pair->cut.n_matrices > 0)
        t.n_bytes = (uint64_t)pair->cut.n_matrices * matrix_bytes(pair->first, &pair->cut, pair->second);
    return t;
}

// Only compiles the kernel that makes tiles, if the GPU is a target.
static frit_status load_tensor(frit_cuda_device *d, frit_cuda_tensor *t)
{
    FRIT_TRY(frit_cuda_alloc_bytes(d, t->n_bytes, t->tensor.name, &t->address));
    if (d->is_target) return t->is_tiled ? frit_cuda_loader_prepare(&d->loader, &t->tensor.dtype, 1) : FRIT_OK;
    frit_status status = frit_cuda_tensor_fill(d, t);
    if (status == FRIT_OK) status = frit_cuda_loader_wait(&d->loader);
    if (status != FRIT_OK) frit_cuda_free_bytes(d, t->address);
    return status;
}

static frit_status get_tensor(frit_exec *exec, const frit_cuda_pair *pair, bool is_tiled, frit_cuda_address *out)
{
    frit_cuda_device *d = exec->device;
    frit_cuda_tensor new = describe_tensor(pair, is_tiled);
    if (exec->plan->streams && is_tiled) return frit_cuda_weight_stream_add(exec, &new, out);
    const frit_cuda_tensor *found = find_tensor(d, &new);
    if (!found) {
        FRIT_TRY(reserve_tensors(d));
        FRIT_TRY(load_tensor(d, &new));
        d->tensors[d->n_tensors] = new;
        found = &d->tensors[d->n_tensors++];
    }
    *out = (frit_cuda_address){FRIT_CUDA_FIXED, found->address};
    return FRIT_OK;
}

frit_status frit_cuda_tensor_get(frit_exec *exec, const frit_tensor *tensor, bool is_tiled, frit_cuda_address *out)
{
    return get_tensor(exec, &(frit_cuda_pair){.first = tensor}, is_tiled, out);
}

frit_status frit_cuda_tiles_get(frit_exec *exec, const frit_cuda_pair *pair, frit_cuda_address *out)
{
    frit_cuda_pair wanted = *pair;
    if (pair->order != FRIT_CUDA_ORDER_ADJACENT && pair->order != FRIT_CUDA_ORDER_NEOX) wanted.head_size = 0;
    return get_tensor(exec, &wanted, true, out);
}

// Bytes of the tensor that the node reads. A matrix of a pair counts as half of the pair's tiles.
static uint64_t use_bytes(const frit_weight_use *use)
{
    const frit_cuda_cut cut = frit_cuda_cut_of(use->node, use->source);
    if (cut.n_matrices == 0) return bytes_of(use->tensor, frit_cuda_is_tiled(use->node, use->source));
    return (uint64_t)cut.n_matrices * (matrix_bytes(use->tensor, &cut, true) / 2);
}

static bool is_same_use(const frit_weight_use *a, const frit_weight_use *b)
{
    const frit_cuda_cut x = frit_cuda_cut_of(a->node, a->source), y = frit_cuda_cut_of(b->node, b->source);
    return frit_cuda_is_tiled(a->node, a->source) == frit_cuda_is_tiled(b->node, b->source) && x.n == y.n &&
           x.begin[0] == y.begin[0] && frit_tensor_is_same(a->tensor, b->tensor);
}

static bool is_listed(const frit_weight_uses *uses, size_t n, const frit_weight_use *use)
{
    for (size_t i = 0; i < n; i++)
        if (is_same_use(&uses->list[i], use)) return true;
    return false;
}

frit_status frit_cuda_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    const frit_cuda_device *d = (const frit_cuda_device *)base;
    *out = (frit_weight_bytes){0};
    for (size_t i = 0; i < uses->n; i++) {
        const frit_weight_use *use = &uses->list[i];
        if (is_listed(uses, i, use)) continue;
        uint64_t n_bytes;
        if (!frit_align_u64(use_bytes(use), ALIGNMENT, &n_bytes)) n_bytes = UINT64_MAX / 2;
        out->stored += n_bytes;
        if (!is_there(d, use->tensor, frit_cuda_is_tiled(use->node, use->source))) out->missing += n_bytes;
    }
    return FRIT_OK;
}

frit_status frit_cuda_plan_weights(const frit_plan *plan, uint64_t *tiles, uint64_t *rest)
{
    frit_weight_uses uses = {0};
    const frit_status status = frit_weight_uses_add(&uses, plan);
    *tiles = *rest = 0;
    for (size_t i = 0; i < uses.n; i++) {
        const frit_weight_use *use = &uses.list[i];
        uint64_t *sum = frit_cuda_is_tiled(use->node, use->source) ? tiles : rest, n_bytes;
        if (is_listed(&uses, i, use)) continue;
        if (!frit_align_u64(use_bytes(use), ALIGNMENT, &n_bytes)) n_bytes = UINT64_MAX / 2;
        if (!frit_add_u64(*sum, n_bytes, sum)) *sum = UINT64_MAX / 2;
    }
    frit_weight_uses_free(&uses);
    return status;
}

void frit_cuda_tensors_free(frit_cuda_device *d)
{
    for (size_t i = 0; i < d->n_tensors; i++) frit_cuda_free_bytes(d, d->tensors[i].address);
    free(d->tensors);
    d->tensors = NULL;
    d->n_tensors = d->tensors_capacity = 0;
}
