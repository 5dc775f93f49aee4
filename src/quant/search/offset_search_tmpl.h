// SPDX-License-Identifier: MIT
// quant/search/offset_search_tmpl.h: offset_search.h for LANES groups at a time (lanes.h).
#include "quant/search/offset_search.h"
#include "quant/lanes.h"

typedef struct numbers {   // one group in each lane
    lanes x[FRIT_OFFSET_NUMBERS], weights[FRIT_OFFSET_NUMBERS];
} numbers;

typedef struct fit {
    lanes min, max, scale;
    lanes inverse, from;   // codes are inverse * (x - from), rounded
    lanes error;           // the least error so far
    lanes sum_w, sum_x;    // sums of the weights, and of weight * x
    lanes is_flat;         // 1: all numbers of the group are equal
} fit;

// Rounds to nearest, ties to even, as frit_round_clamped.
LANES_INLINE lanes code_of(lanes inverse, lanes shifted, float n_max)
{
    const lanes x = inverse * shifted, above = choose(x > all(0), x, all(0));
    return (choose(above < all(n_max), above, all(n_max)) + all(12582912.0f)) - all(12582912.0f);
}

LANES_INLINE lanes cost(lanes weight, lanes error, bool absolute)
{
    return weight * (absolute ? magnitude(error) : error * error);
}

// The fit whose scale and min come from the extremes.
LANES_INLINE fit first_fit(const numbers *g, int n, float n_max, bool absolute)
{
    fit f = {.min = g->x[0], .max = g->x[0], .error = all(0), .sum_w = all(0), .sum_x = all(0)};
    for (int i = 0; i < n; i++) {
        f.min = choose(g->x[i] < f.min, g->x[i], f.min);
        f.max = choose(g->x[i] > f.max, g->x[i], f.max);
        f.sum_w += g->weights[i];
        f.sum_x += g->weights[i] * g->x[i];
    }
    f.from = f.min = choose(f.min > all(0), all(0), f.min);
    f.is_flat = choose(f.max > f.min, all(0), all(1));
    f.inverse = all(n_max) / (f.max - f.min);
    f.scale = all(1) / f.inverse;
    for (int i = 0; i < n; i++) {
        const lanes error = f.scale * code_of(f.inverse, g->x[i] - f.min, n_max) + f.min - g->x[i];
        f.error += cost(g->weights[i], error, absolute);
    }
    return f;
}

// Fits the line of least squares through the points (q, x), the best line for given codes. min is at most 0 here.
LANES_INLINE void try_scale(const numbers *g, int n, float n_max, float wanted, bool absolute, fit *f)
{
    lanes codes[FRIT_OFFSET_NUMBERS], q = all(0), qq = all(0), xq = all(0), error = all(0);
    const lanes inverse = all(wanted) / (f->max - f->min);
    for (int i = 0; i < n; i++) {
        const lanes code = code_of(inverse, g->x[i] - f->min, n_max), wq = g->weights[i] * code;
        codes[i] = code;
        q += wq;
        qq += wq * code;
        xq += wq * g->x[i];
    }
    const lanes determinant = f->sum_w * qq - q * q;
    const lanes through = (qq * f->sum_x - q * xq) / determinant;   // the line's value at q = 0
    const lanes scale = choose(through > all(0), xq / qq, (f->sum_w * xq - f->sum_x * q) / determinant);
    const lanes min = choose(through > all(0), all(0), through);
    for (int i = 0; i < n; i++) error += cost(g->weights[i], scale * codes[i] + min - g->x[i], absolute);
    const lane_mask better = (determinant > all(0)) & (error < f->error);   // the codes determine a line
    f->from = choose(better, f->min, f->from);
    f->inverse = choose(better, inverse, f->inverse);
    f->error = choose(better, error, f->error);
    f->scale = choose(better, scale, f->scale);
    f->min = choose(better, min, f->min);
}

// n and absolute are constants when the function is inlined.
LANES_INLINE fit search_lanes(const numbers *g, int n, float n_max, const frit_offset_search *search, bool absolute)
{
    fit f = first_fit(g, n, n_max, absolute);
    for (int i = 0; i <= search->n_steps; i++)
        try_scale(g, n, n_max, search->first + search->step * (float)i + n_max, absolute, &f);
    return f;
}

static fit fit_lanes(const numbers *g, int n, float n_max, const frit_offset_search *search)
{
    if (n == 32 && !search->absolute) return search_lanes(g, 32, n_max, search, false);
    if (n == 16 && search->absolute) return search_lanes(g, 16, n_max, search, true);
    return search_lanes(g, n, n_max, search, search->absolute);
}

// Loads groups [first, first + n); lanes without a group repeat the first one.
static void take_numbers(const frit_offset_groups *groups, int first, int n, numbers *g)
{
    for (int i = 0; i < groups->n; i++)
        for (int t = 0; t < LANES; t++) {
            const int at = (first + (t < n ? t : 0)) * groups->n + i;
            set_lane(&g->x[i], t, groups->x[at]);
            set_lane(&g->weights[i], t, groups->weights[at]);
        }
}

static void put_fit(const frit_offset_groups *groups, int group, const fit *f, const lanes *rounded, int lane)
{
    const bool is_flat = lane_of(f->is_flat, lane) != 0;
    uint8_t *codes = groups->codes + group * groups->n;
    groups->fits[group] = (frit_offset_fit){is_flat ? 0 : lane_of(f->scale, lane), -lane_of(f->min, lane)};
    for (int i = 0; i < groups->n; i++) codes[i] = is_flat ? 0 : (uint8_t)lane_of(rounded[i], lane);
}

static void fit_offsets(const frit_offset_groups *groups)
{
    for (int first = 0; first < groups->n_groups; first += LANES) {
        const int n = groups->n_groups - first < LANES ? groups->n_groups - first : LANES;
        numbers g = {0};
        take_numbers(groups, first, n, &g);
        const float n_max = (float)groups->n_max;
        const fit f = fit_lanes(&g, groups->n, n_max, groups->search);
        for (int i = 0; i < groups->n; i++) g.x[i] = code_of(f.inverse, g.x[i] - f.from, n_max);
        for (int t = 0; t < n; t++) put_fit(groups, first + t, &f, g.x, t);
    }
}
