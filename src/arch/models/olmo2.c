// SPDX-License-Identifier: MIT
// OLMo 2 and 3. Norms only after attention and feed-forward, and QK norms over all heads. OLMo 3 has windows; layers
// with a window use RoPE without scaling.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_WEIGHTS_QKV(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", N_Q, 1, 0),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", N_K, 1, 0),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

const frit_arch frit_arch_olmo2 = {
    .name = "olmo2",
    .title = "OLMo 2, OLMo 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .attention = {.qk_norm = FRIT_QK_NORM_WHOLE},
    .windows = {.period = 4, .plain_rope = true},
    .layer = frit_layer_post_norm,
};
