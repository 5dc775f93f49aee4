// SPDX-License-Identifier: MIT
// quant/search/level_search_tmpl.h: level_search.h for LANES numbers at a time (lanes.h).
#include "quant/encode.h"
#include "quant/lanes.h"
#include "quant/search/level_search.h"
#include "quant/levels.h"

// middles[i] is between levels i and i + 1.
static const float middles[15] = {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101};

// The first trial, and seven more on either side of the scale that maps the extreme to levels[0], -127.
enum { ASIDE = 7, TRIALS = 2 * ASIDE + 2 };

// The nearest level's value, or its index. Both are integers, whose sums are exact.
LANES_INLINE lanes nearest(lanes x, const float steps[15], float first)
{
    lanes sum = all(first);
    for (int i = 0; i < 15; i++) sum += choose(x >= all(middles[i]), all(steps[i]), all(0));
    return sum;
}

typedef struct trials {
    float inverse[TRIALS], xq[TRIALS], qq[TRIALS];   // sums of weight * x * level and of weight * level^2
} trials;

static void sum_trials(const float *x, const float *weights, const float steps[15], trials *all_trials)
{
    for (int first = 0; first < TRIALS; first += LANES) {
        lanes inverse = all(0), xq = all(0), qq = all(0);
        for (int t = 0; t < LANES; t++) set_lane(&inverse, t, all_trials->inverse[first + t]);
        for (int j = 0; j < 32; j++) {
            const lanes q = nearest(inverse * all(x[j]), steps, (float)frit_iq4_levels[0]), wq = all(weights[j]) * q;
            xq += wq * all(x[j]);
            qq += wq * q;
        }
        for (int t = 0; t < LANES; t++) {
            all_trials->xq[first + t] = lane_of(xq, t);
            all_trials->qq[first + t] = lane_of(qq, t);
        }
    }
}

// Tries scales that map the extreme to levels[0] or near it, and first one that maps it to 127.
static float fit_levels(const float x[32], const float weights[32])
{
    const float extreme = frit_extreme(x, 32);
    float steps[15], d = 0, best = 0;
    trials all_trials = {.inverse = {1 / (extreme / 127)}};
    if (fabsf(extreme) < 1e-15f) return 0;
    for (int i = 0; i < 15; i++) steps[i] = (float)(frit_iq4_levels[i + 1] - frit_iq4_levels[i]);
    for (int t = 1; t < TRIALS; t++) all_trials.inverse[t] = (float)(t - 1 - ASIDE - 127) / extreme;
    sum_trials(x, weights, steps, &all_trials);
    for (int t = 0; t < TRIALS; t++) {
        const float xq = all_trials.xq[t], qq = all_trials.qq[t];
        if (!(qq > 0 && (t == 0 || xq * xq > best * qq))) continue;
        d = xq / qq;
        best = d * xq;
    }
    return d;
}

static void nearest_levels(const float x[32], float inverse, uint8_t codes[32])
{
    static const float ones[15] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int first = 0; first < 32; first += LANES) {
        lanes numbers = all(0);
        for (int t = 0; t < LANES; t++) set_lane(&numbers, t, x[first + t]);
        const lanes index = nearest(numbers * all(inverse), ones, 0);
        for (int t = 0; t < LANES; t++) codes[first + t] = (uint8_t)lane_of(index, t);
    }
}
