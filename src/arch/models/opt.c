// SPDX-License-Identifier: MIT
// OPT and Galactica. As GPT-2 with ReLU or GELU; embeddings may be narrower than layers, and the norms of one size
// follow the residual sums.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, EMBD_IN, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(tok_proj, "token_embd_proj", N_EMBD,  EMBD_IN, FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(dec_pos,  "position_embd",   N_CTX,   N_EMBD,  FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm",     N_EMBD,  1,       FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(out_proj, "output_proj",     EMBD_IN, N_EMBD,  FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(lm_head,  "output",          N_VOCAB, EMBD_IN, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_LAYER_WEIGHT(attn_norm,      "attn_norm",         N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(post_attn_norm, "attn_output_norm",  N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(ffn_norm,       "ffn_norm",          N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(post_ffn_norm,  "layer_output_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input", "embedding_length_out"};

static frit_node *begin(frit_build *b, frit_node *x)
{
    const frit_weights *w = b->weights;
    if (frit_has(&w->tok_proj)) x = frit_linear(b, &w->tok_proj, x);
    return frit_add(b->g, x, frit_embed(b->g, frit_weight_node(b->g, w->dec_pos.w), b->positions));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    return frit_has(&w->post_attn_norm) ? frit_layer_norm_sums(b, w, x) : frit_layer_sequential(b, w, x);
}

// Models whose layers end with a norm have no final norm. Galactica's norms have no weights.
static frit_node *end(frit_build *b, frit_node *x)
{
    return frit_has(&b->weights->layers[0].post_attn_norm) ? x : frit_norm(b, &b->weights->out_norm, x);
}

const frit_arch frit_arch_opt = {
    .name = "opt",
    .title = "OPT, Galactica",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_RELU,
    .attention = {.no_rope = true},
    .no_out_norm = true,
    .begin = begin,
    .layer = layer,
    .end = end,
};
