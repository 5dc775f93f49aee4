// SPDX-License-Identifier: MIT
// backend/cpu/cpu.h: the CPU device, and what makes and runs executables on it (exec.c).
#pragma once
#include "backend/backend.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/profile.h"
#include "base/thread.h"

typedef struct frit_cpu_device {
    frit_device base;
    frit_pool *pool;
    bool reference;              // all ops run on their reference kernels
    const char *isa;             // "reference", or the best instruction set installed
    frit_kernels narrow, wide;   // for nodes of few and of many rows
    frit_packs packs;
    frit_profile *profile;   // NULL: nobody counts
} frit_cpu_device;

frit_status frit_cpu_prepare(frit_device *device, frit_plan *plan, frit_exec **out);
frit_status frit_cpu_run(frit_device *device, frit_exec *exec, const frit_batch *batch, const frit_cache *cache,
                         const float **output);
void frit_cpu_exec_free(frit_device *device, frit_exec *exec);
// For tests: how many phases of the last run had anything to do.
int frit_cpu_exec_n_phases(const frit_exec *exec);
// For tests: overwrites all intermediate memory. With 0xff (NaN) it shows what is read before it is written.
void frit_cpu_exec_fill(frit_exec *exec, uint8_t byte);
