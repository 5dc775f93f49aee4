// SPDX-License-Identifier: MIT
// backend/cuda/group/peers.h: memory through which the GPUs of a group exchange values (backend/group.h). Each GPU has
// a buffer that the others can write; weights and caches stay private.
#pragma once
#include "backend/cuda/runtime/driver.h"
#include "base/thread/meeting.h"

typedef struct frit_cuda_peers {
    frit_rank rank;                       // n 0: the GPU is no member of a group
    uint64_t buffers[FRIT_MEETING_MAX];   // of each rank, at the same address for all GPUs
    uint64_t memory, n_bytes;             // this rank's
} frit_cuda_peers;

// All members call it, each on its own thread. It ends when each member has written into the buffers of all others, and
// has found what they wrote. FRIT_E_UNSUPPORTED: two GPUs cannot access each other's memory. A member that fails breaks
// the meeting.
frit_status frit_cuda_peers_open(frit_cuda_peers *peers, const frit_cuda_gpu *gpu, const frit_rank *rank);
// Call it when no GPU of the group runs anything.
void frit_cuda_peers_close(frit_cuda_peers *peers, const frit_cuda_gpu *gpu);
