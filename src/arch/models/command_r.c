// SPDX-License-Identifier: MIT
// Command R. LayerNorm without biases; attention and feed-forward in parallel after one norm; the larger ones have QK
// norms per head.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"logit_scale"};

const frit_arch frit_arch_command_r = {
    .name = "command-r",
    .title = "Command R",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .norm = FRIT_NORM_LAYER,
    .attention = {.qk_norm = FRIT_QK_NORM_HEADS},
    .layer = frit_layer_parallel,
};
