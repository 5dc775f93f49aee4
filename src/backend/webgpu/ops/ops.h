// SPDX-License-Identifier: MIT
// backend/webgpu/ops/ops.h: a table: which ops the GPU runs, in which shapes, and the launches of each.
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_runs(const frit_device *device, const frit_node *node);   // `runs` of frit_backend
// True if source i of the node is a matrix in tiles.
bool frit_webgpu_is_tiled(const frit_node *node, int source);
// Adds the launch that adds source `source` of an ADD to `result` in place, as a part of the fusion with this result.
frit_status frit_webgpu_lower_addition(frit_exec *exec, const frit_node *sum, int source, const frit_node *result);
// Adds the launches of a fusion.
frit_status frit_webgpu_lower(frit_exec *exec, const frit_fusion *fusion);
