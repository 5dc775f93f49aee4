// SPDX-License-Identifier: MIT
// webgpu_bench.h: declarations that the measurements of WebGPU share. A failure ends the program with its error.
#pragma once
#include "backend/webgpu/runtime/gpu.h"

void must(frit_status status);   // ends the program after a failure
// Microseconds of a list of n dispatches, the least of some runs. from: a buffer that they write. *encode: microseconds
// of encoding and submitting the list.
double time_dispatches(frit_gpu *gpu, const frit_gpu_buffer *from, const frit_gpu_dispatch *list, size_t n,
                       double *encode);
// Generation and a prompt of a random model; n_layers 0: all layers.
void bench_model(const char *library, const char *shape, const char *type, int n_prompt, int n_layers);
