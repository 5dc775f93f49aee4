// SPDX-License-Identifier: MIT
// Copies between GPUs, each of which has a part of the layers. The host waits for none of them: events order them.
//
//     source    step k ......... | copy | step k + 1 ...
//     target    step k - 1 ... | ------ | step k ...
//                              ^ is_read, then is_sent after the copy
#include "backend/cuda/group/receive.h"

static frit_status check(const frit_cuda_device *d, int result)
{
    return frit_cuda_check(&d->driver, result, "copying from one GPU to another");
}

static frit_status use(const frit_cuda_device *d)
{
    return check(d, d->driver.context_use(d->gpu.context));
}

// Lets copies go through the link between both GPUs. Without a link the driver copies through the host.
static frit_status allow(frit_cuda_device *d, const frit_cuda_device *other)
{
    int can = 0;
    if (d->linked >> other->gpu.device & 1) return FRIT_OK;
    d->linked |= (uint64_t)1 << other->gpu.device;
    if (d->driver.peer_access(&can, d->gpu.device, other->gpu.device) != 0 || !can) return FRIT_OK;
    FRIT_TRY(use(d));
    d->driver.peer_allow(other->gpu.context, 0);   // fails if another engine has allowed it
    return FRIT_OK;
}

frit_status frit_cuda_receive(frit_device *base, frit_address to, frit_address from, uint64_t n_bytes)
{
    frit_cuda_device *target = (frit_cuda_device *)base, *source = (frit_cuda_device *)from.memory->device;
    const uint64_t at = ((frit_cuda_memory *)to.memory)->address + to.offset,
                   given = ((frit_cuda_memory *)from.memory)->address + from.offset;
    FRIT_TRY(allow(source, target));
    FRIT_TRY(allow(target, source));
    FRIT_TRY(use(target));
    FRIT_TRY(check(target, target->driver.event_record(target->is_read, target->stream)));
    FRIT_TRY(use(source));
    FRIT_TRY(check(source, source->driver.stream_wait_event(source->stream, target->is_read, 0)));
    FRIT_TRY(check(source, source->driver.copy_peer(at, target->gpu.context, given, source->gpu.context,
                                                    (size_t)n_bytes, source->stream)));
    FRIT_TRY(check(source, source->driver.event_record(source->is_sent, source->stream)));
    FRIT_TRY(use(target));
    return check(target, target->driver.stream_wait_event(target->stream, source->is_sent, 0));
}
