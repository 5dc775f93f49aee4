// SPDX-License-Identifier: MIT
// backend/webgpu_compare.h: runs the graph of a world (world.h), all ops of it, on a GPU through WebGPU, and compares
// the output with that of plain C on the CPU.
#pragma once
#include "backend/webgpu/weights/weights.h"
#include "backend/webgpu_device.h"
#include "backend/weights.h"
#include "backend/world_source.h"

#include <math.h>

static frit_device *gpu;

typedef struct gpu_cache {
    frit_cache cache;
    frit_cache_layer layer;
    frit_memory *memory;
    uint64_t state_bytes;
} gpu_cache;

// Copies the cache that world_reset_cache made on the host.
static inline void copy_cache(const world *w, gpu_cache *c)
{
    const uint64_t n_pages = (uint64_t)w->n_pages, k = n_pages * w->layer.k.page_bytes,
                   v = n_pages * w->layer.v.page_bytes;
    c->layer = w->layer;
    c->layer.k.offset = 0;
    c->layer.v.offset = k;
    c->layer.states_offset = k + v;
    c->state_bytes = 2 * (uint64_t)w->batch.n_seqs * (uint64_t)w->layer.spec.n_state * sizeof(float);
    assert_ok(gpu->backend->alloc(gpu, k + v + c->state_bytes + 64, &c->memory));
    if (k > 0) assert_ok(gpu->backend->write(gpu, (frit_address){c->memory, 0}, w->layer.k.pages, k));
    if (v > 0) assert_ok(gpu->backend->write(gpu, (frit_address){c->memory, k}, w->layer.v.pages, v));
    if (c->state_bytes > 0)
        assert_ok(gpu->backend->write(gpu, (frit_address){c->memory, k + v}, w->layer.states, c->state_bytes));
    c->cache = (frit_cache){.layers = &c->layer, .n_layers = 1, .memory = c->memory};
}

// Compares the states after the step, and copied states, with those that the CPU computed.
static inline double state_error(const world *w, const gpu_cache *c)
{
    const size_t n = (size_t)(c->state_bytes / sizeof(float));
    float *states = malloc(n * sizeof *states + 1);
    if (n > 0)
        assert_ok(gpu->backend->read(gpu, (frit_address){c->memory, c->layer.states_offset}, states, c->state_bytes));
    const double error = n > 0 ? nmse(states, w->layer.states, n) : 0;
    free(states);
    return error;
}

static inline void run_on_gpu(world *w, const gpu_cache *c, float *result)
{
    frit_exec *exec;
    for (int i = 0; i < w->graph.n_nodes; i++)
        if (w->graph.nodes[i]->op != FRIT_OP_INPUT && w->graph.nodes[i]->op != FRIT_OP_WEIGHT &&
            w->graph.nodes[i]->op != FRIT_OP_RESHAPE && !gpu->backend->runs(gpu, w->graph.nodes[i]))
            fail_msg("op %s runs on another device", frit_op_get(w->graph.nodes[i]->op)->name);
    world_plan_for(w, gpu->backend->can_join, gpu);
    assert_ok(gpu->backend->prepare(gpu, w->plan, &c->cache, &exec));
    world_step(w, gpu, exec);
    assert_ok(gpu->backend->read(gpu, gpu->backend->value(exec, w->graph.output), result,
                                 world_result_size(w) * sizeof *result));
    gpu->backend->exec_free(gpu, exec);
}

// The device is without tensors, because those of another world might have the same addresses. It stays open:
// NVIDIA's driver was not found any more after a process had opened some tens of devices.
static inline double error_of(world *w)
{
    gpu_cache c;
    // A plan of few rows has other kernels: those of 1, 2, 4 and 8 rows.
    for (int64_t n = 8; n >= w->batch.n_rows; n /= 2)
        if (w->graph.max_rows > n) w->graph.max_rows = n;
    frit_webgpu_use_library(webgpu_library());
    if (!gpu) assert_ok(frit_backend_webgpu.open(&gpu, &(frit_device_options){.n_threads = 1}));
    const size_t n_states = (size_t)w->layer.spec.n_state * (size_t)w->batch.n_seqs;
    if (n_states > 0) {   // room for copied states
        w->layer.states = realloc(w->layer.states, 2 * n_states * sizeof(float));
        memset(w->layer.states, 0, 2 * n_states * sizeof(float));
    }
    world_plan(w, w->fuses);
    const size_t n = world_result_size(w);
    float *expected = malloc(n * sizeof *expected), *found = malloc(n * sizeof *found);
    world_reset_cache(w);
    copy_cache(w, &c);
    world_run(w, "reference", 1, expected);
    run_on_gpu(w, &c, found);
    const double of_states = state_error(w, &c), error = fmax(nmse(found, expected, n), of_states);
    gpu->backend->free(gpu, c.memory);
    frit_webgpu_tensors_free((frit_webgpu_device *)gpu);
    free(expected);
    free(found);
    return error;
}

static inline void compare(world *w, double limit, const char *what)
{
    const double error = error_of(w);
    if (!(error <= limit)) fail_msg("%s: %.1e, expected at most %.1e", what, error, limit);
}
