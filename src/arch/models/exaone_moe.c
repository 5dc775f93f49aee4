// SPDX-License-Identifier: MIT
// K-EXAONE. As EXAONE 4 with norms before, and experts; RoPE in layers with a window only; sigmoid router with a
// selection bias.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].no_rope |= hp->layers[i].window == 0;
    return FRIT_OK;
}

const frit_arch frit_arch_exaone_moe = {
    .name = "exaone-moe",
    .title = "K-EXAONE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 4},
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
