// SPDX-License-Identifier: MIT
// PLaMo. As Llama, with attention and feed-forward in parallel after one norm.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

const frit_arch frit_arch_plamo = {
    .name = "plamo",
    .title = "PLaMo",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_parallel,
};
