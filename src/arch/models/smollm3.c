// SPDX-License-Identifier: MIT
// SmolLM3. As Llama; every fourth layer has no RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.scale"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 3; i < hp->n_layer && !hp->is_rope_listed; i += 4) hp->layers[i].no_rope = true;
    return FRIT_OK;
}

const frit_arch frit_arch_smollm3 = {
    .name = "smollm3",
    .title = "SmolLM3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
