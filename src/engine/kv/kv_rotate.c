// SPDX-License-Identifier: MIT
// Rotating cached keys back, page by page.
#include "engine/kv/kv_rotate.h"

#include "quant/dtype.h"
#include "quant/hadamard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_keys(const frit_kv *kv, int32_t layer, int32_t group)
{
    return kv->layers[layer].spec.kind != FRIT_CACHE_NONE && kv->layers[layer].group == group;
}

static uint64_t keys_bytes(const frit_cache_layer *layer)
{
    return (uint64_t)layer->spec.n_head_kv * FRIT_PAGE_TOKENS * layer->k.row_bytes;
}

static size_t n_keys_of(const frit_cache_layer *layer)
{
    return (size_t)layer->spec.n_head_kv * FRIT_PAGE_TOKENS * (size_t)layer->k.dim;
}

frit_status frit_kv_rotating_init(frit_kv_rotating *r, const frit_kv *kv, const frit_key_rotation *rotations)
{
    uint64_t n_bytes = 0;
    size_t n_keys = 0, n_pairs = 0;
    *r = (frit_kv_rotating){.kv = kv, .rotations = rotations};
    for (int32_t i = 0; i < kv->n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        if (layer->spec.kind == FRIT_CACHE_NONE) continue;
        if (keys_bytes(layer) > n_bytes) n_bytes = keys_bytes(layer);
        if (n_keys_of(layer) > n_keys) n_keys = n_keys_of(layer);
        if ((size_t)layer->k.dim / 2 > n_pairs) n_pairs = (size_t)layer->k.dim / 2;
    }
    r->bytes = malloc((size_t)n_bytes + 1);
    r->keys = malloc((n_keys + 1) * sizeof *r->keys);
    r->cos = malloc((n_pairs + 1) * FRIT_PAGE_TOKENS * sizeof *r->cos);
    r->sin = malloc((n_pairs + 1) * FRIT_PAGE_TOKENS * sizeof *r->sin);
    if (r->bytes && r->keys && r->cos && r->sin) return FRIT_OK;
    frit_kv_rotating_deinit(r);
    return frit_fail_memory(n_keys * sizeof *r->keys, "the keys of a page");
}

void frit_kv_rotating_deinit(frit_kv_rotating *r)
{
    free(r->bytes);
    free(r->keys);
    free(r->cos);
    free(r->sin);
    *r = (frit_kv_rotating){0};
}

// ------------------------------------------------------------------------------- rotation

static bool is_same(const frit_key_rotation *a, const frit_key_rotation *b)
{
    return a->inv_freq == b->inv_freq && a->factors == b->factors && a->rope.dim == b->rope.dim;
}

// Computes cos and sin. Consecutive keys that move by one distance share angles.
static void find_angles(frit_kv_rotating *r, const frit_key_rotation *by)
{
    if (r->of && is_same(r->of, by) && memcmp(r->of_distances, r->distances, sizeof r->distances) == 0) return;
    const float *inv_freq = by->inv_freq->data, *factors = by->factors ? by->factors->data : NULL;
    for (int32_t i = 0; i < by->rope.dim / 2; i++) {
        float *c = r->cos + (size_t)i * FRIT_PAGE_TOKENS, *s = r->sin + (size_t)i * FRIT_PAGE_TOKENS;
        for (int32_t p = 0; p < FRIT_PAGE_TOKENS; p++) {
            const double angle = (double)r->distances[p] * (double)inv_freq[i] / (factors ? (double)factors[i] : 1);
            const bool is_new = p == 0 || r->distances[p] != r->distances[p - 1];
            c[p] = is_new ? (float)cos(angle) : c[p - 1];
            s[p] = is_new ? (float)-sin(angle) : s[p - 1];   // rotates backwards
        }
    }
    r->of = by;
    memcpy(r->of_distances, r->distances, sizeof r->distances);
}

// Rotates a head. Number d of the key at position p is keys[d * by_number + p * by_position].
static void rotate_head(const frit_kv_rotating *r, const frit_key_rotation *by, float *keys,
                        const frit_cache_side *side)
{
    const int32_t n_pairs = by->rope.dim / 2;
    const bool is_interleaved = by->rope.style == FRIT_ROPE_INTERLEAVED;
    const size_t by_number = side->transposed ? FRIT_PAGE_TOKENS : 1;
    const size_t by_position = side->transposed ? 1 : (size_t)side->dim;
    for (int32_t i = 0; i < n_pairs; i++) {
        float *a = keys + (size_t)(by->rope.offset + (is_interleaved ? 2 * i : i)) * by_number;
        float *b = keys + (size_t)(by->rope.offset + (is_interleaved ? 2 * i + 1 : i + n_pairs)) * by_number;
        const float *c = r->cos + (size_t)i * FRIT_PAGE_TOKENS, *s = r->sin + (size_t)i * FRIT_PAGE_TOKENS;
        for (size_t p = 0; p < FRIT_PAGE_TOKENS; p++) {
            const float x = a[p * by_position], y = b[p * by_position];
            a[p * by_position] = x * c[p] - y * s[p];
            b[p * by_position] = x * s[p] + y * c[p];
        }
    }
}

