// SPDX-License-Identifier: MIT
// xtc: excludes top choices. With a given probability, the stage drops all candidates at or above a threshold except
// the least likely one (p-e-w 2024, text-generation-webui). A separate draw decides if it applies.
#include "base/philox.h"
#include "sample/sampler.h"

#include <math.h>

enum { XTC_STREAM = 1 };

static double threshold_of(const frit_sampler_options *options)
{
    return frit_or_default(frit_stage_number(options, xtc_threshold), 0.1);
}

// Above one half, at most one candidate reaches the threshold.
bool frit_xtc_is_on(const frit_sampler_options *options)
{
    return frit_stage_number(options, xtc_probability) > 0 && threshold_of(options) <= 0.5 && options->temp > 0;
}

void frit_xtc_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_sampler_options *options = &sampler->options;
    const uint64_t drawn = frit_philox_stream(options->seed, sampler->position, XTC_STREAM);
    const double at = (double)(drawn >> 11) * 0x1p-53;
    if (at >= (double)frit_stage_number(options, xtc_probability) || candidates->n < 2) return;
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    if (softmax.max == -INFINITY) return;
    const double threshold = threshold_of(options);
    int32_t n = 0;
    for (int32_t i = 0; i < candidates->n; i++)
        n += frit_softmax_probability(&softmax, candidates->items[i].logit) >= threshold;
    if (n < 2) return;
    frit_candidates_sort(candidates, n);
    candidates->items += n - 1;
    candidates->n -= n - 1;
}
