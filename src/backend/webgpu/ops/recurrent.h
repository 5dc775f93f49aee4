// SPDX-License-Identifier: MIT
// backend/webgpu/ops/recurrent.h: ops that read and write a session's state (kernels/recurrent.wgsl).
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_recurrent_fits(const frit_node *node);
frit_status frit_webgpu_lower_recurrent(frit_exec *exec, const frit_fusion *fusion);
