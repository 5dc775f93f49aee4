// SPDX-License-Identifier: MIT
// Searching the grids of the IQ formats, against the plain definition.
#include "support/support.h"

#include "quant/grid_search.h"
#include "quant/levels.h"

typedef struct grid {
    const void *rows;
    int n_rows, n_levels, n_shells;
    int8_t values[8];
} grid;

static const grid grids[] = {
    {frit_iq2_xxs_grid, 256, 3, 2, {8, 25, 43}},
    {frit_iq2_xs_grid, 512, 3, 2, {8, 25, 43}},
    {frit_iq2_s_grid, 1024, 3, 1, {8, 25, 43}},
    {frit_iq3_xxs_grid, 256, 8, 2, {4, 12, 20, 28, 36, 44, 52, 62}},
    {frit_iq3_s_grid, 512, 8, 3, {1, 3, 5, 7, 9, 11, 13, 15}},
    {frit_iq1_grid, 2048, 3, 3, {-1, 0, 1}},
};

static void point_of(int number, int n_levels, int size, uint8_t point[8])
{
    for (int k = size - 1; k >= 0; k--, number /= n_levels) point[k] = (uint8_t)(number % n_levels);
}

static int distance(const frit_grid_search *search, int row, const uint8_t point[8])
{
    int sum = 0;
    for (int k = 0; k < search->size; k++) {
        int apart = search->levels[k][row] - point[k];
        sum += apart * apart;
    }
    return sum;
}

static void every_row_of_a_grid_is_found_as_itself(void **state)
{
    (void)state;
    frit_grid_search *search = malloc(sizeof *search);
    frit_grid_near *near = malloc(sizeof *near);
    for (size_t g = 0; g < FRIT_COUNT(grids); g++) {
        const grid *from = &grids[g];
        frit_grid_search_init(search, from->rows, from->n_rows, from->values, from->n_levels, from->n_shells);
        for (int row = 0; row < from->n_rows; row++) {
            uint8_t point[8];
            for (int k = 0; k < search->size; k++) {
                point[k] = search->levels[k][row];
                assert_int_equal(from->values[point[k]], ((const int8_t *)from->rows)[row * search->size + k]);
            }
            near->point = -1;
            assert_int_equal(frit_grid_find(search, point, near), row);
        }
    }
    free(near);
    free(search);
}

static void points_beside_a_grid_find_whole_shells_in_order(void **state)
{
    (void)state;
    frit_grid_search *search = malloc(sizeof *search);
    frit_grid_near *near = malloc(sizeof *near);
    for (size_t g = 0; g < FRIT_COUNT(grids); g++) {
        const grid *from = &grids[g];
        frit_grid_search_init(search, from->rows, from->n_rows, from->values, from->n_levels, from->n_shells);
        int n_points = from->n_levels == 3 ? 6561 : 4096, n_missed = 0;
        near->point = -1;
        for (int number = 0; number < n_points; number += 3) {
            uint8_t point[8];
            point_of(number, from->n_levels, search->size, point);
            if (frit_grid_find(search, point, near) >= 0) continue;
            n_missed++;
            assert_true(near->n_rows > 0 && near->n_rows < FRIT_GRID_MAX_NEAR);
            int n_shells = 1, outermost = distance(search, near->rows[near->n_rows - 1], point), n_inside = 0;
            for (int j = 1; j < near->n_rows; j++) {
                int before = distance(search, near->rows[j - 1], point), here = distance(search, near->rows[j], point);
                assert_true(here > before || (here == before && near->rows[j] > near->rows[j - 1]));
                n_shells += here > before;
            }
            for (int row = 0; row < from->n_rows; row++) n_inside += distance(search, row, point) <= outermost;
            assert_int_equal(n_shells, from->n_shells);
            assert_int_equal(near->n_rows, n_inside);
        }
        assert_true(n_missed > 1000);
    }
    free(near);
    free(search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_a_grid_is_found_as_itself),
        cmocka_unit_test(points_beside_a_grid_find_whole_shells_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
