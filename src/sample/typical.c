// SPDX-License-Identifier: MIT
// typical: keeps the candidates whose information -log p is nearest to the entropy H, until they have the wanted
// probability (Meister et al. 2022, "Locally Typical Sampling").
//
//     |-log p - H| = |logit - c|,  c = max + log sum - H
//
// The kept candidates are therefore consecutive in sorted order, on both sides of c.
#include "sample/sampler.h"

#include <math.h>

bool frit_typical_is_on(const frit_sampler_options *options)
{
    const float p = frit_stage_number(options, typical_p);
    return p > 0 && p < 1 && options->temp > 0;
}

void frit_typical_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const double wanted = (double)frit_stage_number(&sampler->options, typical_p);
    frit_candidates_sort(candidates, candidates->n);
    frit_candidate *items = candidates->items;
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    if (softmax.max == -INFINITY) return;
    const double center = softmax.max + log(softmax.sum) - frit_candidates_entropy(candidates, &softmax);
    int32_t end = 0;
    while (end < candidates->n && (double)items[end].logit >= center) end++;
    int32_t begin = end;   // [begin, end) stay
    for (double sum = 0; sum <= wanted && (begin > 0 || end < candidates->n);) {
        const double above = begin > 0 ? (double)items[begin - 1].logit - center : INFINITY;
        const double below = end < candidates->n ? center - (double)items[end].logit : INFINITY;
        const int32_t nearest = above <= below && begin > 0 ? --begin : end++;
        sum += frit_softmax_probability(&softmax, items[nearest].logit);
    }
    candidates->items += begin;
    candidates->n = end - begin;
}
