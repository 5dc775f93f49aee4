// SPDX-License-Identifier: MIT
// Finds rows of a grid near a point. The neighbours of all points are computed once, from the distances to all rows, in
// loops that compilers vectorize.
#include "quant/search/grid_search.h"

#include "base/thread/thread.h"
#include "quant/levels.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// The sizes of the lists of neighbours of all points of a grid.
enum {
    NEAR_IQ1 = 343304,
    NEAR_IQ2_XXS = 135360,
    NEAR_IQ2_XS = 203376,
    NEAR_IQ2_S = 69064,
    NEAR_IQ3_XXS = 34304,
    NEAR_IQ3_S = 36456,
};

static uint16_t rows_iq1[NEAR_IQ1], rows_iq2_xxs[NEAR_IQ2_XXS], rows_iq2_xs[NEAR_IQ2_XS], rows_iq2_s[NEAR_IQ2_S],
    rows_iq3_xxs[NEAR_IQ3_XXS], rows_iq3_s[NEAR_IQ3_S];
static uint32_t levels_iq1[NEAR_IQ1], levels_iq2_xxs[NEAR_IQ2_XXS], levels_iq2_xs[NEAR_IQ2_XS],
    levels_iq2_s[NEAR_IQ2_S], levels_iq3_xxs[NEAR_IQ3_XXS], levels_iq3_s[NEAR_IQ3_S];

static const struct {
    const void *grid;
    int n_rows, n_levels, n_shells;
    uint32_t n_near;
    uint16_t *near_rows;
    uint32_t *near_levels;
    int8_t values[8];
} grids[FRIT_GRID_KINDS] = {
    [FRIT_GRID_IQ1] = {frit_iq1_grid, 2048, 3, 3, NEAR_IQ1, rows_iq1, levels_iq1, {-1, 0, 1}},
    [FRIT_GRID_IQ2_XXS] = {frit_iq2_xxs_grid, 256, 3, 2, NEAR_IQ2_XXS, rows_iq2_xxs, levels_iq2_xxs, {8, 25, 43}},
    [FRIT_GRID_IQ2_XS] = {frit_iq2_xs_grid, 512, 3, 2, NEAR_IQ2_XS, rows_iq2_xs, levels_iq2_xs, {8, 25, 43}},
    [FRIT_GRID_IQ2_S] = {frit_iq2_s_grid, 1024, 3, 1, NEAR_IQ2_S, rows_iq2_s, levels_iq2_s, {8, 25, 43}},
    [FRIT_GRID_IQ3_XXS] =
        {frit_iq3_xxs_grid, 256, 8, 2, NEAR_IQ3_XXS, rows_iq3_xxs, levels_iq3_xxs, {4, 12, 20, 28, 36, 44, 52, 62}},
    [FRIT_GRID_IQ3_S] = {frit_iq3_s_grid, 512, 8, 3, NEAR_IQ3_S, rows_iq3_s, levels_iq3_s, {1, 3, 5, 7, 9, 11, 13, 15}},
};

static int number_of(const frit_grid_search *search, const uint8_t *point)
{
    int number = 0;
    for (int k = 0; k < search->size; k++) number = number * search->n_levels + point[k];
    return number;
}

static void index_rows(frit_grid_search *search, const int8_t *element, const int8_t *values)
{
    memset(search->row_of, -1, sizeof search->row_of);
    for (int row = 0; row < search->n_rows; row++) {
        uint8_t point[8];
        for (int k = 0; k < search->size; k++, element++) {
            int level = 0;
            while (level < search->n_levels - 1 && values[level] != *element) level++;
            search->levels[k][row] = point[k] = (uint8_t)level;
        }
        search->row_of[number_of(search, point)] = (int16_t)row;
    }
}

