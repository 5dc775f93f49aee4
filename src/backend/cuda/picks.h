// SPDX-License-Identifier: MIT
// backend/cuda/picks.h: the picks of a step (sample/pick.h) on the GPU, by kernels/pick.cu. What they are is part of
// the step's input; results are written to memory of the host. Tokens also stay on the GPU, for the step after.
#pragma once
#include "backend/cuda/exec.h"

// Prepares the kernel and memory for steps with up to `most` picks. The tokens of the last step are kept.
frit_status frit_cuda_picks_prepare(frit_cuda_device *device, int64_t most);
uint64_t frit_cuda_picks_bytes(int64_t most);   // bytes that prepare allocates
void frit_cuda_picks_close(frit_cuda_device *device);
// Bytes of the batch's lists: biases, counts, masks.
size_t frit_cuda_picks_lists_bytes(const frit_batch *batch);
// Where the host writes picks and lists of a step, and the GPU address that the lists are copied to.
typedef struct frit_cuda_picks_staging {
    frit_gpu_pick *picks;
    uint8_t *lists;
    uint64_t lists_address;
} frit_cuda_picks_staging;
// Writes picks and lists of the batch, and makes room for their results.
frit_status frit_cuda_picks_write(frit_cuda_device *device, frit_cuda_flight *flight, const frit_batch *batch,
                                  const frit_cuda_picks_staging *staging);
// Number of passes over the logits that are launched for the batch.
int frit_cuda_picks_passes(const frit_batch *batch);
// Tokens of the last step; and where the next one, of flight picks.next, writes its tokens. It may read tokens of the
// last one where all steps run on one device, because the flights of such steps alternate.
uint64_t frit_cuda_picks_tokens(const frit_cuda_device *device);
uint64_t frit_cuda_picks_next_tokens(const frit_cuda_device *device);
void frit_cuda_picks_advance(frit_cuda_device *device, int32_t n_picks);   // the next step has been submitted
// rows: f32 [.., n_vocab], changed by biases and penalties. picks: frit_gpu_pick [n_picks] on the GPU. tokens: where
// it writes the picked tokens.
frit_status frit_cuda_picks_run(frit_cuda_device *device, uint64_t rows, uint64_t picks, uint64_t tokens,
                                const frit_batch *batch, int n_passes);
// Picks from rows of the step that was submitted last, after it (`pick` of frit_backend), in a flight of their own. The
// flight records no event.
frit_status frit_cuda_picks_run_late(frit_cuda_device *device, frit_cuda_flight *flight, uint64_t rows,
                                     const frit_batch *batch);
// Stores the results of a finished flight in its frit_step_output.
void frit_cuda_picks_deliver(const frit_cuda_flight *flight);
