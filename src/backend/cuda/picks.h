// SPDX-License-Identifier: MIT
// backend/cuda/picks.h: the picks of a step (sample/pick.h) on the GPU, by kernels/pick.cu. What they are is part of
// the step's input; results are written to memory of the host. Tokens also stay on the GPU, for the step after.
#pragma once
#include "backend/cuda/exec.h"

// Kernel and memory, for steps with so many picks; the tokens of the last step stay.
frit_status frit_cuda_picks_prepare(frit_cuda_device *device, int64_t most);
uint64_t frit_cuda_picks_bytes(int64_t most);   // that this allocates
void frit_cuda_picks_close(frit_cuda_device *device);
// Bytes of the lists that the picks of a batch share.
size_t frit_cuda_picks_lists_bytes(const frit_batch *batch);
// Writes picks and lists, where they lie on the host before they are copied to `picks_address` and `lists_address`, and
// makes room for results.
typedef struct frit_cuda_picks_staging {
    frit_gpu_pick *picks;
    uint8_t *lists;
    uint64_t lists_address;
} frit_cuda_picks_staging;
frit_status frit_cuda_picks_write(frit_cuda_device *device, frit_cuda_flight *flight, const frit_batch *batch,
                                  const frit_cuda_picks_staging *place);
// How many passes over the rows are launched.
int frit_cuda_picks_passes(const frit_batch *batch);
// rows: f32 [.., n_vocab], which change; picks: where they are on the GPU.
frit_status frit_cuda_picks_run(frit_cuda_device *device, uint64_t rows, uint64_t picks, const frit_batch *batch,
                                int n_passes);
// The results of a flight that is done.
void frit_cuda_picks_deliver(const frit_cuda_flight *flight);
