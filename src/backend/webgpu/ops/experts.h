// SPDX-License-Identifier: MIT
// backend/webgpu/ops/experts.h: mixtures of experts: routes, products with the matrices of the experts that a route
// names, and heads with their own matrices. Routes are read on the GPU, so the launches of a step depend on its number
// of rows alone.
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_route_fits(const frit_node *node);
bool frit_webgpu_experts_fit(const frit_node *node);   // EXPERTS, EXPERTS_GLU, EXPERTS_MIX, HEADS
frit_status frit_webgpu_lower_route(frit_exec *exec, const frit_fusion *fusion);
frit_status frit_webgpu_lower_experts(frit_exec *exec, const frit_fusion *fusion);
