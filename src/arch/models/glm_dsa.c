// SPDX-License-Identifier: MIT
// GLM-5. As DeepSeek-V3.2; some layers use the positions chosen by an earlier layer.
#include "arch/arch.h"

static const frit_weight_row rows[] = {FRIT_WEIGHTS_MLA_EXPERTS(0), FRIT_WEIGHTS_INDEXER};

static const char *const keys[] = {FRIT_KEYS_MLA_EXPERTS, FRIT_KEYS_INDEXER, "attention.indexer.types"};

enum { SHARING_CONTEXT = 1 << 20 };   // files of GLM-5.2, recognized by the context, may lack the list of indexers

static bool has_own(const frit_hparams *hp, int32_t layer)
{
    return hp->n_ctx_train < SHARING_CONTEXT || layer < 3 || layer % 4 == 2;
}

static frit_status adjust(frit_hparams *hp)
{
    hp->index.rope_style = FRIT_ROPE_INTERLEAVED;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        lhp->has_index = lhp->index_type < 0 ? has_own(hp, i) : lhp->index_type > 0;
    }
    return frit_indexer_adjust(hp);
}

const frit_arch frit_arch_glm_dsa = {
    .name = "glm-dsa",
    .title = "GLM-5, GLM-5.2",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_INTERLEAVED,
    .gating = FRIT_GATING_SIGMOID,
    .layer = frit_layer_sequential,
    .adjust = adjust,
};
