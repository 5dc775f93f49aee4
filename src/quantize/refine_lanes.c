// SPDX-License-Identifier: MIT
// Coordinate descent for sixteen rows side by side.
#include "quantize/refine_lanes.h"
#include "quantize/refine_eight.h"

#include <string.h>

enum { COLUMNS = FRIT_REFINE_COLUMNS, LANES = FRIT_REFINE_LANES, MAX_GROUP = 32 };
// Sweeps over the codes of a tried group; steps of its scale and min in a round.
enum { SWEEPS = 2, MOST_STEPS = 2 };

// Returns columns k to k + 7 of a lane.
static frit_refine_eight eight_of(const frit_descent *d, const frit_block_format *format, int k, int lane)
{
    frit_refine_eight eight = {.format = format, .scale = d->scales[k / d->group * LANES + lane]};
    for (int i = 0; i < 8; i++) {
        memcpy(eight.curvature[i], d->h + (k + i) * d->stride + k, sizeof eight.curvature[i]);
        eight.gradient[i] = d->gradient[(k + i) * LANES + lane];
        eight.now[i] = d->now[(k + i) * LANES + lane];
    }
    return eight;
}

// Like the kernel `descend`, for codes that are rows of a grid.
static void descend_in_eights(const frit_kernels *kernels, const frit_descent *d, const frit_block_format *format)
{
    for (int i = 0; i < d->n_sweeps * d->n; i += 8) {
        const int k = i % d->n;
        frit_lanes steps[8] = {{0}};
        for (int lane = 0; lane < LANES; lane++) {
            const frit_refine_eight eight = eight_of(d, format, k, lane);
            int8_t codes[8];
            if (eight.scale == 0) continue;
            for (int j = 0; j < 8; j++) codes[j] = (int8_t)d->codes[(k + j) * LANES + lane];
            frit_refine_eight_find(&eight, codes);
            for (int j = 0; j < 8; j++) {
                const float next = eight.scale * (float)codes[j];
                d->codes[(k + j) * LANES + lane] = codes[j];
                steps[j][lane] = next - eight.now[j];
                d->now[(k + j) * LANES + lane] = next;
            }
        }
        kernels->follow(d->gradient, steps[0], 8, d->h + k * d->stride, d->stride, d->n);
    }
}

static void descend(const frit_refine_lanes *l, const frit_descent *d)
{
    if (l->format->is_grid)
        descend_in_eights(l->kernels, d, l->format);
    else
        l->kernels->descend(d);
}

static frit_descent descent_of(const frit_refine_lanes *l, int first, int n)
{
    return (frit_descent){.n = n,
                          .group = l->format->group,
                          .n_sweeps = 1,
                          .h = l->h + first * COLUMNS + first,
                          .stride = COLUMNS,
                          .low = l->format->low,
                          .high = l->format->high,
                          .levels = l->format->levels};
}

static void improve_codes(frit_refine_lanes *l)
{
    frit_lanes scales[FRIT_REFINE_GROUPS], mins[FRIT_REFINE_GROUPS];
    for (int g = 0; g * l->format->group < l->n; g++)
        for (int i = 0; i < LANES; i++) {
            scales[g][i] = l->d[g][i] * l->scales[g][i];
            mins[g][i] = l->dmin[g][i] * l->mins[g][i];
        }
    frit_descent d = descent_of(l, 0, l->n);
    d.scales = scales[0];
    d.mins = mins[0];
    d.now = l->now[0];
    d.gradient = l->gradient[0];
    d.codes = l->codes[0];
    descend(l, &d);
}

// ------------------------------------------------------------------------------------- scales that are integers

// A group with another scale or min, and the codes that fit it.
typedef struct trial {
    frit_lanes scales, mins;
    frit_lanes now[MAX_GROUP], codes[MAX_GROUP];
    frit_lanes gains;   // change of the squared error: below 0 is better
} trial;

