// SPDX-License-Identifier: MIT
// Layout of keys, values and states in the cache's memory.
//
// One allocation on each device holds the pages of all groups. A page holds the keys and values of all layers of its
// group; each part starts at a multiple of 64:
//
//     memory  [ group 0, page 0: layer 0 K | layer 0 V | layer 0 index | layer 6 K | ... ][ page 1: ... ] ...
//             [ group 1, page 0: layer 1 K | ... ] ...
//             [ layer 0: state 1 | state 2 | ... ][ layer 1: ... ]
//
// A short text touches little memory, even with huge pages: a layout layer by layer would touch two pages of 2 MiB in
// every layer.
#include "engine/kv/kv_layout.h"

#include "base/check.h"

#include <string.h>

enum { ALIGNMENT = 64, ALIASING = 4096, APART = 9 * ALIGNMENT };

// Block types share a scale between neighbours. A Hadamard transform spreads outliers, which would spoil it.
static int32_t hadamard_of(frit_dtype dtype, int32_t dim)
{
    if (frit_dtype_get(dtype)->block_elems == 1) return 1;
    int32_t hadamard = 1;
    while (hadamard < 256 && dim % (2 * hadamard) == 0) hadamard *= 2;
    return hadamard;
}

static bool lay_out(frit_cache_side *side, const frit_cache_spec *spec, int32_t n_head, int32_t dim, frit_dtype dtype)
{
    *side = (frit_cache_side){.dtype = dtype, .dim = dim, .hadamard = 1};
    if (spec->kind == FRIT_CACHE_NONE) return true;
    if (n_head < 0 || dim < 0) return false;
    side->row_bytes = frit_dtype_row_bytes(dtype, dim);
    side->hadamard = dim > 0 ? hadamard_of(dtype, dim) : 1;
    return frit_mul_u64((uint64_t)n_head * FRIT_PAGE_TOKENS, side->row_bytes, &side->page_bytes) &&
           frit_align_u64(side->page_bytes, ALIGNMENT, &side->page_bytes);
}

// Values that are a part of the keys take no room of their own. The Hadamard blocks of the keys end where the values
// end.
static void lay_out_values_in_keys(frit_cache_layer *layer, const frit_cache_spec *spec)
{
    if (layer->k.hadamard > 1) layer->k.hadamard = hadamard_of(layer->k.dtype, spec->k_dim | spec->v_dim);
    layer->v = layer->k;
    layer->v.dim = spec->v_dim;
    layer->v.page_bytes = 0;
}

static bool lay_out_layer(frit_cache_layer *layer, const frit_cache_spec *spec, frit_kv_types types)
{
    *layer = (frit_cache_layer){.spec = *spec};
    if (!lay_out(&layer->k, spec, spec->n_head_kv, spec->k_dim, types.k)) return false;
    layer->k.transposed = layer->k.file_transposed = !spec->v_in_k && frit_dtype_get(types.k)->block_elems == 1;
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

// ------------------------------------------------------------------------------- groups

enum { MAX_WINDOWS = FRIT_MAX_GROUPS - 2 };   // besides full attention and source

static bool is_in(const frit_kv_group_size *group, const frit_cache_spec *spec, int32_t window)
{
    return group->window == window && group->of_source == spec->of_source;
}

// Returns the group of a layer and adds it if it is new. From the third window size on, layers keep all positions.
static int32_t find_group(frit_kv_sizes *sizes, const frit_cache_spec *spec, bool full_windows)
{
    int32_t window = full_windows || spec->window < 0 ? 0 : spec->window, n_windows = 0;
    for (int32_t i = 0; i < sizes->n_groups; i++) {
        if (is_in(&sizes->groups[i], spec, window)) return i;
        n_windows += sizes->groups[i].window > 0;
    }
    if (window > 0 && n_windows == MAX_WINDOWS) return find_group(sizes, spec, true);
    sizes->groups[sizes->n_groups] = (frit_kv_group_size){.window = window, .of_source = spec->of_source};
    return sizes->n_groups++;
}

static bool layer_bytes(const frit_kv_shape *shape, int32_t i, uint64_t *n_bytes)
{
    frit_cache_layer layer;
    frit_cache_spec spec = shape->specs[i];
    *n_bytes = 0;
    if (shape->of_rank && shape->parts && shape->parts[i] > 1) spec.n_head_kv /= shape->parts[i];
    return lay_out_layer(&layer, &spec, shape->types) &&
           frit_add_u64(layer.k.page_bytes, layer.v.page_bytes, n_bytes) &&
           frit_add_u64(*n_bytes, layer.index.page_bytes, n_bytes);
}

// Bytes of a page: layers of one group on one device.
static uint64_t page_bytes_on(const frit_kv_shape *shape, int device, int32_t group)
{
    uint64_t n_bytes = 0, more;
    frit_kv_sizes sizes = {0};
    for (int32_t i = 0; i < shape->n_layers; i++) {
        if (shape->specs[i].kind == FRIT_CACHE_NONE) continue;
        if (find_group(&sizes, &shape->specs[i], shape->full_windows) != group || frit_kv_device_of(shape, i) != device)
            continue;
        if (!layer_bytes(shape, i, &more) || !frit_add_u64(n_bytes, more, &n_bytes)) return UINT64_MAX;
    }
    // Attention reads several pages side by side. With a distance of a power of two they would share cache sets.
    if (n_bytes > 0 && n_bytes % ALIASING == 0 && !frit_add_u64(n_bytes, APART, &n_bytes)) return UINT64_MAX;
    return n_bytes;
}

// Bytes of a layer's state, rounded up to the alignment.
static uint64_t layer_state_bytes(const frit_cache_spec *spec)
{
    const uint64_t n_bytes = (uint64_t)spec->n_state * sizeof(float);
    return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t state_bytes_on(const frit_kv_shape *shape, int device)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < shape->n_layers; i++) {
        if (frit_kv_device_of(shape, i) != device) continue;
        if (shape->specs[i].n_state < 0 || !frit_add_u64(n_bytes, layer_state_bytes(&shape->specs[i]), &n_bytes))
            return UINT64_MAX;
    }
    return n_bytes;
}

