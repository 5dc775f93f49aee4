// SPDX-License-Identifier: MIT
// engine/kv/kv_rotate.h: rotates cached keys back when they move to earlier positions.
//
// The host decodes the keys of a page and layer, rotates them as the model does, and encodes them again. Keys in memory
// that the host does not see are read and written back. Values do not depend on positions. A page whose keys change
// must belong to one map alone.
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
    uint8_t *bytes;                        // keys of a page and layer, if the host does not see the memory
    float *keys;                           // the decoded keys
    float *cos, *sin;                      // [pairs, FRIT_PAGE_TOKENS], for `of` and `of_distances`
    const frit_key_rotation *of;           // rotation that cos and sin were computed for; NULL: none yet
    int32_t of_distances[FRIT_PAGE_TOKENS];
} frit_kv_rotating;

frit_status frit_kv_rotating_init(frit_kv_rotating *r, const frit_kv *kv, const frit_key_rotation *rotations);
void frit_kv_rotating_deinit(frit_kv_rotating *r);
// Rotates the keys of a page in all layers of the group. Fails only if the device fails.
frit_status frit_kv_rotate_page(frit_kv_rotating *r, int32_t group, int32_t page);

// Makes pages [first, end) of a table its map's own. Pages that other maps share are copied; there must be room
// (frit_kv_shared_pages). Pages that only the prefix cache shares are copied if there is room, else the prefix cache
// drops them.
frit_status frit_kv_own_pages(frit_kv *kv, int32_t group, frit_kv_table *table, int32_t first, int32_t end);
int32_t frit_kv_shared_pages(const frit_kv_group *group, const frit_kv_table *table, int32_t first, int32_t end);
