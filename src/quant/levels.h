// SPDX-License-Identifier: MIT
// quant/levels.h: the constant levels and grids that codes of the nonlinear formats index.
#pragma once
#include <stdint.h>

// IQ4_NL and IQ4_XS: sixteen levels, denser around zero.
extern const int8_t frit_iq4_levels[16];
// MXFP4 and NVFP4: twice the values of E2M1, so that they are integers.
extern const int8_t frit_fp4_levels[16];

// The magnitudes of 8 (or 4) adjacent numbers by index. IQ1_S and IQ1_M share one grid of -1, 0 and 1.
extern const uint8_t frit_iq2_xxs_grid[256][8];
extern const uint8_t frit_iq2_xs_grid[512][8];
extern const uint8_t frit_iq2_s_grid[1024][8];
extern const uint8_t frit_iq3_xxs_grid[256][4];
extern const uint8_t frit_iq3_s_grid[512][4];
extern const int8_t frit_iq1_grid[2048][8];
