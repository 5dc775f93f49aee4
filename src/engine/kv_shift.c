// SPDX-License-Identifier: MIT
// Positions that leave the middle of a text, and keys that move to earlier positions.
//
//     pages   [ kept | dropped | moved ... ]  ->  [ kept | moved ... ]
//
// Pages are taken out of the table as they are; only the keys of those that move change, for they are rotated by their
// position. All of them move by the same distance, so there is one sine and one cosine for each pair of a key's
// numbers. The keys of a page and layer are decoded, rotated as the model rotates, and encoded again, by the host: what
// it does not see is read from the device and written back. Values do not depend on positions.
//
// A page that moves must be the map's alone. What others have too, and what only the prefix cache has too, is copied.
#include "engine/kv.h"

#include "quant/dtype.h"
#include "quant/hadamard.h"

#include <math.h>
#include <stdlib.h>

typedef struct moving {
    const frit_kv *kv;
    const frit_kv_shift *shift;
    uint8_t *bytes;     // keys of a page and layer, where the host does not see the memory
    float *keys;        // the same, decoded
    float *cos, *sin;   // of each pair, of the layer that is rotated
    uint64_t n_bytes;   // most of any layer, encoded
    size_t n_keys, n_pairs;
} moving;

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

static frit_status start(moving *m, const frit_kv *kv, const frit_kv_shift *shift)
{
    *m = (moving){.kv = kv, .shift = shift};
    for (int32_t i = 0; i < kv->n_layers; i++) {
        const frit_cache_layer *layer = &kv->layers[i];
        if (layer->spec.kind == FRIT_CACHE_NONE) continue;
        if (keys_bytes(layer) > m->n_bytes) m->n_bytes = keys_bytes(layer);
        if (n_keys_of(layer) > m->n_keys) m->n_keys = n_keys_of(layer);
        if ((size_t)layer->k.dim > m->n_pairs) m->n_pairs = (size_t)layer->k.dim;
    }
    m->bytes = malloc((size_t)m->n_bytes + 1);
    m->keys = malloc((m->n_keys + 1) * sizeof *m->keys);
    m->cos = malloc((m->n_pairs + 1) * sizeof *m->cos);
    m->sin = malloc((m->n_pairs + 1) * sizeof *m->sin);
    if (m->bytes && m->keys && m->cos && m->sin) return FRIT_OK;
    return frit_fail_memory(m->n_keys * sizeof *m->keys, "the keys of a page");
}

static void end(moving *m)
{
    free(m->bytes);
    free(m->keys);
    free(m->cos);
    free(m->sin);
}

// ------------------------------------------------------------------------------- rotation

static void find_angles(const moving *m, const frit_key_rotation *by)
{
    const float *inv_freq = by->inv_freq->data, *factors = by->factors ? by->factors->data : NULL;
    for (int32_t i = 0; i < by->rope.dim / 2; i++) {
        const double angle = (double)m->shift->n_drop * (double)inv_freq[i] / (factors ? (double)factors[i] : 1);
        m->cos[i] = (float)cos(angle);
        m->sin[i] = (float)-sin(angle);   // backwards
    }
}

// Number d of the key at position p is keys[d * by_number + p * by_position].
static void rotate_head(const moving *m, const frit_key_rotation *by, float *keys, const frit_cache_side *side)
{
    const int32_t half = by->rope.dim / 2;
    const bool neighbours = by->rope.style == FRIT_ROPE_NEIGHBOURS;
    const size_t by_number = side->transposed ? FRIT_PAGE_TOKENS : 1;
    const size_t by_position = side->transposed ? 1 : (size_t)side->dim;
    for (int32_t i = 0; i < half; i++) {
        float *a = keys + (size_t)(by->rope.offset + (neighbours ? 2 * i : i)) * by_number;
        float *b = keys + (size_t)(by->rope.offset + (neighbours ? 2 * i + 1 : i + half)) * by_number;
        const float c = m->cos[i], s = m->sin[i];
        for (size_t p = 0; p < FRIT_PAGE_TOKENS * by_position; p += by_position) {
            const float x = a[p], y = b[p];
            a[p] = x * c - y * s;
            b[p] = x * s + y * c;
        }
    }
}

