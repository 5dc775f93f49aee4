// SPDX-License-Identifier: MIT
// backend/webgpu/step_input.h: the input of a step as one array of words (kernels/step.wgsl): 16 words of numbers and
// offsets, then tokens, positions, sequences and page tables.
#pragma once
#include "backend/webgpu/exec.h"

// Writes the batch's input to the device's step buffer.
frit_status frit_webgpu_step_upload(frit_webgpu_device *device, const frit_webgpu_step *step);
// Most positions that a row of the batch sees, over all rows.
int64_t frit_webgpu_longest(const frit_batch *batch);
