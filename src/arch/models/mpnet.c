// SPDX-License-Identifier: MIT
// MPNet. As BERT, with T5's bias of scores by distance, from one table for all layers.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_BERT,
    FRIT_MODEL_WEIGHT(pos_embd, "position_embd", N_CTX,     N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(rel_bias, "attn_rel_b",    N_BUCKETS, N_HEAD, FRIT_WEIGHT_TABLE),
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static const char *const keys[] = {"attention.relative_buckets_count"};

static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    for (int32_t i = 0; i < hp->n_layer; i++) {
        if (i == 0)
            FRIT_TRY(frit_relative_gains(&weights->layers[i].rel_gains, weights->rel_bias.w, hp, true, arena));
        else
            weights->layers[i].rel_gains = weights->layers[0].rel_gains;
    }
    return FRIT_OK;
}

const frit_arch frit_arch_mpnet = {
    .name = "mpnet",
    .title = "MPNet, all-mpnet-base",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .attention = {.no_rope = true},
    .is_encoder = true,
    .no_out_norm = true,
    .compute = compute,
    .layer = frit_layer_norm_sums,
};
