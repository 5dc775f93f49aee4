// SPDX-License-Identifier: MIT
// engine/session/classifier.h: what follows pooling: a classifier, or dense layers.
#pragma once
#include "engine/model/model.h"

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

// Writes y = w x + b, with b NULL or [rows of w]. `row` has room for a row of w and for b.
frit_status frit_apply_matrix(float *y, const frit_tensor *w, const frit_tensor *b, const float *x, int64_t n,
                              float *row);

// ------------------------------------------------------------------------------- dense layers (dense.c)

enum { FRIT_DENSE_MOST = 8 };

typedef struct frit_dense {
    const frit_tensor *w, *b;   // b may be NULL
    double (*act)(double x);
} frit_dense;

typedef struct frit_dense_list {
    frit_dense layers[FRIT_DENSE_MOST];
    int n;                  // 0: the model has none
    size_t n_out, n_most;   // numbers of the result, and of the longest vector
} frit_dense_list;

// Finds the layers that read vectors of n_in numbers.
frit_status frit_dense_find(frit_dense_list *list, const frit_model *model, size_t n_in);
// Writes y [n_most] of x. Scratch has 2 * n_most numbers.
frit_status frit_dense_run(const frit_dense_list *list, const float *x, float *y, float *scratch);
