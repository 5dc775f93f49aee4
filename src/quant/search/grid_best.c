// SPDX-License-Identifier: MIT
// frit_grid_best for any processor.
#include "quant/search/grid_best_tmpl.h"

int frit_grid_best_any(const frit_grid_near *near, int size, const frit_grid_target *target)
{
    return grid_best(near, size, target);
}
