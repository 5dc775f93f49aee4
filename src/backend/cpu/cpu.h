// SPDX-License-Identifier: MIT
// backend/cpu/cpu.h: the CPU device, and the functions that make and run executables on it (exec.c).
#pragma once
#include "backend/backend.h"
#include "backend/cpu/pack/pack.h"
#include "backend/cpu/profile.h"
#include "backend/cpu/task.h"
#include "base/thread/thread.h"
#include "base/machine/topology.h"
#include "sample/pick_runner.h"

typedef struct frit_cpu_memory {
    frit_memory base;
    uint8_t *bytes;
} frit_cpu_memory;

typedef struct frit_cpu_device {
    frit_device base;
    frit_ticket n_runs;   // number of submitted runs; a run is over when submit returns
    // Intermediate results of the executable that runs. Executables that need more have their own memory.
    frit_cpu_memory scratch;
    int n_sharing;                                  // executables that use `scratch`
    frit_pool *decode_pool, *prefill_pool;          // pools of the row classes, perhaps one pool
    bool probes;                                    // a probe has yet to choose the threads for decode rows
    bool reference;                                 // all ops run on their reference kernels
    const char *isa;                                // "reference", or the best instruction set installed
    frit_kernels decode_kernels, prefill_kernels;   // kernels of the row classes
    bool has_prefill_kernels;                       // an instruction set is for prefill rows only
    bool mixes_classes;                             // a step may have rows of both
    frit_stores *stores;                            // the model's, or its own
    bool owns_stores;
    frit_packs *packs;        // store of weights
    frit_topology topology;   // nothing is placed if it has one memory node
    frit_profile *profile;    // NULL: off
    frit_pick_runner *pick_runner;
    frit_token *tokens, *picked;   // [tokens_capacity]: resolved input tokens; tokens that the last step picked
    int32_t tokens_capacity, n_picked;
    frit_cpu_adapters adapters;
    frit_rank rank;   // without a meeting: the device is in no group
    bool is_pinned;   // all threads stay on the CPUs of `topology`
} frit_cpu_device;

static inline int frit_cpu_most_threads(const frit_cpu_device *device)
{
    const int decode = frit_pool_size(device->decode_pool), prefill = frit_pool_size(device->prefill_pool);
    return decode > prefill ? decode : prefill;
}

// adapters.c: the list of adapters, and the adapters that the rows of a batch use.
frit_status frit_cpu_set_adapter(frit_device *device, int32_t i, const frit_adapter_table *adapter);
void frit_cpu_find_adapters(frit_cpu_adapters *adapters, const frit_batch *batch);
void frit_cpu_adapters_free(frit_cpu_adapters *adapters);

// picks.c: allocates for steps of n rows; resolves tokens that the previous step picked; runs the picks of the
// executable's batch and gives its rows to the host; picks from the rows of the last step (`pick` of frit_backend).
frit_status frit_cpu_reserve_tokens(frit_cpu_device *device, int32_t n);
frit_status frit_cpu_find_tokens(frit_cpu_device *device, frit_batch *batch);
void frit_cpu_give_output(frit_cpu_device *device, const frit_exec *exec, frit_pool *pool, frit_step_output *output);
frit_status frit_cpu_pick(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                          frit_ticket *ticket);

// Returns the fewest threads that read this memory as fast as the whole pool within 3 %: all, three quarters or half.
int frit_cpu_fewest_readers(frit_pool *pool, const frit_kernels *kernels, const uint8_t *bytes, uint64_t n_bytes);
// Binds each thread to the memory node of its pieces, except the first, which is the caller's thread.
void frit_cpu_place_threads(frit_cpu_device *device, frit_pool *pool);
// Chooses the threads for decode steps when there are packed matrices to read (probe.c).
frit_status frit_cpu_choose_threads(frit_cpu_device *device);
// frit_can_join_fn: the joins for which lower.c makes one action.
bool frit_cpu_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other);
frit_status frit_cpu_prepare(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
frit_status frit_cpu_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
frit_address frit_cpu_value(frit_exec *exec, const frit_node *node);
frit_status frit_cpu_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                            frit_ticket *ticket);
void frit_cpu_exec_free(frit_device *device, frit_exec *exec);
// For tests: number of phases of the last run that had pieces.
int frit_cpu_exec_n_phases(const frit_exec *exec);
// For tests: overwrites all intermediate memory. 0xff (NaN) reveals reads before writes.
void frit_cpu_exec_fill(frit_exec *exec, uint8_t byte);
