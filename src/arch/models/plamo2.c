// SPDX-License-Identifier: MIT
// PLaMo 2. Norms before and after each part; heads of q and k have norms of their own; layers without keys are Mamba 2,
// with b, c and steps as in Mamba 1.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(post_attn_norm, "post_attention_norm", N_EMBD, 1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_LAYER_WEIGHT(post_ffn_norm, "post_ffw_norm", N_EMBD, 1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_WEIGHTS_GATE_IN_UP(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(in,      "ssm_in",      INNER_2, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_CONV,
    FRIT_ROW_RECURRENT(mix,     "ssm_x",       MIX,     INNER,  FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(dt,      "ssm_dt",      RANK,    STEP,   FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(dt_norm, "ssm_dt_norm", STEP,    1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(b_norm,  "ssm_b_norm",  STATE,   1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(c_norm,  "ssm_c_norm",  STATE,   1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(a,       "ssm_a",       RANK,    1, FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(d,       "ssm_d",       INNER,   1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_SPREAD),
    FRIT_ROW_RECURRENT(out,     "ssm_out",     N_EMBD,  INNER,  FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA};

static frit_node *heads_of(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

static frit_node *scan(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t n_head = r->rank, dim = r->inner / r->rank;
    frit_graph *g = b->g;
    x = heads_of(b, frit_linear(b, &w->in, x), n_head, 2 * dim);
    frit_node *z = frit_reshape(g, frit_slice(g, x, 0, dim), 1, (int64_t[]){r->inner});
    x = frit_reshape(g, frit_slice(g, x, dim, dim), 1, (int64_t[]){r->inner});
    x = frit_short_conv(b, &w->conv, &w->conv_b, x);
    frit_node *mixed = frit_linear(b, &w->mix, x);
    frit_node *written = frit_norm(b, &w->b_norm, frit_slice(g, mixed, 0, r->state));
    frit_node *queries = frit_norm(b, &w->c_norm, frit_slice(g, mixed, r->state, r->state));
    frit_node *step = frit_norm(b, &w->dt_norm, frit_slice(g, mixed, 2 * (int64_t)r->state, r->step_dim));
    step = frit_activate(g, frit_linear(b, &w->dt, step), FRIT_ACT_SOFTPLUS);
    frit_node *y =
        frit_scan(g, heads_of(b, x, n_head, dim), step, frit_weight_node(g, w->a.w), heads_of(b, written, 1, r->state),
                  heads_of(b, queries, 1, r->state), frit_take_state(b, (int64_t)r->inner * r->state));
    y = frit_reshape(g, y, 1, (int64_t[]){r->inner});
    y = frit_add(g, y, frit_mul(g, x, frit_weight_node(g, w->d.w)));
    return frit_linear(b, &w->out, frit_glu(g, z, y, FRIT_ACT_SILU));
}

static frit_status adjust(frit_hparams *hp)
{
    hp->recurrent.n_groups = 0;
    hp->recurrent.step_dim = hp->n_embd / 16 > 64 ? hp->n_embd / 16 : 64;
    if (hp->recurrent.rank < 1 || hp->recurrent.inner % hp->recurrent.rank != 0)
        return frit_fail(FRIT_E_FORMAT, "recurrent layers have width %d and %d heads, expected a multiple",
                         (int)hp->recurrent.inner, (int)hp->recurrent.rank);
    return frit_hybrid_adjust(hp);
}

const frit_arch frit_arch_plamo2 = {
    .name = "plamo2",
    .title = "PLaMo 2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.qk_norm = FRIT_QK_NORM_HEADS},
    .layer = frit_layer_sequential,
    .recurrent = scan,
    .adjust = adjust,
};
