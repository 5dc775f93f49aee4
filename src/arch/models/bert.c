// SPDX-License-Identifier: MIT
// BERT, RoBERTa, XLM-RoBERTa, and models with their structure: MiniLM, BGE, E5. Bidirectional; LayerNorm after each
// residual sum, learned positions, GELU in an ungated feed-forward, biases everywhere. All tokens belong to the first
// segment.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_MODEL_WEIGHT(pos_embd, "position_embd", N_CTX, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_WEIGHTS_UNGATED(0),
    FRIT_WEIGHTS_MASKED_LM,
};
// clang-format on

const frit_arch frit_arch_bert = {
    .name = "bert",
    .title = "BERT, RoBERTa, XLM-RoBERTa, MiniLM, BGE, E5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .attention = {.no_rope = true},
    .is_encoder = true,
    .no_out_norm = true,
    .layer = frit_layer_norm_sums,
};
