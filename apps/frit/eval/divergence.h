// SPDX-License-Identifier: MIT
// frit/eval/divergence.h: the differences between a model's predictions and those of a base model on one text:
// statistics over positions, as in llama.cpp's llama-perplexity.
//
//     for each position: divergence_add(&d, base_log_probs, logits, n_vocab, next);
//     divergence_figures f = divergence_finish(&d);
//     divergence_free(&d);
#pragma once
#include "frit/cli/cli.h"

// Base tokens less likely than e^-KL_DEEPEST are left out, because files of predictions do not have them.
enum { KL_DEEPEST = 16 };

typedef struct divergence {
    size_t n, capacity;
    double *kl;                                                          // of each position
    double *change;                                                      // of the probability of the next token
    double sum, sum_squares, sum_base, sum_base_squares, sum_products;   // of -log p
    size_t n_same_top;
    bool failed;   // out of memory
} divergence;

typedef struct figure {
    double value, error;   // error: one standard deviation, for independent positions
} figure;

typedef struct divergence_figures {
    figure perplexity, base_perplexity, ratio, log_ratio, difference;
    double correlation;   // of the logarithms of both perplexities
    figure kl;
    double kl_median, kl_90, kl_95, kl_99, kl_999, kl_largest;
    figure change, change_rms;   // of the probability of the next token
    figure same_top;
} divergence_figures;

// Returns -log p of the next token, from logits.
double divergence_loss(const float *logits, size_t n_vocab, frit_token next);
void divergence_log_probs(const float *logits, size_t n_vocab, float *log_probs);
void divergence_add(divergence *d, const float *base_log_probs, const float *logits, size_t n_vocab, frit_token next);
divergence_figures divergence_finish(divergence *d);   // sorts the positions; d->n is at least 1
void divergence_free(divergence *d);
// Returns an object with a member for each figure. NULL: out of memory.
struct json_t *divergence_json(const divergence_figures *f);
