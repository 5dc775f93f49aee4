// SPDX-License-Identifier: MIT
// Rounding to uneven levels and the search for their scale, against the plain definition.
#include "quant/search/level_search.h"
#include "base/rng.h"
#include "quant/encode.h"
#include "quant/levels.h"
#include "support/support.h"

#include <math.h>

// Returns the upper one of two equally near levels.
static int nearest(float x)
{
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (x >= ((float)frit_iq4_levels[i - 1] + (float)frit_iq4_levels[i]) / 2) best = i;
    return best;
}

static float fit_plainly(const float x[32], const float weights[32])
{
    const float extreme = frit_extreme(x, 32);
    float d = 0, best = 0;
    if (fabsf(extreme) < 1e-15f) return 0;
    for (int trial = -8; trial <= 7; trial++) {
        const float inverse = trial == -8 ? 1 / (extreme / 127) : (float)(trial - 127) / extreme;
        float xq = 0, qq = 0;
        for (int j = 0; j < 32; j++) {
            const float q = frit_iq4_levels[nearest(inverse * x[j])], wq = weights[j] * q;
            xq += wq * x[j];
            qq += wq * q;
        }
        if (!(qq > 0 && (trial == -8 || xq * xq > best * qq))) continue;
        d = xq / qq;
        best = d * xq;
    }
    return d;
}

static void fill(frit_rng *rng, int kind, float x[32], float weights[32])
{
    for (int i = 0; i < 32; i++) {
        x[i] = (float)(frit_rng_double(rng) + frit_rng_double(rng) - 1);
        if (kind == 0) x[i] = 0;
        if (kind == 1) x[i] *= 1e-16f;
        if (kind == 2) x[i] = i == 5 ? -3.0f : 0.01f * x[i];
        weights[i] = kind == 3 ? 0 : (float)frit_rng_double(rng);
    }
}

static void lanes_find_the_plain_scale(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 9);
    for (int k = 0; k < 2000; k++) {
        float x[32], weights[32];
        fill(&rng, k % 7, x, weights);
        const float plain = fit_plainly(x, weights), any = frit_fit_levels_any(x, weights),
                    own = frit_fit_levels(x, weights);
        assert_memory_equal(&any, &plain, sizeof plain);
        assert_memory_equal(&own, &plain, sizeof plain);
    }
}

static void numbers_go_to_the_nearest_level(void **state)
{
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, -115.5f, -4.5f, 7, 101, 1e30f};
    frit_rng rng;
    frit_rng_init(&rng, 10);
    for (int k = 0; k < 2000; k++) {
        float x[32], weights[32];
        uint8_t any[32], own[32];
        fill(&rng, 4, x, weights);
        const float inverse = k % 3 ? (float)(300 * frit_rng_double(&rng)) : 1;
        for (int i = 0; i < 8 && k % 2; i++) x[frit_rng_next(&rng) % 32] = odd[frit_rng_next(&rng) % FRIT_COUNT(odd)];
        frit_nearest_levels_any(x, inverse, any);
        frit_nearest_levels(x, inverse, own);
        for (int i = 0; i < 32; i++) assert_int_equal(any[i], nearest(inverse * x[i]));
        assert_memory_equal(any, own, sizeof any);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_find_the_plain_scale),
        cmocka_unit_test(numbers_go_to_the_nearest_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
