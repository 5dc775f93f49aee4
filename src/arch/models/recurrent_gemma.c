// SPDX-License-Identifier: MIT
// RecurrentGemma (Griffin). Two of three layers are gated linear recurrences after a short convolution, the others are
// attention with a window; feed-forwards, embeddings and the output as in Gemma.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_RECURRENT(z,       "rglru_y",          INNER,  N_EMBD, 0),
    FRIT_ROW_RECURRENT(x,       "rglru_x",          INNER,  N_EMBD, 0),
    FRIT_WEIGHTS_CONV,
    FRIT_LAYER_STACK(recurrent.gate_a, "rglru_input_gate",  RANK, HEAD_WIDTH, HEAD_WIDTH, FRIT_WEIGHT_UNBIASED),
    FRIT_LAYER_STACK(recurrent.gate_b, "rglru_rec_gate",    RANK, HEAD_WIDTH, HEAD_WIDTH, FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_RECURRENT(rate_0,  "rglru_input_gate.bias", INNER, 1,  FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(decay_0, "rglru_rec_gate.bias",   INNER, 1,  FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(a,       "rglru_a",          INNER,  1,      FRIT_WEIGHT_WHOLE_NAME),
    FRIT_ROW_RECURRENT(out,     "rglru_out",        N_EMBD, INNER,  0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(0),
};
// clang-format on

static const char *const keys[] = {"embedding_scale", "final_logit_softcapping", "rglru.lru_width",
                                   "ssm.conv_kernel", "ssm.time_step_rank",      "attention.sliding_window"};

// sigmoid(w x + b), with a matrix for each head of channels.
static frit_node *gate(frit_build *b, const frit_weight *w, const frit_weight *bias, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    frit_graph *g = b->g;
    x = frit_reshape(g, x, 2, (int64_t[]){r->rank, r->inner / r->rank});
    x = frit_reshape(g, frit_heads(g, frit_weight_node(g, w->w), x), 1, (int64_t[]){r->inner});
    return frit_activate(g, frit_add(g, x, frit_weight_node(g, bias->w)), FRIT_ACT_SIGMOID);
}

static frit_node *recurrence(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    frit_graph *g = b->g;
    frit_node *y = frit_activate(g, frit_linear(b, &w->z, x), b->hp->act);
    x = frit_linear(b, &w->x, x);
    const frit_state taps = frit_take_state(b, (int64_t)b->hp->recurrent.inner * (b->hp->recurrent.n_taps - 1));
    x = frit_conv(g, x, frit_weight_node(g, w->conv.w), frit_weight_node(g, w->conv_b.w), taps);
    frit_node *decays = frit_mul(g, gate(b, &w->gate_b, &w->decay_0, x), frit_weight_node(g, w->a.w));
    x = frit_lru(g, frit_mul(g, x, gate(b, &w->gate_a, &w->rate_0, x)), decays,
                 frit_take_state(b, b->hp->recurrent.inner));
    return frit_linear(b, &w->out, frit_mul(g, x, y));
}

static frit_status adjust(frit_hparams *hp)
{
    frit_recurrent_params *r = &hp->recurrent;
    if (r->rank < 1 || r->inner % r->rank != 0)
        return frit_fail(FRIT_E_FORMAT, "recurrent layers have %d channels in %d heads, expected a multiple",
                         (int)r->inner, (int)r->rank);
    r->state = 1;
    r->n_channels = r->inner;
    return frit_hybrid_adjust(hp);
}

const frit_arch frit_arch_recurrent_gemma = {
    .name = "recurrent-gemma",
    .title = "RecurrentGemma",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .layer = frit_layer_sequential,
    .recurrent = recurrence,
    .adjust = adjust,
};
