// SPDX-License-Identifier: MIT
// EmbeddingGemma. As Gemma 3, but bidirectional with windows on both sides of a token, and without logits.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",  N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD,  1,      0),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static const char *const keys[] = {"attention.scale"};

static frit_status adjust(frit_hparams *hp)
{
    hp->embd_scale = sqrtf((float)hp->n_embd);
    return FRIT_OK;
}

const frit_arch frit_arch_gemma_embedding = {
    .name = "gemma-embedding",
    .title = "EmbeddingGemma",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .windows = {.period = 6, .plain_rope = true, .rope_base = 10000},
    .is_encoder = true,
    .adjust = adjust,
    .layer = frit_layer_sequential,
};
