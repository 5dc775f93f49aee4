// SPDX-License-Identifier: MIT
// Where keys, values and states of each layer lie in the cache's memory.
//
// One allocation on each device holds, page by page, the keys and values of all its layers at these positions; each
// part starts at a multiple of 64:
//
//     memory  [ page 0: layer 0 K | layer 0 V | layer 0 index | layer 1 K | ... ][ page 1: ... ] ...
//             [ layer 0: state of slot 1 | of slot 2 | ... ][ layer 1: ... ]
//
// So a short text touches little memory, however long the context may become and however large the system's pages are:
// layer by layer it would touch two huge pages of 2 MiB in every layer.
#include "engine/kv_layout.h"

#include "base/check.h"

enum { ALIGNMENT = 64, ALIASING = 4096, APART = 9 * ALIGNMENT };

// Types in blocks share one scale between neighbours, which an outlier spoils for all of them.
static int32_t mix_of(frit_dtype dtype, int32_t dim)
{
    if (frit_dtype_get(dtype)->block_elems == 1) return 1;
    int32_t mix = 1;
    while (mix < 256 && dim % (2 * mix) == 0) mix *= 2;
    return mix;
}

static bool lay_out(frit_cache_side *side, const frit_cache_spec *spec, int32_t n_head, int32_t dim, frit_dtype dtype)
{
    *side = (frit_cache_side){.dtype = dtype, .dim = dim, .mix = 1};
    if (spec->kind == FRIT_CACHE_NONE) return true;
    if (n_head < 0 || dim < 0) return false;
    side->row_bytes = frit_dtype_row_bytes(dtype, dim);
    side->mix = dim > 0 ? mix_of(dtype, dim) : 1;
    return frit_mul_u64((uint64_t)n_head * FRIT_PAGE_TOKENS, side->row_bytes, &side->page_bytes) &&
           frit_align_u64(side->page_bytes, ALIGNMENT, &side->page_bytes);
}

// Values that lie in the keys take no room of their own, and are mixed with them: in blocks that end where they end.
static void lay_out_values_in_keys(frit_cache_layer *layer, const frit_cache_spec *spec)
{
    if (layer->k.mix > 1) layer->k.mix = mix_of(layer->k.dtype, spec->k_dim | spec->v_dim);
    layer->v = layer->k;
    layer->v.dim = spec->v_dim;
    layer->v.page_bytes = 0;
}

static bool lay_out_layer(frit_cache_layer *layer, const frit_cache_spec *spec, frit_kv_types types)
{
    *layer = (frit_cache_layer){.spec = *spec, .group = spec->of_source};
    if (!lay_out(&layer->k, spec, spec->n_head_kv, spec->k_dim, types.k)) return false;
    layer->k.transposed = !spec->v_in_k && frit_dtype_get(types.k)->block_elems == 1;
    if (spec->v_in_k)
        lay_out_values_in_keys(layer, spec);
    else if (!lay_out(&layer->v, spec, spec->n_head_kv, spec->v_dim, types.v))
        return false;
    return lay_out(&layer->index, spec, 1, spec->index_dim, types.k);
}

int frit_kv_device_of(const frit_kv_shape *shape, int32_t layer)
{
    return shape->devices ? shape->devices[layer] : 0;
}

uint64_t frit_kv_page_bytes_on(const frit_kv_shape *shape, int device)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        frit_cache_layer layer;
        if (frit_kv_device_of(shape, i) != device) continue;
        if (!lay_out_layer(&layer, &shape->specs[i], shape->types) ||
            !frit_add_u64(n_bytes, layer.k.page_bytes, &n_bytes) ||
            !frit_add_u64(n_bytes, layer.v.page_bytes, &n_bytes) ||
            !frit_add_u64(n_bytes, layer.index.page_bytes, &n_bytes))
            return UINT64_MAX;
    }
    // Attention reads some pages side by side: a power of two apart, they would compete for the same places in caches.
    if (n_bytes > 0 && n_bytes % ALIASING == 0 && !frit_add_u64(n_bytes, APART, &n_bytes)) return UINT64_MAX;
    return n_bytes;
}

