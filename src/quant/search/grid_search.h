// SPDX-License-Identifier: MIT
// quant/search/grid_search.h: finds rows of a grid near a point; for the encoders of the IQ1, IQ2 and IQ3 formats.
//
// Points are written in levels: 0, 1, 2 for rows of eight, 0..7 for rows of four. A grid contains few of the possible
// points, so most roundings miss it. Then the best row of the nearest shells is taken; a shell is all rows at one
// Euclidean distance from the point.
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    FRIT_GRID_MAX_ROWS = 2048,
    FRIT_GRID_MAX_POINTS = 6561,   // 3^8; 8^4 is less
    FRIT_GRID_LANES = 8,           // the number of neighbours is padded to a multiple of it
};

typedef enum frit_grid_kind {
    FRIT_GRID_IQ1,
    FRIT_GRID_IQ2_XXS,
    FRIT_GRID_IQ2_XS,
    FRIT_GRID_IQ2_S,
    FRIT_GRID_IQ3_XXS,
    FRIT_GRID_IQ3_S,
    FRIT_GRID_KINDS,
} frit_grid_kind;

// The rows in the nearest shells of a point, nearest first; within a shell, in the order of the grid.
typedef struct frit_grid_near {
    int n;
    const uint16_t *rows;     // [n]
    const uint32_t *levels;   // of each row, four bits for each element; readable up to a multiple of FRIT_GRID_LANES
} frit_grid_near;

static inline uint8_t frit_grid_level(uint32_t levels, int k)   // of element k
{
    return (uint8_t)(levels >> 4 * k & 15);
}

// A grid with the neighbours of all points.
typedef struct frit_grid_search {
    int n_rows, size, n_levels, n_shells;
    int8_t values[8];                        // of levels
    int16_t row_of[FRIT_GRID_MAX_POINTS];    // by point number, whose digits are the levels; -1: not in the grid
    uint8_t levels[8][FRIT_GRID_MAX_ROWS];   // of element k of row r: levels[k][r]
    uint32_t first[FRIT_GRID_MAX_POINTS];    // index of a point's neighbours in near_rows, a multiple of
                                             // FRIT_GRID_LANES
    uint16_t n_near[FRIT_GRID_MAX_POINTS];
    uint16_t *near_rows;
    uint32_t *near_levels;   // levels of the rows in near_rows
} frit_grid_search;

// Builds the search at the first call, in some milliseconds; it is never freed. Threads may call it at the same time.
const frit_grid_search *frit_grid_search_get(frit_grid_kind kind);

// Returns the row that equals the point; or -1, and `near` is the point's neighbours.
static inline int frit_grid_find(const frit_grid_search *search, const uint8_t *point, frit_grid_near *near)
{
    int number = 0;
    for (int k = 0; k < search->size; k++) number = number * search->n_levels + point[k];
    if (search->row_of[number] >= 0) return search->row_of[number];
    const uint32_t first = search->first[number];
    *near = (frit_grid_near){search->n_near[number], search->near_rows + first, search->near_levels + first};
    return -1;
}

// The target of a comparison: the sum of weight * (scale * (step * level + low) - x)^2 over the elements of a row.
typedef struct frit_grid_target {
    const float *x, *weights;
    float scale, step, low;
} frit_grid_target;

// The index of the neighbour with the least sum, the first of equal ones; `size`: 4 or 8.
int frit_grid_best(const frit_grid_near *near, int size, const frit_grid_target *target);
int frit_grid_best_any(const frit_grid_near *near, int size, const frit_grid_target *target);
int frit_grid_best_avx2(const frit_grid_near *near, int size, const frit_grid_target *target);
