// SPDX-License-Identifier: MIT
// GroveMoE. As Qwen3 MoE, with small experts that read the experts' output; a group of experts shares one small expert.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_STACK(chunks.gate, "ffn_gate_chexps", N_CHUNK_EXPERT, N_FF_CHUNK, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_STACK(chunks.up,   "ffn_up_chexps",   N_CHUNK_EXPERT, N_FF_CHUNK, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_STACK(chunks.down, "ffn_down_chexps", N_CHUNK_EXPERT, N_EMBD, N_FF_CHUNK, FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_attention(b, w, h, b->arch->attention));
    h = frit_norm(b, &w->ffn_norm, x);
    frit_node *scores = frit_linear(b, &w->router, h);

    frit_route route = frit_route_of(b);
    route.by_sigmoid = true;
    h = frit_experts_by_route(b, &w->experts, h, frit_route_node(b->g, scores, NULL, route));
    const int32_t n_groups = b->hp->n_expert / b->hp->expert_group_size;
    if (route.n_used > n_groups) route.n_used = n_groups;
    route.divisor = b->hp->expert_group_size;
    frit_node *y = frit_experts_by_route(b, &w->chunks, h, frit_route_node(b->g, scores, NULL, route));
    return frit_add(b->g, x, frit_add(b->g, h, frit_scale(b->g, y, b->hp->expert_group_scale)));
}

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_ff_chunk_exp == 0) hp->n_ff_chunk_exp = hp->layers[0].k_dim;
    if (hp->expert_group_size > 0 && hp->n_expert % hp->expert_group_size == 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "experts_per_group is %d, expected a divisor of expert_count, %d",
                     (int)hp->expert_group_size, (int)hp->n_expert);
}

const frit_arch frit_arch_grovemoe = {
    .name = "grovemoe",
    .title = "GroveMoE",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .expert_normalize = true,
    .layer = layer,
    .adjust = adjust,
};
