// SPDX-License-Identifier: MIT
// backend/cuda/step_input.h: the input of a step (tokens, positions, page tables, picks) on its way to the GPU.
//
// The input is written to ordinary memory (staging), copied to pinned memory and from there to the GPU, on a stream of
// its own. Pinned memory is slow to write, so only the cache lines that changed since the flight's last step are
// copied.
#pragma once
#include "backend/cuda/step.h"

// Writes the batch's input, starts its upload, and sets the step's arrays, page_stride and n_row_tiles. Launches on
// the device's stream wait for the upload. The flight must be free: its last step is done.
frit_status frit_cuda_step_upload(frit_cuda_device *device, frit_cuda_flight *flight, const frit_batch *batch,
                                  frit_cuda_step *step);
