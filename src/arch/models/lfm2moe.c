// SPDX-License-Identifier: MIT
// LFM2 MoE. A short convolution, gated on both sides, in layers without keys; QK norms per head. Experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "token_embd_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(lm_head,  "output",          N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_SHORT_CONV,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"shortconv.l_cache", "leading_dense_block_count"};

const frit_arch frit_arch_lfm2moe = {
    .name = "lfm2moe",
    .title = "LFM2 MoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .reads_media = true,
    .gating = FRIT_GATING_SIGMOID,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .recurrent = frit_gated_conv,
    .adjust = frit_gated_conv_adjust,
};
