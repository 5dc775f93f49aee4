// SPDX-License-Identifier: MIT
// sample/divergence.h: the distance of predictions from another model: the Kullback-Leibler divergence of two softmaxes
// over a vocabulary, one stored as log-probabilities.
#pragma once
#include <stddef.h>

// Log-probabilities [n] of logits [n].
void frit_log_softmax(const float *logits, size_t n, float *logprobs);

// The sum of p (log p - log q), where log p are the log-probabilities `base` [n], and q is the softmax of `logits` [n].
double frit_divergence(const float *base, const float *logits, size_t n);
