// SPDX-License-Identifier: MIT
// PLM 1.8B. Latent attention without compressed queries; squared ReLU in an ungated feed-forward.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MLA,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_UNGATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MLA};

const frit_arch frit_arch_plm = {
    .name = "plm",
    .title = "PLM",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .act = FRIT_ACT_RELU2,
    .layer = frit_layer_sequential,
    .adjust = frit_mla_adjust,
};
