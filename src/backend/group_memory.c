// SPDX-License-Identifier: MIT
// Memory of a group: of each rank. The host sees none of it: it is read and written.
#include "backend/group_device.h"

#include <stdlib.h>

typedef struct memory_call {
    group_memory *memory;
    uint64_t n_bytes;
} memory_call;

static frit_status alloc_rank(frit_group *group, int rank, void *ctx)
{
    const memory_call *call = ctx;
    return group->kind->alloc(group->members[rank], call->n_bytes, &call->memory->ranks[rank]);
}

static frit_status free_rank(frit_group *group, int rank, void *ctx)
{
    group->kind->free(group->members[rank], ((group_memory *)ctx)->ranks[rank]);
    return FRIT_OK;
}

void frit_group_free(frit_device *base, frit_memory *memory)
{
    group_memory *m = (group_memory *)memory;
    if (!m) return;
    frit_group_on_all((frit_group *)base, free_rank, m);
    frit_group_cache_deinit(&m->cache);
    free(m);
}

static frit_status alloc_memory(frit_group *group, group_memory *memory, uint64_t n_bytes, frit_memory **out)
{
    const frit_status status = frit_group_run(group, alloc_rank, &(memory_call){memory, n_bytes});
    if (status == FRIT_OK)
        *out = &memory->base;
    else
        frit_group_free(&group->base, &memory->base);
    return status;
}

static frit_status new_memory(frit_group *group, uint64_t n_bytes, group_memory **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return frit_fail_memory(sizeof **out, "memory of a group");
    (*out)->base = (frit_memory){&group->base, n_bytes};
    return FRIT_OK;
}

frit_status frit_group_alloc(frit_device *base, uint64_t n_bytes, frit_memory **out)
{
    group_memory *memory;
    *out = NULL;
    FRIT_TRY(new_memory((frit_group *)base, n_bytes, &memory));
    return alloc_memory((frit_group *)base, memory, n_bytes, out);
}

frit_status frit_group_alloc_cache(frit_device *base, const frit_cache *cache, uint64_t n_bytes, frit_memory **out)
{
    frit_group *group = (frit_group *)base;
    group_memory *memory;
    *out = NULL;
    FRIT_TRY(new_memory(group, n_bytes, &memory));
    const frit_status status = frit_group_cache_init(&memory->cache, cache, n_bytes, group->n);
    if (status != FRIT_OK) {
        free(memory);
        return status;
    }
    FRIT_TRY(alloc_memory(group, memory, memory->cache.rank_bytes, out));
    for (int i = 0; i < group->n; i++)
        memory->caches[i] =
            (frit_cache){.layers = memory->cache.rank, .n_layers = memory->cache.n_layers, .memory = memory->ranks[i]};
    return FRIT_OK;
}

void *frit_group_map(const frit_memory *memory)
{
    (void)memory;
    return NULL;
}

// ------------------------------------------------------------------------------- reading and writing

typedef struct transfer {
    frit_group *group;
    group_memory *memory, *to;
    uint64_t offset, to_offset, n_bytes;
    uint8_t *read;   // host memory for `offset`
    const uint8_t *written;
    int rank;
} transfer;

static frit_status read_piece(void *ctx, frit_group_piece piece)
{
    const transfer *t = ctx;
    return t->group->kind->read(t->group->members[t->rank], (frit_address){t->memory->ranks[t->rank], piece.rank},
                                t->read + (piece.whole - t->offset), piece.n_bytes);
}

static frit_status write_piece(void *ctx, frit_group_piece piece)
{
    const transfer *t = ctx;
    return t->group->kind->write(t->group->members[t->rank], (frit_address){t->memory->ranks[t->rank], piece.rank},
                                 t->written + (piece.whole - t->offset), piece.n_bytes);
}

// Pieces are copied to others at the same distance from the beginning.
static frit_status copy_piece(void *ctx, frit_group_piece piece)
{
    const transfer *t = ctx;
    const uint64_t to = frit_group_cache_offset(&t->memory->cache, t->rank, t->to_offset + (piece.whole - t->offset));
    return t->group->kind->copy(t->group->members[t->rank], (frit_address){t->memory->ranks[t->rank], to},
                                (frit_address){t->memory->ranks[t->rank], piece.rank}, piece.n_bytes);
}

static frit_status read_rank(frit_group *group, int rank, void *ctx)
{
    transfer t = *(const transfer *)ctx;
    t.rank = rank;
    if (t.memory->cache.n_layers > 0)
        return frit_group_cache_each(&t.memory->cache, rank, true, t.offset, t.n_bytes, read_piece, &t);
    if (rank > 0) return FRIT_OK;
    return group->kind->read(group->members[0], (frit_address){t.memory->ranks[0], t.memory->offsets[0] + t.offset},
                             t.read, t.n_bytes);
}

static frit_status write_rank(frit_group *group, int rank, void *ctx)
{
    transfer t = *(const transfer *)ctx;
    t.rank = rank;
    if (t.memory->cache.n_layers > 0)
        return frit_group_cache_each(&t.memory->cache, rank, false, t.offset, t.n_bytes, write_piece, &t);
    return group->kind->write(group->members[rank],
                              (frit_address){t.memory->ranks[rank], t.memory->offsets[rank] + t.offset}, t.written,
                              t.n_bytes);
}

static frit_status copy_rank(frit_group *group, int rank, void *ctx)
{
    transfer t = *(const transfer *)ctx;
    t.rank = rank;
    if (t.memory->cache.n_layers > 0 && t.memory == t.to)
        return frit_group_cache_each(&t.memory->cache, rank, false, t.offset, t.n_bytes, copy_piece, &t);
    return group->kind->copy(group->members[rank], (frit_address){t.to->ranks[rank], t.to->offsets[rank] + t.to_offset},
                             (frit_address){t.memory->ranks[rank], t.memory->offsets[rank] + t.offset}, t.n_bytes);
}

frit_status frit_group_read(frit_device *base, frit_address from, void *to, uint64_t n_bytes)
{
    transfer t = {.group = (frit_group *)base,
                  .memory = (group_memory *)from.memory,
                  .offset = from.offset,
                  .n_bytes = n_bytes,
                  .read = to};
    return frit_group_run(t.group, read_rank, &t);
}

frit_status frit_group_write(frit_device *base, frit_address to, const void *from, uint64_t n_bytes)
{
    transfer t = {.group = (frit_group *)base,
                  .memory = (group_memory *)to.memory,
                  .offset = to.offset,
                  .n_bytes = n_bytes,
                  .written = from};
    return frit_group_run(t.group, write_rank, &t);
}

frit_status frit_group_copy(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    transfer t = {.group = (frit_group *)base,
                  .memory = (group_memory *)from.memory,
                  .to = (group_memory *)to.memory,
                  .offset = from.offset,
                  .to_offset = to.offset,
                  .n_bytes = n_bytes};
    return frit_group_run(t.group, copy_rank, &t);
}
