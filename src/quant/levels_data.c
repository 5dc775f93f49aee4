// SPDX-License-Identifier: MIT
// The constant levels and grids of the nonlinear formats. Macros expand the numbers of grids.def to rows.
#include "quant/levels.h"

const int8_t frit_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t frit_fp4_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// clang-format off
#define EIGHT(level, row) {level((row) & 3), level((row) >> 2 & 3), level((row) >> 4 & 3), level((row) >> 6 & 3), \
                           level((row) >> 8 & 3), level((row) >> 10 & 3), level((row) >> 12 & 3),              \
                           level((row) >> 14 & 3)}
#define FOUR(level, row) {level((row) & 7), level((row) >> 3 & 7), level((row) >> 6 & 7), level((row) >> 9 & 7)}

#define LEVEL_IQ2(i) (8 + 17 * (i) + (i) / 2)      // 8 25 43
#define LEVEL_IQ3_XXS(i) (4 + 8 * (i) + (i) / 7 * 2)   // 4 12 20 28 36 44 52 62
#define LEVEL_IQ3_S(i) (1 + 2 * (i))               // 1 3 5 7 9 11 13 15
#define LEVEL_IQ1(i) ((i) - 1)                     // -1 0 1


const uint8_t frit_iq2_xxs_grid[256][8] = {
#define IQ2_XXS(row) EIGHT(LEVEL_IQ2, row),
#include "quant/grids.def"
};

const uint8_t frit_iq2_xs_grid[512][8] = {
#define IQ2_XS(row) EIGHT(LEVEL_IQ2, row),
#include "quant/grids.def"
};

const uint8_t frit_iq2_s_grid[1024][8] = {
#define IQ2_S(row) EIGHT(LEVEL_IQ2, row),
#include "quant/grids.def"
};

const uint8_t frit_iq3_xxs_grid[256][4] = {
#define IQ3_XXS(row) FOUR(LEVEL_IQ3_XXS, row),
#include "quant/grids.def"
};

const uint8_t frit_iq3_s_grid[512][4] = {
#define IQ3_S(row) FOUR(LEVEL_IQ3_S, row),
#include "quant/grids.def"
};

const int8_t frit_iq1_grid[2048][8] = {
#define IQ1(row) EIGHT(LEVEL_IQ1, row),
#include "quant/grids.def"
};
// clang-format on
