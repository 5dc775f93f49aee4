// SPDX-License-Identifier: MIT
// backend/webgpu/ops/attend.h: attention, and writing the cache.
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_cache_fits(const frit_node *node);
frit_status frit_webgpu_lower_cache_write(frit_exec *exec, const frit_fusion *fusion);
frit_status frit_webgpu_lower_attend(frit_exec *exec, const frit_fusion *fusion);
// Parts of attention of each row of a step.
int32_t frit_webgpu_parts_of(const frit_batch *batch);
