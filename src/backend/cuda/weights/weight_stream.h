// SPDX-License-Identifier: MIT
// backend/cuda/weights/weight_stream.h: matrices that do not stay on the GPU but are copied to it for each step: those
// of layers on the CPU, for steps of many rows. Executables share FRIT_CUDA_STREAM_BUFFERS buffers; while one runs, the
// matrices of the executable that followed it in the step before are copied to another buffer.
#pragma once
#include "backend/cuda/step.h"

// Reserves an offset in the executable's buffer for the tensor.
frit_status frit_cuda_weight_stream_add(frit_exec *exec, const frit_cuda_tensor *tensor, frit_cuda_address *out);
// Assigns a buffer, once all tensors are added.
frit_status frit_cuda_weight_stream_join(frit_exec *exec);
// Makes the device's stream wait until the buffer is filled. *address: of the buffer.
frit_status frit_cuda_weight_stream_begin(frit_exec *exec, uint64_t *address);
// Call it after the launches that read the buffer: it may be filled again once they have run.
frit_status frit_cuda_weight_stream_end(frit_exec *exec);
void frit_cuda_weight_stream_leave(frit_exec *exec);
void frit_cuda_weight_stream_close(frit_cuda_device *device);
