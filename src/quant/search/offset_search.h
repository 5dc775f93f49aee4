// SPDX-License-Identifier: MIT
// quant/search/offset_search.h: searches for the scale and the min of many groups of numbers at once.
//
// Each trial of a scale rounds to codes and fits the line x = scale * q - min of least squares through them. A better
// line moves the min from which later trials round, so trials run in sequence. Groups are independent of each other and
// are lanes of vectors. Each lane runs the operations of the reference encoder in its order, so the bits do not depend
// on the number of lanes.
#pragma once
#include <stdbool.h>
#include <stdint.h>

// The inverse scales (n_max + first + i * step) / (max - min), i = 0..n_steps, are tried. `absolute`: the sum of weight
// * |error| is minimized instead of squares.
typedef struct frit_offset_search {
    float first, step;
    int n_steps;
    bool absolute;
} frit_offset_search;

// x = scale * q - min, q = 0..n_max, min >= 0.
typedef struct frit_offset_fit {
    float scale, min;
} frit_offset_fit;

enum { FRIT_OFFSET_NUMBERS = 32 };   // upper bound of the numbers in a group

typedef struct frit_offset_groups {
    const float *x, *weights;   // [n_groups, n]
    int n_groups, n, n_max;
    const frit_offset_search *search;
    frit_offset_fit *fits;   // [n_groups]: results
    uint8_t *codes;          // [n_groups, n]: results
} frit_offset_groups;

void frit_fit_offsets(const frit_offset_groups *groups);

// frit_fit_offsets with the lanes of any processor (_any), and with those of AVX2.
void frit_fit_offsets_any(const frit_offset_groups *groups);
void frit_fit_offsets_avx2(const frit_offset_groups *groups);
