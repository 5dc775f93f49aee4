// SPDX-License-Identifier: MIT
// backend/webgpu/runtime/scope.h: errors of the calls between begin and end, as a status; waiting for callbacks. For
// the files of this folder.
#pragma once
#include "backend/webgpu/runtime/gpu.h"

void frit_gpu_scope_begin(frit_gpu *gpu);
frit_status frit_gpu_scope_end(frit_gpu *gpu, const char *what);
bool frit_gpu_wait_until(frit_gpu *gpu, const _Atomic bool *is_done);
