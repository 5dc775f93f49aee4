// SPDX-License-Identifier: MIT
// GPT-NeoX, Pythia. LayerNorm; RoPE on part of each head; attention and feed-forward in parallel or in sequence.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"use_parallel_residual"};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    return b->hp->is_parallel ? frit_layer_parallel(b, w, x) : frit_layer_sequential(b, w, x);
}

const frit_arch frit_arch_gptneox = {
    .name = "gptneox",
    .title = "GPT-NeoX, Pythia",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU_TANH,
    .layer = layer,
};
