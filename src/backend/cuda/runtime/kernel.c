// SPDX-License-Identifier: MIT
// Compiling, loading and launching kernels.
#include "backend/cuda/runtime/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_WITHOUT_ASKING = 48 << 10 };

void frit_cuda_define(frit_cuda_kernel *kernel, const char *name, int64_t value)
{
    if (kernel->n_defines == FRIT_CUDA_MAX_DEFINES) return;   // the compiler then reports the missing define
    snprintf(kernel->defines[kernel->n_defines++], sizeof kernel->defines[0], "%s=%" PRId64, name, value);
}

static frit_status load(const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel, const frit_cuda_program *program)
{
    const frit_cuda_driver *driver = gpu->driver;
    FRIT_TRY(frit_cuda_check(driver, driver->module_load(&kernel->module, program->cubin), "loading a kernel"));
    FRIT_TRY(frit_cuda_check(driver, driver->module_function(&kernel->function, kernel->module, kernel->name),
                             kernel->name));
    // Kernels with different L1 carveouts cannot be resident together, so all of them use the L1 as shared memory.
    FRIT_TRY(
        frit_cuda_check(driver, driver->function_set(kernel->function, FRIT_CUDA_SHARED_CARVEOUT, 100), kernel->name));
    if (kernel->shared_bytes <= SHARED_WITHOUT_ASKING) return FRIT_OK;
    if (kernel->shared_bytes > (unsigned)gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED, "kernel %s needs %u bytes of shared memory; %s has %d", kernel->name,
                         kernel->shared_bytes, gpu->name, gpu->shared_bytes);
    return frit_cuda_check(
        driver, driver->function_set(kernel->function, FRIT_CUDA_MAX_DYNAMIC_SHARED, (int)kernel->shared_bytes),
        kernel->name);
}

static bool is_same_program(const frit_cuda_kernel *a, const frit_cuda_kernel *b)
{
    bool is_same = strcmp(a->file, b->file) == 0 && a->n_defines == b->n_defines;
    for (int i = 0; i < a->n_defines && is_same; i++) is_same = strcmp(a->defines[i], b->defines[i]) == 0;
    return is_same;
}

typedef struct making {
    frit_cuda_program *programs;   // [n_programs]: without duplicates
    const char **defines;          // [n, FRIT_CUDA_MAX_DEFINES]
    size_t *program_of;            // [n]: index of a kernel's program
    size_t n_programs;
} making;

// Kernels with the same file and defines are functions of one program.
static void list_programs(making *m, frit_cuda_kernel *const *kernels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < i && !is_same_program(kernels[k], kernels[i])) k++;
        m->program_of[i] = k < i ? m->program_of[k] : m->n_programs;
        if (k < i) continue;
        const char **own = m->defines + m->n_programs * FRIT_CUDA_MAX_DEFINES;
        for (int j = 0; j < kernels[i]->n_defines; j++) own[j] = kernels[i]->defines[j];
        m->programs[m->n_programs++] =
            (frit_cuda_program){.file = kernels[i]->file, .defines = own, .n_defines = kernels[i]->n_defines};
    }
}

frit_status frit_cuda_kernels_make(const frit_cuda_gpu *gpu, const frit_cuda_compiler *compiler, frit_pool *pool,
                                   frit_cuda_kernel *const *kernels, size_t n)
{
    making m = {.programs = calloc(n + 1, sizeof *m.programs),
                .defines = calloc(n + 1, FRIT_CUDA_MAX_DEFINES * sizeof *m.defines),
                .program_of = calloc(n + 1, sizeof *m.program_of)};
    frit_status status = m.programs && m.defines && m.program_of
                             ? FRIT_OK
                             : frit_fail_memory(n * sizeof *m.programs, "programs of kernels");
    if (status == FRIT_OK) {
        list_programs(&m, kernels, n);
        status = frit_cuda_compile(compiler, pool, m.programs, m.n_programs);
    }
    for (size_t i = 0; i < n && status == FRIT_OK; i++) status = load(gpu, kernels[i], &m.programs[m.program_of[i]]);
    if (m.programs) frit_cuda_programs_free(m.programs, m.n_programs);
    if (status != FRIT_OK) frit_cuda_kernels_free(gpu, kernels, n);
    free(m.programs);
    free(m.defines);
    free(m.program_of);
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
                                    const void *args, frit_cuda_launch_order order)
{
    frit_cuda_launch_attribute attribute = {.id = FRIT_CUDA_LAUNCH_PROGRAMMATIC};
    attribute.value.is_wanted = 1;
    const bool has_order = order == FRIT_CUDA_OVERLAPPING && gpu->arch >= 90;
    const frit_cuda_launch_config config = {.grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
                                            .block = {kernel->threads, 1, 1},
                                            .shared_bytes = kernel->shared_bytes,
                                            .stream = stream,
                                            .attributes = &attribute,
                                            .n_attributes = has_order};
    void *params[] = {(void *)(uintptr_t)args};
    return frit_cuda_check(gpu->driver, gpu->driver->launch(&config, kernel->function, params, NULL), kernel->name);
}
