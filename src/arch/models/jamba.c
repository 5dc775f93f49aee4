// SPDX-License-Identifier: MIT
// Jamba. Layers without keys are Mamba 1, the others are attention without RoPE; some have experts.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_MAMBA,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(experts.gate, "ffn_gate_exps", N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, N_EMBD, N_FF_EXP, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA};

const frit_arch frit_arch_jamba = {
    .name = "jamba",
    .title = "Jamba",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .attention = {.no_rope = true},
    .layer = frit_layer_sequential,
    .recurrent = frit_mamba,
    .adjust = frit_hybrid_adjust,
};