uint64_t frit_kv_page_bytes(const frit_kv_shape *shape)
{
    uint64_t n_bytes = 0;
    for (int d = 0; d < FRIT_MAX_DEVICES; d++)
        if (!frit_add_u64(n_bytes, frit_kv_page_bytes_on(shape, d), &n_bytes)) return UINT64_MAX;
    return n_bytes;
}

uint64_t frit_kv_token_bytes(const frit_kv_shape *shape)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        const frit_cache_spec *spec = &shape->specs[i];
        frit_cache_layer layer;
        if (lay_out_layer(&layer, spec, shape->types) && spec->kind != FRIT_CACHE_NONE)
            n_bytes += (uint64_t)spec->n_head_kv * (layer.k.row_bytes + (spec->v_in_k ? 0 : layer.v.row_bytes)) +
                       layer.index.row_bytes;
    }
    return n_bytes;
}

// Of one layer, rounded up so that what follows is aligned.
static uint64_t layer_state_bytes(const frit_cache_spec *spec)
{
    const uint64_t n_bytes = (uint64_t)spec->n_state * sizeof(float);
    return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t frit_kv_state_bytes_on(const frit_kv_shape *shape, int device)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        if (frit_kv_device_of(shape, i) != device) continue;
        if (shape->specs[i].n_state < 0 || !frit_add_u64(n_bytes, layer_state_bytes(&shape->specs[i]), &n_bytes))
            return UINT64_MAX;
    }
    return n_bytes;
}

uint64_t frit_kv_state_bytes(const frit_kv_shape *shape)
{
    uint64_t n_bytes = 0;
    for (int d = 0; d < FRIT_MAX_DEVICES; d++)
        if (!frit_add_u64(n_bytes, frit_kv_state_bytes_on(shape, d), &n_bytes)) return UINT64_MAX;
    return n_bytes;
}

static frit_status check_side(const char *what, int32_t layer, int32_t dim, frit_dtype dtype)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    if (dim % type->block_elems == 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "cached %s cannot be %s: a head of layer %d has %d numbers, expected a multiple of %d", what,
                     type->name, layer, dim, type->block_elems);
}

frit_status frit_kv_check(const frit_kv_shape *shape)
{
    const frit_kv_types types = shape->types;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        const frit_cache_spec *spec = &shape->specs[i];
        if (spec->kind == FRIT_CACHE_NONE) continue;
        FRIT_TRY(check_side("keys", i, spec->k_dim, types.k));
        FRIT_TRY(check_side("values", i, spec->v_dim, spec->v_in_k ? types.k : types.v));
        FRIT_TRY(check_side("keys of an index", i, spec->index_dim, types.k));
    }
    return FRIT_OK;
}

frit_status frit_kv_lay_out(const frit_kv_shape *shape, int device, int32_t n_pages, int32_t n_slots,
                            frit_cache_layer *layers, frit_kv_layout *out)
{
    const uint64_t page_bytes = frit_kv_page_bytes_on(shape, device),
                   state_bytes = frit_kv_state_bytes_on(shape, device);
    uint64_t states = 0, at = 0;
    *out = (frit_kv_layout){.page_bytes = page_bytes};
    if (!frit_mul_u64(page_bytes, (uint64_t)n_pages, &out->n_bytes) ||
        !frit_mul_u64(state_bytes, (uint64_t)n_slots, &states) || !frit_add_u64(out->n_bytes, states, &out->n_bytes))
        return frit_fail(FRIT_E_MEMORY, "the size of a cache of %d pages is not a 64-bit number", n_pages);
    states = page_bytes * (uint64_t)n_pages;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        if (frit_kv_device_of(shape, i) != device) continue;
        frit_cache_layer *layer = &layers[i];
        lay_out_layer(layer, &shape->specs[i], shape->types);
        layer->k.offset = at;
        layer->v.offset = layer->spec.v_in_k ? at : at + layer->k.page_bytes;
        layer->index.offset = at + layer->k.page_bytes + layer->v.page_bytes;
        at = layer->index.offset + layer->index.page_bytes;
        layer->k.page_bytes = layer->v.page_bytes = layer->index.page_bytes = page_bytes;
        layer->states_offset = states;
        states += (uint64_t)n_slots * layer_state_bytes(&shape->specs[i]);
    }
    return FRIT_OK;
}
