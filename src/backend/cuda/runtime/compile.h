// SPDX-License-Identifier: MIT
// backend/cuda/runtime/compile.h: kernels compiled at run time, for the shapes of a model and the GPU at hand.
//
// A program is a file of kernels/ with a list of #defines. NVRTC turns it into a cubin, machine code of one kind of
// GPU. Programs are compiled in parallel, and cached in a folder by a hash of everything that they depend on.
//
//     frit_cuda_program programs[] = {{.file = "product.cu", .defines = defines, .n_defines = 12}};
//     FRIT_TRY(frit_cuda_compile(&compiler, pool, programs, 1));
//     driver.module_load(&module, programs[0].cubin);
//     frit_cuda_programs_free(programs, 1);
#pragma once
#include "backend/cuda/runtime/cubin_archive.h"
#include "backend/cuda/runtime/nvrtc.h"
#include "base/log.h"
#include "base/thread/thread.h"

typedef struct frit_cuda_compiler {
    const frit_nvrtc *nvrtc;             // NULL: not installed; only cached and archived cubins can be used
    const char *folder;                  // cache of cubins; NULL: none
    const frit_cubin_archive *archive;   // NULL: none
    int arch;                            // 10 * major + minor of the GPU
    int driver_version;                  // 0: not known, as on a machine without a GPU
    bool wants_report;                   // asks for the assembler's report of registers and spills
    frit_cubin_list *collected;          // receives a copy of each cubin; NULL: none
    frit_progress_fn progress;           // called between programs, on the thread of frit_cuda_compile; NULL: none
    void *progress_ctx;
    frit_log log;
} frit_cuda_compiler;

typedef struct frit_cuda_program {
    const char *file;
    const char *const *defines;   // "K=4096"
    int n_defines;
    // Results:
    uint8_t *cubin;
    size_t n_bytes;
    frit_cubin_key key;   // set if the compiler has a folder, an archive or a list
    bool was_cached;      // read from the folder or the archive
    char *report;         // of the assembler, with wants_report; NULL if the cubin was cached
    int n_spilled;        // bytes of registers spilled to local memory, in all kernels of the program; -1: unknown
} frit_cuda_program;

// Compiles programs on the threads of the pool, on fewer of them if memory is short. All or none: after a failure no
// program has a cubin, and the sentence names the first that failed. FRIT_E_CANCELLED if `progress` returns false.
frit_status frit_cuda_compile(const frit_cuda_compiler *compiler, frit_pool *pool, frit_cuda_program *programs,
                              size_t n);
void frit_cuda_programs_free(frit_cuda_program *programs, size_t n);
// A hash of the sources of all kernels.
frit_cubin_key frit_cuda_sources_key(void);
