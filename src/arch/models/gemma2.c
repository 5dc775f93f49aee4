// SPDX-License-Identifier: MIT
// Gemma 2. As Gemma, with norms before and after attention and feed-forward, soft caps, and windows in every second
// layer.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static const char *const keys[] = {"attn_logit_softcapping", "final_logit_softcapping", "attention.scale"};

// Values for files of the first weeks, which lack the keys.
static const frit_key_default defaults[] = {{"attn_logit_softcapping", 50}, {"final_logit_softcapping", 30}};

static frit_status adjust(frit_hparams *hp)
{
    const int32_t n_head = hp->layers[0].n_head;
    hp->embd_scale = sqrtf((float)hp->n_embd);
    // In the 27B model, the scale of attention depends on the model's width; in other sizes on the head size.
    if (hp->n_layer == 46 && n_head > 0 && hp->attn_scale == 0)
        hp->attn_scale = 1 / sqrtf((float)(hp->n_embd / n_head));
    return FRIT_OK;
}

const frit_arch frit_arch_gemma2 = {
    .name = "gemma2",
    .title = "Gemma 2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .defaults = defaults,
    .n_defaults = FRIT_COUNT(defaults),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .windows = {.period = 2, .size = 4096},
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
