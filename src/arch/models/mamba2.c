// SPDX-License-Identifier: MIT
// Mamba 2. One decay for each head instead of each channel; norms over groups of channels.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_MAMBA2,
};
// clang-format on

static const char *const keys[] = {FRIT_KEYS_MAMBA2};

static frit_status adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].is_recurrent = true;
    return frit_recurrent_adjust(hp, false);
}

const frit_arch frit_arch_mamba2 = {
    .name = "mamba2",
    .title = "Mamba 2, Codestral Mamba",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .layer = frit_layer_mixer,
    .recurrent = frit_mamba2,
    .adjust = adjust,
};
