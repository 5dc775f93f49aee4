// SPDX-License-Identifier: MIT
// Kimi K3. As Kimi Linear, with gated latent attention, experts in a narrower space, and SiTU instead of SwiGLU.
// Every twelfth layer adds the residual to the residual bank and starts a new one. Attention and feed-forward read a
// weighted sum of the bank and the current residual; the weights are a softmax of their scores.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_WEIGHT(res_score, "output_res_score", RES_BANK, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(attn_res_score, "attn_res_score", RES_BANK, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn_res_score,  "ffn_res_score",  RES_BANK, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_MLA_IN,
    FRIT_LAYER_WEIGHT(o,         "attn_output", N_EMBD,  N_O_MLA, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(head_gate, "attn_gate",   N_O_MLA, N_EMBD,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_KDA,
    FRIT_ROW_RECURRENT(decay_a, "ssm_f_a", DELTA_HEAD, N_EMBD,     FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(decay_b, "ssm_f_b", INNER,      DELTA_HEAD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(gate_a,  "ssm_g",   INNER,      N_EMBD,     FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(router_bias, "exp_probs_b.bias", N_EXPERT, 1, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_WHOLE_NAME),
    FRIT_LAYER_STACK(experts.gate, "ffn_gate_exps", N_EXPERT, N_FF_EXP,  EXPERT_IN, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP,  EXPERT_IN, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, EXPERT_IN, N_FF_EXP,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(routed_down, "ffn_routed_down", EXPERT_IN, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(routed_norm, "ffn_routed_norm", EXPERT_IN, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(routed_up,   "ffn_routed_up",   N_EMBD, EXPERT_IN, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(shared.gate, "ffn_gate_shexp", N_FF_SHEXP, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(shared.up,   "ffn_up_shexp",   N_FF_SHEXP, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(shared.down, "ffn_down_shexp", N_EMBD, N_FF_SHEXP, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
};

static const char *const keys[] = {
    FRIT_KEYS_MLA, "ssm.conv_kernel", "kda.head_dim", "kda.gate_lower_bound", "leading_dense_block_count",
    "expert_weights_norm", "expert_latent_length", "attn_res.block_size", "activation.situ_beta",
    "activation.situ_linear_beta",
};
// clang-format on

static frit_status adjust(frit_hparams *hp)
{
    hp->recurrent.is_bounded = hp->recurrent.lower_bound < 0 && isfinite(hp->recurrent.lower_bound);
    hp->recurrent.is_negative = true;
    if (hp->n_ff_shexp == 0) hp->n_ff_shexp = hp->n_ff_exp;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        hp->layers[i].no_rope = true;
        if (hp->layers[i].n_head_kv == 1) hp->layers[i].v_dim = hp->kv_rank;   // old files have no key for v_dim
    }
    return frit_kda_adjust(hp);
}

// ------------------------------------------------------------------------------- residuals

static frit_node *scores_of(frit_build *b, const frit_weight *score, frit_node *x)
{
    return frit_linear(b, score, frit_rms_norm(b->g, x, NULL, b->hp->rms_eps));
}

// The weighted sum of the residual bank and x. Scores read normed residuals; the sum adds residuals without norm.
static frit_node *mix(frit_build *b, const frit_weight *score, frit_node *x)
{
    frit_graph *g = b->g;
    const int64_t n = b->n_res_bank, n_embd = b->hp->n_embd;
    if (n == 0) return x;
    frit_node *entries = frit_reshape(g, b->res_bank, 2, (int64_t[]){n, n_embd});
    frit_node *scores = frit_reshape(g, scores_of(b, score, entries), 1, (int64_t[]){n});
    frit_node *shares = frit_softmax(g, frit_concat(g, scores, scores_of(b, score, x)));
    frit_node *weights = frit_reshape(g, frit_slice(g, shares, 0, n), 2, (int64_t[]){1, n});
    frit_node *y = frit_reshape(g, frit_mix_streams(g, entries, weights), 1, (int64_t[]){n_embd});
    return frit_add(g, y, frit_scale_rows(g, x, frit_slice(g, shares, n, 1)));
}

static bool push_res_bank(frit_build *b, frit_node *x)
{
    if (b->hp->res_bank_interval == 0 || b->i_layer % b->hp->res_bank_interval != 0) return false;
    b->res_bank = b->n_res_bank > 0 ? frit_concat(b->g, b->res_bank, x) : x;
    b->n_res_bank++;
    return true;
}

// ------------------------------------------------------------------------------- feed-forward

// sigmoid(gate) cap(gate) cap(up), cap(x) = beta tanh(x / beta).
static frit_node *situ(frit_build *b, frit_node *gate, frit_node *up)
{
    frit_node *y = frit_glu(b->g, gate, frit_softcap(b->g, gate, b->hp->situ_beta), FRIT_ACT_SIGMOID);
    return frit_mul(b->g, y, frit_softcap(b->g, up, b->hp->situ_linear_beta));
}

static frit_node *dense(frit_build *b, const frit_ffn_weights *w, frit_node *x)
{
    return frit_linear(b, &w->down, situ(b, frit_linear(b, &w->gate, x), frit_linear(b, &w->up, x)));
}

static frit_node *feed_forward(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (!frit_has(&w->router)) return dense(b, &w->ffn, x);
    frit_node *y = frit_routed_experts(b, w, x, NULL);
    return frit_has(&w->shared.up) ? frit_add(b->g, y, dense(b, &w->shared, x)) : y;
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = mix(b, &w->attn_res_score, x);
    const bool starts_anew = push_res_bank(b, x);
    h = frit_mixer(b, w, frit_norm(b, &w->attn_norm, h));
    x = starts_anew ? h : frit_add(b->g, x, h);
    h = frit_norm(b, &w->ffn_norm, mix(b, &w->ffn_res_score, x));
    return frit_add(b->g, x, feed_forward(b, w, h));
}

static frit_node *end(frit_build *b, frit_node *x)
{
    return mix(b, &b->weights->res_score, x);
}

const frit_arch frit_arch_kimi_k3 = {
    .name = "kimi-k3",
    .title = "Kimi K3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .gating = FRIT_GATING_SIGMOID,
    .glu = situ,
    .layer = layer,
    .end = end,
    .recurrent = frit_kda,
    .adjust = adjust,
};
