// SPDX-License-Identifier: MIT
// The contents of the cache: copied within a device, or visited on the host, which may not see the device's memory.
#include "engine/kv/kv.h"

#include <stdlib.h>

static const frit_kv_storage *storage_of(const frit_kv *kv, int32_t layer)
{
    return &kv->storages[kv->devices ? kv->devices[layer] : 0];
}

// ------------------------------------------------------------------------------- copies

frit_address frit_kv_page_address(const frit_kv *kv, int device, int32_t group, int32_t page)
{
    const frit_kv_layout *layout = &kv->storages[device].layout;
    return (frit_address){kv->storages[device].memory,
                          layout->offsets[group] + (uint64_t)page * layout->page_bytes[group]};
}

frit_status frit_kv_copy_page(const frit_kv *kv, int32_t group, int32_t from, int32_t to)
{
    for (int p = 0; p < kv->n_storages; p++) {
        const uint64_t n_bytes = kv->storages[p].layout.page_bytes[group];
        if (n_bytes == 0) continue;
        FRIT_TRY(frit_backend_copy(frit_kv_page_address(kv, p, group, to), frit_kv_page_address(kv, p, group, from),
                                   n_bytes));
    }
    return FRIT_OK;
}

static uint64_t state_bytes(const frit_cache_layer *layer)
{
    return (uint64_t)layer->spec.n_state * sizeof(float);
}

static uint64_t state_at(const frit_cache_layer *layer, int32_t state)
{
    return layer->states_offset + (uint64_t)(state - 1) * state_bytes(layer);
}

frit_status frit_kv_copy_states(const frit_kv *kv, int32_t from, int32_t to)
{
    for (int32_t i = 0; i < kv->n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        frit_memory *memory = storage_of(kv, i)->memory;
        if (state_bytes(layer) == 0) continue;
        FRIT_TRY(frit_backend_copy((frit_address){memory, state_at(layer, to)},
                                   (frit_address){memory, state_at(layer, from)}, state_bytes(layer)));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- visits

// Bytes of a device for the host: mapped if the host sees the memory, else a copy. Also a copy if files have the other
// order of dimensions.
typedef struct view {
    frit_device *device;
    frit_address address;
    uint64_t n_bytes;
    uint8_t *bytes;
    bool is_copy;
} view;

static frit_status open_view(view *v, const frit_kv_storage *storage, uint64_t offset, uint64_t n_bytes)
{
    const frit_backend *backend = storage->device->backend;
    uint8_t *mapped = backend->map(storage->memory);
    *v =
        (view){.device = storage->device, .address = {storage->memory, offset}, .n_bytes = n_bytes, .is_copy = !mapped};
    v->bytes = mapped ? mapped + offset : malloc((size_t)n_bytes);
    if (!v->bytes) return frit_fail_memory((size_t)n_bytes, "a copy of a page");
    if (mapped) return FRIT_OK;
    const frit_status status = backend->read(v->device, v->address, v->bytes, n_bytes);
    if (status != FRIT_OK) free(v->bytes);
    return status;
}

static frit_status close_view(view *v, frit_status status, bool writes)
{
    if (!v->is_copy) return status;
    if (status == FRIT_OK && writes) status = v->device->backend->write(v->device, v->address, v->bytes, v->n_bytes);
    free(v->bytes);
    return status;
}

// Transposes a head of a page between [positions, dim] and [dim, positions].
static frit_status transpose_head(const frit_cache_side *side, uint8_t *bytes, uint64_t n_bytes, bool to_file)
{
    const size_t elem_bytes = (size_t)side->row_bytes / (size_t)side->dim, dim = (size_t)side->dim,
                 n = FRIT_PAGE_TOKENS;
    const bool to_dims = side->transposed != to_file;
    uint8_t *from = malloc((size_t)n_bytes);
    if (!from) return frit_fail_memory((size_t)n_bytes, "a copy of a page");
    memcpy(from, bytes, (size_t)n_bytes);
    for (size_t p = 0; p < n; p++)
        for (size_t d = 0; d < dim; d++) {
            const size_t by_position = (p * dim + d) * elem_bytes, by_dim = (d * n + p) * elem_bytes;
            memcpy(bytes + (to_dims ? by_dim : by_position), from + (to_dims ? by_position : by_dim), elem_bytes);
        }
    free(from);
    return FRIT_OK;
}

// Visits the first n positions of a head: whole rows, or n numbers of each dimension if files are transposed.
static frit_status visit_head(const frit_cache_side *side, uint8_t *bytes, int32_t n, const frit_kv_visitor *visitor)
{
    if (!side->file_transposed) return visitor->visit(visitor->ctx, bytes, (size_t)n * side->row_bytes);
    const size_t elem_bytes = (size_t)side->row_bytes / (size_t)side->dim;
    for (int32_t d = 0; d < side->dim; d++)
        FRIT_TRY(
            visitor->visit(visitor->ctx, bytes + (size_t)d * FRIT_PAGE_TOKENS * elem_bytes, (size_t)n * elem_bytes));
    return FRIT_OK;
}

typedef struct visited_side {
    const frit_kv_storage *storage;
    const frit_cache_side *side;
    int32_t n_heads;
    const frit_kv_table *table;
    int32_t begin, end;   // positions; `begin` is a multiple of FRIT_PAGE_TOKENS
} visited_side;

static frit_status visit_side(const visited_side *s, const frit_kv_visitor *visitor)
{
    const uint64_t head_bytes = FRIT_PAGE_TOKENS * s->side->row_bytes;
    for (int32_t head = 0; head_bytes > 0 && head < s->n_heads; head++) {
        for (int32_t p = s->begin; p < s->end; p += FRIT_PAGE_TOKENS) {
            const int32_t left = s->end - p, n = left < FRIT_PAGE_TOKENS ? left : FRIT_PAGE_TOKENS;
            const uint64_t page = (uint64_t)s->table->pages[p / FRIT_PAGE_TOKENS - s->table->first];
            view v;
            FRIT_TRY(open_view(&v, s->storage,
                               s->side->offset + page * s->side->page_bytes + (uint64_t)head * head_bytes, head_bytes));
            const bool is_other = s->side->transposed != s->side->file_transposed;
            frit_status status = is_other ? transpose_head(s->side, v.bytes, head_bytes, true) : FRIT_OK;
            if (status == FRIT_OK) status = visit_head(s->side, v.bytes, n, visitor);
            if (status == FRIT_OK && is_other && visitor->fills)
                status = transpose_head(s->side, v.bytes, head_bytes, false);
            FRIT_TRY(close_view(&v, status, visitor->fills));
        }
    }
    return FRIT_OK;
}

static uint64_t layer_position_bytes(const frit_cache_layer *layer)
{
    const uint64_t v_bytes = layer->spec.v_in_k ? 0 : layer->v.row_bytes;
    return (uint64_t)layer->spec.n_head_kv * (layer->k.row_bytes + v_bytes) + layer->index.row_bytes;
}

static bool is_in_group(const frit_kv *kv, int32_t layer, int32_t group)
{
    return kv->layers[layer].spec.kind != FRIT_CACHE_NONE && kv->layers[layer].group == group;
}

uint64_t frit_kv_position_bytes(const frit_kv *kv, int32_t group)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < kv->n_layers; i++)
        if (is_in_group(kv, i, group)) n_bytes += layer_position_bytes(&kv->layers[i]);
    return n_bytes;
}

