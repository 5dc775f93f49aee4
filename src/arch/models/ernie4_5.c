// SPDX-License-Identifier: MIT
// ERNIE 4.5, dense. As Llama; a bias of o is ignored.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
};
// clang-format on

const frit_arch frit_arch_ernie4_5 = {
    .name = "ernie4_5",
    .title = "ERNIE 4.5",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
};
