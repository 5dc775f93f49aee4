// SPDX-License-Identifier: MIT
// Gemma 4. As Gemma 3, with norms on values too, larger heads with partial RoPE in layers without a window, and, in
// some sizes, per-layer embeddings, shared keys and values, keys used as values, and experts in parallel with the
// feed-forward.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs", ROPE_PAIRS, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_PER_LAYER,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(q, "attn_q", N_Q, N_EMBD, 0),
    FRIT_LAYER_WEIGHT(k, "attn_k", N_K, N_EMBD, FRIT_WEIGHT_OWN_KV),
    FRIT_LAYER_WEIGHT(v, "attn_v", N_V, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_OWN_KV),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_LAYER_WEIGHT(ffn.gate, "ffn_gate", N_FF,   N_EMBD, 0),
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, 0),
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   0),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
    FRIT_LAYER_WEIGHT(router,       "ffn_gate_inp",       N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(router_scale, "ffn_gate_inp.scale", N_EMBD,   1, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_WHOLE_NAME),
    FRIT_LAYER_STACK(gate_up_experts, "ffn_gate_up_exps", N_EXPERT, N_FF_EXP_2, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(experts.gate, "ffn_gate_exps", N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, N_EMBD, N_FF_EXP, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(dense_norm,       "post_ffw_norm_1", N_EMBD, 1, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(expert_norm,      "pre_ffw_norm_2",  N_EMBD, 1, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(post_expert_norm, "post_ffw_norm_2", N_EMBD, 1, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(out_scale, "layer_output_scale", 1, 1, FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {"final_logit_softcapping",
                                   "attention.key_length_swa",
                                   "attention.value_length_swa",
                                   "attention.shared_kv_layers",
                                   "embedding_length_per_layer_input",
                                   "rope.dimension_count_swa",
                                   "picture_attention",
                                   "padding_token_id"};

// GGUF files do not say if rows of a picture see each other: they do in models without per-layer embeddings.
static const frit_key_default defaults[] = {{"picture_attention", FRIT_SEEING_WINDOWS}};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_embd_layer > 0) hp->media.seeing = FRIT_SEEING_NONE;
    hp->embd_scale = sqrtf((float)hp->n_embd);
    hp->attn_scale = 1;
    return frit_share_kv(hp);
}

// The router reads the residual, with its own norm and scale.
static frit_node *experts(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_graph *g = b->g;
    frit_node *scores = frit_scale(g, frit_rms_norm(g, x, NULL, b->hp->rms_eps), 1 / sqrtf((float)b->hp->n_embd));
    scores = frit_linear(b, &w->router, frit_mul(g, scores, frit_weight_node(g, w->router_scale.w)));
    return frit_norm(b, &w->post_expert_norm, frit_routed_experts(b, w, frit_norm(b, &w->expert_norm, x), scores));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_attention(b, w, frit_norm(b, &w->attn_norm, x), b->arch->attention);
    x = frit_add(b->g, x, frit_norm(b, &w->post_attn_norm, h));
    h = frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act);
    if (frit_has(&w->router)) h = frit_add(b->g, frit_norm(b, &w->dense_norm, h), experts(b, w, x));
    x = frit_add(b->g, x, frit_norm(b, &w->post_ffn_norm, h));
    if (b->per_layer) x = frit_add(b->g, x, frit_per_layer(b, w, x));
    return frit_has(&w->out_scale) ? frit_scale(b->g, x, *(const float *)w->out_scale.w->data) : x;
}

const frit_arch frit_arch_gemma4 = {
    .name = "gemma4",
    .title = "Gemma 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .attention = {.norm_values = true},
    .reads_media = true,
    .windows = {.period = 6, .plain_rope = true, .rope_base = 10000},
    .expert_normalize = true,
    .begin = frit_per_layer_begin,
    .layer = layer,
    .defaults = defaults,
    .n_defaults = FRIT_COUNT(defaults),
    .adjust = adjust,
};
