// SPDX-License-Identifier: MIT
// Command A+. As Command A, with experts beside attention, whose output is averaged with that of the shared expert;
// RoPE in the first layers and those with a window.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count", "logit_scale"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = hp->n_layer_dense; i < hp->n_layer; i++) hp->layers[i].no_rope |= hp->layers[i].window == 0;
    return FRIT_OK;
}

const frit_arch frit_arch_cohere2moe = {
    .name = "cohere2moe",
    .title = "Command A+",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .norm = FRIT_NORM_LAYER,
    .windows = {.period = 4},
    .gating = FRIT_GATING_SIGMOID,
    .averages_shared = true,
    .layer = frit_layer_parallel,
    .adjust = adjust,
};
