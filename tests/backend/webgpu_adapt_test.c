// SPDX-License-Identifier: MIT
// Adapters and control vectors on a GPU through WebGPU, against plain C on the CPU.
#include "backend/adapt_compare.h"
#include "backend/webgpu_device.h"

static void check_kernels(const frit_engine *engine)
{
    const frit_webgpu_device *d = (const frit_webgpu_device *)engine->devices[0];
    int n = 0;
    for (size_t i = 0; i < d->n_kernels; i++) n += strcmp(d->kernels[i]->file, "adapt.wgsl") == 0;
    assert_true(n >= 3);   // down, up, steer
}

static void adapters_on_a_gpu_give_what_they_give_on_the_cpu(void **state)
{
    (void)state;
    require_webgpu();
    compare_adapters("webgpu", check_kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adapters_on_a_gpu_give_what_they_give_on_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
