// SPDX-License-Identifier: MIT
// T5, FLAN-T5, UMT5. A bidirectional encoder, and a decoder with cross attention to its output. Both learn a
// relative position bias for buckets of distances; scores are not scaled by the head size. ReLU, or gated GELU.
//
//     encode    embedding -> layers of the encoder -> norm -> keys and values for each layer of the decoder, cached
//     decode    embedding -> layers of the decoder: attention to itself, to the source, feed-forward -> norm -> logits
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(enc_norm, "enc.output_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(out_norm, "dec.output_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(lm_head,  "output",          N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_WEIGHTS_T5(FRIT_WEIGHT_ENC),
    FRIT_WEIGHTS_T5(FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(cross_norm, "cross_attn_norm",  N_EMBD,    1,      FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(cross_q,    "cross_attn_q",     N_Q,       N_EMBD, FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(cross_k,    "cross_attn_k",     N_K,       N_EMBD, FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(cross_v,    "cross_attn_v",     N_V,       N_EMBD, FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(cross_o,    "cross_attn_o",     N_EMBD,    N_O,    FRIT_WEIGHT_DEC),
    FRIT_LAYER_WEIGHT(unused,     "cross_attn_rel_b", N_BUCKETS, N_HEAD, FRIT_WEIGHT_DEC | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {"attention.relative_buckets_count", "decoder_block_count", "decoder_start_token_id",
                                   "logit_scale"};

// ------------------------------------------------------------------------------- distances

// The bucket of a distance, as in transformers. Small distances have a bucket each, large ones share logarithmic
// buckets.
static int32_t bucket_of(const frit_hparams *hp, int64_t distance, bool both_sides)
{
    int32_t n = hp->rel_buckets, first = 0;
    if (both_sides) {
        n /= 2;
        if (distance > 0) first = n;
    } else if (distance > 0) {
        distance = 0;
    }
    const int32_t exact = n / 2;
    const float far = (float)(distance < 0 ? -distance : distance);
    if (far < (float)exact) return first + (int32_t)far;
    const float octaves = (float)log((double)hp->rel_distance / exact);
    const int32_t bucket = exact + (int32_t)(logf(far / (float)exact) / octaves * (float)(n - exact));
    return first + (bucket < n - 1 ? bucket : n - 1);
}

frit_status frit_relative_gains(const frit_tensor **out, const frit_tensor *buckets, const frit_hparams *hp,
                                bool both_sides, frit_arena *arena)
{
    const int64_t n_head = buckets->shape[1], reach = hp->rel_distance, shape[] = {n_head, 2 * reach + 1};
    float *gains, *row = frit_arena_new(arena, float, (size_t)n_head);
    if (!row) return frit_fail_memory((size_t)n_head * sizeof *row, buckets->name);
    FRIT_TRY(frit_constant_new(out, &gains, buckets->name, 2, shape, arena));
    for (int64_t d = -reach; d <= reach; d++) {
        FRIT_TRY(frit_tensor_decode_rows(buckets, bucket_of(hp, d, both_sides), 1, row));
        for (int64_t h = 0; h < n_head; h++) gains[h * shape[1] + d + reach] = row[h];
    }
    return FRIT_OK;
}

// A layer without a table uses the table of the layer before it.
frit_status frit_t5_compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer *w = &weights->layers[i];
        if (frit_has(&w->rel_bias))
            FRIT_TRY(frit_relative_gains(&w->rel_gains, w->rel_bias.w, hp, i < hp->n_layer_enc, arena));
        else if (i == 0 || i == hp->n_layer_enc)
            return frit_fail(FRIT_E_FORMAT, "layer %d, the first of %s, has no attn_rel_b", (int)i,
                             i < hp->n_layer_enc ? "the encoder" : "the decoder");
        else
            w->rel_gains = weights->layers[i - 1].rel_gains;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- layers

static frit_node *heads(frit_build *b, const frit_weight *w, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, frit_linear(b, w, x), 2, (int64_t[]){n_head, dim});
}

static frit_node *attend(frit_build *b, frit_node *q, frit_node *written, const frit_tensor *gains, frit_attend attend,
                         const frit_weight *o)
{
    const frit_layer_hparams *lhp = b->lhp;
    attend.scale = 1;
    frit_node *y = frit_attend_with_gains(b->g, q, written, frit_weight_node(b->g, gains), attend, lhp->v_dim);
    return frit_linear(b, o, frit_reshape(b->g, y, 1, (int64_t[]){(int64_t)lhp->n_head * lhp->v_dim}));
}

frit_node *frit_attend_encoded(frit_build *b, const frit_weight *q, const frit_weight *k, const frit_weight *v,
                               const frit_weight *o, frit_node *x, frit_attend attend)
{
    const frit_layer_hparams *lhp = b->lhp;
    frit_node *queries = heads(b, q, x, lhp->n_head, lhp->k_dim), *written = NULL;
    if (k)
        written = frit_kv_write(b->g, heads(b, k, x, lhp->n_head_kv, lhp->k_dim),
                                heads(b, v, x, lhp->n_head_kv, lhp->v_dim), attend.layer);
    frit_node *y = frit_attend_with_gains(b->g, queries, written, NULL, attend, lhp->v_dim);
    return frit_linear(b, o, frit_reshape(b->g, y, 1, (int64_t[]){(int64_t)lhp->n_head * lhp->v_dim}));
}

// The cache layer for self attention.
int32_t frit_own_cache_layer(const frit_build *b)
{
    if (!b->arch->is_encoder_decoder) return b->i_layer;
    const int32_t i = b->i_layer - b->hp->n_layer_enc;
    return i >= 0 ? i : b->i_layer % b->hp->n_layer_dec;
}

frit_node *frit_layer_t5(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_layer_hparams *lhp = b->lhp;
    const bool encodes = b->i_layer < b->hp->n_layer_enc;
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    frit_node *q = heads(b, &w->q, h, lhp->n_head, lhp->k_dim), *k = heads(b, &w->k, h, lhp->n_head_kv, lhp->k_dim);
    frit_node *v = heads(b, &w->v, h, lhp->n_head_kv, lhp->v_dim);
    const frit_attend own = {.layer = frit_own_cache_layer(b), .bidirectional = encodes, .reach = b->hp->rel_distance};
    x = frit_add(b->g, x, attend(b, q, frit_kv_write(b->g, k, v, own.layer), w->rel_gains, own, &w->o));
    if (frit_has(&w->cross_q)) {
        const frit_attend cross = {.layer = b->hp->n_layer_dec + own.layer, .cross = true};
        q = heads(b, &w->cross_q, frit_norm(b, &w->cross_norm, x), lhp->n_head, lhp->k_dim);
        x = frit_add(b->g, x, attend(b, q, NULL, NULL, cross, &w->cross_o));
    }
    h = frit_norm(b, &w->ffn_norm, x);
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, h, frit_has(&w->ffn.gate) ? b->hp->act : FRIT_ACT_RELU));
}

frit_node *frit_write_source(frit_build *b, frit_node *x)
{
    const frit_hparams *hp = b->hp;
    for (int32_t i = 0; i < hp->n_layer_dec; i++) {
        const frit_layer *w = &b->weights->layers[hp->n_layer_enc + i];
        b->lhp = &hp->layers[hp->n_layer_enc + i];
        frit_kv_write(b->g, heads(b, &w->cross_k, x, b->lhp->n_head_kv, b->lhp->k_dim),
                      heads(b, &w->cross_v, x, b->lhp->n_head_kv, b->lhp->v_dim), hp->n_layer_dec + i);
    }
    return x;
}

const frit_arch frit_arch_t5 = {
    .name = "t5",
    .title = "T5, FLAN-T5, UMT5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .act = FRIT_ACT_GELU_TANH,
    .is_encoder_decoder = true,
    .compute = frit_t5_compute,
    .layer = frit_layer_t5,
    .write_source = frit_write_source,
};
