// SPDX-License-Identifier: MIT
// The checksum of files that frit writes and reads.
#include "support/support.h"

#include "base/checksum.h"

enum { N = 200 };

static uint64_t sum_of(const uint8_t *bytes, size_t n, size_t piece)
{
    frit_checksum sum = {0};
    for (size_t i = 0; i < n; i += piece) frit_checksum_add(&sum, bytes + i, n - i < piece ? n - i : piece);
    return frit_checksum_value(&sum);
}

static void pieces_make_no_difference(void **state)
{
    (void)state;
    uint8_t bytes[N];
    for (int i = 0; i < N; i++) bytes[i] = (uint8_t)(7 * i + i / 32);
    for (size_t n = 0; n <= N; n++)
        for (size_t piece = 1; piece < 70; piece++) assert_int_equal(sum_of(bytes, n, piece), sum_of(bytes, n, N));
}

static void every_bit_every_length_and_every_order_counts(void **state)
{
    (void)state;
    uint8_t bytes[N] = {0};
    uint64_t seen[9 * N + 1];
    size_t n_seen = 0;
    for (size_t n = 0; n <= N; n++) seen[n_seen++] = sum_of(bytes, n, N);
    for (int bit = 0; bit < 8 * N; bit++) {
        bytes[bit / 8] = (uint8_t)(1 << bit % 8);
        seen[n_seen++] = sum_of(bytes, N, N);
        bytes[bit / 8] = 0;
    }
    for (size_t i = 0; i < n_seen; i++)
        for (size_t k = 0; k < i; k++)
            if (seen[i] == seen[k]) fail_msg("%zu and %zu have the same sum", k, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_no_difference),
        cmocka_unit_test(every_bit_every_length_and_every_order_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
