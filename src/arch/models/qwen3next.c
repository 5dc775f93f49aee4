// SPDX-License-Identifier: MIT
// Qwen3-Next. Gated delta nets in three of four layers, gated attention in the others; experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_GATED_QKV,
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_DELTA_NET(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(in,         "ssm_in",  IN_QKVZ, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_RECURRENT(alpha_beta, "ssm_ba",  RANK_2,  N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(out,        "ssm_out", N_EMBD,  INNER,  FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "post_attention_norm"),
    FRIT_WEIGHTS_EXPERTS(0),
    FRIT_WEIGHTS_SHARED_EXPERT(0),
    FRIT_LAYER_WEIGHT(shared_gate, "ffn_gate_inp_shexp", 1, N_EMBD, FRIT_WEIGHT_EXPERT),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2, "full_attention_interval", "attention.recurrent_layers"};

// In older files q, k, v and the gate of each group of heads are adjacent rows. Returns the part [T, groups, ...] at
// `begin`, flat.
static frit_node *part(frit_build *b, frit_node *x, int64_t begin, int64_t n)
{
    return frit_reshape(b->g, frit_slice(b->g, x, begin, n), 1, (int64_t[]){b->hp->recurrent.n_groups * n});
}

static frit_node *delta_net(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t n_groups = r->n_groups, n = r->state, n_v = r->inner / n_groups, share = r->rank / n_groups;
    frit_graph *g = b->g;
    frit_node *ba = frit_reshape(g, frit_linear(b, &w->alpha_beta, x), 2, (int64_t[]){n_groups, 2 * share});
    frit_node *beta = part(b, ba, 0, share), *alpha = part(b, ba, share, share), *qkv, *z;
    if (frit_has(&w->x)) {
        qkv = frit_linear(b, &w->x, x);
        z = frit_linear(b, &w->z, x);
    } else {
        x = frit_reshape(g, frit_linear(b, &w->in, x), 2, (int64_t[]){n_groups, 2 * n + 2 * n_v});
        qkv = frit_concat(g, frit_concat(g, part(b, x, 0, n), part(b, x, n, n)), part(b, x, 2 * n, n_v));
        z = part(b, x, 2 * n + n_v, n_v);
    }
    return frit_delta_net(b, layer, z, qkv, alpha, beta, false);
}

static frit_status adjust(frit_hparams *hp)
{
    if (hp->recurrent.n_groups < 1 || hp->recurrent.rank < 1)
        return frit_fail(FRIT_E_FORMAT, "delta nets have %d heads in %d groups, expected 1 or more",
                         (int)hp->recurrent.rank, (int)hp->recurrent.n_groups);
    frit_recurrent_by_interval(hp, 4);
    return frit_recurrent_adjust(hp, false);
}

const frit_arch frit_arch_qwen3next = {
    .name = "qwen3next",
    .title = "Qwen3-Next",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.is_gated = true},
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .recurrent = delta_net,
    .adjust = adjust,
};