void frit_kv_measure_on(const frit_kv_shape *shape, int device, frit_kv_sizes *sizes)
{
    for (int32_t i = 0; i < shape->n_layers; i++)
        if (shape->specs[i].kind != FRIT_CACHE_NONE) find_group(sizes, &shape->specs[i], shape->full_windows);
    for (int32_t g = 0; g < sizes->n_groups; g++) {
        uint64_t *n_bytes = &sizes->groups[g].page_bytes;
        if (!frit_add_u64(*n_bytes, page_bytes_on(shape, device, g), n_bytes)) *n_bytes = UINT64_MAX;
    }
    if (!frit_add_u64(sizes->state_bytes, state_bytes_on(shape, device), &sizes->state_bytes))
        sizes->state_bytes = UINT64_MAX;
}

void frit_kv_measure(const frit_kv_shape *shape, frit_kv_sizes *sizes)
{
    *sizes = (frit_kv_sizes){0};
    for (int d = 0; d < FRIT_MAX_DEVICES; d++) frit_kv_measure_on(shape, d, sizes);
}

// ------------------------------------------------------------------------------- sizes

int64_t frit_kv_n_pages(const frit_kv_group_size *group, const frit_kv_room *room)
{
    const int64_t n_sessions = room->n_sessions, all = n_sessions * frit_kv_pages_of(room->n_ctx);
    if (group->window == 0) return all;
    // Between steps a session has its window, which may begin and end within pages. A step adds its rows.
    const int64_t window = frit_kv_pages_of(group->window);
    const int64_t of_session = window + FRIT_WINDOW_SLACK + 2 + room->n_snapshots * window;
    const int64_t n = n_sessions * of_session + frit_kv_pages_of(room->n_rows);
    return n < all ? n : all;
}

uint64_t frit_kv_bytes(const frit_kv_sizes *sizes, const frit_kv_room *room)
{
    uint64_t total = 0, n_bytes;
    for (int32_t i = 0; i < sizes->n_groups; i++) {
        const int64_t n_pages = frit_kv_n_pages(&sizes->groups[i], room);
        if (n_pages > INT32_MAX || !frit_mul_u64((uint64_t)n_pages, sizes->groups[i].page_bytes, &n_bytes) ||
            !frit_add_u64(total, n_bytes, &total))
            return UINT64_MAX;
    }
    const uint64_t n_states = (uint64_t)room->n_sessions * (uint64_t)(room->n_snapshots + 1);
    if (!frit_mul_u64(sizes->state_bytes, n_states, &n_bytes) || !frit_add_u64(total, n_bytes, &total))
        return UINT64_MAX;
    return total;
}

uint64_t frit_kv_host_page_bytes(const frit_kv_sizes *sizes)
{
    uint64_t n_bytes = 0;
    for (int32_t i = 0; i < sizes->n_groups; i++)
        if (!sizes->groups[i].of_source && !frit_add_u64(n_bytes, sizes->groups[i].page_bytes, &n_bytes)) return 0;
    return frit_align_u64(n_bytes, ALIGNMENT, &n_bytes) ? n_bytes : 0;
}

