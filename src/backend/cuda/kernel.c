// SPDX-License-Identifier: MIT
// Making and launching kernels.
#include "backend/cuda/kernel.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARED_WITHOUT_ASKING = 48 << 10 };

void frit_cuda_define(frit_cuda_kernel *kernel, const char *name, int64_t value)
{
    assert(kernel->n_defines < FRIT_CUDA_MAX_DEFINES);
    snprintf(kernel->defines[kernel->n_defines++], sizeof kernel->defines[0], "%s=%" PRId64, name, value);
}

static frit_status load(const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel, const frit_cuda_program *program)
{
    const frit_cuda_driver *driver = gpu->driver;
    FRIT_TRY(frit_cuda_check(driver, driver->module_load(&kernel->module, program->cubin), "loading a kernel"));
    FRIT_TRY(frit_cuda_check(driver, driver->module_function(&kernel->function, kernel->module, kernel->name),
                             kernel->name));
    // Kernels that differ in how they divide the L1 cannot be resident together: all of them take it as shared memory.
    FRIT_TRY(
        frit_cuda_check(driver, driver->function_set(kernel->function, FRIT_CUDA_SHARED_CARVEOUT, 100), kernel->name));
    if (kernel->shared_bytes <= SHARED_WITHOUT_ASKING) return FRIT_OK;
    if (kernel->shared_bytes > (unsigned)gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED, "kernel %s: %u bytes of shared memory; %s has %d", kernel->name,
                         kernel->shared_bytes, gpu->name, gpu->shared_bytes);
    return frit_cuda_check(
        driver, driver->function_set(kernel->function, FRIT_CUDA_MAX_DYNAMIC_SHARED, (int)kernel->shared_bytes),
        kernel->name);
}

frit_status frit_cuda_kernels_make(const frit_cuda_gpu *gpu, const frit_cuda_compiler *compiler, frit_pool *pool,
                                   frit_cuda_kernel *const *kernels, size_t n)
{
    frit_cuda_program *programs = calloc(n + 1, sizeof *programs);
    const char **defines = calloc(n + 1, FRIT_CUDA_MAX_DEFINES * sizeof *defines);
    frit_status status = programs && defines ? FRIT_OK : frit_fail_memory(n * sizeof *programs, "programs of kernels");
    for (size_t i = 0; i < n && status == FRIT_OK; i++) {
        const char **own = defines + i * FRIT_CUDA_MAX_DEFINES;
        for (int j = 0; j < kernels[i]->n_defines; j++) own[j] = kernels[i]->defines[j];
        programs[i] = (frit_cuda_program){.file = kernels[i]->file, .defines = own, .n_defines = kernels[i]->n_defines};
    }
    if (status == FRIT_OK) status = frit_cuda_compile(compiler, pool, programs, n);
    for (size_t i = 0; i < n && status == FRIT_OK; i++) status = load(gpu, kernels[i], &programs[i]);
    if (programs) frit_cuda_programs_free(programs, n);
    if (status != FRIT_OK) frit_cuda_kernels_free(gpu, kernels, n);
    free(programs);
    free(defines);
    return status;
}

void frit_cuda_kernels_free(const frit_cuda_gpu *gpu, frit_cuda_kernel *const *kernels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (kernels[i]->module) gpu->driver->module_unload(kernels[i]->module);
        kernels[i]->module = NULL;
        kernels[i]->function = NULL;
    }
}

frit_status frit_cuda_kernel_launch(const frit_cuda_gpu *gpu, const frit_cuda_kernel *kernel, frit_cuda_stream stream,
                                    const void *args, frit_cuda_order order)
{
    frit_cuda_launch_attribute attribute = {.id = FRIT_CUDA_LAUNCH_PROGRAMMATIC};
    if (order == FRIT_CUDA_ALL_RESIDENT) attribute.id = FRIT_CUDA_LAUNCH_COOPERATIVE;
    attribute.value.is_wanted = 1;
    const bool has_order = order == FRIT_CUDA_ALL_RESIDENT || (order == FRIT_CUDA_OVERLAPPING && gpu->arch >= 90);
    const frit_cuda_launch_config config = {.grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
                                            .block = {kernel->threads, 1, 1},
                                            .shared_bytes = kernel->shared_bytes,
                                            .stream = stream,
                                            .attributes = &attribute,
                                            .n_attributes = has_order};
    void *params[] = {(void *)(uintptr_t)args};
    return frit_cuda_check(gpu->driver, gpu->driver->launch(&config, kernel->function, params, NULL), kernel->name);
}
