// SPDX-License-Identifier: MIT
// The buffers of a group's GPUs: allocating them, giving the others access, and trying it.
#include "backend/cuda/group/peers.h"
#include "backend/cuda/kernels/args.h"

enum { GPU_MEMORY = 1, READ_AND_WRITE = 3, LEAST_UNIT = 0 };

static frit_status check(const frit_cuda_gpu *gpu, int result, const char *what)
{
    return frit_cuda_check(gpu->driver, result, what);
}

// A member's GPU and buffer, for the other members.
typedef struct card {
    int device;
    uint64_t buffer;
} card;

static frit_status meet(const frit_rank *rank, const card *own, const card *cards[FRIT_MEETING_MAX])
{
    const void *all[FRIT_MEETING_MAX];
    if (!frit_meeting_join(rank->meeting, rank->rank, own, all))
        return frit_fail(FRIT_E_INTERNAL, "cuda: another GPU of the group failed");
    for (int i = 0; i < rank->n; i++) cards[i] = all[i];
    return FRIT_OK;
}

static frit_status check_access(const frit_cuda_gpu *gpu, const frit_rank *rank, const card *const *cards)
{
    for (int i = 0; i < rank->n; i++) {
        int can = 0;
        if (i == rank->rank) continue;
        FRIT_TRY(check(gpu, gpu->driver->peer_access(&can, gpu->device, cards[i]->device), "asking for peers"));
        if (!can)
            return frit_fail(
                FRIT_E_UNSUPPORTED,
                "GPU %d cannot access the memory of GPU %d; a group of GPUs needs NVLink, or PCIe that lets "
                "peers read each other",
                gpu->device, cards[i]->device);
    }
    return FRIT_OK;
}

static frit_status alloc_buffer(frit_cuda_peers *p, const frit_cuda_gpu *gpu, const card *const *cards)
{
    const frit_cuda_driver *driver = gpu->driver;
    const frit_cuda_shared_memory kind = {.type = 1, .location_type = GPU_MEMORY, .device = gpu->device};
    frit_cuda_access access[FRIT_MEETING_MAX];
    uint64_t *at = &p->buffers[p->rank.rank];
    size_t unit = 0;
    FRIT_TRY(check(gpu, driver->shared_unit(&unit, &kind, LEAST_UNIT), "asking for the size of shared memory"));
    const size_t n_bytes = (FRIT_GPU_EXCHANGE_BYTES(p->rank.n) + unit - 1) / unit * unit;
    FRIT_TRY(check(gpu, driver->shared_alloc(&p->memory, n_bytes, &kind, 0), "allocating memory for a group of GPUs"));
    p->n_bytes = n_bytes;
    FRIT_TRY(check(gpu, driver->range_reserve(at, n_bytes, 0, 0, 0), "reserving addresses for a group of GPUs"));
    FRIT_TRY(check(gpu, driver->range_map(*at, n_bytes, 0, p->memory, 0), "mapping memory for a group of GPUs"));
    for (int i = 0; i < p->rank.n; i++)
        access[i] =
            (frit_cuda_access){.location_type = GPU_MEMORY, .device = cards[i]->device, .flags = READ_AND_WRITE};
    FRIT_TRY(
        check(gpu, driver->range_allow(*at, n_bytes, access, (size_t)p->rank.n), "giving GPUs access to each other"));
    FRIT_TRY(check(gpu, driver->memory_set(*at, 0, n_bytes, NULL), "clearing memory for a group of GPUs"));
    return check(gpu, driver->context_wait(), "clearing memory for a group of GPUs");
}

// A number that only this rank writes, into the place of this rank in each buffer.
static uint64_t mark_of(int rank)
{
    return 0x5eed0000c0ffee00u + (uint64_t)rank;
}

static frit_status write_marks(const frit_cuda_peers *p, const frit_cuda_gpu *gpu)
{
    const uint64_t mark = mark_of(p->rank.rank);
    for (int i = 0; i < p->rank.n; i++)
        FRIT_TRY(check(
            gpu, gpu->driver->copy_up(p->buffers[i] + (uint64_t)p->rank.rank * sizeof mark, &mark, sizeof mark, NULL),
            "writing to another GPU"));
    return check(gpu, gpu->driver->context_wait(), "writing to another GPU");
}

static frit_status check_marks(const frit_cuda_peers *p, const frit_cuda_gpu *gpu)
{
    uint64_t found[FRIT_MEETING_MAX] = {0};
    const size_t n_bytes = (size_t)p->rank.n * sizeof *found;
    FRIT_TRY(check(gpu, gpu->driver->copy_down(found, p->buffers[p->rank.rank], n_bytes, NULL), "reading from a GPU"));
    FRIT_TRY(check(gpu, gpu->driver->context_wait(), "reading from a GPU"));
    for (int i = 0; i < p->rank.n; i++)
        if (found[i] != mark_of(i))
            return frit_fail(FRIT_E_UNSUPPORTED, "GPU %d does not see what member %d of its group wrote: found %llx",
                             gpu->device, i, (unsigned long long)found[i]);
    return FRIT_OK;
}

frit_status frit_cuda_peers_open(frit_cuda_peers *p, const frit_cuda_gpu *gpu, const frit_rank *rank)
{
    const card *cards[FRIT_MEETING_MAX];
    card own = {.device = gpu->device}, mapped;
    *p = (frit_cuda_peers){.rank = *rank};
    FRIT_TRY(meet(rank, &own, cards));
    FRIT_TRY(check_access(gpu, rank, cards));
    FRIT_TRY(alloc_buffer(p, gpu, cards));
    mapped = (card){.device = gpu->device, .buffer = p->buffers[rank->rank]};
    FRIT_TRY(meet(rank, &mapped, cards));
    for (int i = 0; i < rank->n; i++) p->buffers[i] = cards[i]->buffer;
    FRIT_TRY(write_marks(p, gpu));
    FRIT_TRY(meet(rank, &mapped, cards));
    FRIT_TRY(check_marks(p, gpu));
    return meet(rank, &mapped, cards);   // until here the cards are read, and no kernel writes over the marks
}

void frit_cuda_peers_close(frit_cuda_peers *p, const frit_cuda_gpu *gpu)
{
    const uint64_t own = p->rank.n > 0 ? p->buffers[p->rank.rank] : 0;
    if (own) gpu->driver->range_unmap(own, p->n_bytes);
    if (own) gpu->driver->range_free(own, p->n_bytes);
    if (p->memory) gpu->driver->shared_free(p->memory);
    *p = (frit_cuda_peers){0};
}
