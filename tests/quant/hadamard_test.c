// SPDX-License-Identifier: MIT
// The Hadamard transform: its matrix, its inverse, and preserved lengths.
#include "support/support.h"

#include "quant/hadamard.h"

#include <math.h>

static void the_matrix_is_that_of_sylvester(void **state)
{
    (void)state;
    for (int32_t block = 1; block <= 64; block *= 2) {
        for (int32_t column = 0; column < block; column++) {
            float x[64] = {0};
            x[column] = 1;
            frit_hadamard(x, block, block);
            for (int32_t row = 0; row < block; row++) {
                const int sign = __builtin_popcount((unsigned)(row & column)) % 2 ? -1 : 1;
                assert_float_equal(x[row], (float)sign / sqrtf((float)block), 1e-6);
            }
        }
    }
}

static void twice_gives_every_block_back(void **state)
{
    (void)state;
    float x[192], y[192];
    frit_rng rng;
    frit_rng_init(&rng, 1);
    random_normal(&rng, x, 192, 1);
    for (int32_t block = 1; block <= 64; block *= 2) {
        memcpy(y, x, sizeof y);
        frit_hadamard(y, 192, block);
        for (int32_t b = 0; b < 192; b += block) {
            double before = 0, after = 0;
            for (int32_t i = b; i < b + block; i++) before += (double)x[i] * x[i], after += (double)y[i] * y[i];
            assert_float_equal(before, after, 1e-3);
        }
        frit_hadamard(y, 192, block);
        for (int i = 0; i < 192; i++) assert_float_equal(x[i], y[i], 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matrix_is_that_of_sylvester),
        cmocka_unit_test(twice_gives_every_block_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
