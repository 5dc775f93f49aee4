// SPDX-License-Identifier: MIT
// OLMo 1. As Llama, with LayerNorm without weights; q, k and v may be clamped.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd", N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(lm_head,  "output",     N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.clamp_kqv"};

const frit_arch frit_arch_olmo = {
    .name = "olmo",
    .title = "OLMo",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .norm = FRIT_NORM_LAYER,
    .layer = frit_layer_sequential,
};
