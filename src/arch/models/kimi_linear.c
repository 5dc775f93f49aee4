// SPDX-License-Identifier: MIT
// Kimi Linear. Kimi Delta Attention in layers without keys, latent attention without RoPE in the others; experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MLA,
    FRIT_WEIGHTS_KDA,
    FRIT_ROW_RECURRENT(decay_a, "ssm_f_a", DELTA_HEAD, N_EMBD,     FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(decay_b, "ssm_f_b", INNER,      DELTA_HEAD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(gate_a,  "ssm_g_a", DELTA_HEAD, N_EMBD,     FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(gate_b,  "ssm_g_b", INNER,      DELTA_HEAD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"ssm.conv_kernel",          "kda.head_dim",
                                   "attention.q_lora_rank",    "attention.kv_lora_rank",
                                   "attention.key_length_mla", "attention.value_length_mla",
                                   "leading_dense_block_count"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].no_rope = true;
    return frit_kda_adjust(hp);
}

const frit_arch frit_arch_kimi_linear = {
    .name = "kimi-linear",
    .title = "Kimi Linear",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .gating = FRIT_GATING_SIGMOID,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .recurrent = frit_kda,
    .adjust = adjust,
};
