// SPDX-License-Identifier: MIT
// Log-probabilities from logits.
#include "server/odds.h"

#include <math.h>

static void insert(server_pick *pick, int32_t n_top, frit_token token, float logit)
{
    if (pick->n_top == n_top && !(logit > pick->top[n_top - 1].log_probability)) return;
    int32_t i = pick->n_top < n_top ? pick->n_top++ : n_top - 1;
    for (; i > 0 && logit > pick->top[i - 1].log_probability; i--) pick->top[i] = pick->top[i - 1];
    pick->top[i] = (server_odds){token, logit};
}

double server_odds_top(const float *logits, int32_t n_vocab, int32_t n_top, server_pick *pick)
{
    float max = -INFINITY;
    pick->n_top = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (logits[i] > max) max = logits[i];
        if (n_top > 0) insert(pick, n_top, i, logits[i]);
    }
    double sum = 0;
    for (int32_t i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - (double)max);
    double log_sum = (double)max + log(sum);
    for (int32_t i = 0; i < pick->n_top; i++)
        pick->top[i].log_probability = (float)((double)pick->top[i].log_probability - log_sum);
    return log_sum;
}
