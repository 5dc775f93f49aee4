// SPDX-License-Identifier: MIT
// engine/session/classifier.h: what is made of hidden states: pooled embeddings, and scores of a classification head.
#pragma once
#include "engine/model/model.h"

typedef enum frit_pooling {   // as ARCH.pooling_type counts
    FRIT_POOLING_NONE,
    FRIT_POOLING_MEAN,
    FRIT_POOLING_CLS,
    FRIT_POOLING_LAST,
    FRIT_POOLING_RANK,
    FRIT_POOLING_COUNT,
} frit_pooling;

extern const char *const frit_pooling_names[FRIT_POOLING_COUNT];
frit_pooling frit_model_pooling(const frit_model *model);   // the default

// What makes scores of a hidden state (classifier.c): out act(dense x), norms and biases where the file has them.
typedef struct frit_head {
    const frit_model *model;
    const frit_tensor *dense, *dense_b, *norm, *out, *out_b;   // NULL: it has no such part
    int64_t n_hidden, n_scores;
} frit_head;

frit_status frit_head_find(frit_head *head, const frit_model *model);   // FRIT_E_UNSUPPORTED without one
// scores [n_scores] of x [n_embd]; scratch: n_hidden numbers, and the longest row or bias.
frit_status frit_head_run(const frit_head *head, const float *x, float *scores, float *scratch);
