// SPDX-License-Identifier: MIT
// Llama 1 to 3, Mistral, Mixtral, and models with their structure. Pre-norm; grouped-query attention; gated SiLU
// feed-forward, or experts. Biases and a sliding window are used if a file has them.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

static const char *const keys[] = {"attention.sliding_window", "attention.scale"};

const frit_arch frit_arch_llama = {
    .name = "llama",
    .title = "Llama 1 to 3, Mistral, Mixtral",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .reads_media = true,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
};
