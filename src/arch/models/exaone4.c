// SPDX-License-Identifier: MIT
// EXAONE 4. Only norms after attention and feed-forward; the 32B has windows in three of four layers, and only these
// have RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    // GGUF files of other sizes carry the key, but have no windows.
    for (int32_t i = 0; i < hp->n_layer && !hp->is_rope_listed; i++) {
        if (hp->n_layer == 64)
            hp->layers[i].no_rope |= hp->layers[i].window == 0;
        else
            hp->layers[i].window = 0;
    }
    return FRIT_OK;
}

const frit_arch frit_arch_exaone4 = {
    .name = "exaone4",
    .title = "EXAONE 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 4, .size = 4096},
    .layer = frit_layer_post_norm,
    .adjust = adjust,
};
