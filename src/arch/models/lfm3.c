// SPDX-License-Identifier: MIT
// LFM3. As LFM2, with a gate for each head of attention, norms on both sides, and windows in some layers, which have
// their own RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,   "token_embd",      N_VOCAB,    N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm,   "token_embd_norm", N_EMBD,     1,      0),
    FRIT_MODEL_WEIGHT(lm_head,    "output",          N_VOCAB,    N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD),
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs",      ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_LAYER_WEIGHT(head_gate,      "attn_gate",           GATE,   N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(post_attn_norm, "post_attention_norm", N_EMBD, 1,      FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_SHORT_CONV,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(post_ffn_norm,  "post_ffw_norm",       N_EMBD, 1,      FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

static const char *const keys[] = {"shortconv.l_cache", "attention.sliding_window"};

const frit_arch frit_arch_lfm3 = {
    .name = "lfm3",
    .title = "LFM3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .recurrent = frit_gated_conv,
    .adjust = frit_gated_conv_adjust,
};