// Encoded rows are mixed where their type has blocks; the transform undoes itself.
static void rotate_page(const moving *m, const frit_cache_layer *layer, const frit_key_rotation *by, uint8_t *bytes)
{
    const frit_cache_side *side = &layer->k;
    const frit_dtype_info *type = frit_dtype_get(side->dtype);
    const int64_t n_rows = (int64_t)layer->spec.n_head_kv * FRIT_PAGE_TOKENS, dim = side->dim;
    for (int64_t i = 0; i < n_rows; i++) {
        type->decode(bytes + (uint64_t)i * side->row_bytes, m->keys + i * dim, dim);
        frit_hadamard(m->keys + i * dim, dim, side->hadamard);
    }
    for (int32_t head = 0; head < layer->spec.n_head_kv; head++)
        rotate_head(m, by, m->keys + (int64_t)head * FRIT_PAGE_TOKENS * dim, side);
    for (int64_t i = 0; i < n_rows; i++) {
        frit_hadamard(m->keys + i * dim, dim, side->hadamard);
        type->encode(m->keys + i * dim, bytes + (uint64_t)i * side->row_bytes, dim, NULL);
    }
}

static frit_status move_page(const moving *m, int32_t i, int32_t page)
{
    const frit_cache_layer *layer = &m->kv->layers[i];
    const frit_kv_part *part = &m->kv->parts[m->kv->devices ? m->kv->devices[i] : 0];
    const frit_backend *backend = part->device->backend;
    const frit_address place = {part->memory, layer->k.offset + (uint64_t)page * layer->k.page_bytes};
    const uint64_t n_bytes = keys_bytes(layer);
    uint8_t *mapped = backend->map(part->memory);
    uint8_t *bytes = mapped ? mapped + place.offset : m->bytes;
    if (!mapped) FRIT_TRY(backend->read(part->device, place, bytes, n_bytes));
    rotate_page(m, layer, &m->shift->rotations[i], bytes);
    return mapped ? FRIT_OK : backend->write(part->device, place, bytes, n_bytes);
}

static frit_status move_layers(const moving *m, int32_t g, const frit_kv_table *table)
{
    for (int32_t i = 0; i < m->kv->n_layers; i++) {
        const frit_key_rotation *by = &m->shift->rotations[i];
        const int32_t first = m->shift->n_keep / FRIT_PAGE_TOKENS;
        if (!has_keys(m->kv, i, g) || !by->is_rotated) continue;
        find_angles(m, by);
        for (int32_t p = table->begin > first ? table->begin : first; p < table->end; p++)
            FRIT_TRY(move_page(m, i, table->pages[p]));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- pages

typedef struct page_range {
    int32_t begin, end;
} page_range;

static int32_t at_least(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static page_range dropped(const frit_kv_table *table, const frit_kv_shift *shift)
{
    const int32_t first = shift->n_keep / FRIT_PAGE_TOKENS, last = first + shift->n_drop / FRIT_PAGE_TOKENS;
    page_range r = {at_least(table->begin, first), table->end < last ? table->end : last};
    r.end = at_least(r.begin, r.end);
    return r;
}

// Where the table begins after the shift.
static int32_t new_begin(const frit_kv_table *table, const frit_kv_shift *shift)
{
    const int32_t first = shift->n_keep / FRIT_PAGE_TOKENS, n = shift->n_drop / FRIT_PAGE_TOKENS;
    if (table->begin <= first) return table->begin;
    return at_least(first, table->begin - n);
}

bool frit_kv_can_shift(const frit_kv *kv, const frit_kv_map *map, const frit_kv_shift *shift, int32_t n_done)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const int32_t position = n_done - shift->n_drop;
        const int32_t first = frit_kv_first_position(kv->groups[g].window, position) / FRIT_PAGE_TOKENS;
        if (!kv->groups[g].of_source && new_begin(&map->tables[g], shift) > first) return false;
    }
    return true;
}

// Whether there are pages to copy those that move and that other maps have too, once those that go were given back.
static frit_status check_room(const frit_kv *kv, const frit_kv_map *map, const frit_kv_shift *shift)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        const frit_kv_table *table = &map->tables[g];
        int32_t n_available = frit_kv_available(group), n_shared = 0;
        if (group->of_source) continue;
        const page_range r = dropped(table, shift);
        for (int32_t p = r.begin; p < r.end; p++) n_available += group->refs[table->pages[p]] == 1;
        for (int32_t p = r.end; p < table->end; p++) n_shared += group->refs[table->pages[p]] > 1;
        if (n_shared > n_available)
            return frit_fail(FRIT_E_LIMIT,
                             "the cache is full: a context shift copies %d pages that others share, %d are free",
                             n_shared, n_available);
    }
    return FRIT_OK;
}

