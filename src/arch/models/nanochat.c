// SPDX-License-Identifier: MIT
// nanochat. Norms without weights, one of them after the embedding; QK norms follow the rotation; squared ReLU in an
// ungated feed-forward; logits are capped.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd", N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(lm_head,  "output",     N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static const char *const keys[] = {"final_logit_softcapping"};

const frit_arch frit_arch_nanochat = {
    .name = "nanochat",
    .title = "nanochat",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_RELU2,
    .attention = {.bare_qk_norm = true, .norm_after_rope = true},
    .norm_embedding = true,
    .layer = frit_layer_sequential,
};
