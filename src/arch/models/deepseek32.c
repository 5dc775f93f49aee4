// SPDX-License-Identifier: MIT
// DeepSeek-V3.2. As DeepSeek-V3; each layer's indexer chooses the positions that attention reads.
#include "arch/arch.h"

static const frit_weight_row rows[] = {FRIT_WEIGHTS_MLA_EXPERTS(0), FRIT_WEIGHTS_INDEXER};

static const char *const keys[] = {FRIT_KEYS_MLA_EXPERTS, FRIT_KEYS_INDEXER};

static frit_status adjust(frit_hparams *hp)
{
    hp->index.rope_style = FRIT_ROPE_NEOX;
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].has_index = true;
    return frit_indexer_adjust(hp);
}

const frit_arch frit_arch_deepseek32 = {
    .name = "deepseek32",
    .title = "DeepSeek-V3.2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