// Tries the scales and mins of a trial. Lanes that are not allowed are skipped in grids, whose search is slow.
static void try_group(const frit_refine_lanes *l, int g, const frit_lanes is_allowed, trial *t)
{
    const int n = l->format->group, first = g * n;
    const size_t n_bytes = (size_t)n * sizeof(frit_lanes);
    frit_lanes gradient[MAX_GROUP], scales, mins;
    memcpy(t->now, l->now[first], n_bytes);
    memcpy(t->codes, l->codes[first], n_bytes);
    memcpy(gradient, l->gradient[first], n_bytes);
    for (int i = 0; i < LANES; i++) {
        scales[i] = is_allowed[i] * l->d[g][i] * t->scales[i];
        mins[i] = l->dmin[g][i] * t->mins[i];
        t->gains[i] = 0;
    }
    frit_descent d = descent_of(l, first, n);
    d.n_sweeps = SWEEPS;
    d.scales = scales;
    d.mins = mins;
    d.now = t->now[0];
    d.gradient = gradient[0];
    d.codes = t->codes[0];
    descend(l, &d);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LANES; i++)
            t->gains[i] += 0.5f * (t->now[k][i] - l->now[first + k][i]) * (gradient[k][i] + l->gradient[first + k][i]);
}

// Takes over lanes for which the trial is better.
static void take_better(const frit_refine_lanes *l, const trial *t, const frit_lanes is_allowed, trial *best)
{
    frit_lanes is_better;
    for (int i = 0; i < LANES; i++) {
        is_better[i] = t->gains[i] < best->gains[i] ? is_allowed[i] : 0;
        best->gains[i] = is_better[i] > 0 ? t->gains[i] : best->gains[i];
        best->scales[i] = is_better[i] > 0 ? t->scales[i] : best->scales[i];
        best->mins[i] = is_better[i] > 0 ? t->mins[i] : best->mins[i];
    }
    for (int k = 0; k < l->format->group; k++)
        for (int i = 0; i < LANES; i++) {
            best->now[k][i] = is_better[i] > 0 ? t->now[k][i] : best->now[k][i];
            best->codes[k][i] = is_better[i] > 0 ? t->codes[k][i] : best->codes[k][i];
        }
}

// Finds the best neighbour of a group: scale or min changes by one step. Only lanes with `goes_on` 1.
static void find_neighbours(const frit_refine_lanes *l, int g, const frit_lanes goes_on, trial *best)
{
    const frit_block_format *format = l->format;
    const int reach = format->min_high > 0 ? 1 : 0;
    trial t;
    frit_lanes is_allowed;
    memset(best->gains, 0, sizeof best->gains);
    for (int s = -format->scale_step; s <= format->scale_step; s += format->scale_step)
        for (int m = -reach; m <= reach; m++) {
            if (s != 0 && m != 0) continue;
            for (int i = 0; i < LANES; i++) {
                const float scale = l->scales[g][i] + (float)s, min = l->mins[g][i] + (float)m;
                const bool fits = scale >= (float)format->scale_low && scale <= (float)format->scale_high &&
                                  (reach == 0 || (min >= 0 && min <= (float)format->min_high));
                is_allowed[i] = fits ? goes_on[i] : 0;
                t.scales[i] = scale;
                t.mins[i] = min;
            }
            try_group(l, g, is_allowed, &t);
            take_better(l, &t, is_allowed, best);
        }
}

