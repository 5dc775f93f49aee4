// SPDX-License-Identifier: MIT
// The searches of level_search.h for any processor.
#include "quant/search/level_search_tmpl.h"

float frit_fit_levels_any(const float x[32], const float weights[32])
{
    return fit_levels(x, weights);
}

void frit_nearest_levels_any(const float x[32], float inverse, uint8_t codes[32])
{
    nearest_levels(x, inverse, codes);
}
