// SPDX-License-Identifier: MIT
// The encoder of Gemma 4: tables of learned positions for columns and rows, rotations of one half of a head by columns
// and of the other by rows, norms of queries, keys and values, and norms on both sides of each branch. The mean of a
// square of patches becomes a row of the text. Inputs and outputs of matrices are clipped in small models.
#include "arch/media.h"

#include <math.h>

enum { CLIP_Q, CLIP_K, CLIP_V, CLIP_O, CLIP_GATE, CLIP_UP, CLIP_DOWN };

// clang-format off
#define LIMIT(i, k, name) FRIT_LAYER_WEIGHT(clips[i][k], name, 1, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_WHOLE_NAME)
#define LIMITS(i, name) \
    LIMIT(i, 0, name ".input_min"), \
    LIMIT(i, 1, name ".input_max"), \
    LIMIT(i, 2, name ".output_min"), \
    LIMIT(i, 3, name ".output_max")

static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(media.patch, "patch_embd", N_EMBD, EMBD_IN, 0),
    FRIT_MODEL_WEIGHT(media.positions, "position_embd", SIDES, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, 0),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(0),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
    LIMITS(CLIP_Q, "attn_q"),
    LIMITS(CLIP_K, "attn_k"),
    LIMITS(CLIP_V, "attn_v"),
    LIMITS(CLIP_O, "attn_output"),
    LIMITS(CLIP_GATE, "ffn_gate"),
    LIMITS(CLIP_UP, "ffn_up"),
    LIMITS(CLIP_DOWN, "ffn_down"),
    FRIT_MODEL_WEIGHT(media.mean, "std_bias", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(media.deviation, "std_scale", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, N_EMBD, 0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input", "embedding_length_out", "spatial_merge_size",
                                   "position_side"};

static frit_status adjust(frit_hparams *hp)
{
    const int32_t dim = hp->layers[0].k_dim;
    if (dim % 4 == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "heads have %d elements, expected a multiple of 4: pairs of rows and of columns",
                     (int)dim);
}

// The tables lie one after the other.
static void tap(const frit_hparams *hp, frit_media_grid grid, const frit_patch_place *at, float *indices,
                float *weights)
{
    (void)grid;
    indices[0] = (float)at->turns[1];
    indices[1] = (float)(hp->media.side + at->turns[0]);
    weights[0] = weights[1] = 1;
}

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    frit_media_weights *w = &weights->media;
    float *values;
    if (frit_has(&w->mean) != frit_has(&w->deviation))
        return frit_fail(FRIT_E_FORMAT, "one of the tensors 'std_bias' and 'std_scale' is missing");
    if (!frit_has(&w->mean)) return FRIT_OK;
    FRIT_TRY(frit_constant_new(&w->minus_mean, &values, "minus std_bias", 1, w->mean.w->shape, arena));
    for (int32_t i = 0; i < hp->n_embd; i++) values[i] = -((const float *)w->mean.w->data)[i];
    return FRIT_OK;
}

static frit_node *clip(frit_build *b, const frit_weight limits[2], frit_node *x)
{
    const float low = frit_has(&limits[0]) ? *(const float *)limits[0].w->data : -INFINITY;
    const float high = frit_has(&limits[1]) ? *(const float *)limits[1].w->data : INFINITY;
    return isinf(low) && isinf(high) ? x : frit_clamp(b->g, x, low, high);
}

static frit_node *linear(frit_build *b, const frit_weight *w, const frit_weight limits[4], frit_node *x)
{
    return clip(b, limits + 2, frit_linear(b, w, clip(b, limits, x)));
}

static frit_node *heads(frit_build *b, const frit_weight *w, const frit_weight limits[4], frit_node *x, int64_t n)
{
    return frit_reshape(b->g, linear(b, w, limits, x), 2, (int64_t[]){n, b->lhp->k_dim});
}

// Rows bring cosines of the pairs that turn by rows, then by columns, and their sines. The first half of a head turns
// by columns.
static frit_node *rotate(frit_build *b, frit_node *x)
{
    const int64_t n = b->lhp->k_dim / 4;
    for (int64_t half = 0; half < 2; half++) {
        const int64_t first = half == 0 ? n : 0;
        const frit_rope rope = {
            .style = FRIT_ROPE_NEOX, .dim = (int32_t)(2 * n), .offset = (int32_t)(half * 2 * n), .magnitude = 1};
        frit_node *cosines = frit_slice(b->g, b->turns, first, n);
        frit_node *sines = frit_slice(b->g, b->turns, 2 * n + first, n);
        x = frit_rotate_by(b->g, x, frit_concat(b->g, cosines, sines), rope);
    }
    return x;
}

static frit_node *attention(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_layer_hparams *l = b->lhp;
    frit_node *q = frit_norm(b, &w->q_norm, heads(b, &w->q, w->clips[CLIP_Q], x, l->n_head));
    frit_node *k = frit_norm(b, &w->k_norm, heads(b, &w->k, w->clips[CLIP_K], x, l->n_head_kv));
    frit_node *v = heads(b, &w->v, w->clips[CLIP_V], x, l->n_head_kv);
    v = frit_rms_norm(b->g, v, NULL, b->hp->rms_eps);
    x = frit_attend_uncached(b->g, rotate(b, q), rotate(b, k), v, NULL, 1);
    x = frit_reshape(b->g, x, 1, (int64_t[]){(int64_t)l->n_head * l->k_dim});
    return linear(b, &w->o, w->clips[CLIP_O], x);
}

static frit_node *feed_forward(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *gate = linear(b, &w->ffn.gate, w->clips[CLIP_GATE], x);
    frit_node *up = linear(b, &w->ffn.up, w->clips[CLIP_UP], x);
    return linear(b, &w->ffn.down, w->clips[CLIP_DOWN], frit_glu(b->g, gate, up, b->hp->act));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = attention(b, w, frit_norm(b, &w->attn_norm, x));
    x = frit_add(b->g, x, frit_norm(b, &w->post_attn_norm, h));
    h = feed_forward(b, w, frit_norm(b, &w->ffn_norm, x));
    return frit_add(b->g, x, frit_norm(b, &w->post_ffn_norm, h));
}

static frit_node *end(frit_build *b, frit_node *x)
{
    const frit_media_weights *w = &b->weights->media;
    x = frit_scale(b->g, frit_media_mean(b, x), sqrtf((float)b->hp->n_embd));
    if (w->minus_mean) {
        x = frit_add(b->g, x, frit_weight_node(b->g, w->minus_mean));
        x = frit_mul(b->g, x, frit_weight_node(b->g, w->deviation.w));
    }
    return frit_linear(b, &w->merge_out, frit_rms_norm(b->g, x, NULL, b->hp->rms_eps));
}

const frit_arch frit_arch_gemma4_vision = {
    .name = "gemma4_vision",
    .title = "the encoder of Gemma 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_RMS,
    .act = FRIT_ACT_GELU_TANH,
    .layer = layer,
    .end = end,
    .adjust = adjust,
    .compute = compute,
    .media = &(const frit_media_arch){.has_turns = true,
                                      .has_places = true,
                                      .is_bounded = true,
                                      .centers_pixels = true,
                                      .n_taps = 2,
                                      .tap = tap,
                                      .place = frit_media_place_blocks},
};
