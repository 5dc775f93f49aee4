// SPDX-License-Identifier: MIT
// backend/webgpu/ops/adapt.h: adapters: their numbers on the GPU, and the launches that add their terms
// (kernels/adapt.wgsl).
#pragma once
#include "backend/webgpu/exec.h"

bool frit_webgpu_adapt_fits(const frit_node *node);   // ADAPT_DOWN, ADAPT_UP, STEER
frit_status frit_webgpu_lower_adapt(frit_exec *exec, const frit_fusion *fusion);
// Adds the terms of adapters to the results of a product, in place. Does nothing if the product has no adapters.
frit_status frit_webgpu_lower_adapted(frit_exec *exec, const frit_node *linear);
// `set_adapter` of frit_backend.
frit_status frit_webgpu_set_adapter(frit_device *device, int32_t index, const frit_adapter_table *table);
void frit_webgpu_adapters_free(frit_webgpu_device *device);
