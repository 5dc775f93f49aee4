// SPDX-License-Identifier: MIT
// quantize/refine_eight.h: rounding eight numbers to rows of a grid (quant/search/grid_search.h) with their signs.
//
// With what they are now, a change of them by s costs s.g + s H s / 2: g their gradient, H the curvature, both of the
// squared error. The numbers may only become scale times magnitudes of one row of eight, or two of four, with signs.
// First each in turn takes the level that makes up for those before it. Where this is no row, the rows near it are
// compared by what they cost, with all that lies off the diagonal of H. Where minus signs must be even and are not,
// one sign turns: of each row the one that costs least.
#pragma once
#include "quant/block_format.h"

typedef struct frit_refine_eight {
    const frit_block_format *format;   // of a grid
    float scale;                       // not 0
    float curvature[8][8], gradient[8];
    float now[8];
} frit_refine_eight;

// Replaces `codes`, which are allowed ones, by better ones; they stay if none are found. Returns what scale times codes
// costs, below 0 is better than `now`.
float frit_refine_eight_find(const frit_refine_eight *eight, int8_t codes[8]);
