// SPDX-License-Identifier: MIT
// Compares the search in the grids of the IQ formats with the plain definition.
#include "support/support.h"

#include <math.h>

#include "quant/search/grid_search.h"
#include "quant/levels.h"

typedef struct grid {
    frit_grid_kind kind;
    const void *rows;
    int n_rows, n_levels, n_shells;
    int8_t values[8];
} grid;

static const grid grids[] = {
    {FRIT_GRID_IQ2_XXS, frit_iq2_xxs_grid, 256, 3, 2, {8, 25, 43}},
    {FRIT_GRID_IQ2_XS, frit_iq2_xs_grid, 512, 3, 2, {8, 25, 43}},
    {FRIT_GRID_IQ2_S, frit_iq2_s_grid, 1024, 3, 1, {8, 25, 43}},
    {FRIT_GRID_IQ3_XXS, frit_iq3_xxs_grid, 256, 8, 2, {4, 12, 20, 28, 36, 44, 52, 62}},
    {FRIT_GRID_IQ3_S, frit_iq3_s_grid, 512, 8, 3, {1, 3, 5, 7, 9, 11, 13, 15}},
    {FRIT_GRID_IQ1, frit_iq1_grid, 2048, 3, 3, {-1, 0, 1}},
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
    for (size_t g = 0; g < FRIT_COUNT(grids); g++) {
        const grid *from = &grids[g];
        const frit_grid_search *search = frit_grid_search_get(from->kind);
        assert_ptr_equal(search, frit_grid_search_get(from->kind));
        assert_int_equal(search->n_rows, from->n_rows);
        for (int row = 0; row < from->n_rows; row++) {
            frit_grid_near near;
            uint8_t point[8];
            for (int k = 0; k < search->size; k++) {
                point[k] = search->levels[k][row];
                assert_int_equal(from->values[point[k]], ((const int8_t *)from->rows)[row * search->size + k]);
            }
            assert_int_equal(frit_grid_find(search, point, &near), row);
        }
    }
}

static void assert_shells(const grid *from, const frit_grid_search *search, const frit_grid_near *near,
                          const uint8_t *point)
{
    int n_shells = 1, outermost = distance(search, near->rows[near->n - 1], point), n_inside = 0;
    for (int j = 1; j < near->n; j++) {
        int before = distance(search, near->rows[j - 1], point), here = distance(search, near->rows[j], point);
        assert_true(here > before || (here == before && near->rows[j] > near->rows[j - 1]));
        n_shells += here > before;
    }
    for (int row = 0; row < from->n_rows; row++) n_inside += distance(search, row, point) <= outermost;
    assert_int_equal(n_shells, from->n_shells);
    assert_int_equal(near->n, n_inside);
    for (int j = 0; j < near->n; j++)
        for (int k = 0; k < search->size; k++)
            assert_int_equal(frit_grid_level(near->levels[j], k), search->levels[k][near->rows[j]]);
}

static void points_beside_a_grid_find_whole_shells_in_order(void **state)
{
    (void)state;
    for (size_t g = 0; g < FRIT_COUNT(grids); g++) {
        const grid *from = &grids[g];
        const frit_grid_search *search = frit_grid_search_get(from->kind);
        int n_points = from->n_levels == 3 ? 6561 : 4096, n_missed = 0;
        for (int number = 0; number < n_points; number += 3) {
            uint8_t point[8];
            frit_grid_near near;
            point_of(number, from->n_levels, search->size, point);
            if (frit_grid_find(search, point, &near) >= 0) continue;
            n_missed++;
            assert_true(near.n > 0);
            assert_shells(from, search, &near, point);
        }
        assert_true(n_missed > 1000);
    }
}

// The first of the rows with the least weighted squared distance, in plain code.
static int plain_best(const frit_grid_near *near, int size, const frit_grid_target *t)
{
    float best = INFINITY;
    int index = 0;
    for (int j = 0; j < near->n; j++) {
        float sum = 0;
        for (int i = 0; i < size; i++) {
            float apart = t->scale * (t->step * (float)frit_grid_level(near->levels[j], i) + t->low) - t->x[i];
            sum += t->weights[i] * apart * apart;
        }
        if (sum < best) best = sum, index = j;
    }
    return index;
}

static void the_best_neighbour_is_that_of_plain_code(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (size_t g = 0; g < FRIT_COUNT(grids); g++) {
        const frit_grid_search *search = frit_grid_search_get(grids[g].kind);
        int n_points = grids[g].n_levels == 3 ? 6561 : 4096;
        for (int number = 1; number < n_points; number += 5) {
            uint8_t point[8];
            float x[8], weights[8];
            frit_grid_near near;
            point_of(number, grids[g].n_levels, search->size, point);
            if (frit_grid_find(search, point, &near) >= 0) continue;
            for (int i = 0; i < 8; i++) {
                seed = seed * 1664525u + 1013904223u;
                x[i] = (float)(seed >> 8) * 0x1p-22f;
                weights[i] = number % 2 == 0 ? 0 : (float)(seed & 255);   // 0: all distances are equal, so the first
                                                                          // row is taken
            }
            const frit_grid_target target = {x, weights, 0.3f, 2, 1};
            const int plain = plain_best(&near, search->size, &target);
            assert_int_equal(frit_grid_best(&near, search->size, &target), plain);
            assert_int_equal(frit_grid_best_any(&near, search->size, &target), plain);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_a_grid_is_found_as_itself),
        cmocka_unit_test(points_beside_a_grid_find_whole_shells_in_order),
        cmocka_unit_test(the_best_neighbour_is_that_of_plain_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