static frit_status copy_page(frit_kv *kv, int32_t g, int32_t *page)
{
    const int32_t copy = frit_kv_take_page(kv, g);
    const frit_status status = frit_kv_copy_page(kv, g, *page, copy);
    frit_kv_give_page(&kv->groups[g], status == FRIT_OK ? *page : copy);
    if (status == FRIT_OK) *page = copy;
    return status;
}

// Pages from this one on become the map's alone. What other maps have comes first: it cannot do without a copy.
static frit_status own_pages(frit_kv *kv, int32_t g, frit_kv_table *table, int32_t first)
{
    frit_kv_group *group = &kv->groups[g];
    for (int32_t p = first; p < table->end; p++)
        if (group->refs[table->pages[p]] > 1) FRIT_TRY(copy_page(kv, g, &table->pages[p]));
    for (int32_t p = first; p < table->end; p++) {
        if (group->owners[table->pages[p]] < 0) continue;
        if (frit_kv_available(group) > 0)
            FRIT_TRY(copy_page(kv, g, &table->pages[p]));
        else
            frit_kv_forget_page(kv, g, table->pages[p]);
    }
    return FRIT_OK;
}

static frit_status shift_table(frit_kv *kv, int32_t g, frit_kv_table *table, const moving *m)
{
    const page_range r = dropped(table, m->shift);
    const int32_t begin = new_begin(table, m->shift), n = m->shift->n_drop / FRIT_PAGE_TOKENS;
    for (int32_t p = r.begin; p < r.end; p++) frit_kv_give_page(&kv->groups[g], table->pages[p]);
    for (int32_t p = r.end; p < table->end; p++) table->pages[p - n] = table->pages[p];
    table->begin = begin;
    table->end = at_least(begin, table->end - n);
    FRIT_TRY(own_pages(kv, g, table, at_least(begin, m->shift->n_keep / FRIT_PAGE_TOKENS)));
    return move_layers(m, g, table);
}

frit_status frit_kv_shift_map(frit_kv *kv, frit_kv_map *map, const frit_kv_shift *shift, int32_t *n_done)
{
    moving m;
    FRIT_TRY(check_room(kv, map, shift));
    frit_status status = start(&m, kv, shift);
    if (status == FRIT_OK) {
        frit_kv_drop_snapshots(kv, map, shift->n_keep);
        frit_kv_trim_chain(kv, map, shift->n_keep);
        *n_done -= shift->n_drop;
        for (int32_t g = 0; g < kv->n_groups && status == FRIT_OK; g++)
            if (!kv->groups[g].of_source) status = shift_table(kv, g, &map->tables[g], &m);
        if (status != FRIT_OK) {
            frit_kv_release(kv, map);
            *n_done = 0;
        }
    }
    end(&m);
    return status;
}
