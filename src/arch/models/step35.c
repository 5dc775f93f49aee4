// SPDX-License-Identifier: MIT
// Step-3.5-Flash, Step-3.7-Flash. A gate for each head of attention's output; more query heads in layers with a window;
// layers without one rotate half of each head; the last layers clamp gate and up.
#include "arch/arch.h"
#include "format/rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs", ROPE_PAIRS_SWA, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(head_gate, "attn_gate", GATE, N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_UNSCALED),
    FRIT_WEIGHTS_SHARED_EXPERT(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"expert_weights_norm", "leading_dense_block_count", "rope.dimension_count_swa",
                                   "swiglu_clamp_exp", "swiglu_clamp_shexp"};

// Files give the rotated size of layers with a window.
static frit_status adjust(frit_hparams *hp)
{
    hp->rope.dim /= 2;
    if (hp->rope.dim % 2 == 0 && hp->rope.dim > 0) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "rope.dimension_count is %d, expected a multiple of 4", 2 * (int)hp->rope.dim);
}

// The file's factors are of all pairs; layers without a window use the first half.
static frit_status cut_factors(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    const frit_tensor *whole = weights->rope_freqs.w;
    if (!whole || whole->shape[0] <= hp->rope.dim / 2) return FRIT_OK;
    frit_tensor *part = frit_arena_new(arena, frit_tensor, 1);
    if (!part) return frit_fail_memory(sizeof *part, whole->name);
    *part = frit_tensor_cut(whole, 0, hp->rope.dim / 2);
    weights->rope_freqs.w = part;
    return FRIT_OK;
}

const frit_arch frit_arch_step35 = {
    .name = "step35",
    .title = "Step-3.5-Flash, Step-3.7-Flash",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .windows = {.period = 4, .plain_rope = true},
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
    .adjust = adjust,
    .compute = cut_factors,
};
