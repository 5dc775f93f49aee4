// SPDX-License-Identifier: MIT
// backend/webgpu/ops/attend.h: attention, and writing the cache.
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_cache_fits(const frit_node *node);
frit_status frit_webgpu_lower_cache_write(frit_exec *exec, const frit_fusion *fusion);
// The launch of a write to the cache, to which others add (ops/rotate.c).
frit_status frit_webgpu_cache_write_new(frit_exec *exec, const frit_node *node, frit_webgpu_launch **out);
frit_status frit_webgpu_lower_attend(frit_exec *exec, const frit_fusion *fusion);
// Parts of attention of each row of a step.
int32_t frit_webgpu_parts_of(const frit_batch *batch);
// Blocks of rows of one sequence that attention of a step with prompts has; 0: it goes row by row.
int32_t frit_webgpu_blocks_of(const frit_batch *batch);
