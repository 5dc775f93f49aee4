// SPDX-License-Identifier: MIT
// Gemma 3. As Gemma 2 without caps on attention scores; QK norms per head; windows in five of six layers, which have
// their own RoPE base.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_WEIGHTS_HEAD_NORMS,
    FRIT_ROW_NORM(post_attn_norm, "post_attention_norm"),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(post_ffn_norm, "post_ffw_norm"),
};
// clang-format on

static const char *const keys[] = {"final_logit_softcapping", "attention.scale", "picture_attention"};

static const frit_key_default defaults[] = {{"picture_attention", FRIT_SEEING_ALL}};

static frit_status adjust(frit_hparams *hp)
{
    const int32_t n_head = hp->layers[0].n_head;
    hp->embd_scale = sqrtf((float)hp->n_embd);
    // In the 27B model, the scale of attention depends on the model's width; in other sizes on the head size.
    if (hp->n_layer == 62 && n_head > 0 && hp->attn_scale == 0)
        hp->attn_scale = 1 / sqrtf((float)(hp->n_embd / n_head));
    return FRIT_OK;
}

const frit_arch frit_arch_gemma3 = {
    .name = "gemma3",
    .title = "Gemma 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .defaults = defaults,
    .n_defaults = FRIT_COUNT(defaults),
    .rope_style = FRIT_ROPE_NEOX,
    .act = FRIT_ACT_GELU_TANH,
    .reads_media = true,
    .windows = {.period = 6, .plain_rope = true, .rope_base = 10000},
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
