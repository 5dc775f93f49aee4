// SPDX-License-Identifier: MIT
// Classifiers, which rank texts: the tensors cls and cls.output of a model's file. BERT and RoBERTa compute
//
//     scores = out tanh(dense x + b) + c,  x the first token's state
//
// ModernBERT computes norm(gelu(dense x)) of the mean state. Decoders trained as rerankers have one matrix, which reads
// the last token's state; a softmax makes probabilities of its scores.
#include "engine/session/classifier.h"

#include <math.h>

static int64_t height_of(const frit_tensor *tensor)
{
    return tensor->n_dims == 2 ? tensor->shape[0] : 1;   // a matrix of one row may be a vector
}

static frit_status check_matrix(const frit_tensor *tensor, int64_t n_in)
{
    char shape[96];
    if (!tensor ||
        (tensor->n_dims <= 2 && height_of(tensor) >= 1 && frit_tensor_n_elems(tensor) / n_in == height_of(tensor) &&
         tensor->shape[tensor->n_dims - 1] == n_in))
        return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has the shape %s, expected rows of %lld numbers", tensor->name,
                     frit_tensor_shape_text(tensor, shape), (long long)n_in);
}

static frit_status check_vector(const frit_tensor *tensor, int64_t n)
{
    char shape[96];
    if (!tensor || (tensor->n_dims == 1 && tensor->shape[0] == n)) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "tensor '%s' has the shape %s, expected [%lld]", tensor->name,
                     frit_tensor_shape_text(tensor, shape), (long long)n);
}

frit_status frit_classifier_find(frit_classifier *classifier, const frit_model *model)
{
    const frit_checkpoint *ckpt = model->ckpt;
    *classifier = (frit_classifier){.model = model,
                                    .dense = frit_checkpoint_find(ckpt, "cls.weight"),
                                    .dense_b = frit_checkpoint_find(ckpt, "cls.bias"),
                                    .norm = frit_checkpoint_find(ckpt, "cls.norm.weight"),
                                    .out = frit_checkpoint_find(ckpt, "cls.output.weight"),
                                    .out_b = frit_checkpoint_find(ckpt, "cls.output.bias"),
                                    .n_hidden = model->hp.n_embd};
    if (!classifier->dense && !classifier->out)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no classification head (cls.output.weight) to rank with",
                              model->info.path);
    FRIT_TRY(check_matrix(classifier->dense, model->hp.n_embd));
    if (classifier->dense) classifier->n_hidden = height_of(classifier->dense);
    FRIT_TRY(check_matrix(classifier->out, classifier->n_hidden));
    classifier->n_scores = classifier->out ? height_of(classifier->out) : classifier->n_hidden;
    FRIT_TRY(check_vector(classifier->dense_b, classifier->n_hidden));
    FRIT_TRY(check_vector(classifier->norm, classifier->n_hidden));
    return check_vector(classifier->out_b, classifier->n_scores);
}

frit_status frit_apply_matrix(float *y, const frit_tensor *w, const frit_tensor *b, const float *x, int64_t n,
                              float *row)
{
    const int64_t n_rows = height_of(w);
    for (int64_t i = 0; i < n_rows; i++) {
        double sum = 0;
        FRIT_TRY(frit_tensor_decode_rows(w, i, 1, row));
        for (int64_t k = 0; k < n; k++) sum += (double)row[k] * x[k];
        y[i] = (float)sum;
    }
    if (!b) return FRIT_OK;
    FRIT_TRY(frit_tensor_decode_rows(b, 0, 1, row));
    for (int64_t i = 0; i < n_rows; i++) y[i] += row[i];
    return FRIT_OK;
}

static frit_status apply_norm(float *x, const frit_tensor *w, int64_t n, double eps, float *row)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)n;
    FRIT_TRY(frit_tensor_decode_rows(w, 0, 1, row));
    for (int64_t i = 0; i < n; i++) x[i] = (float)((x[i] - mean) / sqrt(square + eps) * row[i]);
    return FRIT_OK;
}

static void to_probabilities(float *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(exp(x[i] - top) / sum);
}

frit_status frit_classifier_run(const frit_classifier *classifier, const float *x, float *scores, float *scratch)
{
    const frit_model *model = classifier->model;
    const int64_t n_embd = model->hp.n_embd, n = classifier->n_hidden;
    const bool is_gelu = model->arch->ranks_by_mean || model->arch->ranks_by_gelu;
    float *hidden = classifier->out ? scratch : scores, *row = scratch + n;
    if (classifier->dense) {
        FRIT_TRY(frit_apply_matrix(hidden, classifier->dense, classifier->dense_b, x, n_embd, row));
        for (int64_t i = 0; i < n; i++)
            hidden[i] = is_gelu ? hidden[i] * (1 + erff(hidden[i] * 0.70710678f)) / 2 : tanhf(hidden[i]);
        if (classifier->norm) FRIT_TRY(apply_norm(hidden, classifier->norm, n, model->hp.layer_norm_eps, row));
    }
    if (classifier->out)
        FRIT_TRY(frit_apply_matrix(scores, classifier->out, classifier->out_b, classifier->dense ? hidden : x, n, row));
    if (!model->arch->is_encoder && classifier->n_scores > 1) to_probabilities(scores, classifier->n_scores);
    return FRIT_OK;
}
