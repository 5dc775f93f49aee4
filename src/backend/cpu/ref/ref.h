// SPDX-License-Identifier: MIT
// backend/cpu/ref/ref.h: helpers of the reference kernels, whose prototypes are in task.h.
#pragma once
#include "backend/cpu/task.h"

// f(x) of an activation function.
double frit_ref_act_value(frit_act act, double x);
// The dot product in double, with four independent accumulators.
double frit_ref_dot(const float *a, const float *b, int64_t n);
size_t frit_ref_experts_mix_workspace_bytes(const frit_node *node);
size_t frit_ref_choose_workspace_bytes(const frit_node *node);
size_t frit_ref_embed_mix_workspace_bytes(const frit_node *node);
size_t frit_ref_attend_workspace_bytes(const frit_node *node);
size_t frit_ref_attend_blocks_workspace_bytes(const frit_node *node);
size_t frit_ref_choose_blocks_workspace_bytes(const frit_node *node);
