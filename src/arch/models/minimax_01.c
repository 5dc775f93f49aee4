// SPDX-License-Identifier: MIT
// MiniMax-Text-01. Lightning attention (constant decays) in seven of eight layers; experts. The residual is the normed
// input.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_RECURRENT(in,   "attn_qkv",    INNER_3, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(z,    "attn_gate",   INNER,   N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(norm, "attn_norm_2", INNER,   1,      0),
    FRIT_ROW_RECURRENT(out,  "attn_output", N_EMBD,  INNER,  FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"residual_scale", "full_attention_interval", "attention.recurrent_layers"};

// The logarithms of the decays of a layer's heads. The decay is slower in higher layers.
static frit_node *decays(frit_build *b)
{
    const int64_t n_head = b->hp->recurrent.rank;
    frit_tensor *tensor = frit_arena_new(b->g->arena, frit_tensor, 1);
    float *values = frit_arena_new(b->g->arena, float, (size_t)n_head);
    if (!tensor || !values) return NULL;
    const double slower = 1 - b->i_layer / (b->hp->n_layer - 1 + 1e-5) + 1e-5;
    for (int64_t h = 0; h < n_head; h++) values[h] = (float)(-slower * exp2(-8.0 * (double)(h + 1) / (double)n_head));
    *tensor = (frit_tensor){.name = "decays",
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = 1,
                            .shape = {n_head, 1, 1, 1},
                            .data = values,
                            .n_bytes = (uint64_t)n_head * sizeof *values};
    return frit_weight_node(b->g, tensor);
}

static frit_node *lightning(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t dim = r->state;
    frit_graph *g = b->g;
    frit_node *qkv = frit_activate(g, frit_linear(b, &w->in, x), FRIT_ACT_SILU);
    qkv = frit_reshape(g, qkv, 2, (int64_t[]){r->rank, 3 * dim});
    frit_node *y = frit_delta(g, frit_slice(g, qkv, 2 * dim, dim), frit_slice(g, qkv, dim, dim),
                              frit_slice(g, qkv, 0, dim), decays(b), NULL, frit_take_state(b, r->inner * dim));
    y = frit_norm(b, &w->norm, frit_reshape(g, y, 1, (int64_t[]){r->inner}));
    return frit_linear(b, &w->out, frit_glu(g, frit_linear(b, &w->z, x), y, FRIT_ACT_SIGMOID));
}

// norm(x) * scale + branch(norm(x)).
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const float scale = b->hp->residual_scale != 0 ? b->hp->residual_scale : 1;
    x = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, frit_scale(b->g, x, scale), frit_mixer(b, w, x));
    x = frit_norm(b, &w->ffn_norm, x);
    return frit_add(b->g, frit_scale(b->g, x, scale), frit_feed_forward_or_experts(b, w, x));
}

static frit_status adjust(frit_hparams *hp)
{
    frit_recurrent_params *r = &hp->recurrent;
    const frit_layer_hparams *first = &hp->layers[0];
    if ((int64_t)first->n_head * first->k_dim > 1 << 20)
        return frit_fail(FRIT_E_FORMAT, "there are %d heads of %d numbers, expected at most %d numbers in all",
                         (int)first->n_head, (int)first->k_dim, 1 << 20);
    r->rank = first->n_head;
    r->state = first->k_dim;
    r->inner = r->n_channels = r->rank * r->state;
    r->n_taps = 1;
    frit_recurrent_by_interval(hp, 8);
    return frit_recurrent_adjust(hp, false);
}

const frit_arch frit_arch_minimax_01 = {
    .name = "minimax-01",
    .title = "MiniMax-Text-01, MiniMax-M1",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .expert_normalize = true,
    .layer = layer,
    .recurrent = lightning,
    .adjust = adjust,
};
