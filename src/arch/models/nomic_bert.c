// SPDX-License-Identifier: MIT
// nomic-embed-text and GTE. As BERT with RoPE instead of learned positions and a gated feed-forward: SiLU, in GTE GELU.
// nomic-embed-text v2 has an ungated feed-forward with GELU, and experts in every second layer.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_WEIGHTS_GATED_OR_FUSED,
};

static const frit_weight_row moe_rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_WEIGHTS_UNGATED(0),
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD,   FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, N_EMBD,   N_FF_EXP, FRIT_WEIGHT_EXPERT),
    // of folders; llama.cpp's files leave it out
    FRIT_LAYER_WEIGHT(routed_bias, "ffn_exps.bias", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_WHOLE_NAME),
};
// clang-format on

static const char *const moe_keys[] = {"moe_every_n_layers"};

// The second layer of each period has experts.
static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++)
        hp->layers[i].has_experts = hp->n_expert > 0 && hp->expert_step > 0 && i % hp->expert_step == 1;
    return FRIT_OK;
}

const frit_arch frit_arch_nomic_bert = {
    .name = "nomic-bert",
    .title = "nomic-embed-text v1, v1.5, GTE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .is_encoder = true,
    .no_out_norm = true,
    .layer = frit_layer_norm_sums,
};

const frit_arch frit_arch_nomic_bert_moe = {
    .name = "nomic-bert-moe",
    .title = "nomic-embed-text v2",
    .rows = moe_rows,
    .n_rows = FRIT_COUNT(moe_rows),
    .keys = moe_keys,
    .n_keys = FRIT_COUNT(moe_keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder = true,
    .no_out_norm = true,
    .adjust = adjust,
    .layer = frit_layer_norm_sums,
};
