// SPDX-License-Identifier: MIT
// backend/webgpu/ops/rotate.h: norms of heads, rotations and the write to the cache of a layer as one launch.
#pragma once
#include "backend/webgpu/exec.h"

// Adds one launch for the first *n_done of the n fusions. *n_done is 0 if they are something else.
frit_status frit_webgpu_lower_rotated(frit_exec *exec, const frit_fusion *fusions, int n, int *n_done);
