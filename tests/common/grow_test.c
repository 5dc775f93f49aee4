// SPDX-License-Identifier: MIT
// Growth of the arrays of commands and server.
#include "support/support.h"

#include "common/grow.h"

#include <stdlib.h>

static void appended_items_stay_and_the_capacity_doubles(void **state)
{
    (void)state;
    int64_t *numbers = NULL;
    size_t capacity = 0;
    for (int64_t i = 0; i < 1000; i++) {
        const size_t before = capacity;
        assert_true(APP_GROW(numbers, capacity, i + 1));
        assert_true(capacity == before || capacity == (before ? 2 * before : 16));
        numbers[i] = i;
    }
    assert_true(APP_GROW(numbers, capacity, 5000));
    assert_int_equal(capacity, 5000);
    for (int64_t i = 0; i < 1000; i++) assert_int_equal(numbers[i], i);
    free(numbers);
}

static void an_array_that_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    int64_t *numbers = NULL;
    size_t capacity = 0;
    assert_true(APP_GROW(numbers, capacity, 1));
    numbers[0] = 3;
    const int64_t *before = numbers;
    assert_false(APP_GROW(numbers, capacity, SIZE_MAX));
    assert_false(APP_GROW(numbers, capacity, SIZE_MAX / sizeof *numbers + 1));
    assert_true(numbers == before && capacity == 16 && numbers[0] == 3);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_items_stay_and_the_capacity_doubles),
        cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
