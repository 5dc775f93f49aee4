// SPDX-License-Identifier: MIT
// Compares the search for scales and mins of many groups with the plain definition, one trial after the other.
#include "quant/search/offset_search.h"
#include "base/rng.h"
#include "support/support.h"

#include <math.h>

enum { MOST_GROUPS = 19, N_CASES = 400 };

typedef void (*fit_fn)(const frit_offset_groups *groups);

typedef struct line {
    float scale, min, determinant;
} line;

static float clamp(float x, float high)
{
    x = x > 0 ? x : 0;
    return x < high ? x : high;
}

static float code_of(float inverse, float shifted, int n_max)
{
    return nearbyintf(clamp(inverse * shifted, (float)n_max));
}

static float error_of(const float *x, const float *w, int n, const float *codes, line l, bool absolute)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const float error = l.scale * codes[i] + l.min - x[i];
        sum += w[i] * (absolute ? fabsf(error) : error * error);
    }
    return sum;
}

static line fit_line(const float *x, const float *w, int n, const float *codes)
{
    float sum_w = 0, sum_x = 0, q = 0, qq = 0, xq = 0;
    for (int i = 0; i < n; i++) {
        sum_w += w[i];
        sum_x += w[i] * x[i];
        q += w[i] * codes[i];
        qq += w[i] * codes[i] * codes[i];
        xq += w[i] * codes[i] * x[i];
    }
    line l = {.determinant = sum_w * qq - q * q};
    l.scale = (sum_w * xq - sum_x * q) / l.determinant;
    l.min = (qq * sum_x - q * xq) / l.determinant;
    if (l.min > 0) l = (line){xq / qq, 0, l.determinant};
    return l;
}

static frit_offset_fit fit_plainly(const float *x, const float *w, int n, int n_max, const frit_offset_search *search,
                                   uint8_t *codes)
{
    float min = x[0], max = x[0], tried[FRIT_OFFSET_NUMBERS];
    for (int i = 0; i < n; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    if (min > 0) min = 0;
    memset(codes, 0, (size_t)n);
    if (!(max > min)) return (frit_offset_fit){0, -min};
    float inverse = (float)n_max / (max - min);
    line best = {1 / inverse, min, 0};
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)(tried[i] = code_of(inverse, x[i] - min, n_max));
    float error = error_of(x, w, n, tried, best, search->absolute);
    for (int k = 0; k <= search->n_steps; k++) {
        inverse = (search->first + search->step * (float)k + (float)n_max) / (max - best.min);
        for (int i = 0; i < n; i++) tried[i] = code_of(inverse, x[i] - best.min, n_max);
        const line l = fit_line(x, w, n, tried);
        const float now = error_of(x, w, n, tried, l, search->absolute);
        if (!(l.determinant > 0 && now < error)) continue;
        error = now;
        best = l;
        for (int i = 0; i < n; i++) codes[i] = (uint8_t)tried[i];
    }
    return (frit_offset_fit){best.scale, -best.min};
}

static void fill(frit_rng *rng, float *x, float *w, int n_groups, int n)
{
    for (int g = 0; g < n_groups; g++, x += n, w += n) {
        const int kind =
            (int)(frit_rng_next(rng) % 8);   // 0: all equal, 1: zeros, 2: positive, 3: negative, 4: weights 0
        const float same = (float)frit_rng_double(rng) - 0.5f;
        for (int i = 0; i < n; i++) {
            x[i] = kind == 0 ? same : kind == 1 ? 0 : (float)frit_rng_double(rng) + (float)frit_rng_double(rng) - 1;
            if (kind == 2) x[i] = fabsf(x[i]);
            if (kind == 3) x[i] = -fabsf(x[i]) - 0.1f;
            w[i] = kind == 4 && i % 3 ? 0 : (float)frit_rng_double(rng);
        }
    }
}

static void expect_plain(fit_fn fit)
{
    static const frit_offset_search searches[] = {
        {-0.5f, 0.1f, 15, true}, {-1.0f, 0.1f, 20, false}, {-0.9f, 0.05f, 36, false}};
    static const int tops[] = {3, 15, 31};
    float x[MOST_GROUPS * 32], w[MOST_GROUPS * 32];
    uint8_t codes[MOST_GROUPS * 32], expected[32];
    frit_offset_fit fits[MOST_GROUPS];
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int k = 0; k < N_CASES; k++) {
        const int n = k % 2 ? 16 : 32, n_groups = 1 + k % MOST_GROUPS, top = tops[k % 3];
        const frit_offset_search *search = &searches[k / 3 % 3];
        fill(&rng, x, w, n_groups, n);
        fit(&(frit_offset_groups){x, w, n_groups, n, top, search, fits, codes});
        for (int g = 0; g < n_groups; g++) {
            const frit_offset_fit plain = fit_plainly(x + g * n, w + g * n, n, top, search, expected);
            assert_memory_equal(&fits[g], &plain, sizeof plain);
            assert_memory_equal(codes + g * n, expected, (size_t)n);
        }
    }
}

static void any_lanes_fit_as_one_after_the_other(void **state)
{
    (void)state;
    expect_plain(frit_fit_offsets_any);
    expect_plain(frit_fit_offsets);
}

// Codes stay valid for any numbers.
static void numbers_that_are_not_finite_give_codes(void **state)
{
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, 0};
    static const frit_offset_search search = {-1.0f, 0.1f, 20, false};
    const fit_fn fns[] = {frit_fit_offsets_any, frit_fit_offsets};
    float x[8 * 32], w[8 * 32];
    uint8_t codes[8 * 32];
    frit_offset_fit fits[8];
    frit_rng rng;
    frit_rng_init(&rng, 8);
    for (int k = 0; k < 200; k++) {
        fill(&rng, x, w, 8, 32);
        for (int i = 0; i < 20; i++) x[frit_rng_next(&rng) % 256] = odd[frit_rng_next(&rng) % FRIT_COUNT(odd)];
        if (k % 3 == 0) w[frit_rng_next(&rng) % 256] = NAN;
        fns[k % 2](&(frit_offset_groups){x, w, 8, 32, 15, &search, fits, codes});
        for (int i = 0; i < 256; i++) assert_true(codes[i] <= 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_lanes_fit_as_one_after_the_other),
        cmocka_unit_test(numbers_that_are_not_finite_give_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
