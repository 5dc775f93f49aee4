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
    uint8_t levels[8];   // of the numbers
    float steps[8];      // that lead from `now` to these
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

// Each number in turn, as if all rows were in the grid.
static void round_in_turn(finder *f)
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

// Gradient of number k after the steps.
static float gradient_of(const finder *f, int k)
{
    float sum = f->in->gradient[k];
    for (int j = 0; j < 8; j++) sum += f->in->curvature[k][j] * f->steps[j];
    return sum;
}

// What turning the sign of the number x, of gradient g and curvature h, costs.
static float cost_of_turn(float x, float g, float h)
{
    return 2 * x * (h * x - g);
}

// Rows [first, first + LANES) of those near run `from`, beside the steps of other runs: what each costs, and which sign
// should turn for that, or -1.
typedef struct lanes {
    float steps[8][LANES], costs[LANES];
    int turned[LANES];
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

static inline void find_costs(const finder *f, int from, int size, bool is_turned, lanes *l)
{
    float least[LANES];
    for (int i = 0; i < LANES; i++) l->costs[i] = 0, l->turned[i] = -1, least[i] = INFINITY;
    for (int k = 0; k < size; k++) {
        float base = f->in->gradient[from + k], slopes[LANES];
        const float *row = f->in->curvature[from + k], *steps = l->steps[k];
        for (int j = 0; j < 8; j++) base += j >= from && j < from + size ? 0 : row[j] * f->steps[j];
        for (int i = 0; i < LANES; i++) slopes[i] = 0;
        for (int j = 0; j < size; j++)
            for (int i = 0; i < LANES; i++) slopes[i] += row[from + j] * l->steps[j][i];
        for (int i = 0; i < LANES; i++) l->costs[i] += steps[i] * (base + 0.5f * slopes[i]);
        for (int i = 0; i < LANES && is_turned; i++) {
            const float x = f->in->now[from + k] + steps[i];
            const float turn = cost_of_turn(x, base + slopes[i], row[from + k]);
            l->turned[i] = turn < least[i] ? k : l->turned[i];
            least[i] = turn < least[i] ? turn : least[i];
        }
    }
    for (int i = 0; i < LANES && is_turned; i++) l->costs[i] += least[i];
}

static void take_row(finder *f, const frit_grid_near *near, int row, int from, int turned)
{
    if (turned >= 0) f->signs[from + turned] = -f->signs[from + turned];
    for (int k = from; k < from + f->search->size; k++) {
        f->levels[k] = frit_grid_level(near->levels[row], k - from);
        f->steps[k] = value_of(f, k) - f->in->now[k];
    }
}

// The numbers from `from` on become a row of the grid.
static void choose_row(finder *f, int from, bool is_turned)
{
    frit_grid_near near;
    if (frit_grid_find(f->search, f->levels + from, &near) >= 0) return;
    float best = INFINITY;
    int row = 0, turned = -1;
    for (int first = 0; first < near.n; first += LANES) {
        lanes l;
        take_steps(f, &near, first, from, &l);
        if (f->search->size == 8)
            find_costs(f, from, 8, is_turned, &l);
        else
            find_costs(f, from, 4, false, &l);
        for (int i = 0; i < LANES && first + i < near.n; i++) {
            if (!(l.costs[i] < best)) continue;
            best = l.costs[i];
            row = first + i;
            turned = l.turned[i];
        }
    }
    take_row(f, &near, row, from, turned);
}

// Turns the sign that costs least.
static void turn_one(finder *f, bool is_needed)
{
    float least = is_needed ? INFINITY : 0;
    int best = -1;
    for (int k = 0; k < 8; k++) {
        const float cost = cost_of_turn(f->in->now[k] + f->steps[k], gradient_of(f, k), f->in->curvature[k][k]);
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
    round_in_turn(&f);
    for (int from = 0; from < 8; from += f.search->size) choose_row(&f, from, must_be_even && is_odd(&f));
    if (!must_be_even || is_odd(&f)) turn_one(&f, must_be_even);
    const float after = cost_of(eight, f.steps);
    if (!(after < before)) return before;
    for (int k = 0; k < 8; k++) codes[k] = (int8_t)((int)f.signs[k] * f.search->values[f.levels[k]]);
    return after;
}