int32_t frit_kv_n_host_pages(const frit_kv_sizes *sizes, const frit_kv_room *room)
{
    enum { MOST_PAGES = 1 << 20 };
    const uint64_t page_bytes = frit_kv_host_page_bytes(sizes), n = page_bytes > 0 ? room->host_bytes / page_bytes : 0;
    return n < MOST_PAGES ? (int32_t)n : MOST_PAGES;
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

static frit_status check_side(const char *what, int32_t layer, int32_t dim, frit_dtype dtype)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    if (dim % type->block_elems == 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "cached %s cannot be %s: a head of layer %d has %d numbers, expected a multiple of %d", what,
                     type->name, layer, dim, type->block_elems);
}

bool frit_kv_can(const frit_kv_shape *shape)
{
    const int32_t k_elems = frit_dtype_get(shape->types.k)->block_elems;
    const int32_t v_elems = frit_dtype_get(shape->types.v)->block_elems;
    for (const frit_cache_spec *spec = shape->specs; spec < shape->specs + shape->n_layers; spec++) {
        if (spec->kind == FRIT_CACHE_NONE) continue;
        if (spec->k_dim % k_elems || spec->index_dim % k_elems) return false;
        if (spec->v_dim % (spec->v_in_k ? k_elems : v_elems)) return false;
    }
    return true;
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

// ------------------------------------------------------------------------------- layout

// Places the sides of a layer in page 0 of its group, from `at` on. Returns where the next layer begins.
static uint64_t place_layer(frit_cache_layer *layer, uint64_t at, uint64_t page_bytes)
{
    layer->k.offset = at;
    layer->v.offset = layer->spec.v_in_k ? at : at + layer->k.page_bytes;
    layer->index.offset = at + layer->k.page_bytes + layer->v.page_bytes;
    at = layer->index.offset + layer->index.page_bytes;
    layer->k.page_bytes = layer->v.page_bytes = layer->index.page_bytes = page_bytes;
    return at;
}

static void swap_order(frit_cache_side *side)
{
    if (frit_dtype_get(side->dtype)->block_elems == 1) side->transposed = !side->file_transposed;
}

// Fills in the layers of a device.
static void place_layers(const frit_kv_shape *shape, int device, bool values_by_dim, int32_t n_states,
                         frit_cache_layer *layers, const frit_kv_layout *layout, uint64_t states)
{
    uint64_t at[FRIT_MAX_GROUPS];
    frit_kv_sizes sizes = {0};
    memcpy(at, layout->offsets, sizeof at);
    for (int32_t i = 0; i < shape->n_layers; i++) {
        const frit_cache_spec *spec = &shape->specs[i];
        const int32_t group = spec->kind == FRIT_CACHE_NONE ? 0 : find_group(&sizes, spec, shape->full_windows);
        if (frit_kv_device_of(shape, i) != device) continue;
        lay_out_layer(&layers[i], spec, shape->types);
        layers[i].spec.n_parts = shape->parts ? shape->parts[i] : 0;
        if (values_by_dim && !spec->v_in_k) swap_order(&layers[i].k), swap_order(&layers[i].v);
        layers[i].group = group;
        if (spec->kind != FRIT_CACHE_NONE) at[group] = place_layer(&layers[i], at[group], layout->page_bytes[group]);
        layers[i].states_offset = states;
        states += (uint64_t)n_states * layer_state_bytes(spec);
    }
}

frit_status frit_kv_lay_out(const frit_kv_shape *shape, int device, bool values_by_dim, const frit_kv_counts *counts,
                            frit_cache_layer *layers, frit_kv_layout *out)
{
    uint64_t states = 0, n_bytes = 0;
    frit_kv_sizes sizes;
    frit_kv_measure(shape, &sizes);
    *out = (frit_kv_layout){0};
    bool good = frit_mul_u64(state_bytes_on(shape, device), (uint64_t)counts->n_states, &states);
    for (int32_t g = 0; g < sizes.n_groups; g++) {
        out->offsets[g] = out->n_bytes;
        out->page_bytes[g] = page_bytes_on(shape, device, g);
        good = good && frit_mul_u64(out->page_bytes[g], (uint64_t)counts->n_pages[g], &n_bytes) &&
               frit_add_u64(out->n_bytes, n_bytes, &out->n_bytes);
    }
    if (!good || !frit_add_u64(out->n_bytes, states, &out->n_bytes))
        return frit_fail(FRIT_E_MEMORY, "the size of a cache of %d pages is not a 64-bit number", counts->n_pages[0]);
    place_layers(shape, device, values_by_dim, counts->n_states, layers, out, out->n_bytes - states);
    return FRIT_OK;
}
