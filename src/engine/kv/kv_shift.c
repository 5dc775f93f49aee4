// SPDX-License-Identifier: MIT
// Context shift: drops positions in the middle of a text and moves the later ones down.
//
//     pages   [ kept | dropped | moved ... ]  ->  [ kept | moved ... ]
//
// Pages leave the table unchanged. Only keys of moved pages change, because keys are rotated by their position
// (kv_rotate.h). All keys move by the same distance.
//
// A moved page must belong to this map alone. Pages that other maps or the prefix cache share are copied.
#include "engine/kv/kv_rotate.h"

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

// Returns the first page of the table after the shift.
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

// Fails if too few pages are available, after the dropped ones are unreferenced, to copy the moved pages that are
// shared.
static frit_status check_room(const frit_kv *kv, const frit_kv_map *map, const frit_kv_shift *shift)
{
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        const frit_kv_table *table = &map->tables[g];
        int32_t n_available = frit_kv_available(group);
        if (group->of_source) continue;
        const page_range r = dropped(table, shift);
        for (int32_t p = r.begin; p < r.end; p++) n_available += group->refs[table->pages[p]] == 1;
        const int32_t n_shared = frit_kv_shared_pages(group, table, r.end, table->end);
        if (n_shared > n_available)
            return frit_fail(FRIT_E_LIMIT,
                             "the cache is full: a context shift copies %d pages that others share, %d are free",
                             n_shared, n_available);
    }
    return FRIT_OK;
}

static frit_status shift_table(frit_kv *kv, int32_t g, frit_kv_table *table, const frit_kv_shift *shift,
                               frit_kv_rotating *r)
{
    const page_range gone = dropped(table, shift);
    const int32_t begin = new_begin(table, shift), n = shift->n_drop / FRIT_PAGE_TOKENS;
    const int32_t first = at_least(begin, shift->n_keep / FRIT_PAGE_TOKENS);
    for (int32_t p = gone.begin; p < gone.end; p++) frit_kv_unref_page(&kv->groups[g], table->pages[p]);
    for (int32_t p = gone.end; p < table->end; p++) table->pages[p - n] = table->pages[p];
    table->begin = begin;
    table->end = at_least(begin, table->end - n);
    FRIT_TRY(frit_kv_own_pages(kv, g, table, first, table->end));
    for (int32_t p = first; p < table->end; p++) FRIT_TRY(frit_kv_rotate_page(r, g, table->pages[p]));
    return FRIT_OK;
}

frit_status frit_kv_shift_map(frit_kv *kv, frit_kv_map *map, const frit_kv_shift *shift, int32_t *n_done)
{
    frit_kv_rotating r;
    frit_status status = FRIT_OK;
    FRIT_TRY(check_room(kv, map, shift));
    FRIT_TRY(frit_kv_rotating_init(&r, kv, shift->rotations));
    for (int32_t i = 0; i < FRIT_PAGE_TOKENS; i++) r.distances[i] = shift->n_drop;
    frit_kv_drop_snapshots(kv, map, shift->n_keep);
    frit_kv_trim_page_list(kv, map, shift->n_keep);
    *n_done -= shift->n_drop;
    for (int32_t g = 0; g < kv->n_groups && status == FRIT_OK; g++)
        if (!kv->groups[g].of_source) status = shift_table(kv, g, &map->tables[g], shift, &r);
    if (status != FRIT_OK) {
        frit_kv_release(kv, map);
        *n_done = 0;
    }
    frit_kv_rotating_deinit(&r);
    return status;
}
