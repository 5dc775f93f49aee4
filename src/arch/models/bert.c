// SPDX-License-Identifier: MIT
// BERT, RoBERTa, XLM-RoBERTa, and models with their structure: MiniLM, BGE, E5. Bidirectional; LayerNorm after each
// residual sum, learned positions, GELU in an ungated feed-forward, biases everywhere. All tokens belong to the first
// segment.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,  "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(type_embd, "token_types",     N_EMBD,  1,      FRIT_WEIGHT_FIRST_ROW | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(pos_embd,  "position_embd",   N_CTX,   N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(tok_norm,  "token_embd_norm", N_EMBD,  1,      0),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(post_attn_norm, "attn_output_norm"),
    FRIT_WEIGHTS_UNGATED(0),
    FRIT_ROW_NORM(post_ffn_norm, "layer_output_norm"),
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
