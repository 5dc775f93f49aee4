// SPDX-License-Identifier: MIT
// quantize/refine_eight.h: rounds eight numbers to signed rows of a grid (quant/search/grid_search.h).
//
// A change s of the numbers costs s.g + s H s / 2, where g is the gradient and H the curvature of the squared error.
// The result is scale times the magnitudes of one row of eight numbers, or two of four, with signs. First each number
// takes its best level and compensates those before it. If the levels are no row of the grid, nearby rows are compared
// by their full cost. If the number of minus signs must be even, the sign that costs least is flipped where needed.
#pragma once
#include "quant/block_format.h"

typedef struct frit_refine_eight {
    const frit_block_format *format;   // type with a grid
    float scale;                       // not 0
    float curvature[8][8], gradient[8];
    float now[8];
} frit_refine_eight;

// Replaces `codes`, a valid row, by a better one if one is found. Returns the cost of scale times codes; below 0 is
// better than `now`.
float frit_refine_eight_find(const frit_refine_eight *eight, int8_t codes[8]);
