// SPDX-License-Identifier: MIT
// Dream. As Qwen2, but bidirectional: a text diffusion model.
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

static frit_status adjust(frit_hparams *hp)
{
    hp->is_bidirectional = true;
    return FRIT_OK;
}

const frit_arch frit_arch_dream = {
    .name = "dream",
    .title = "Dream",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
