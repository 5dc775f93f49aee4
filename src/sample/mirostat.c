// SPDX-License-Identifier: MIT
// mirostat: keeps the surprise of the tokens near a target, tau bits (Basu et al. 2020, "Mirostat: A Neural Text
// Decoding Algorithm that Directly Controls Perplexity"). A token may have a surprise of mu at most:
//
//     mu <- mu - eta (surprise - tau);  2 tau at first
//
// Version 2 drops the candidates above mu. Version 1 estimates Zipf's exponent s of the 100 likeliest and keeps k:
//
//     s = sum(t b) / sum(t t),  t = log((i + 2) / (i + 1)),  b = log(p[i] / p[i + 1])
//     k = (e 2^mu / (1 - N^-e))^(1 / s),  e = s - 1,  N the size of the vocabulary
//
// The surprise of a token is computed among the candidates that stay. `learned` is mu - 2 tau.
#include "sample/sampler.h"

#include <math.h>

enum { ZIPF_TOKENS = 100 };

bool frit_mirostat_is_on(const frit_sampler_options *options)
{
    return frit_stage_integer(options, mirostat) > 0 && options->temp > 0;
}

static double tau_of(const frit_sampler *sampler)
{
    return frit_or_default(frit_stage_number(&sampler->options, mirostat_tau), 5);
}

static int32_t count_by_zipf(const frit_candidates *candidates, double mu, double n_vocab)
{
    const frit_candidate *items = candidates->items;
    double products = 0, squares = 0;
    for (int32_t i = 0; i < ZIPF_TOKENS - 1 && i + 1 < candidates->n && items[i + 1].logit > -INFINITY; i++) {
        const double t = log((i + 2.0) / (i + 1.0));
        products += t * ((double)items[i].logit - (double)items[i + 1].logit);
        squares += t * t;
    }
    if (squares == 0) return 1;
    const double s = products / squares, e = s - 1;
    const double factor = fabs(e) > 1e-9 ? e / (1 - pow(n_vocab, -e)) : 1 / log(n_vocab);   // the limit at 0
    const double k = pow(factor * exp2(mu), 1 / s);
    return k >= candidates->n ? candidates->n : k >= 1 ? (int32_t)k : 1;
}

static int32_t count_by_surprise(const frit_candidates *candidates, double mu)
{
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    int32_t n = 1;
    while (n < candidates->n && -log2(frit_softmax_probability(&softmax, candidates->items[n].logit)) <= mu) n++;
    return n;
}

void frit_mirostat_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const double mu = 2 * tau_of(sampler) + sampler->learned;
    if (frit_candidates_max(candidates) == -INFINITY) return;
    frit_candidates_sort(candidates, candidates->n);
    candidates->n = frit_stage_integer(&sampler->options, mirostat) == 1
                        ? count_by_zipf(candidates, mu, sampler->n_vocab)
                        : count_by_surprise(candidates, mu);
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    for (int32_t i = 0; i < candidates->n; i++)
        sampler->probabilities[candidates->items[i].token] =
            (float)frit_softmax_probability(&softmax, candidates->items[i].logit);
}

void frit_mirostat_learn(frit_sampler *sampler, float probability)
{
    const double eta = frit_or_default(frit_stage_number(&sampler->options, mirostat_eta), 0.1);
    if (probability > 0) sampler->learned -= eta * (-log2((double)probability) - tau_of(sampler));
}
