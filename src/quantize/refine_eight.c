// SPDX-License-Identifier: MIT
// Rounding eight numbers to rows of a grid.
#include "quantize/refine_eight.h"

#include <math.h>
#include <string.h>

enum { LANES = FRIT_GRID_LANES };

typedef struct finder {
    const frit_refine_eight *in;
    const frit_grid_search *search;
    float signs[8];      // +-1
    uint8_t levels[8];   // of each number
    float steps[8];      // from `now` to the levels
} finder;

static float value_of(const finder *f, int k)
{
    return f->in->scale * f->signs[k] * (float)f->search->values[f->levels[k]];
}

static uint8_t nearest_level(const frit_grid_search *search, float magnitude)
{
    const int8_t *values = search->values;
    int level = 0;
    while (level < search->n_levels - 1 && 2 * magnitude > (float)(values[level] + values[level + 1])) level++;
    return (uint8_t)level;
}

// Rounds the numbers one by one, as if the grid had all rows.
static void round_one_by_one(finder *f)
{
    const frit_refine_eight *in = f->in;
    float gradient[8];
    memcpy(gradient, in->gradient, sizeof gradient);
    for (int k = 0; k < 8; k++) {
        const float wanted = (in->now[k] - gradient[k] / in->curvature[k][k]) / in->scale;
        f->signs[k] = wanted < 0 ? -1 : 1;
        f->levels[k] = nearest_level(f->search, fabsf(wanted));
        f->steps[k] = value_of(f, k) - in->now[k];
        for (int j = k + 1; j < 8; j++) gradient[j] += f->steps[k] * in->curvature[k][j];
    }
}

static bool is_odd(const finder *f)
{
    bool odd = false;
    for (int k = 0; k < 8; k++) odd ^= f->signs[k] < 0;
    return odd;
}

// Returns the gradient of number k after the steps.
static float gradient_of(const finder *f, int k)
{
    float sum = f->in->gradient[k];
    for (int j = 0; j < 8; j++) sum += f->in->curvature[k][j] * f->steps[j];
    return sum;
}

// Returns the cost of flipping the sign of number x, with gradient g and curvature h.
static float cost_of_flip(float x, float g, float h)
{
    return 2 * x * (h * x - g);
}

// Nearby rows [first, first + LANES) for the numbers from `from` on: steps, costs, and the sign to flip or -1.
typedef struct lanes {
    float steps[8][LANES], costs[LANES];
    int flipped[LANES];
} lanes;

static void take_steps(const finder *f, const frit_grid_near *near, int first, int from, lanes *l)
{
    for (int k = 0; k < f->search->size; k++) {
        const uint32_t *levels = near->levels + first;
        const float factor = f->in->scale * f->signs[from + k], now = f->in->now[from + k];
        for (int i = 0; i < LANES; i++)
            l->steps[k][i] = factor * (float)f->search->values[frit_grid_level(levels[i], k)] - now;
    }
}

static inline void find_costs(const finder *f, int from, int size, bool flips_sign, lanes *l)
{
    float least[LANES];
    for (int i = 0; i < LANES; i++) l->costs[i] = 0, l->flipped[i] = -1, least[i] = INFINITY;
    for (int k = 0; k < size; k++) {
        float base = f->in->gradient[from + k], slopes[LANES];
        const float *row = f->in->curvature[from + k], *steps = l->steps[k];
        for (int j = 0; j < 8; j++) base += j >= from && j < from + size ? 0 : row[j] * f->steps[j];
        for (int i = 0; i < LANES; i++) slopes[i] = 0;
        for (int j = 0; j < size; j++)
            for (int i = 0; i < LANES; i++) slopes[i] += row[from + j] * l->steps[j][i];
        for (int i = 0; i < LANES; i++) l->costs[i] += steps[i] * (base + 0.5f * slopes[i]);
        for (int i = 0; i < LANES && flips_sign; i++) {
            const float x = f->in->now[from + k] + steps[i];
            const float flip = cost_of_flip(x, base + slopes[i], row[from + k]);
            l->flipped[i] = flip < least[i] ? k : l->flipped[i];
            least[i] = flip < least[i] ? flip : least[i];
        }
    }
    for (int i = 0; i < LANES && flips_sign; i++) l->costs[i] += least[i];
}

static void take_row(finder *f, const frit_grid_near *near, int row, int from, int flipped)
{
    if (flipped >= 0) f->signs[from + flipped] = -f->signs[from + flipped];
    for (int k = from; k < from + f->search->size; k++) {
        f->levels[k] = frit_grid_level(near->levels[row], k - from);
        f->steps[k] = value_of(f, k) - f->in->now[k];
    }
}

// Replaces the numbers from `from` on by the best row of the grid.
static void choose_row(finder *f, int from, bool flips_sign)
{
    frit_grid_near near;
    if (frit_grid_find(f->search, f->levels + from, &near) >= 0) return;
    float best = INFINITY;
    int row = 0, flipped = -1;
    for (int first = 0; first < near.n; first += LANES) {
        lanes l;
        take_steps(f, &near, first, from, &l);
        if (f->search->size == 8)
            find_costs(f, from, 8, flips_sign, &l);
        else
            find_costs(f, from, 4, false, &l);
        for (int i = 0; i < LANES && first + i < near.n; i++) {
            if (!(l.costs[i] < best)) continue;
            best = l.costs[i];
            row = first + i;
            flipped = l.flipped[i];
        }
    }
    take_row(f, &near, row, from, flipped);
}

// Flips the sign that costs least.
static void flip_sign(finder *f, bool is_needed)
{
    float least = is_needed ? INFINITY : 0;
    int best = -1;
    for (int k = 0; k < 8; k++) {
        const float cost = cost_of_flip(f->in->now[k] + f->steps[k], gradient_of(f, k), f->in->curvature[k][k]);
        if (cost < least) least = cost, best = k;
    }
    if (best < 0) return;
    f->signs[best] = -f->signs[best];
    f->steps[best] = value_of(f, best) - f->in->now[best];
}

static float cost_of(const frit_refine_eight *in, const float *steps)
{
    float sum = 0;
    for (int k = 0; k < 8; k++) {
        float slope = 0;
        for (int j = 0; j < 8; j++) slope += in->curvature[k][j] * steps[j];
        sum += steps[k] * (in->gradient[k] + 0.5f * slope);
    }
    return sum;
}

float frit_refine_eight_find(const frit_refine_eight *eight, int8_t codes[8])
{
    finder f = {.in = eight, .search = frit_grid_search_get(eight->format->grid)};
    const bool must_be_even = eight->format->even_signs;
    float steps[8];
    for (int k = 0; k < 8; k++) steps[k] = eight->scale * (float)codes[k] - eight->now[k];
    const float before = cost_of(eight, steps);
    round_one_by_one(&f);
    for (int from = 0; from < 8; from += f.search->size) choose_row(&f, from, must_be_even && is_odd(&f));
    if (!must_be_even || is_odd(&f)) flip_sign(&f, must_be_even);
    const float after = cost_of(eight, f.steps);
    if (!(after < before)) return before;
    for (int k = 0; k < 8; k++) codes[k] = (int8_t)((int)f.signs[k] * f.search->values[f.levels[k]]);
    return after;
}
