// SPDX-License-Identifier: MIT
// PaddleOCR-VL: the text side. As ERNIE 4.5.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
};
// clang-format on

const frit_arch frit_arch_paddleocr = {
    .name = "paddleocr",
    .title = "PaddleOCR-VL",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
};
