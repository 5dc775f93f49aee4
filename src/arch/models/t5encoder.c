// SPDX-License-Identifier: MIT
// The encoder of T5 alone.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(out_norm, "enc.output_norm", N_EMBD,  1,      0),
    FRIT_MODEL_WEIGHT(lm_head,  "output",          N_VOCAB, N_EMBD, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_T5(FRIT_WEIGHT_ENC),
};
// clang-format on

static const char *const keys[] = {"attention.relative_buckets_count"};

static frit_status adjust(frit_hparams *hp)
{
    hp->n_layer_enc = hp->n_layer;
    return FRIT_OK;
}

const frit_arch frit_arch_t5encoder = {
    .name = "t5encoder",
    .title = "T5, encoder alone",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .act = FRIT_ACT_GELU_TANH,
    .is_encoder = true,
    .compute = frit_t5_compute,
    .layer = frit_layer_t5,
    .adjust = adjust,
};
