// SPDX-License-Identifier: MIT
// top-p: keeps the smallest set of candidates whose probability is at least p (Holtzman et al. 2019, nucleus sampling).
//
// The set is mostly small, so the candidates are sorted in growing prefixes until one holds enough.
#include "sample/sampler.h"
#include "sample/weight.h"

#include <math.h>

bool frit_top_p_is_on(const frit_sampler_options *options)
{
    return options->top_p > 0 && options->top_p < 1 && options->temp > 0;
}

void frit_top_p_keep(frit_candidates *candidates, float p)
{
    const float max = frit_candidates_max(candidates);
    if (max == -INFINITY || !(p > 0 && p < 1)) return;
    uint64_t total = 0, sum = 0;
    for (int32_t i = 0; i < candidates->n; i++) total += frit_weight(candidates->items[i].logit - max);
    const double wanted = (double)total * (double)p;
    int32_t n_sorted = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        if (i == n_sorted) {   // the sorted part has the likeliest candidates, so only the rest is scanned again
            int32_t more = n_sorted == 0 ? 256 : n_sorted <= candidates->n / 8 ? n_sorted * 7 : candidates->n;
            frit_candidates rest = {candidates->items + i, candidates->n - i, candidates->sorted};
            frit_candidates_sort(&rest, more);
            n_sorted += more < rest.n ? more : rest.n;
        }
        sum += frit_weight(candidates->items[i].logit - max);
        if ((double)sum >= wanted) {
            candidates->n = i + 1;
            break;
        }
    }
    candidates->sorted = true;   // the rest is sorted
}

void frit_top_p_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    frit_top_p_keep(candidates, sampler->options.top_p);
}
