// SPDX-License-Identifier: MIT
// engine/kv/kv_rotate.h: cached keys move to earlier positions: each is rotated back by the distance that it moves.
//
// The keys of a page and layer are decoded, rotated as the model rotates, and encoded again, by the host: what it does
// not see is read from the device and written back. Values do not depend on positions. A page whose keys change must
// be the map's alone.
//
//     frit_kv_rotating r;
//     FRIT_TRY(frit_kv_rotating_init(&r, kv, rotations));
//     ...
//     for (int32_t i = 0; i < FRIT_PAGE_TOKENS; i++) r.distances[i] = ...;
//     FRIT_TRY(frit_kv_rotate_page(&r, group, page));
//     ...
//     frit_kv_rotating_deinit(&r);
#pragma once
#include "engine/kv/kv.h"

typedef struct frit_kv_rotating {
    const frit_kv *kv;
    const frit_key_rotation *rotations;    // [n_layers]
    int32_t distances[FRIT_PAGE_TOKENS];   // by which the keys of a page move, 0 or more
    uint8_t *bytes;                        // keys of a page and layer, where the host does not see the memory
    float *keys;                           // the same, decoded
    float *cos, *sin;                      // [pairs, FRIT_PAGE_TOKENS], of the layer that is rotated
    const frit_key_rotation *of;           // the rotation that these are of, and the distances; NULL: none yet
    int32_t of_distances[FRIT_PAGE_TOKENS];
} frit_kv_rotating;

frit_status frit_kv_rotating_init(frit_kv_rotating *r, const frit_kv *kv, const frit_key_rotation *rotations);
void frit_kv_rotating_deinit(frit_kv_rotating *r);
// Rotates the keys that a page has of all layers of the group. An error is the device's.
frit_status frit_kv_rotate_page(frit_kv_rotating *r, int32_t group, int32_t page);

// Pages [first, end) of a table become its map's alone; there must be room for copies (frit_kv_shared_pages). What
// other maps have is copied; what only the prefix cache has too, where there is room, and else it forgets the page.
frit_status frit_kv_own_pages(frit_kv *kv, int32_t group, frit_kv_table *table, int32_t first, int32_t end);
int32_t frit_kv_shared_pages(const frit_kv_group *group, const frit_kv_table *table, int32_t first, int32_t end);
