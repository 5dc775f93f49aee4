// SPDX-License-Identifier: MIT
// Jais. LayerNorm; ALiBi; gated SiLU feed-forward; attention scores are divided by the head size, not its square root.
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

static const char *const keys[] = {"attention.max_alibi_bias"};

static frit_status adjust(frit_hparams *hp)
{
    hp->attn_scale = 1 / (float)hp->layers[0].k_dim;
    return FRIT_OK;
}

const frit_arch frit_arch_jais = {
    .name = "jais",
    .title = "Jais",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .attention = {.no_rope = true},
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
