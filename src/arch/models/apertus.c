// SPDX-License-Identifier: MIT
// Apertus. As Llama, with QK norms per head; ungated feed-forward with xIELU, whose parameters each layer learns.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, FRIT_WEIGHT_UNBIASED),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.scale", "xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"};

static float softplus(float x)
{
    return (float)(fmax(x, 0) + log1p(exp(-fabs(x))));
}

static frit_node *feed_forward(frit_build *b, const frit_ffn_weights *w, frit_node *x)
{
    const frit_xielu *raw = &b->lhp->xielu;
    const frit_xielu xielu = {.positive = softplus(raw->positive),
                              .negative = raw->beta + softplus(raw->negative),
                              .beta = raw->beta,
                              .eps = raw->eps};
    return frit_linear(b, &w->down, frit_xielu_node(b->g, frit_linear(b, &w->up, x), xielu));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_residual(b, x, frit_attention(b, w, h, b->arch->attention));
    h = frit_norm(b, &w->ffn_norm, x);
    return frit_residual(b, x, feed_forward(b, &w->ffn, h));
}

const frit_arch frit_arch_apertus = {
    .name = "apertus",
    .title = "Apertus",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = layer,
};
