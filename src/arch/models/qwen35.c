// SPDX-License-Identifier: MIT
// Qwen3.5, without experts and with them. As Qwen3-Next; value heads use key heads interleaved.
#include "arch/arch.h"

// clang-format off
#define MIXER_ROWS \
    FRIT_WEIGHTS_MODEL, \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_WEIGHTS_GATED_QKV, \
    FRIT_ROW_O(0), \
    FRIT_WEIGHTS_HEAD_NORMS, \
    FRIT_WEIGHTS_DELTA_NET(0), \
    FRIT_ROW_RECURRENT(alpha, "ssm_alpha", RANK,   N_EMBD, 0), \
    FRIT_ROW_RECURRENT(beta,  "ssm_beta",  RANK,   N_EMBD, 0), \
    FRIT_ROW_RECURRENT(out,   "ssm_out",   N_EMBD, INNER,  0), \
    FRIT_ROW_NORM(ffn_norm, "post_attention_norm")

static const frit_weight_row rows[] = {
    MIXER_ROWS,
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
};

static const frit_weight_row expert_rows[] = {
    MIXER_ROWS,
    FRIT_WEIGHTS_EXPERTS(0),
    FRIT_WEIGHTS_SHARED_EXPERT(0),
    FRIT_LAYER_WEIGHT(shared_gate, "ffn_gate_inp_shexp", 1, N_EMBD, FRIT_WEIGHT_EXPERT),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2, "full_attention_interval", "attention.recurrent_layers"};

static frit_node *delta_net(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    return frit_delta_net(b, layer, frit_linear(b, &w->z, x), frit_linear(b, &w->x, x), frit_linear(b, &w->alpha, x),
                          frit_linear(b, &w->beta, x), !b->hp->recurrent.grouped_heads);
}

static frit_status adjust(frit_hparams *hp)
{
    if (hp->recurrent.n_groups < 1 || hp->recurrent.rank < 1)
        return frit_fail(FRIT_E_FORMAT, "delta nets have %d heads in %d groups, expected 1 or more",
                         (int)hp->recurrent.rank, (int)hp->recurrent.n_groups);
    frit_recurrent_by_interval(hp, 4);
    return frit_recurrent_adjust(hp, false);
}

const frit_arch frit_arch_qwen35 = {
    .name = "qwen35",
    .title = "Qwen3.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.is_gated = true},
    .reads_media = true,
    .mixes_rope = true,
    .layer = frit_layer_sequential,
    .recurrent = delta_net,
    .adjust = adjust,
};

const frit_arch frit_arch_qwen35moe = {
    .name = "qwen35moe",
    .title = "Qwen3.5 MoE",
    .rows = expert_rows,
    .n_rows = FRIT_COUNT(expert_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.is_gated = true},
    .reads_media = true,
    .mixes_rope = true,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .recurrent = delta_net,
    .adjust = adjust,
};
