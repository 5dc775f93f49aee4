// SPDX-License-Identifier: MIT
// Coordinate descent: every instruction set gives the results of plain C.
#include "backend/cpu/kernels.h"
#include "base/rng.h"
#include "support/support.h"

#include <math.h>

enum { LANES = FRIT_DESCENT_LANES, N = 64, STRIDE = 80, GROUP = 16 };

static const int8_t levels[] = {-50, -20, -7, 0, 4, 11, 30, 60};

// Values of few bits, whose products and sums are exact in any order.
typedef struct data {
    float h[N * STRIDE], scales[N / GROUP * LANES], mins[N / GROUP * LANES];
    float now[N * LANES], gradient[N * LANES], codes[N * LANES];
} data;

static float whole(frit_rng *rng, int most)
{
    return (float)((int)(frit_rng_next(rng) % (uint64_t)(2 * most + 1)) - most);
}

static void draw(frit_rng *rng, data *d)
{
    memset(d, 0, sizeof *d);
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) d->h[i * STRIDE + j] = d->h[j * STRIDE + i] = i == j ? 64 : whole(rng, 8);
    for (int i = 0; i < N / GROUP * LANES; i++) {
        d->scales[i] = i % 11 == 0 ? 0 : 0.25f * (float)(1 << frit_rng_next(rng) % 3) * (i % 2 ? 1 : -1);
        d->mins[i] = d->scales[i] == 0 ? 0 : 0.5f * whole(rng, 4);
    }
    for (int i = 0; i < N * LANES; i++) {
        d->now[i] = d->scales[i / LANES / GROUP * LANES + i % LANES] == 0 ? 0 : 0.125f * whole(rng, 64);
        d->gradient[i] = whole(rng, 500);
    }
}

static frit_descent descent_of(data *d, bool has_levels)
{
    return (frit_descent){.n = N,
                          .group = GROUP,
                          .n_sweeps = 2,
                          .h = d->h,
                          .stride = STRIDE,
                          .low = has_levels ? 0 : -8,
                          .high = 7,
                          .levels = has_levels ? levels : NULL,
                          .scales = d->scales,
                          .mins = d->mins,
                          .now = d->now,
                          .gradient = d->gradient,
                          .codes = d->codes};
}

// One row, column by column: the nearest of all codes.
static void descend_plainly(const frit_descent *d, int lane)
{
    for (int i = 0; i < d->n_sweeps * d->n; i++) {
        const int k = i % d->n, at = k * LANES + lane, group = k / d->group * LANES + lane;
        const float scale = d->scales[group], min = d->mins[group];
        const float wanted = d->now[at] - d->gradient[at] / d->h[k * d->stride + k];
        float best = 0;
        for (int c = d->low; c <= d->high; c++) {
            const float next = scale * (d->levels ? (float)d->levels[c] : (float)c) - min;
            const float distance = fabsf(next - wanted) - fabsf(best - wanted);
            const bool is_even = !d->levels && c % 2 == 0;   // two codes are equally near
            if (c > d->low && !(distance < 0 || (distance == 0 && is_even))) continue;
            best = next;
        }
        const float step = best - d->now[at];
        d->now[at] = best;
        for (int j = 0; j < d->n; j++) d->gradient[j * LANES + lane] += step * d->h[k * d->stride + j];
    }
}

static void every_instruction_set_descends_as_plain_c_does(void **state)
{
    (void)state;
    static data drawn, plain, fast;
    frit_rng rng;
    frit_rng_init(&rng, 5);
    for (size_t i = 0; frit_isa_get(i); i++) {
        frit_kernels kernels = {0};
        if (!frit_isa_is_usable(frit_isa_get(i))) continue;
        frit_isa_install(&kernels, frit_isa_get(i), FRIT_FOR_ANY);
        for (int turn = 0; turn < 20; turn++) {
            draw(&rng, &drawn);
            plain = fast = drawn;
            const frit_descent own = descent_of(&fast, turn % 2), other = descent_of(&plain, turn % 2);
            kernels.descend(&own);
            for (int lane = 0; lane < LANES; lane++) descend_plainly(&other, lane);
            for (int k = 0; k < N * LANES; k++) {
                const int group = k / LANES / GROUP * LANES + k % LANES;
                const float code = own.levels ? (float)levels[(int)fast.codes[k]] : fast.codes[k];
                if (fast.now[k] != plain.now[k] || fast.gradient[k] != plain.gradient[k])
                    fail_msg("%s: %d: %g, gradient %g, expected %g, %g", frit_isa_get(i)->name, k, (double)fast.now[k],
                             (double)fast.gradient[k], (double)plain.now[k], (double)plain.gradient[k]);
                assert_true(fast.now[k] == fast.scales[group] * code - fast.mins[group]);
            }
        }
    }
}

static void gradients_follow_steps(void **state)
{
    (void)state;
    static data drawn;
    static float gradient[N * LANES];
    enum { STEPS = 9 };
    frit_rng rng;
    frit_rng_init(&rng, 6);
    for (size_t i = 0; frit_isa_get(i); i++) {
        frit_kernels kernels = {0};
        if (!frit_isa_is_usable(frit_isa_get(i))) continue;
        frit_isa_install(&kernels, frit_isa_get(i), FRIT_FOR_ANY);
        draw(&rng, &drawn);
        memcpy(gradient, drawn.gradient, sizeof gradient);
        kernels.follow(gradient, drawn.now, STEPS, drawn.h, STRIDE, N);
        for (int j = 0; j < N; j++)
            for (int lane = 0; lane < LANES; lane++) {
                float want = drawn.gradient[j * LANES + lane];
                for (int k = 0; k < STEPS; k++) want += drawn.now[k * LANES + lane] * drawn.h[k * STRIDE + j];
                assert_true(gradient[j * LANES + lane] == want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_descends_as_plain_c_does),
        cmocka_unit_test(gradients_follow_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
