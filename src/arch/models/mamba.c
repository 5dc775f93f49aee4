// SPDX-License-Identifier: MIT
// Mamba 1. A selective scan instead of attention and feed-forward.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MAMBA,
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA, "ssm.dt_b_c_rms", "ssm.dt_b_c_rms_epsilon"};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].is_recurrent = true;
    return frit_recurrent_adjust(hp, false);
}

const frit_arch frit_arch_mamba = {
    .name = "mamba",
    .title = "Mamba, Falcon Mamba",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .layer = frit_layer_mixer,
    .recurrent = frit_mamba,
    .adjust = adjust,
};
