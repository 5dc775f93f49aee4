// SPDX-License-Identifier: MIT
// quant/grid_search.h: finding rows of a grid near a point; for the encoders of the IQ1, IQ2 and IQ3 formats.
//
// Points are written in levels: 0, 1, 2 for rows of eight, 0..7 for rows of four. A grid holds few of the possible
// points, so most roundings miss it, and then the best of the rows close by is taken. Close by means: in the nearest
// shells, a shell being all rows at one Euclidean distance from the point.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    FRIT_GRID_MAX_ROWS = 2048,
    FRIT_GRID_MAX_POINTS = 6561,   // 3^8; 8^4 is less
    FRIT_GRID_MAX_NEAR = 512,
};

// A grid indexed for searching: 30 KB, built in a few microseconds for each run of an encoder.
typedef struct frit_grid_search {
    int n_rows, size, n_levels, n_shells;
    int16_t row_of[FRIT_GRID_MAX_POINTS];    // by point number, the levels being its digits; -1: not in the grid
    uint8_t levels[8][FRIT_GRID_MAX_ROWS];   // of element k of row r: levels[k][r]
} frit_grid_search;

// The rows in the nearest shells of a point, nearest first; of one shell, in the order of the grid. Starting as
// {.point = -1}, it is reused while searches have the same point, as trials of similar scales often do.
typedef struct frit_grid_near {
    int point, n_rows;
    uint16_t rows[FRIT_GRID_MAX_NEAR];
} frit_grid_near;

// `grid`: n_rows of 8 numbers (3 levels) or 4 (8 levels), from the n_levels values in `values`, as levels.h has them.
void frit_grid_search_init(frit_grid_search *search, const void *grid, int n_rows, const int8_t *values, int n_levels,
                           int n_shells);
// The row that is the point, or -1, in which case `near` holds its neighbours.
int frit_grid_find(const frit_grid_search *search, const uint8_t *point, frit_grid_near *near);
