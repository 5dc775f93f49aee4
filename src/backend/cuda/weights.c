// SPDX-License-Identifier: MIT
// Tensors of the model on a GPU: matrices as tiles, vectors as they are. Each is loaded once.
#include "backend/cuda/device.h"
#include "base/check.h"
#include "format/rows.h"

#include <stdlib.h>

enum { ALIGNMENT = 256 };

static frit_tile_source source_of(const frit_tensor *tensor)
{
    return (frit_tile_source){.n_rows = frit_tensor_n_rows(tensor), .n_columns = frit_tensor_width(tensor)};
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

static const frit_cuda_tensor *find(const frit_cuda_device *d, const frit_cuda_pair *pair, bool is_tiled)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        const frit_cuda_tensor *t = &d->tensors[i];
        if (t->is_tiled == is_tiled && t->order == pair->order && t->head_size == pair->head_size &&
            frit_tensor_is_same(&t->tensor, pair->first) && is_same_second(t, pair->second))
            return t;
    }
    return NULL;
}

// Whether its tiles are there, by itself or in a pair.
static bool is_there(const frit_cuda_device *d, const frit_tensor *tensor, bool is_tiled)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        const frit_cuda_tensor *t = &d->tensors[i];
        if (t->is_tiled != is_tiled) continue;
        if (frit_tensor_is_same(&t->tensor, tensor) || is_same_second(t, tensor)) return true;
    }
    return false;
}

static frit_status reserve(frit_cuda_device *d)
{
    if (d->n_tensors < d->tensors_room) return FRIT_OK;
    const size_t room = d->tensors_room ? 2 * d->tensors_room : 256;
    frit_cuda_tensor *tensors = realloc(d->tensors, room * sizeof *tensors);
    if (!tensors) return frit_fail_memory(room * sizeof *tensors, "the list of weights");
    d->tensors = tensors;
    d->tensors_room = room;
    return FRIT_OK;
}

// A tensor's rows: those in memory, or all of them computed into *made.
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

static frit_status copy_tiles(frit_cuda_device *d, const frit_cuda_tensor *t, const uint8_t *rows,
                              const uint8_t *second)
{
    const bool is_gated = t->order == FRIT_ROWS_GATED;
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

static frit_status copy(frit_cuda_device *d, const frit_cuda_tensor *t, const uint8_t *rows, const uint8_t *second)
{
    if (t->is_tiled)
        FRIT_TRY(copy_tiles(d, t, rows, second));
    else
        FRIT_TRY(frit_cuda_load_bytes(&d->loader, rows, t->n_bytes, t->address));
    return frit_cuda_loader_wait(&d->loader);
}

static frit_status fill(frit_cuda_device *d, const frit_cuda_tensor *t)
{
    uint8_t *made[2] = {NULL, NULL};
    const uint8_t *rows[2] = {NULL, NULL};
    frit_status status = rows_of(&t->tensor, &made[0], &rows[0]);
    if (status == FRIT_OK && has_rows(&t->second)) status = rows_of(&t->second, &made[1], &rows[1]);
    if (status == FRIT_OK) status = copy(d, t, rows[0], rows[1]);
    free(made[0]);
    free(made[1]);
    return status;
}

static frit_status take(frit_cuda_device *d, const frit_cuda_pair *pair, bool is_tiled, uint64_t *address)
{
    const frit_cuda_tensor *found = find(d, pair, is_tiled);
    *address = found ? found->address : 0;
    if (found) return FRIT_OK;
    FRIT_TRY(reserve(d));
    frit_cuda_tensor new = {.tensor = *pair->first,
                            .is_tiled = is_tiled,
                            .order = pair->order,
                            .head_size = pair->head_size,
                            .n_bytes = bytes_of(pair->first, is_tiled)};
    if (pair->second) new.second = *pair->second, new.n_bytes += bytes_of(pair->second, is_tiled);
    FRIT_TRY(frit_cuda_alloc_bytes(d, new.n_bytes, pair->first->name, &new.address));
    const frit_status status = fill(d, &new);
    if (status != FRIT_OK) {
        frit_cuda_free_bytes(d, new.address);
        return status;
    }
    d->tensors[d->n_tensors++] = new;
    *address = new.address;
    return FRIT_OK;
}

frit_status frit_cuda_tensor_take(frit_cuda_device *d, const frit_tensor *tensor, bool is_tiled, uint64_t *address)
{
    return take(d, &(frit_cuda_pair){.first = tensor}, is_tiled, address);
}

frit_status frit_cuda_tiles_take(frit_cuda_device *d, const frit_cuda_pair *pair, uint64_t *address)
{
    frit_cuda_pair wanted = *pair;
    if (pair->order != FRIT_ROWS_ADJACENT && pair->order != FRIT_ROWS_HALVES) wanted.head_size = 0;
    return take(d, &wanted, true, address);
}

static bool is_listed(const frit_weight_uses *uses, size_t n, const frit_tensor *tensor, bool is_tiled)
{
    for (size_t i = 0; i < n; i++)
        if (frit_cuda_is_tiled(uses->list[i].node, uses->list[i].source) == is_tiled &&
            frit_tensor_is_same(uses->list[i].tensor, tensor))
            return true;
    return false;
}

frit_status frit_cuda_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    const frit_cuda_device *d = (const frit_cuda_device *)base;
    *out = (frit_weight_bytes){0};
    for (size_t i = 0; i < uses->n; i++) {
        const frit_weight_use *use = &uses->list[i];
        const bool is_tiled = frit_cuda_is_tiled(use->node, use->source);
        if (is_listed(uses, i, use->tensor, is_tiled)) continue;
        uint64_t n_bytes;
        if (!frit_align_u64(bytes_of(use->tensor, is_tiled), ALIGNMENT, &n_bytes)) n_bytes = UINT64_MAX / 2;
        out->stored += n_bytes;
        if (!is_there(d, use->tensor, is_tiled)) out->missing += n_bytes;
    }
    return FRIT_OK;
}

void frit_cuda_tensors_free(frit_cuda_device *d)
{
    for (size_t i = 0; i < d->n_tensors; i++) frit_cuda_free_bytes(d, d->tensors[i].address);
    free(d->tensors);
    d->tensors = NULL;
    d->n_tensors = d->tensors_room = 0;
}