// Block types store keys after a Hadamard transform, which is its own inverse.
static void rotate_keys(const frit_kv_rotating *r, const frit_cache_layer *layer, const frit_key_rotation *by,
                        uint8_t *bytes)
{
    const frit_cache_side *side = &layer->k;
    const frit_dtype_info *type = frit_dtype_get(side->dtype);
    const int64_t n_rows = (int64_t)layer->spec.n_head_kv * FRIT_PAGE_TOKENS, dim = side->dim;
    for (int64_t i = 0; i < n_rows; i++) {
        type->decode(bytes + (uint64_t)i * side->row_bytes, r->keys + i * dim, dim);
        frit_hadamard(r->keys + i * dim, dim, side->hadamard);
    }
    for (int32_t head = 0; head < layer->spec.n_head_kv; head++)
        rotate_head(r, by, r->keys + (int64_t)head * FRIT_PAGE_TOKENS * dim, side);
    for (int64_t i = 0; i < n_rows; i++) {
        frit_hadamard(r->keys + i * dim, dim, side->hadamard);
        type->encode(r->keys + i * dim, bytes + (uint64_t)i * side->row_bytes, dim, NULL);
    }
}

static frit_status rotate_layer(const frit_kv_rotating *r, int32_t i, int32_t page)
{
    const frit_cache_layer *layer = &r->kv->layers[i];
    const frit_kv_storage *storage = &r->kv->storages[r->kv->devices ? r->kv->devices[i] : 0];
    const frit_backend *backend = storage->device->backend;
    const frit_address address = {storage->memory, layer->k.offset + (uint64_t)page * layer->k.page_bytes};
    const uint64_t n_bytes = keys_bytes(layer);
    uint8_t *mapped = backend->map(storage->memory);
    uint8_t *bytes = mapped ? mapped + address.offset : r->bytes;
    if (!mapped) FRIT_TRY(backend->read(storage->device, address, bytes, n_bytes));
    rotate_keys(r, layer, &r->rotations[i], bytes);
    return mapped ? FRIT_OK : backend->write(storage->device, address, bytes, n_bytes);
}

frit_status frit_kv_rotate_page(frit_kv_rotating *r, int32_t group, int32_t page)
{
    for (int32_t i = 0; i < r->kv->n_layers; i++) {
        if (!has_keys(r->kv, i, group) || !r->rotations[i].is_rotated) continue;
        find_angles(r, &r->rotations[i]);
        FRIT_TRY(rotate_layer(r, i, page));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- pages

static frit_status copy_page(frit_kv *kv, int32_t g, int32_t *page)
{
    const int32_t copy = frit_kv_alloc_page(kv, g);
    const frit_status status = frit_kv_copy_page(kv, g, *page, copy);
    frit_kv_unref_page(&kv->groups[g], status == FRIT_OK ? *page : copy);
    if (status == FRIT_OK) *page = copy;
    return status;
}

// Pages that other maps share come first, because they must be copied.
frit_status frit_kv_own_pages(frit_kv *kv, int32_t group, frit_kv_table *table, int32_t first, int32_t end)
{
    frit_kv_group *g = &kv->groups[group];
    for (int32_t p = first; p < end; p++)
        if (g->refs[table->pages[p]] > 1) FRIT_TRY(copy_page(kv, group, &table->pages[p]));
    for (int32_t p = first; p < end; p++) {
        if (g->owners[table->pages[p]] < 0) continue;
        if (frit_kv_available(g) > 0)
            FRIT_TRY(copy_page(kv, group, &table->pages[p]));
        else
            frit_kv_drop_page(kv, group, table->pages[p]);
    }
    return FRIT_OK;
}

int32_t frit_kv_shared_pages(const frit_kv_group *group, const frit_kv_table *table, int32_t first, int32_t end)
{
    int32_t n = 0;
    for (int32_t p = first; p < end; p++) n += group->refs[table->pages[p]] > 1;
    return n;
}
