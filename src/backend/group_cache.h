// SPDX-License-Identifier: MIT
// backend/group_cache.h: private to group*.c: the cache of a group. Callers see the layout of one device; each rank has
// its heads of each layer, laid out alike on all ranks.
#pragma once
#include "backend/backend.h"

typedef struct frit_group_cache {
    frit_cache_layer *whole, *rank;   // [n_layers]: as callers see them, and on a rank
    int32_t n_layers, n_ranks;
    struct region *regions;   // pages of a group of layers
    int n_regions;
    uint64_t whole_bytes, rank_bytes;
} frit_group_cache;

frit_status frit_group_cache_init(frit_group_cache *cache, const frit_cache *layers, uint64_t n_bytes, int32_t n_ranks);
void frit_group_cache_deinit(frit_group_cache *cache);

// Bytes that a rank has: `whole` is their offset for callers, `rank` on the rank.
typedef struct frit_group_piece {
    uint64_t whole, rank, n_bytes;
} frit_group_piece;
typedef frit_status (*frit_group_piece_fn)(void *ctx, frit_group_piece piece);
// Calls fn for the bytes among [offset, offset + n_bytes) that the rank has. With `once`, bytes that several ranks have
// are those of the first one only.
frit_status frit_group_cache_each(const frit_group_cache *cache, int32_t rank, bool once, uint64_t offset,
                                  uint64_t n_bytes, frit_group_piece_fn fn, void *ctx);
// The offset on the rank of bytes that it has.
uint64_t frit_group_cache_offset(const frit_group_cache *cache, int32_t rank, uint64_t offset);
