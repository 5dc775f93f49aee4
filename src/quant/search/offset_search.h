// SPDX-License-Identifier: MIT
// quant/search/offset_search.h: searches for the scale and the min of groups of numbers, many groups side by side.
//
// Each try of a scale rounds to codes and fits the line x = scale * q - min of least squares through them; a better
// line moves the min that later tries round from, so tries follow one another. Groups do not depend on each other: they
// are lanes of vectors, each with the operations of the reference encoder in its order, and the bits do not depend on
// how many lanes there are.
#pragma once
#include <stdbool.h>
#include <stdint.h>

// Inverse scales (n_max + first + i * step) / (max - min) are tried, i = 0..n_steps. `absolute`: minimizes the sum of
// weight * |error| instead of squares.
typedef struct frit_offset_search {
    float first, step;
    int n_steps;
    bool absolute;
} frit_offset_search;

// x = scale * q - min, q = 0..n_max, min >= 0.
typedef struct frit_offset_fit {
    float scale, min;
} frit_offset_fit;

enum { FRIT_OFFSET_NUMBERS = 32 };   // of a group, at most

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
