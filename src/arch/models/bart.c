// SPDX-License-Identifier: MIT
// BART, Marian (OPUS-MT), mBART, M2M-100, NLLB, PEGASUS. An encoder and a decoder with cross attention, as T5, but with
// tables of positions, LayerNorm and biases. Norms follow residual sums; in mBART and its successors they come before
// attention and feed-forward, and encoder and decoder end with one. Positions are learned, or sinusoids in the file,
// which also serve where a table is missing.
#include "arch/arch.h"

#include <math.h>

// clang-format off
#define SIDE(flags) \
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm",   N_EMBD, 1,      flags), \
    FRIT_LAYER_WEIGHT(q,         "attn_q",      N_Q,    N_EMBD, flags), \
    FRIT_LAYER_WEIGHT(k,         "attn_k",      N_K,    N_EMBD, flags), \
    FRIT_LAYER_WEIGHT(v,         "attn_v",      N_V,    N_EMBD, flags), \
    FRIT_LAYER_WEIGHT(o,         "attn_o",      N_EMBD, N_O,    flags), \
    FRIT_LAYER_WEIGHT(ffn_norm,  "ffn_norm",    N_EMBD, 1,      flags), \
    FRIT_LAYER_WEIGHT(ffn.up,    "ffn_up",      N_FF,   N_EMBD, flags), \
    FRIT_LAYER_WEIGHT(ffn.down,  "ffn_down",    N_EMBD, N_FF,   flags)

#define MODEL \
    FRIT_MODEL_WEIGHT(tok_embd,     "token_embd",          N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(lm_head,      "output",              N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD), \
    FRIT_MODEL_WEIGHT(enc_pos,      "enc.position_sinusoids", N_CTX, N_EMBD, FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(dec_pos,      "dec.position_sinusoids", N_CTX, N_EMBD, FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(enc_pos,      "enc.position_embd",   N_CTX,   N_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(dec_pos,      "dec.position_embd",   N_CTX,   N_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(enc_tok_norm, "enc.token_embd_norm", N_EMBD,  1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(dec_tok_norm, "dec.token_embd_norm", N_EMBD,  1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(cross_norm,   "cross_attn_norm",     N_EMBD,  1,      FRIT_WEIGHT_DEC), \
    FRIT_LAYER_WEIGHT(cross_q,      "cross_attn_q",        N_Q,     N_EMBD, FRIT_WEIGHT_DEC), \
    FRIT_LAYER_WEIGHT(cross_k,      "cross_attn_k",        N_K,     N_EMBD, FRIT_WEIGHT_DEC), \
    FRIT_LAYER_WEIGHT(cross_v,      "cross_attn_v",        N_V,     N_EMBD, FRIT_WEIGHT_DEC), \
    FRIT_LAYER_WEIGHT(cross_o,      "cross_attn_o",        N_EMBD,  N_O,    FRIT_WEIGHT_DEC), \
    SIDE(FRIT_WEIGHT_ENC), \
    SIDE(FRIT_WEIGHT_DEC)

static const frit_weight_row bart_rows[] = {MODEL};
static const frit_weight_row mbart_rows[] = {
    MODEL,
    FRIT_MODEL_WEIGHT(enc_norm, "enc.output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(out_norm, "dec.output_norm", N_EMBD, 1, 0),
};
// clang-format on

static const char *const keys[] = {"decoder_block_count", "decoder_start_token_id", "embedding_scale"};

static frit_node *add_positions(frit_build *b, frit_node *x)
{
    const frit_weights *w = b->weights;
    const frit_weight *norm = b->encodes ? &w->enc_tok_norm : &w->dec_tok_norm;
    frit_node *table = frit_weight_node(b->g, b->encodes ? w->enc_pos.w : w->dec_pos.w);
    x = frit_add(b->g, x, frit_embed(b->g, table, b->positions));
    return frit_has(norm) ? frit_norm(b, norm, x) : x;
}

// A branch with its norm: before it, or after its sum with x.
typedef frit_node *(*branch_fn)(frit_build *b, const frit_layer *w, frit_node *x);

static frit_node *add_branch(frit_build *b, const frit_layer *w, const frit_weight *norm, branch_fn branch,
                             frit_node *x)
{
    if (b->arch->no_out_norm) return frit_norm(b, norm, frit_add(b->g, x, branch(b, w, x)));
    return frit_add(b->g, x, branch(b, w, frit_norm(b, norm, x)));
}

static frit_node *attend_itself(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_attend own = {
        .layer = frit_own_cache_layer(b), .bidirectional = b->encodes, .scale = 1 / sqrtf((float)b->lhp->k_dim)};
    return frit_attend_encoded(b, &w->q, &w->k, &w->v, &w->o, x, own);
}

static frit_node *attend_source(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_attend cross = {
        .layer = b->hp->n_layer_dec + frit_own_cache_layer(b), .cross = true, .scale = 1 / sqrtf((float)b->lhp->k_dim)};
    return frit_attend_encoded(b, &w->cross_q, NULL, NULL, &w->cross_o, x, cross);
}

static frit_node *feed_forward(frit_build *b, const frit_layer *w, frit_node *x)
{
    return frit_feed_forward(b, &w->ffn, x, b->hp->act);
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = add_branch(b, w, &w->attn_norm, attend_itself, x);
    if (!b->encodes) x = add_branch(b, w, &w->cross_norm, attend_source, x);
    return add_branch(b, w, &w->ffn_norm, feed_forward, x);
}

const frit_arch frit_arch_bart = {
    .name = "bart",
    .title = "BART, Marian (OPUS-MT)",
    .rows = bart_rows,
    .n_rows = FRIT_COUNT(bart_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder_decoder = true,
    .no_out_norm = true,
    .begin = add_positions,
    .layer = layer,
    .write_source = frit_write_source,
};

const frit_arch frit_arch_mbart = {
    .name = "mbart",
    .title = "mBART, M2M-100, NLLB, PEGASUS",
    .rows = mbart_rows,
    .n_rows = FRIT_COUNT(mbart_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .is_encoder_decoder = true,
    .begin = add_positions,
    .layer = layer,
    .write_source = frit_write_source,
};
