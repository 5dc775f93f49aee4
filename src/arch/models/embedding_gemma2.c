// SPDX-License-Identifier: MIT
// EmbeddingGemma 2. As Gemma 4, but bidirectional with windows on both sides of a token; per-layer embeddings are
// projections of the token's embedding alone, and the last hidden state is projected too.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,  "token_embd",  N_VOCAB,  N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm,  "output_norm", N_EMBD,   1,      0),
    FRIT_MODEL_WEIGHT(out_proj,  "output_proj", EMBD_OUT, N_EMBD, 0),
    FRIT_MODEL_WEIGHT(layer_proj,      "per_layer_model_proj", LAYERS_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_MODEL_WEIGHT(layer_proj_norm, "per_layer_proj_norm",  LAYER_EMBD,  1, 0),
    FRIT_LAYER_WEIGHT(layer_gate,      "inp_gate",             LAYER_EMBD,  N_EMBD, 0),
    FRIT_LAYER_WEIGHT(layer_proj,      "proj",                 N_EMBD,      LAYER_EMBD, 0),
    FRIT_LAYER_WEIGHT(layer_norm,      "post_norm",            LAYER_NORM,  1, 0),
    FRIT_LAYER_WEIGHT(out_scale,       "layer_output_scale",   1,           1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(0),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static const char *const keys[] = {"attention.key_length_swa", "attention.value_length_swa",
                                   "embedding_length_per_layer_input", "rope.dimension_count_swa",
                                   "embedding_length_out"};

static frit_status adjust(frit_hparams *hp)
{
    hp->embd_scale = sqrtf((float)hp->n_embd);
    hp->attn_scale = 1;
    return FRIT_OK;
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_layer_sequential(b, w, x);
    if (b->per_layer) x = frit_add(b->g, x, frit_per_layer(b, w, x));
    return frit_has(&w->out_scale) ? frit_scale(b->g, x, *(const float *)w->out_scale.w->data) : x;
}

const frit_arch frit_arch_embedding_gemma2 = {
    .name = "embedding-gemma2",
    .title = "EmbeddingGemma 2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.norm_values = true},
    .windows = {.period = 6, .plain_rope = true, .rope_base = 10000},
    .is_encoder = true,
    .begin = frit_per_layer_begin,
    .adjust = adjust,
    .layer = layer,
};