// Computes squared distances, at most 4 * 7^2.
static void measure(const frit_grid_search *search, const uint8_t *point, uint8_t distance[FRIT_GRID_MAX_ROWS])
{
    memset(distance, 0, (size_t)search->n_rows);
    for (int k = 0; k < search->size; k++) {
        for (int row = 0; row < search->n_rows; row++) {
            uint8_t apart = (uint8_t)(search->levels[k][row] - point[k]);   // modulo 256, like its square
            distance[row] = (uint8_t)(distance[row] + apart * apart);
        }
    }
}

// Adds the rows of the nearest shell outside `inner`; returns its distance.
static int add_shell(const uint8_t *distance, int n_rows, int inner, uint16_t *rows, int *n)
{
    uint8_t nearest = 255;
    for (int row = 0; row < n_rows; row++) {
        uint8_t candidate = distance[row] > inner ? distance[row] : 255;
        nearest = candidate < nearest ? candidate : nearest;
    }
    for (int row = 0; row < n_rows; row++) {
        if (distance[row] == nearest) rows[(*n)++] = (uint16_t)row;
    }
    return nearest;
}

// Adds the neighbours of a point at `first`; returns where the next may begin.
static uint32_t add_point(frit_grid_search *search, int number, uint32_t first)
{
    uint8_t point[8], distance[FRIT_GRID_MAX_ROWS];
    uint32_t *levels = search->near_levels + first;
    uint16_t *rows = search->near_rows + first;
    int n = 0, rest = number, inner = 0;   // the point itself is not a row
    for (int k = search->size; k-- > 0; rest /= search->n_levels) point[k] = (uint8_t)(rest % search->n_levels);
    measure(search, point, distance);
    for (int shell = 0; shell < search->n_shells; shell++) {
        inner = add_shell(distance, search->n_rows, inner, rows, &n);
    }
    const int stride = (n + FRIT_GRID_LANES - 1) / FRIT_GRID_LANES * FRIT_GRID_LANES;
    for (int k = 0; k < search->size; k++) {
        for (int i = 0; i < n; i++) levels[i] |= (uint32_t)search->levels[k][rows[i]] << 4 * k;
    }
    search->first[number] = first;
    search->n_near[number] = (uint16_t)n;
    return first + (uint32_t)stride;
}

static frit_grid_search searches[FRIT_GRID_KINDS];

static void make(frit_grid_kind kind)
{
    frit_grid_search *search = &searches[kind];
    uint32_t first = 0;
    int n_points = 1;
    search->n_rows = grids[kind].n_rows;
    search->n_levels = grids[kind].n_levels;
    memcpy(search->values, grids[kind].values, sizeof search->values);
    search->n_shells = grids[kind].n_shells;
    search->size = search->n_levels == 3 ? 8 : 4;
    search->near_rows = grids[kind].near_rows;
    search->near_levels = grids[kind].near_levels;
    index_rows(search, grids[kind].grid, grids[kind].values);
    for (int k = 0; k < search->size; k++) n_points *= search->n_levels;
    for (int number = 0; number < n_points; number++) {
        if (search->row_of[number] < 0) first = add_point(search, number, first);
    }
    assert(first == grids[kind].n_near);
}

// clang-format off
static void make_iq1(void)     { make(FRIT_GRID_IQ1); }
static void make_iq2_xxs(void) { make(FRIT_GRID_IQ2_XXS); }
static void make_iq2_xs(void)  { make(FRIT_GRID_IQ2_XS); }
static void make_iq2_s(void)   { make(FRIT_GRID_IQ2_S); }
static void make_iq3_xxs(void) { make(FRIT_GRID_IQ3_XXS); }
static void make_iq3_s(void)   { make(FRIT_GRID_IQ3_S); }
// clang-format on

const frit_grid_search *frit_grid_search_get(frit_grid_kind kind)
{
    static frit_once once[FRIT_GRID_KINDS];
    static void (*const makers[])(void) = {make_iq1, make_iq2_xxs, make_iq2_xs, make_iq2_s, make_iq3_xxs, make_iq3_s};
    frit_once_run(&once[kind], makers[kind]);
    return &searches[kind];
}
