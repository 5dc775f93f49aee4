// SPDX-License-Identifier: MIT
// StableLM. LayerNorm; RoPE on part of each head; the 12B has QK norms per head and a parallel feed-forward.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(ffn_norm, "ffn_norm", N_EMBD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    return frit_has(&w->ffn_norm) ? frit_layer_sequential(b, w, x) : frit_layer_parallel(b, w, x);
}

const frit_arch frit_arch_stablelm = {
    .name = "stablelm",
    .title = "StableLM",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .attention = {.qk_norm = FRIT_QK_NORM_HEADS},
    .layer = layer,
};
