// SPDX-License-Identifier: MIT
// Finding rows of a grid near a point: by distance to every row, in loops that compilers vectorize.
#include "quant/grid_search.h"

#include <string.h>

static int number_of(const frit_grid_search *search, const uint8_t *point)
{
    int number = 0;
    for (int k = 0; k < search->size; k++) number = number * search->n_levels + point[k];
    return number;
}

void frit_grid_search_init(frit_grid_search *search, const void *grid, int n_rows, const int8_t *values, int n_levels,
                           int n_shells)
{
    const int8_t *element = grid;
    search->n_rows = n_rows;
    search->size = n_levels == 3 ? 8 : 4;
    search->n_levels = n_levels;
    search->n_shells = n_shells;
    memset(search->row_of, -1, sizeof search->row_of);
    for (int row = 0; row < n_rows; row++) {
        uint8_t point[8];
        for (int k = 0; k < search->size; k++, element++) {
            int level = 0;
            while (level < n_levels - 1 && values[level] != *element) level++;
            search->levels[k][row] = point[k] = (uint8_t)level;
        }
        search->row_of[number_of(search, point)] = (int16_t)row;
    }
}

// Squared distances; 4 * 7^2 at most.
static void measure(const frit_grid_search *search, const uint8_t *point, uint8_t distance[FRIT_GRID_MAX_ROWS])
{
    memset(distance, 0, (size_t)search->n_rows);
    for (int k = 0; k < search->size; k++) {
        for (int row = 0; row < search->n_rows; row++) {
            uint8_t apart = (uint8_t)(search->levels[k][row] - point[k]);   // modulo 256, as its square
            distance[row] = (uint8_t)(distance[row] + apart * apart);
        }
    }
}

// Adds the rows of the nearest shell outside `inner`; returns its distance.
static int add_shell(const uint8_t *distance, int n_rows, int inner, frit_grid_near *near)
{
    uint8_t nearest = 255;
    for (int row = 0; row < n_rows; row++) {
        uint8_t candidate = distance[row] > inner ? distance[row] : 255;
        nearest = candidate < nearest ? candidate : nearest;
    }
    for (int row = 0; row < n_rows && near->n_rows < FRIT_GRID_MAX_NEAR; row++) {
        if (distance[row] == nearest) near->rows[near->n_rows++] = (uint16_t)row;
    }
    return nearest;
}

int frit_grid_find(const frit_grid_search *search, const uint8_t *point, frit_grid_near *near)
{
    int number = number_of(search, point);
    if (search->row_of[number] >= 0) return search->row_of[number];
    if (near->point == number) return -1;
    uint8_t distance[FRIT_GRID_MAX_ROWS];
    measure(search, point, distance);
    near->point = number;
    near->n_rows = 0;
    int inner = 0;   // the point itself is not a row
    for (int shell = 0; shell < search->n_shells; shell++) {
        inner = add_shell(distance, search->n_rows, inner, near);
    }
    return -1;
}
