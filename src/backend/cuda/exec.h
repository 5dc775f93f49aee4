// SPDX-License-Identifier: MIT
// backend/cuda/exec.h: an executable: a plan as a list of launches, and running it.
#pragma once
#include "backend/cuda/launch.h"

struct frit_exec {
    frit_cuda_device *device;
    frit_plan *plan;
    const frit_cache *cache;
    frit_cuda_launch *launches;
    int n_launches;
    size_t launches_capacity;
    frit_cuda_matmul **matmuls;   // [n_matmuls], of launches
    int n_matmuls;
    frit_cuda_rope_table *rope_tables;   // [n_rope_tables]: computed in each step
    int n_rope_tables;
    frit_cuda_dispatch *dispatches;   // [n_dispatches]: one for each route
    int n_dispatches;
    frit_cuda_buffer *buffers;   // [n_buffers]: memory that lives as long as the plan
    int n_buffers;
    bool *is_f16;                 // [plan->graph->n_nodes]: queries in f16, for attend.h
    bool *is_f16_input;           // [plan->graph->n_nodes]: rows in f16, for gemms (f16_input.h)
    uint64_t work_bytes;          // of the device's work memory, at most, in a launch
    int32_t shared_group;         // group of layers whose attention reads shared pages once; -1: none
    bool is_precise;              // products are in f32 (precise.h)
    uint64_t counters;            // of gemv.h: u32 [multiprocessors], zero between launches; 0: not allocated yet
    frit_cuda_memory inputs;      // results of other devices
    frit_cuda_tensor *streamed;   // [n_streamed]: content of the stream buffer, with offsets
    size_t n_streamed;
    uint64_t streamed_bytes;
    int stream_buffer;
    frit_exec *follower;   // the executable that ran after this one in the last step; NULL: unknown
    frit_exec *older;      // in the device's list
};

// `prepare`, `compile`, `value`, `submit`, `pick` and `exec_free` of frit_backend.
frit_status frit_cuda_prepare(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
frit_status frit_cuda_compile_plans(frit_device *device, frit_plan *const *plans, size_t n, const frit_cache *cache,
                                    frit_progress progress);
frit_address frit_cuda_value(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                             frit_ticket *ticket);
frit_status frit_cuda_pick(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                           frit_ticket *ticket);
void frit_cuda_exec_free(frit_device *device, frit_exec *exec);
// Waits until the flight's step is done, and stores its results where the caller wants them.
frit_status frit_cuda_flight_wait(frit_cuda_device *device, frit_cuda_flight *flight);
// Allocates memory that lives as long as the plan.
frit_status frit_cuda_plan_alloc(frit_exec *exec, uint64_t n_bytes, bool clears, uint64_t *address);
