// SPDX-License-Identifier: MIT
// Gemma 3n. AltUp: four residual streams, of which a layer computes one. Before the layer a small matrix of each token
// predicts all streams, after it the result corrects them. LAuReL (a low-rank residual) in parallel with attention;
// Gaussian top-k in the gates of the first layers; per-layer embeddings; shared keys and values.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_STACK(altup_proj,  "altup_proj",        ALTUP_REST, N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_MODEL_STACK(altup_merge, "altup_unembd_proj", ALTUP_REST, N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_PER_LAYER,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(q, "attn_q", N_Q, N_EMBD, 0),
    FRIT_LAYER_WEIGHT(k, "attn_k", N_K, N_EMBD, FRIT_WEIGHT_OWN_KV),
    FRIT_LAYER_WEIGHT(v, "attn_v", N_V, N_EMBD, FRIT_WEIGHT_OWN_KV),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_OWN_KV),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
    FRIT_LAYER_WEIGHT(altup_router,      "altup_router",        ALTUP,        N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(altup_router_norm, "altup_router_norm",   N_EMBD,       1,      0),
    FRIT_LAYER_WEIGHT(altup_predict,     "altup_predict_coef",  ALTUP_SQUARE, ALTUP,  FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(altup_correct,     "altup_correct_coef",  ALTUP,        ALTUP,  FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(altup_scale,       "altup_correct_scale", N_EMBD,       1,      FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(laurel_left,  "laurel_l",         LAUREL, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(laurel_right, "laurel_r",         N_EMBD, LAUREL, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(laurel_norm,  "laurel_post_norm", N_EMBD, 1,      0),
};
// clang-format on

static const char *const keys[] = {"final_logit_softcapping",
                                   "attention.shared_kv_layers",
                                   "embedding_length_per_layer_input",
                                   "altup.num_inputs",
                                   "altup.active_idx",
                                   "activation_sparsity_scale",
                                   "laurel_rank"};

static const float least_square = 1e-5f;   // lower bound of a stream's mean square

enum { OWN_KV = 20 };   // layers of published models that do not share keys and values

static const frit_key_default defaults[] = {{"final_logit_softcapping", 30}, {"attention.shared_kv_layers", -1}};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_layer_shared_kv < 0) hp->n_layer_shared_kv = hp->n_layer > OWN_KV ? hp->n_layer - OWN_KV : 0;
    hp->embd_scale = sqrtf((float)hp->n_embd);
    hp->attn_scale = 1;
    if (hp->altup_active >= hp->n_altup)
        return frit_fail(FRIT_E_FORMAT, "altup.active_idx is %d, expected less than altup.num_inputs %d",
                         (int)hp->altup_active, (int)hp->n_altup);
    return frit_share_kv(hp);
}

// ------------------------------------------------------------------------------- streams, [T, n * n_embd]

static frit_node *stream(frit_build *b, frit_node *streams, int64_t i)
{
    return frit_slice(b->g, streams, i * b->hp->n_embd, b->hp->n_embd);
}

static frit_node *apart(frit_build *b, frit_node *streams, int64_t n)
{
    return frit_reshape(b->g, streams, 2, (int64_t[]){n, b->hp->n_embd});
}

static frit_node *together(frit_build *b, frit_node *streams, int64_t n)
{
    return frit_reshape(b->g, streams, 1, (int64_t[]){n * b->hp->n_embd});
}

// One matrix for each stream except the first; the results are scaled to the root mean square of `like`.
static frit_node *project(frit_build *b, const frit_weight *w, frit_node *streams, frit_node *like)
{
    const int64_t n = b->hp->n_altup - 1;
    frit_node *y = together(b, frit_heads(b->g, frit_weight_node(b->g, w->w), apart(b, streams, n)), n), *all = NULL;
    for (int64_t i = 0; i < n; i++) {
        frit_node *one = frit_rms_match(b->g, stream(b, y, i), like, least_square);
        all = all ? frit_concat(b->g, all, one) : one;
    }
    return all;
}

static frit_node *begin(frit_build *b, frit_node *x)
{
    frit_per_layer_begin(b, x);
    frit_node *copies = x;
    for (int32_t i = 2; i < b->hp->n_altup; i++) copies = frit_concat(b->g, copies, x);
    return frit_concat(b->g, x, project(b, &b->weights->altup_proj, copies, x));
}

// The mean of all streams.
static frit_node *end(frit_build *b, frit_node *x)
{
    const int64_t n = b->hp->n_altup, n_embd = b->hp->n_embd;
    frit_node *y = stream(b, x, 0);
    frit_node *rest = project(b, &b->weights->altup_merge, frit_slice(b->g, x, n_embd, (n - 1) * n_embd), y);
    for (int64_t i = 0; i < n - 1; i++) y = frit_add(b->g, y, stream(b, rest, i));
    return frit_scale(b->g, y, 1 / (float)n);
}

// ------------------------------------------------------------------------------- a layer

// The input of the coefficient matrices, from the active stream.
static frit_node *route(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_scale(b->g, frit_norm(b, &w->altup_router_norm, x), 1 / (float)b->hp->n_embd);
    return frit_activate(b->g, frit_linear(b, &w->altup_router, x), FRIT_ACT_TANH);
}

static frit_node *predict(frit_build *b, const frit_layer *w, frit_node *x)
{
    const int64_t n = b->hp->n_altup;
    frit_node *c = frit_linear(b, &w->altup_predict, route(b, w, stream(b, x, b->hp->altup_active)));
    frit_node *y = frit_mix_streams(b->g, apart(b, x, n), frit_reshape(b->g, c, 2, (int64_t[]){n, n}));
    return frit_add(b->g, x, together(b, y, n));
}

static frit_node *compute(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_graph *g = b->g;
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    frit_node *laurel = frit_linear(b, &w->laurel_right, frit_linear(b, &w->laurel_left, h));
    laurel = frit_add(g, h, frit_norm(b, &w->laurel_norm, laurel));
    h = frit_attention(b, w, h, b->arch->attention);
    x = frit_add(g, frit_add(g, x, frit_norm(b, &w->post_attn_norm, h)), laurel);
    x = frit_scale(g, x, sqrtf(0.5f));
    h = frit_norm(b, &w->ffn_norm, x);
    frit_node *gate = frit_linear(b, &w->ffn.gate, h);
    if (isfinite(b->lhp->sparsity)) gate = frit_gaussian_topk(g, gate, b->lhp->sparsity);
    h = frit_linear(b, &w->ffn.down, frit_glu(g, gate, frit_linear(b, &w->ffn.up, h), b->hp->act));
    return frit_add(g, x, frit_norm(b, &w->post_ffn_norm, h));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_graph *g = b->g;
    const int64_t n = b->hp->n_altup, active = b->hp->altup_active;
    x = predict(b, w, x);
    frit_node *predicted = stream(b, x, active), *y = compute(b, w, predicted);
    // Each stream gets (coefficient + 1) times the change. The per-layer embedding is added to all streams except the
    // first.
    frit_node *news = frit_add(g, y, frit_scale(g, predicted, -1));
    frit_node *c = frit_reshape(g, frit_linear(b, &w->altup_correct, route(b, w, y)), 2, (int64_t[]){n, 1});
    x = frit_add(g, x, together(b, frit_mix_streams(g, apart(b, news, 1), c), n));
    frit_node *corrected = frit_add(g, stream(b, x, active), news);
    if (frit_has(&w->altup_scale)) corrected = frit_mul(g, corrected, frit_weight_node(g, w->altup_scale.w));
    frit_node *of_rest = frit_add(g, news, frit_per_layer(b, w, corrected));
    frit_node *all = frit_add(g, stream(b, x, 0), news);
    for (int64_t i = 1; i < n; i++) all = frit_concat(g, all, frit_add(g, stream(b, x, i), of_rest));
    return all;
}

const frit_arch frit_arch_gemma3n = {
    .name = "gemma3n",
    .title = "Gemma 3n",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .defaults = defaults,
    .n_defaults = FRIT_COUNT(defaults),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.norm_values = true},
    .windows = {.period = 5, .plain_rope = true, .rope_base = 10000},
    .begin = begin,
    .layer = layer,
    .end = end,
    .adjust = adjust,
};
