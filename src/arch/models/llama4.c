// SPDX-License-Identifier: MIT
// Llama 4: the text side. Three of four layers attend within a chunk, with RoPE and then QK norms; the others attend to
// everything, with an attention temperature. Some layers have experts, whose router weights multiply their input.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

enum { CHUNK = 8192 };

static const char *const keys[] = {"interleave_moe_layer_step", "attention.scale", "attention.chunk_size",
                                   "attention.temperature_scale", "attention.temperature_length"};

static frit_node *experts(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_graph *g = b->g;
    frit_route options = frit_route_of(b);
    options.by_logit = true;
    frit_node *route = frit_route_node(g, frit_linear(b, &w->router, x), NULL, options);
    const bool is_fused = frit_has(&w->gate_up_experts);
    const int32_t n = b->hp->n_ff_exp;
    const frit_experts of_gate = {.n = n, .weigh = true}, out = {.n = b->hp->n_embd};
    const frit_experts of_up = {.begin = is_fused ? n : 0, .n = n, .weigh = true};
    const frit_weight *gates = is_fused ? &w->gate_up_experts : &w->experts.gate;
    const frit_weight *ups = is_fused ? &w->gate_up_experts : &w->experts.up;
    frit_node *gate = frit_experts_node(g, frit_weight_node(g, gates->w), x, route, of_gate);
    frit_node *up = frit_experts_node(g, frit_weight_node(g, ups->w), x, route, of_up);
    frit_node *h = frit_glu(g, gate, up, b->hp->act);
    h = frit_mix(g, frit_experts_node(g, frit_weight_node(g, w->experts.down.w), h, route, out), route, true);
    return frit_add(g, h, frit_shared_experts(b, w, x));
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_attention_options options = {.norm_after_rope = true,
                                            .bare_qk_norm = !b->lhp->no_rope && b->hp->n_expert != 128};
    b->attn_temp = b->lhp->no_rope && b->hp->attn_temp_scale != 0;
    frit_node *h = frit_norm(b, &w->attn_norm, x);
    x = frit_add(b->g, x, frit_attention(b, w, h, options));
    h = frit_norm(b, &w->ffn_norm, x);
    h = frit_has(&w->router) ? experts(b, w, h) : frit_feed_forward(b, &w->ffn, h, b->hp->act);
    return frit_add(b->g, x, h);
}

// Folders list the layers with RoPE and say the sizes of chunks and temperature; GGUF files do not. A window of 0 in a
// GGUF file means RoPE in all layers and no chunks.
static frit_status adjust(frit_hparams *hp)
{
    bool slides = false;
    for (int32_t i = 0; i < hp->n_layer; i++) slides |= hp->layers[i].window > 0;
    if (hp->n_ff_shexp == 0) hp->n_ff_shexp = hp->n_ff_exp;
    hp->attn_temp_offset = 1;
    if (hp->is_rope_listed) return FRIT_OK;
    hp->attn_chunk = slides ? CHUNK : 0;
    hp->attn_temp_length = CHUNK;
    hp->attn_temp_scale = slides ? 0.1f : 0;
    for (int32_t i = 0; i < hp->n_layer && slides; i++) hp->layers[i].no_rope = (i + 1) % 4 == 0;
    return FRIT_OK;
}

const frit_arch frit_arch_llama4 = {
    .name = "llama4",
    .title = "Llama 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .reads_media = true,
    .windows = {.period = 4, .size = CHUNK},
    .gating = FRIT_GATING_SIGMOID,
    .layer = layer,
    .adjust = adjust,
};
