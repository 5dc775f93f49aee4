// SPDX-License-Identifier: MIT
// Phi-3.5 MoE. Norms have biases; two experts a token. GGUF files replace the model's sparse mixer router by a softmax;
// folders keep it.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"frit_router_jitter"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->router_jitter == 0) return FRIT_OK;
    hp->gating = FRIT_GATING_NEAR_BEST;
    hp->expert_normalize = false;
    return FRIT_OK;
}

const frit_arch frit_arch_phimoe = {
    .name = "phimoe",
    .title = "Phi-3.5 MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
