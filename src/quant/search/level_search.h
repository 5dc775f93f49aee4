// SPDX-License-Identifier: MIT
// quant/search/level_search.h: rounding to the sixteen uneven levels of IQ4_NL and IQ4_XS, and the search for the
// scale.
//
// Trials of a scale are independent of each other, and so are numbers when they are rounded: they are lanes of vectors.
// Sums keep the order of their numbers, so the bits do not depend on the number of lanes.
#pragma once
#include <stdint.h>

// Finds a scale with which levels fit 32 numbers well: the sum of weight * error^2 is small.
float frit_fit_levels(const float x[32], const float weights[32]);
// Sets codes[i] to the index of the level nearest to inverse * x[i], the upper of two equally near ones.
void frit_nearest_levels(const float x[32], float inverse, uint8_t codes[32]);

// The functions above with the lanes of any processor (_any), and with those of AVX2.
float frit_fit_levels_any(const float x[32], const float weights[32]);
void frit_nearest_levels_any(const float x[32], float inverse, uint8_t codes[32]);
float frit_fit_levels_avx2(const float x[32], const float weights[32]);
void frit_nearest_levels_avx2(const float x[32], float inverse, uint8_t codes[32]);
