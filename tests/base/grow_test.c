// SPDX-License-Identifier: MIT
// Growth of arrays.
#include "support/support.h"

#include "base/grow.h"

#include <stdlib.h>

typedef struct pair {
    int64_t a, b;
} pair;

static void appended_items_stay_and_the_capacity_doubles(void **state)
{
    (void)state;
    pair *pairs = NULL;
    size_t capacity = 0, n_growths = 0;
    for (int64_t i = 0; i < 1000; i++) {
        const size_t before = capacity;
        assert_ok(FRIT_GROW(pairs, capacity, i + 1, "pairs"));
        pairs[i] = (pair){i, -i};
        if (capacity == before) continue;
        assert_int_equal(capacity, before ? 2 * before : 16);
        n_growths++;
    }
    assert_int_equal(n_growths, 7);   // 16 to 1024
    for (int64_t i = 0; i < 1000; i++) assert_true(pairs[i].a == i && pairs[i].b == -i);
    free(pairs);
}

static void many_items_at_once_get_what_they_need(void **state)
{
    (void)state;
    int *numbers = NULL;
    size_t capacity = 0;
    assert_ok(FRIT_GROW(numbers, capacity, 100, "numbers"));
    assert_int_equal(capacity, 100);
    assert_ok(FRIT_GROW(numbers, capacity, 100, "numbers"));
    assert_int_equal(capacity, 100);
    assert_ok(FRIT_GROW(numbers, capacity, 101, "numbers"));
    assert_int_equal(capacity, 200);
    free(numbers);
}

// Sizes in bytes that are too large for size_t, and one that malloc refuses.
static const size_t impossible[] = {SIZE_MAX, SIZE_MAX / sizeof(pair) + 1, SIZE_MAX / sizeof(pair)};

static void an_array_that_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    pair *pairs = NULL;
    size_t capacity = 0;
    assert_ok(FRIT_GROW(pairs, capacity, 1, "pairs"));
    pairs[0] = (pair){3, 4};
    const pair *before = pairs;
    for (size_t i = 0; i < FRIT_COUNT(impossible) - IS_SANITIZED; i++) {   // sanitizers end the process
        assert_int_equal(FRIT_GROW(pairs, capacity, impossible[i], "pairs of numbers"), FRIT_E_MEMORY);
        assert_non_null(strstr(frit_error(), "out of memory: "));
        assert_non_null(strstr(frit_error(), "bytes for pairs of numbers"));
        assert_true(pairs == before && capacity == 16 && pairs[0].b == 4);
    }
    free(pairs);
}

static void an_array_in_an_arena_grows_with_zeroed_items(void **state)
{
    (void)state;
    frit_arena arena = {0};
    pair *pairs = NULL;
    size_t capacity = 0;
    for (int64_t i = 0; i < 100; i++) {
        assert_ok(FRIT_GROW_IN(&arena, pairs, capacity, i + 1, "pairs"));
        assert_true(pairs[i].a == 0 && pairs[i].b == 0);
        pairs[i] = (pair){i, -i};
    }
    for (int64_t i = 0; i < 100; i++) assert_true(pairs[i].a == i && pairs[i].b == -i);
    const pair *before = pairs;
    assert_int_equal(FRIT_GROW_IN(&arena, pairs, capacity, SIZE_MAX, "pairs"), FRIT_E_MEMORY);
    assert_true(pairs == before && capacity == 128);
    frit_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_items_stay_and_the_capacity_doubles),
        cmocka_unit_test(many_items_at_once_get_what_they_need),
        cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_was),
        cmocka_unit_test(an_array_in_an_arena_grows_with_zeroed_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
