// SPDX-License-Identifier: MIT
// support/compile_kernels.h: compiles kernels with NVRTC, which needs no GPU.
//
//     machine m;
//     open_machine(&m, &hopper);
//     check_kernel(&m, &kernel, "a product");
//     close_machine(&m);
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "support/support.h"

static const frit_cuda_gpu hopper = {
    .name = "a Hopper GPU", .arch = 90, .n_multiprocessors = 132, .shared_bytes = 232448};

static inline bool open_nvrtc(frit_nvrtc *nvrtc, int arch)
{
    const char *folder = getenv("FRIT_NVRTC");
    if (frit_nvrtc_open(nvrtc, folder ? folder : project_path("build/tools/nvrtc"), arch) == FRIT_OK) return true;
    if (frit_nvrtc_open(nvrtc, NULL, arch) == FRIT_OK) return true;
    print_message("%s: kernels are not compiled\n", frit_error());
    return false;
}

typedef struct machine {
    frit_nvrtc nvrtc;
    frit_pool *pool;
    frit_cuda_compiler compiler;
} machine;

// Skips the test without NVRTC.
static inline void open_machine(machine *m, const frit_cuda_gpu *gpu)
{
    *m = (machine){0};
    if (!open_nvrtc(&m->nvrtc, gpu->arch)) skip_because("NVRTC is not installed; tools/setup gpu installs it");
    assert_ok(frit_pool_new(&m->pool, 2));
    m->compiler = (frit_cuda_compiler){.nvrtc = &m->nvrtc, .arch = gpu->arch, .wants_report = true};
}

static inline void close_machine(machine *m)
{
    frit_pool_free(m->pool);
    frit_nvrtc_close(&m->nvrtc);
}

// The compiler may not make products of warpgroups wait for each other.
static inline void check_compiled(machine *m, const frit_cuda_kernel *kernel, const char *what, int most_spilled)
{
    const char *defines[FRIT_CUDA_MAX_DEFINES];
    for (int i = 0; i < kernel->n_defines; i++) defines[i] = kernel->defines[i];
    frit_cuda_program program = {.file = kernel->file, .defines = defines, .n_defines = kernel->n_defines};
    assert_ok(frit_cuda_compile(&m->compiler, m->pool, &program, 1));
    assert_memory_equal(program.cubin, "\177ELF", 4);
    if (program.n_spilled < 0 || program.n_spilled > most_spilled)
        fail_msg("%s: %d bytes spilled\n%s", what, program.n_spilled, program.report);
    if (strstr(program.report, "are serialized")) fail_msg("%s: %s", what, program.report);
    frit_cuda_programs_free(&program, 1);
}

static inline void check_kernel(machine *m, const frit_cuda_kernel *kernel, const char *what)
{
    check_compiled(m, kernel, what, 0);
}
