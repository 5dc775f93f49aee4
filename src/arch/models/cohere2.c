// SPDX-License-Identifier: MIT
// Command R7B, Command A. As Command R; three of four layers have a window, and only these have RoPE.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

static const char *const keys[] = {"logit_scale"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].no_rope |= hp->layers[i].window == 0;
    return FRIT_OK;
}

const frit_arch frit_arch_cohere2 = {
    .name = "cohere2",
    .title = "Command R7B, Command A",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .norm = FRIT_NORM_LAYER,
    .windows = {.period = 4},
    .layer = frit_layer_parallel,
    .adjust = adjust,
};
