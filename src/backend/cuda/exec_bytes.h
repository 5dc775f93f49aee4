// SPDX-License-Identifier: MIT
// backend/cuda/exec_bytes.h: GPU memory that a plan needs beside weights and cache.
#pragma once
#include "backend/cuda/device.h"

// `exec_bytes` of frit_backend. Nothing is lowered, compiled or allocated. The result is not less than what
// frit_cuda_prepare allocates; page tables of a step and the lists of its picks (masks, biases) are not counted.
frit_status frit_cuda_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
