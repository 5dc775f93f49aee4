// SPDX-License-Identifier: MIT
// backend/webgpu/exec.h: an executable: a plan as a list of launches, and running it.
#pragma once
#include "backend/webgpu/device.h"

typedef struct frit_webgpu_step {   // a step as the grids of launches see it
    const frit_batch *batch;
    int32_t n_picks;                         // that the GPU runs
    int32_t pick_stages;                     // of which kernels (picks.c)
    const frit_webgpu_flight *counts_from;   // the step before, if its tokens are counted and it is done; NULL: its
                                             // tokens are on the GPU
    int32_t n_parts;                         // parts of attention of each row
    int32_t n_blocks;                        // blocks of rows of attention (step_input.c); 0: attention goes row by row
} frit_webgpu_step;

typedef enum frit_webgpu_where {
    FRIT_WEBGPU_AT_PARAMS,   // the launch's parameters
    FRIT_WEBGPU_AT_SHARED,   // memory that plans share
    FRIT_WEBGPU_AT_BUFFER    // a buffer that stays: weights, the cache
} frit_webgpu_where;

typedef struct frit_webgpu_binding {
    frit_webgpu_where where;
    frit_webgpu_shared which;
    const frit_gpu_buffer *buffer;
} frit_webgpu_binding;

typedef struct frit_webgpu_launch {
    const frit_node *node;
    frit_webgpu_kernel wanted;   // until the kernel is compiled
    frit_webgpu_kernel *kernel;
    frit_webgpu_binding bindings[FRIT_GPU_BINDINGS];
    int n_bindings;
    uint32_t params[FRIT_WEBGPU_PARAMS];
    // Sets the number of groups for a step.
    void (*grid)(const struct frit_webgpu_launch *launch, const frit_webgpu_step *step, uint32_t *grid);
    int64_t n[4];   // for the grid
    frit_wgpu_bind_group group;
} frit_webgpu_launch;

typedef struct frit_webgpu_route {   // the assignments of a route, sorted by expert (kernels/dispatch.wgsl)
    const frit_node *route;
    uint32_t lists, order;   // offsets in the scratch memory, in numbers
} frit_webgpu_route;

struct frit_exec {
    frit_webgpu_device *device;
    frit_plan *plan;
    const frit_cache *cache;
    frit_webgpu_launch *launches;   // [n_launches]
    int n_launches;
    size_t launches_capacity;
    frit_gpu_dispatch *dispatches;    // [n_launches]: of a step
    frit_gpu_buffer params;           // of all launches
    frit_webgpu_memory inputs;        // results of other plans, which may come long before the plan runs
    uint64_t inputs_offset;           // of the plan's inputs in the scratch memory
    uint64_t own_offset, own_bytes;   // of memory in the scratch memory that is not a result of a node
    uint32_t sums;                    // offset in it of products of experts before they are added; 0: none
    frit_webgpu_route *routes;        // [n_routes]
    size_t n_routes, routes_capacity;
    uint64_t acts_bytes, parts_bytes;
    uint64_t picked_bytes;       // 0: no picks run on the GPU
    uint64_t pick_work_bytes;    // 0: only picks of the likeliest token do
    uint32_t version;            // of the device's shared memory that groups bind; 0: there are no groups
    bool is_precise;             // products are in f32
    bool is_checked;             // a step has been encoded without an error
    const frit_node *input_of;   // while lowering: the node whose rows the products' input has
    int64_t input_width;         // of a row
    bool input_is_int;
};

// `prepare`, `value`, `submit` and `exec_free` of frit_backend.
frit_status frit_webgpu_prepare(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
frit_address frit_webgpu_value(frit_exec *exec, const frit_node *node);
frit_status frit_webgpu_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                               frit_ticket *ticket);
void frit_webgpu_exec_free(frit_device *device, frit_exec *exec);
// Waits until the flight's step is done, and stores its results where the caller wants them.
frit_status frit_webgpu_flight_wait(frit_webgpu_device *device, frit_webgpu_flight *flight);
