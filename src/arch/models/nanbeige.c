// SPDX-License-Identifier: MIT
// Nanbeige. As Llama. Variants with looped layers are refused.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

static const char *const keys[] = {"attention.scale", "num_loops"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->n_loops > 1)
        return frit_fail(FRIT_E_UNSUPPORTED, "the layers run in %d loops, only 1 is supported", (int)hp->n_loops);
    return FRIT_OK;
}

const frit_arch frit_arch_nanbeige = {
    .name = "nanbeige",
    .title = "Nanbeige",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
