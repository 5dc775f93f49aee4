// SPDX-License-Identifier: MIT
// Compares ops with states on a GPU through WebGPU with plain C on the CPU. The argument "all" selects all shapes,
// otherwise every third is compared.
#include "backend/webgpu_compare.h"
#include "backend/recurrent_worlds.h"

static uint64_t step = 3;

static void convolutions_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    compare_convolutions(step);
}

static void scans_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    compare_scans(step);
}

static void delta_rules_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    compare_delta_rules(step == 1 ? 1 : 5);
}

static void shifts_and_weighed_sums_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    compare_shifts_and_weighed_sums(step);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_those_of_the_reference),
        cmocka_unit_test(scans_are_those_of_the_reference),
        cmocka_unit_test(delta_rules_are_those_of_the_reference),
        cmocka_unit_test(shifts_and_weighed_sums_are_those_of_the_reference),
    };
    if (argc > 1 && strcmp(argv[1], "all") == 0) step = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
