// SPDX-License-Identifier: MIT
// Static embeddings: Model2Vec, potion. A table with a vector for each token, which pooling averages. The only layer
// changes nothing.
#include "arch/arch.h"

static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd", N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
};

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    (void)b, (void)w;
    return x;
}

static frit_status adjust(frit_hparams *hp)
{
    hp->has_no_cache = true;
    return FRIT_OK;
}

const frit_arch frit_arch_static_embedding = {
    .name = "static-embedding",
    .title = "Static embeddings: Model2Vec, potion",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .is_encoder = true,
    .no_out_norm = true,
    .layer = layer,
    .adjust = adjust,
};
