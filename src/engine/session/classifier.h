// SPDX-License-Identifier: MIT
// engine/session/classifier.h: how hidden states become embeddings (pooling) or scores (a classifier).
#pragma once
#include "engine/model/model.h"

typedef enum frit_pooling {   // numbered as in the metadata ARCH.pooling_type
    FRIT_POOLING_NONE,
    FRIT_POOLING_MEAN,
    FRIT_POOLING_CLS,
    FRIT_POOLING_LAST,
    FRIT_POOLING_RANK,
    FRIT_POOLING_COUNT,
} frit_pooling;

extern const char *const frit_pooling_names[FRIT_POOLING_COUNT];
frit_pooling frit_model_pooling(const frit_model *model);   // the default

// Scores of a hidden state x: out act(norm(dense x)), with norm and biases if the file has them (classifier.c).
typedef struct frit_classifier {
    const frit_model *model;
    const frit_tensor *dense, *dense_b, *norm, *out, *out_b;   // NULL: absent
    int64_t n_hidden, n_scores;
} frit_classifier;

frit_status frit_classifier_find(frit_classifier *classifier,
                                 const frit_model *model);   // FRIT_E_UNSUPPORTED without a classifier
// Writes scores [n_scores] of x [n_embd]. Scratch has n_hidden numbers, and room for the longest row or bias.
frit_status frit_classifier_run(const frit_classifier *classifier, const float *x, float *scores, float *scratch);
