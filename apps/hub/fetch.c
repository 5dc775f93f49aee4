// SPDX-License-Identifier: MIT
// Fetches a file while other processes may fetch it too.
#include "hub/disk.h"
#include "hub/transfer.h"

#include <stdlib.h>
#include <string.h>

static bool is_there(const hub_transfer *t)
{
    const uint64_t n = hub_file_bytes(t->target);
    return n != UINT64_MAX && (t->n_bytes == UINT64_MAX || n == t->n_bytes);
}

hub_status hub_fetch(const hub_transfer *transfer, const char *lock)
{
    hub_handle held;
    if (is_there(transfer)) return HUB_OK;
    hub_status status = hub_lock(lock, transfer->what, transfer->watch, &held);
    if (status != HUB_OK) return status;
    if (!is_there(transfer)) status = hub_transfer_run(transfer);
    hub_unlock(held);
    return status;
}
