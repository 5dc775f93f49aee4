// SPDX-License-Identifier: MIT
// Philox against the known answers of its authors' library (Random123 1.14, tests/kat_vectors, "philox4x32 10").
#include "support/support.h"

#include "base/philox.h"

static void blocks_are_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        frit_philox counter;
        uint32_t key[2];
        frit_philox expected;
    } rows[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {0xffffffff, 0xffffffff},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const frit_philox given = frit_philox_4x32(rows[i].counter, rows[i].key[0], rows[i].key[1]);
        assert_memory_equal(&given, &rows[i].expected, sizeof given);
    }
}

static void draws_use_all_bits_of_seed_and_position(void **state)
{
    (void)state;
    const uint64_t first = frit_philox_draw(0, 0);
    assert_true(first == 0xe169c58d6627e8d5u);
    for (int bit = 0; bit < 64; bit++) {
        assert_true(frit_philox_draw((uint64_t)1 << bit, 0) != first);
        assert_true(frit_philox_draw(0, (uint64_t)1 << bit) != first);
        assert_true(frit_philox_draw((uint64_t)1 << bit, 0) != frit_philox_draw(0, (uint64_t)1 << bit));
    }
}

static void numbers_below_n_are_the_upper_half_of_a_product(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    assert_true(frit_philox_below(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    assert_true(frit_philox_below(UINT64_MAX, 1) == 0 && frit_philox_below(0, UINT64_MAX) == 0);
    for (int i = 0; i < 10000; i++) {
        const uint64_t drawn = frit_rng_next(&rng), n = 1 + (frit_rng_next(&rng) >> (i % 64));
        assert_true(frit_philox_below(drawn, n) < n);
        // For a power of two the result is the topmost bits.
        const int bits = 1 + i % 63;
        assert_true(frit_philox_below(drawn, (uint64_t)1 << bits) == drawn >> (64 - bits));
        // Doubling n at most doubles the result and the lost bit.
        assert_true(frit_philox_below(drawn, n / 2 * 2) / 2 == frit_philox_below(drawn, n / 2) || n / 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_known_answers),
        cmocka_unit_test(draws_use_all_bits_of_seed_and_position),
        cmocka_unit_test(numbers_below_n_are_the_upper_half_of_a_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
