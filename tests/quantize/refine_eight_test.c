// SPDX-License-Identifier: MIT
// Rounding eight numbers to rows of a grid: results are valid, cost what is reported, and are near the best.
#include "quantize/refine_eight.h"
#include "base/rng.h"
#include "quant/levels.h"
#include "support/support.h"

#include <math.h>

static float noise(frit_rng *rng)
{
    return (float)(int32_t)(uint32_t)(frit_rng_next(rng) >> 32) / 2147483648.0f;
}

// Correlated numbers, off their best place.
static void draw(frit_rng *rng, const frit_block_format *format, frit_refine_eight *eight)
{
    float rows[12][8];
    *eight = (frit_refine_eight){.format = format, .scale = 0.5f + fabsf(noise(rng))};
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 8; k++) rows[i][k] = noise(rng) + (k > 0 ? 0.7f * rows[i][k - 1] : 0);
    for (int k = 0; k < 8; k++) {
        for (int j = 0; j < 8; j++)
            for (int i = 0; i < 12; i++) eight->curvature[k][j] += rows[i][k] * rows[i][j];
        eight->curvature[k][k] += 0.01f;
        eight->now[k] = eight->scale * 0.6f * (float)format->high * noise(rng);
        eight->gradient[k] = eight->scale * (float)format->high * noise(rng);
    }
}

static double cost_of(const frit_refine_eight *eight, const int8_t *codes)
{
    double sum = 0, steps[8];
    for (int k = 0; k < 8; k++) steps[k] = (double)eight->scale * codes[k] - (double)eight->now[k];
    for (int k = 0; k < 8; k++) {
        sum += steps[k] * (double)eight->gradient[k];
        for (int j = 0; j < 8; j++) sum += 0.5 * steps[k] * steps[j] * (double)eight->curvature[k][j];
    }
    return sum;
}

// Returns row i of a grid of eight, or the two rows of four that i names together.
static void row_of(const frit_grid_search *search, int i, int8_t *codes)
{
    for (int k = 0; k < 8; k++) {
        const int row = search->size == 8 ? i : k < 4 ? i % search->n_rows : i / search->n_rows;
        codes[k] = search->values[search->levels[k % search->size][row]];
    }
}

static bool is_even(int signs)
{
    bool is = true;
    for (; signs > 0; signs &= signs - 1) is = !is;
    return is;
}

static void sign(int8_t *codes, int signs)
{
    for (int k = 0; k < 8; k++) codes[k] = (int8_t)(signs >> k & 1 ? -codes[k] : codes[k]);
}

static void draw_codes(frit_rng *rng, const frit_grid_search *search, bool even, int8_t *codes)
{
    const int n = search->size == 8 ? search->n_rows : search->n_rows * search->n_rows;
    int signs;
    do signs = (int)(frit_rng_next(rng) % 256);
    while (even && !is_even(signs));
    row_of(search, (int)(frit_rng_next(rng) % (uint64_t)n), codes);
    sign(codes, signs);
}

// Returns the least cost of all valid results.
static double best_cost(const frit_refine_eight *eight, const frit_grid_search *search)
{
    double best = INFINITY;
    for (int row = 0; row < search->n_rows; row++)
        for (int signs = 0; signs < 256; signs++) {
            int8_t codes[8];
            if (eight->format->even_signs && !is_even(signs)) continue;
            row_of(search, row, codes);
            sign(codes, signs);
            best = fmin(best, cost_of(eight, codes));
        }
    return best;
}

static void assert_allowed(const frit_block_format *format, const frit_grid_search *search, const int8_t *codes)
{
    int signs = 0;
    for (int k = 0; k < 8; k++) signs |= (codes[k] < 0) << k;
    if (format->even_signs) assert_true(is_even(signs));
    for (int from = 0; from < 8; from += search->size) {
        bool found = false;
        for (int row = 0; row < search->n_rows && !found; row++) {
            found = true;
            for (int k = 0; k < search->size; k++)
                found &= abs(codes[from + k]) == search->values[search->levels[k][row]];
        }
        assert_true(found);
    }
}

static void what_is_found_is_allowed_and_not_worse(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_block_format *format = frit_block_format_get((frit_dtype)type);
        if (!format || !format->is_grid) continue;
        const frit_grid_search *search = frit_grid_search_get(format->grid);
        for (int i = 0; i < 2000; i++) {
            frit_refine_eight eight;
            int8_t codes[8];
            draw(&rng, format, &eight);
            draw_codes(&rng, search, format->even_signs, codes);
            const double before = cost_of(&eight, codes), said = (double)frit_refine_eight_find(&eight, codes);
            const double after = cost_of(&eight, codes), much = 1e-4 * (fabs(before) + fabs(after));
            assert_allowed(format, search, codes);
            if (!(after <= before + much) || !(fabs(after - said) <= much))
                fail_msg("%s: %g -> %g, said %g", frit_dtype_get((frit_dtype)type)->name, before, after, said);
        }
    }
}

// Compares with all valid rows and signs.
static void what_is_found_is_near_the_best(void **state)
{
    (void)state;
    enum { DRAWN = 25 };
    static const frit_dtype types[] = {FRIT_DTYPE_IQ2_XXS, FRIT_DTYPE_IQ2_XS, FRIT_DTYPE_IQ2_S};
    frit_rng rng;
    frit_rng_init(&rng, 2);
    for (size_t t = 0; t < FRIT_COUNT(types); t++) {
        const frit_block_format *format = frit_block_format_get(types[t]);
        const frit_grid_search *search = frit_grid_search_get(format->grid);
        double gained = 0, possible = 0;
        for (int i = 0; i < DRAWN; i++) {
            frit_refine_eight eight;
            int8_t codes[8];
            draw(&rng, format, &eight);
            draw_codes(&rng, search, format->even_signs, codes);
            const double before = cost_of(&eight, codes);
            frit_refine_eight_find(&eight, codes);
            gained += before - cost_of(&eight, codes);
            possible += before - best_cost(&eight, search);
        }
        print_message("%s: %.4f of what the best row gains\n", frit_dtype_get(types[t])->name, gained / possible);
        assert_true(gained > 0.93 * possible);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_found_is_allowed_and_not_worse),
        cmocka_unit_test(what_is_found_is_near_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
