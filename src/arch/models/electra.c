// SPDX-License-Identifier: MIT
// ELECTRA and ALBERT. As BERT with narrower embeddings, which a projection widens.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(tok_embd,  "token_embd",      N_VOCAB, EMBD_IN, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(type_embd, "token_types",     EMBD_IN, 1,       FRIT_WEIGHT_FIRST_ROW | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
    FRIT_MODEL_WEIGHT(pos_embd,  "position_embd",   N_CTX,   EMBD_IN, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(tok_norm,  "token_embd_norm", EMBD_IN, 1,       0),
    FRIT_MODEL_WEIGHT(tok_proj,  "token_embd_proj", N_EMBD,  EMBD_IN, FRIT_WEIGHT_OPTIONAL),
    FRIT_WEIGHTS_BERT_LAYER,
    FRIT_WEIGHTS_UNGATED(0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input"};

static frit_node *project(frit_build *b, frit_node *x)
{
    return frit_has(&b->weights->tok_proj) ? frit_linear(b, &b->weights->tok_proj, x) : x;
}

const frit_arch frit_arch_electra = {
    .name = "electra",
    .title = "ELECTRA, ALBERT",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .act = FRIT_ACT_GELU,
    .attention = {.no_rope = true},
    .is_encoder = true,
    .no_out_norm = true,
    .begin = project,
    .layer = frit_layer_norm_sums,
};