// Takes the better neighbours. Lanes whose scale or min changes continue; false: none does.
static bool take_neighbours(frit_refine_lanes *l, int g, const trial *best, frit_lanes goes_on)
{
    const int n = l->format->group, first = g * n;
    frit_lanes steps[MAX_GROUP];
    bool any = false;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LANES; i++) {
            const bool is_better = best->gains[i] < 0;
            steps[k][i] = is_better ? best->now[k][i] - l->now[first + k][i] : 0;
            l->now[first + k][i] = is_better ? best->now[k][i] : l->now[first + k][i];
            l->codes[first + k][i] = is_better ? best->codes[k][i] : l->codes[first + k][i];
        }
    l->kernels->follow(l->gradient[0], steps[0], n, l->h + first * COLUMNS, COLUMNS, l->n);
    for (int i = 0; i < LANES; i++) {
        const bool is_better = best->gains[i] < 0;
        const bool differs = best->scales[i] != l->scales[g][i] || best->mins[i] != l->mins[g][i];
        goes_on[i] = is_better && differs;
        any = any || goes_on[i] > 0;
        if (is_better) l->scales[g][i] = best->scales[i];
        if (is_better) l->mins[g][i] = best->mins[i];
    }
    return any;
}

// Takes steps as long as there is a better neighbour.
static void improve_integers(frit_refine_lanes *l, int g)
{
    frit_lanes goes_on;
    trial best;
    memset(&best, 0, sizeof best);
    for (int i = 0; i < LANES; i++) goes_on[i] = 1;
    for (int i = 0; i < MOST_STEPS; i++) {
        find_neighbours(l, g, goes_on, &best);
        if (!take_neighbours(l, g, &best, goes_on)) return;
    }
}

// ------------------------------------------------------------------------------------- scales in f16

// Computes the best steps along the directions, over the group's columns.
static void find_steps(const frit_refine_lanes *l, int g, const frit_lanes *directions, frit_lanes steps)
{
    const int n = l->format->group, first = g * n;
    frit_lanes sums[MAX_GROUP] = {{0}}, slopes = {0}, curves = {0};
    l->kernels->follow(sums[0], directions[0], n, l->h + first * COLUMNS + first, COLUMNS, n);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LANES; i++) {
            curves[i] += directions[k][i] * sums[k][i];
            slopes[i] += directions[k][i] * l->gradient[first + k][i];
        }
    for (int i = 0; i < LANES; i++) steps[i] = curves[i] > 0 ? -slopes[i] / curves[i] : 0;
}

static void take_step(frit_refine_lanes *l, int g, const frit_lanes *directions, const frit_lanes steps)
{
    const int n = l->format->group, first = g * n;
    frit_lanes changes[MAX_GROUP];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LANES; i++) {
            changes[k][i] = steps[i] * directions[k][i];
            l->now[first + k][i] += changes[k][i];
        }
    l->kernels->follow(l->gradient[0], changes[0], n, l->h + first * COLUMNS, COLUMNS, l->n);
}

// Improves the scale, then the min of a block of one group, to any f16 number.
static void improve_factors(frit_refine_lanes *l, int g)
{
    const frit_block_format *format = l->format;
    const int n = format->group, first = g * n;
    frit_lanes directions[MAX_GROUP], steps;
    for (int of_mins = 0; of_mins <= (format->min_high > 0); of_mins++) {
        for (int k = 0; k < n; k++)
            for (int i = 0; i < LANES; i++)
                directions[k][i] = of_mins ? -1 : frit_block_format_level(format, (int)l->codes[first + k][i]);
        find_steps(l, g, directions, steps);
        for (int i = 0; i < LANES; i++) {
            float *factor = of_mins ? &l->dmin[g][i] : &l->d[g][i];
            frit_unpacked_block block = {.d = *factor, .dmin = *factor};
            if (of_mins)
                frit_block_format_set_min(format, &block, 0, *factor + steps[i]);
            else
                frit_block_format_set_scale(format, &block, 0, *factor + steps[i]);
            steps[i] = (of_mins ? block.dmin : block.d) - *factor;
            *factor = of_mins ? block.dmin : block.d;
        }
        take_step(l, g, directions, steps);
    }
}

void frit_refine_lanes_improve(frit_refine_lanes *l)
{
    const bool has_integers = l->format->scale_low < l->format->scale_high;
    improve_codes(l);
    for (int g = 0; g * l->format->group < l->n; g++) (has_integers ? improve_integers : improve_factors)(l, g);
}
