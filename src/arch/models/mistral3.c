// SPDX-License-Identifier: MIT
// Mistral Small 3, Ministral 3, Devstral. As Llama, with YaRN, and an attention temperature if the file has one.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_SCALE_LAST),
    FRIT_WEIGHTS_EXPERTS(FRIT_WEIGHT_SCALE_LAST),
};
// clang-format on

static const char *const keys[] = {"attention.scale", "attention.temperature_scale"};

static frit_status adjust(frit_hparams *hp)
{
    // YaRN and the attention temperature both start from the context before extension.
    hp->attn_temp_length = hp->rope.n_ctx_orig;
    return FRIT_OK;
}

const frit_arch frit_arch_mistral3 = {
    .name = "mistral3",
    .title = "Mistral Small 3, Ministral 3, Devstral",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .reads_media = true,
    .expert_normalize = true,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
