// SPDX-License-Identifier: MIT
// backend/webgpu/picks.h: the picks of a step (sample/pick.h).
//
// Picks run on the GPU (kernels/pick.wgsl, kernels/pick_run.wgsl): the host reads the tokens instead of the logits, and
// the next step finds them on the GPU. If a pick of a step needs what the kernels lack (top-p of all tokens, lists of
// more than 256, top-n-sigma, log-probabilities), or the host wants logits, the host runs all picks of the step when it
// waits for it, and a step that needs their tokens waits too.
#pragma once
#include "backend/webgpu/exec.h"

enum { FRIT_WEBGPU_PICK_BYTES = 16 };   // of a result

// Adds the launches of picks after those of the plan's nodes.
frit_status frit_webgpu_picks_lower(frit_exec *exec);
// The kernels that the first n_picks picks of the batch need, as bits.
int32_t frit_webgpu_pick_stages(const frit_batch *batch, int32_t n_picks);
// The picks in the input of a step: their number of words, and writing them from to[at] on. Returns the end.
size_t frit_webgpu_picks_words(const frit_webgpu_step *step);
size_t frit_webgpu_picks_put(const frit_webgpu_step *step, uint32_t *to, size_t at);
// Decides where the picks of the batch run, and stores in the flight what their results need.
frit_status frit_webgpu_picks_begin(const frit_exec *exec, const frit_batch *batch, const frit_step_output *output,
                                    frit_webgpu_flight *flight);
// Sets tokens of the batch that the step `before` picked, unless its picks ran on the GPU and are there (is_kept).
// Waits for that step if it must. flight: of the batch.
frit_status frit_webgpu_picks_resolve(frit_webgpu_device *device, frit_webgpu_flight *before,
                                      const frit_webgpu_flight *flight, bool is_kept, frit_batch *batch);
// Stores the results of picks of a finished step.
void frit_webgpu_picks_deliver(frit_webgpu_device *device, frit_webgpu_flight *flight);
