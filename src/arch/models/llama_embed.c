// SPDX-License-Identifier: MIT
// llama-embed-nemotron. As Llama, but bidirectional, and without logits, although files may have an output matrix.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

const frit_arch frit_arch_llama_embed = {
    .name = "llama-embed",
    .title = "llama-embed-nemotron",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .is_encoder = true,
    .layer = frit_layer_sequential,
};
