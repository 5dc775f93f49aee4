// SPDX-License-Identifier: MIT
// Qwen2-VL, Qwen2.5-VL: the text side. As Qwen2.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",  N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(lm_head,  "output",      N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD | FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_qwen2vl = {
    .name = "qwen2vl",
    .title = "Qwen2-VL, Qwen2.5-VL",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .reads_media = true,
    .layer = frit_layer_sequential,
};
