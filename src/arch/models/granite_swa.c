// SPDX-License-Identifier: MIT
// Granite Swash. As Granite, with windows and sinks; some layers have no RoPE; some sizes have experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(sinks, "attn_sinks", N_HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(shared_gate_up, "ffn_up_shexp", N_FF_SHEXP_2, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(shared.down, "ffn_down_shexp", N_EMBD, N_FF_SHEXP, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_EXPERT),
};
// clang-format on

static const char *const keys[] = {"embedding_scale", "residual_scale", "attention.scale", "logit_scale",
                                   "attention.rope_pattern"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->logit_scale != 0) hp->logit_scale = 1 / hp->logit_scale;
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].no_rope |= !hp->layers[i].is_rotated;
    return FRIT_OK;
}

const frit_arch frit_arch_granite_swa = {
    .name = "granite_swa",
    .title = "Granite Swash",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .windows = {.period = 4, .first_is_full = true},
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
