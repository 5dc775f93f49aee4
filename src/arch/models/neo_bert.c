// SPDX-License-Identifier: MIT
// NeoBERT. As Llama with gate and up in one matrix, but bidirectional, and without logits.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "enc.output_norm", N_EMBD,  1,      0),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATE_IN_UP(0),
};
// clang-format on

const frit_arch frit_arch_neo_bert = {
    .name = "neo-bert",
    .title = "NeoBERT",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .is_encoder = true,
    .layer = frit_layer_sequential,
};
