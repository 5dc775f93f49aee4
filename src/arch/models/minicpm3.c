// SPDX-License-Identifier: MIT
// MiniCPM3. Latent attention, expanded to ordinary heads; scales as in MiniCPM.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_MODEL,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MLA,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"attention.q_lora_rank", "attention.kv_lora_rank"};

static frit_status adjust(frit_hparams *hp)
{
    hp->embd_scale = 12;
    hp->residual_scale = 1.4f / sqrtf((float)hp->n_layer);
    hp->logit_scale = 256 / (float)hp->n_embd;
    return frit_mla_adjust(hp);
}

const frit_arch frit_arch_minicpm3 = {
    .name = "minicpm3",
    .title = "MiniCPM3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
