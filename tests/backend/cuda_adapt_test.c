// SPDX-License-Identifier: MIT
// Adapters and control vectors on NVIDIA GPUs, against plain C on the CPU. The GPU is the emulated one of
// tests/emulator or, with FRIT_TEST_GPU=FOLDER, the machine's.
#include "backend/adapt_compare.h"
#include "backend/cuda/device.h"
#include "backend/gpu.h"

static bool has_kernel(const frit_engine *engine, const char *name)
{
    const frit_cuda_device *d = (const frit_cuda_device *)engine->devices[0];
    for (size_t i = 0; i < d->n_kernels; i++)
        if (strcmp(d->kernels[i]->name, name) == 0) return true;
    return false;
}

static void check_kernels(const frit_engine *engine)
{
    assert_true(has_kernel(engine, "adapt_down") && has_kernel(engine, "adapt_up") &&
                has_kernel(engine, "adapt_steer"));
}

static void adapters_on_a_gpu_give_what_they_give_on_the_cpu(void **state)
{
    (void)state;
    require_gpu();
    compare_adapters("cuda", check_kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(adapters_on_a_gpu_give_what_they_give_on_the_cpu)};
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
