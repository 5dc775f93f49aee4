// SPDX-License-Identifier: MIT
// Nemotron-H, Nemotron Nano 2, and Nemotron 3, which has a name of its own. Each layer is one of Mamba 2, attention
// without RoPE, or an ungated feed-forward; in Nemotron 3 with experts, which in larger models are in a narrower space.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_MAMBA2,
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_SCALE_LAST),
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(router_bias, "exp_probs_b.bias", N_EXPERT, 1, FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT),
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, EXPERT_IN, FRIT_WEIGHT_SCALE_LAST | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, EXPERT_IN, N_FF_EXP, FRIT_WEIGHT_SCALE_LAST | FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(routed_down, "ffn_latent_down", LATENT, N_EMBD, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(routed_up,   "ffn_latent_up",   N_EMBD, LATENT, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(shared.up,   "ffn_up_shexp",   N_FF_SHEXP, N_EMBD, FRIT_WEIGHT_EXPERT),
    FRIT_LAYER_WEIGHT(shared.down, "ffn_down_shexp", N_EMBD, N_FF_SHEXP, FRIT_WEIGHT_EXPERT),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2, "attention.scale", "expert_weights_norm", "moe_latent_size"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        lhp->is_recurrent = lhp->n_head_kv == 0 && lhp->n_ff == 0;
        lhp->has_experts = lhp->has_experts && lhp->n_ff > 0;
        if (lhp->n_ff > 0) lhp->n_head = lhp->n_head_kv = 0;
    }
    return frit_recurrent_adjust(hp, false);
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (b->lhp->n_ff == 0) return frit_layer_mixer(b, w, x);
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    return frit_residual(b, x, frit_feed_forward_or_experts(b, w, h));
}

// clang-format off
#define WHAT_BOTH_ARE \
    .rows = rows, .n_rows = FRIT_COUNT(rows), .keys = keys, .n_keys = FRIT_COUNT(keys), .act = FRIT_ACT_RELU2, \
    .attention = {.no_rope = true}, .gating = FRIT_GATING_SIGMOID, .layer = layer, .recurrent = frit_mamba2, \
    .adjust = adjust

const frit_arch frit_arch_nemotron_h = {.name = "nemotron_h", .title = "Nemotron-H, Nemotron Nano 2", WHAT_BOTH_ARE};
const frit_arch frit_arch_nemotron_h_moe = {.name = "nemotron_h_moe", .title = "Nemotron 3", WHAT_BOTH_ARE};
// clang-format on
