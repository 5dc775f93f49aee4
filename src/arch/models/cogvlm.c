// SPDX-License-Identifier: MIT
// CogVLM: the text side. As Llama; the file also has the vision experts, which are not run.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_LAYER_WEIGHT(qkv, "attn_qkv", N_EMBD_3, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(unused, "vis_attn_qkv", N_EMBD_3, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(unused, "vis_attn_output", N_EMBD, N_O, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(unused, "vis_gate", N_FF, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(unused, "vis_up", N_FF, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(unused, "vis_down", N_EMBD, N_FF, FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

const frit_arch frit_arch_cogvlm = {
    .name = "cogvlm",
    .title = "CogVLM",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .rope_style = FRIT_ROPE_NEOX,
    .qkv_in_thirds = true,
    .layer = frit_layer_sequential,
};
