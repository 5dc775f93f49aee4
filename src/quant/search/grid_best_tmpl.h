// SPDX-License-Identifier: MIT
// quant/search/grid_best_tmpl.h: frit_grid_best for LANES neighbours at a time (lanes.h). Each sum is added up element
// by element, as in the formats' reference encoder.
#include "quant/search/grid_search.h"
#include "quant/lanes.h"

// size is a constant when the function is inlined.
LANES_INLINE int grid_best_of(const frit_grid_near *near, int size, const frit_grid_target *target)
{
    const lanes ordinals = from_zero();
    lanes least = all(INFINITY), at = all(0);   // the least sum of each lane, and its index
    for (int first = 0; first < near->n; first += LANES) {
        const lanes index = all((float)first) + ordinals;
        const lane_words levels = load_words(near->levels + first);
        lanes sum = all(0);
        for (int i = 0; i < size; i++) {
            const lanes q = all(target->step) * to_floats(levels >> 4 * i & 15) + all(target->low);
            const lanes apart = all(target->scale) * q - all(target->x[i]);
            sum += all(target->weights[i]) * apart * apart;
        }
        const lane_mask better = (sum < least) & (index < all((float)near->n));
        least = choose(better, sum, least);
        at = choose(better, index, at);
    }
    float best = INFINITY, index = 0;
    for (int l = 0; l < LANES; l++) {   // the first of equal sums
        const float sum = lane_of(least, l), i = lane_of(at, l);
        if (!(sum < best || (sum == best && i < index))) continue;
        best = sum;
        index = i;
    }
    return best < INFINITY ? (int)index : 0;
}

static int grid_best(const frit_grid_near *near, int size, const frit_grid_target *target)
{
    return size == 4 ? grid_best_of(near, 4, target) : grid_best_of(near, 8, target);
}