static frit_status visit_layer(const frit_kv *kv, int32_t i, visited_side s, const frit_kv_visitor *visitor)
{
    const frit_cache_layer *layer = &kv->layers[i];
    s.storage = storage_of(kv, i);
    s.n_heads = layer->spec.n_head_kv;
    s.side = &layer->k;
    FRIT_TRY(visit_side(&s, visitor));
    s.side = &layer->v;
    if (!layer->spec.v_in_k) FRIT_TRY(visit_side(&s, visitor));
    s.side = &layer->index;
    s.n_heads = 1;
    return visit_side(&s, visitor);
}

frit_status frit_kv_visit(const frit_kv *kv, const frit_kv_table *tables, frit_kv_which which, int32_t n_positions,
                          const frit_kv_visitor *visitor)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        if (group->of_source != (which == FRIT_KV_SOURCE) || (which == FRIT_KV_WINDOWS && group->window == 0)) continue;
        const visited_side positions = {
            .table = &tables[g], .begin = frit_kv_first_position(group->window, n_positions), .end = n_positions};
        for (int32_t i = 0; i < kv->n_layers; i++)
            if (is_in_group(kv, i, g)) FRIT_TRY(visit_layer(kv, i, positions, visitor));
    }
    return FRIT_OK;
}

frit_status frit_kv_visit_states(const frit_kv *kv, int32_t state, const frit_kv_visitor *visitor)
{
    for (int32_t i = 0; i < kv->n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        if (layer->spec.n_state == 0) continue;
        view v;
        FRIT_TRY(open_view(&v, storage_of(kv, i), state_at(layer, state), state_bytes(layer)));
        FRIT_TRY(close_view(&v, visitor->visit(visitor->ctx, v.bytes, (size_t)v.n_bytes), visitor->fills));
    }
    return FRIT_OK;
}
