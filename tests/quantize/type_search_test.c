// SPDX-License-Identifier: MIT
// The choice of types for a number of bytes, compared with all possible choices.
#include "quantize/type_choice.h"
#include "base/rng.h"
#include "support/support.h"

#include <math.h>

enum { N = 6, TYPES = 4 };

// Sizes and costs of matrices: finer types cost more bytes, and less.
static void make(frit_type_choice *a, frit_type_choice_matrix *list, uint64_t seed)
{
    static const char *const names[N] = {"a", "b", "c", "d", "e", "f"};
    frit_rng rng;
    frit_rng_init(&rng, seed);
    static const frit_allocate_options options;
    *a = (frit_type_choice){.source = "model", .options = &options, .list = list, .n = N};
    for (size_t k = 0; k < N; k++) {
        const double weight = 1 + (double)(frit_rng_next(&rng) % 100);
        list[k] = (frit_type_choice_matrix){.i = k, .name = names[k], .n_types = TYPES};
        for (int t = 0; t < TYPES; t++) {
            const double noise = 1 + (double)(frit_rng_next(&rng) % 100) / 200;
            list[k].types[t] = (frit_type_price){.type = (frit_dtype)t,
                                                 .n_bytes = (uint64_t)(t + 2) * (100 + 37 * k),
                                                 .kl = t == TYPES - 1 ? 0 : weight * noise * pow(0.2, t)};
        }
    }
}

// Returns the least cost of all choices with at most n_bytes.
static double find_best(const frit_type_choice *a, uint64_t n_bytes)
{
    double best = INFINITY;
    for (int code = 0; code < 1 << 2 * N; code++) {
        uint64_t n = 0;
        double kl = 0;
        for (size_t k = 0; k < N; k++) {
            const frit_type_price *type = &a->list[k].types[code >> 2 * k & 3];
            n += type->n_bytes;
            kl += type->kl;
        }
        if (n <= n_bytes && kl < best) best = kl;
    }
    return best;
}

static void choices_are_near_the_best_and_fit(void **state)
{
    (void)state;
    frit_type_choice_matrix list[N];
    frit_type_choice a;
    double sum = 0, sum_best = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        make(&a, list, seed);
        uint64_t least = 0, most = 0;
        for (size_t k = 0; k < N; k++) least += list[k].types[0].n_bytes, most += list[k].types[TYPES - 1].n_bytes;
        const uint64_t n_bytes = least + (most - least) * seed / 40;
        assert_ok(frit_type_choice_search(&a, n_bytes));
        uint64_t n = 0;
        double kl = 0;
        for (size_t k = 0; k < N; k++) {
            int64_t type;
            n += list[k].types[list[k].chosen].n_bytes;
            kl += list[k].types[list[k].chosen].kl;
            assert_true(frit_map_get(&a.types, frit_str_of(list[k].name), &type));
            assert_int_equal(type, list[k].types[list[k].chosen].type);
        }
        const double best = find_best(&a, n_bytes);
        assert_true(n <= n_bytes);
        assert_true(fabs(kl - a.kl) < 1e-9 && kl >= best - 1e-9);
        if (kl > 1.25 * best + 1e-9) fail_msg("seed %d: %g, the best is %g", (int)seed, kl, best);
        sum += kl;
        sum_best += best;
        frit_map_free(&a.types);
    }
    assert_true(sum <= 1.03 * sum_best);
}

static void too_few_bytes_are_refused(void **state)
{
    (void)state;
    frit_type_choice_matrix list[N];
    frit_type_choice a;
    make(&a, list, 1);
    assert_int_equal(frit_type_choice_search(&a, 200), FRIT_E_INVALID);
    assert_non_null(strstr(frit_error(), "bytes at least"));
    assert_non_null(strstr(frit_error(), ", or types all"));
    a.options = &(frit_allocate_options){.types = "all"};
    assert_int_equal(frit_type_choice_search(&a, 200), FRIT_E_INVALID);
    assert_null(strstr(frit_error(), "types all"));
    frit_map_free(&a.types);
}

static void what_costs_nothing_is_not_bought(void **state)
{
    (void)state;
    frit_type_choice_matrix list[N];
    frit_type_choice a;
    make(&a, list, 1);
    list[2].types[TYPES - 2].kl = 0;   // like a matrix that had this type before
    assert_ok(frit_type_choice_search(&a, 1 << 20));
    assert_int_equal(list[2].chosen, TYPES - 2);
    for (size_t k = 0; k < N; k++)
        if (k != 2) assert_int_equal(list[k].chosen, TYPES - 1);
    frit_map_free(&a.types);
}

// A matrix that was not reached would otherwise get the smallest type.
static void a_matrix_that_no_text_reaches_gets_about_four_bits(void **state)
{
    (void)state;
    static const frit_dtype types[TYPES] = {FRIT_DTYPE_Q2_K, FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q5_0, FRIT_DTYPE_Q6_K};
    frit_type_choice_matrix list[N];
    frit_type_choice a;
    int64_t type;
    make(&a, list, 1);
    for (int t = 0; t < TYPES; t++) list[2].types[t].type = types[t], list[2].types[t].kl = 0;
    assert_ok(frit_type_choice_search(&a, 1 << 20));
    assert_true(frit_map_get(&a.types, frit_str_of("c"), &type));
    assert_int_equal(type, FRIT_DTYPE_Q4_K);
    frit_map_free(&a.types);
}

// Two windows with three times and one time the KL: 2 on average, off by 1.
static void windows_give_the_error_of_a_prediction(void **state)
{
    (void)state;
    frit_type_choice_matrix list[N];
    frit_type_choice a;
    double windows[N * FRIT_PRICED_WINDOWS];
    make(&a, list, 3);
    assert_ok(frit_type_choice_search(&a, 3000));
    assert_true(a.kl > 0);
    assert_true(a.kl_error == 0);   // no windows are known
    for (size_t k = 0; k < N; k++) {
        list[k].probe_kl = 2;
        for (size_t w = 0; w < FRIT_PRICED_WINDOWS; w++)
            windows[k * FRIT_PRICED_WINDOWS + w] = w == 0 ? 3 : w == 1 ? 1 : -1;
    }
    a.window_kl = windows;
    assert_ok(frit_type_choice_search(&a, 3000));
    assert_true(fabs(a.kl_error - a.kl / 2) < 1e-12 * a.kl);
    frit_map_free(&a.types);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_give_the_error_of_a_prediction),
        cmocka_unit_test(choices_are_near_the_best_and_fit),
        cmocka_unit_test(too_few_bytes_are_refused),
        cmocka_unit_test(what_costs_nothing_is_not_bought),
        cmocka_unit_test(a_matrix_that_no_text_reaches_gets_about_four_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
