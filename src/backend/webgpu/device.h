// SPDX-License-Identifier: MIT
// backend/webgpu/device.h: a GPU through WebGPU as a device of backend.h.
//
//     device.c            opening, memory, the queue, the table of functions for backend.h
//     exec.c              preparing plans, submitting steps and waiting for them
//     ops/ops.c           which nodes the GPU runs, and the launches of each
//     weights/weights.c   the model's tensors on the GPU
//
// A launch is a dispatch of one kernel with a group of bindings. Groups are made when a plan is prepared, and again if
// a buffer that all plans share has grown since then. A step is one write of its input, one list of dispatches and one
// copy of its results to a buffer that the host reads.
#pragma once
#include "backend/backend.h"
#include "backend/webgpu/runtime/gpu.h"
#include "base/thread/thread.h"
#include "sample/pick_runner.h"

enum { FRIT_WEBGPU_FLIGHTS = 2, FRIT_WEBGPU_DEFINES = 24, FRIT_WEBGPU_PARAMS = 32, FRIT_WEBGPU_BLOCK_ROWS = 16 };

typedef struct frit_webgpu_memory {
    frit_memory base;
    frit_gpu_buffer buffer;
} frit_webgpu_memory;

// A kernel of kernels/ with its definitions, compiled.
typedef struct frit_webgpu_kernel {
    const char *file;
    char kinds[FRIT_GPU_BINDINGS + 1];   // of its bindings (runtime/gpu.h)
    char defines[FRIT_WEBGPU_DEFINES][32];
    int n_defines;
    frit_gpu_pipeline pipeline;
} frit_webgpu_kernel;

enum { FRIT_WEBGPU_STACK = 3 };

// Rows of each matrix of a stack, which an op on experts reads.
typedef struct frit_webgpu_cut {
    int64_t n_matrices;    // 0: all rows of a matrix are read
    int64_t begin[2], n;   // first row in each of two tensors, and the number of rows
} frit_webgpu_cut;

typedef struct frit_webgpu_tensor {   // a tensor on the GPU, or matrices of one type and width that are one buffer
    frit_tensor tensors[FRIT_WEBGPU_STACK];
    int n_tensors;
    frit_webgpu_cut cut;
    bool is_tiled;
    bool is_gated;            // rows of both tensors alternate, gates and values; otherwise they follow each other
    frit_gpu_buffer *parts;   // [n_parts]: consecutive row tiles, in as many buffers as their size needs
    int n_parts;
    int64_t part_rows;   // row tiles of each part but the last, of whole matrices; of tensors that are not tiled: 0
    int64_t n_rows;      // row tiles
    uint64_t n_bytes;
} frit_webgpu_tensor;

typedef struct frit_webgpu_table {   // of revolutions (kernels/rope.wgsl)
    frit_tensor frequencies, factors;
    bool has_factors;
    frit_gpu_buffer buffer;
} frit_webgpu_table;

typedef struct frit_webgpu_adapter {   // as words of the GPU's buffer, with offsets from its own beginning
    uint32_t *words;
    size_t n_words;   // 0: the number is free
} frit_webgpu_adapter;

typedef struct frit_webgpu_adapters {
    frit_webgpu_adapter *list;   // [n]
    int32_t n, n_matrices, n_layers;
} frit_webgpu_adapters;

// Memory that plans share and that grows with them.
typedef enum frit_webgpu_shared {
    FRIT_WEBGPU_SCRATCH,     // results of a plan, and its inputs while it runs
    FRIT_WEBGPU_ACTS,        // input of products (kernels/quantize.wgsl)
    FRIT_WEBGPU_PARTS,       // parts of attention
    FRIT_WEBGPU_STEP,        // input of a step
    FRIT_WEBGPU_PICKED,      // results of picks (kernels/pick.wgsl)
    FRIT_WEBGPU_PICK_WORK,   // counts and lists of picks (kernels/pick_run.wgsl)
    FRIT_WEBGPU_ADAPTERS,    // all adapters (ops/adapt.c)
    FRIT_WEBGPU_N_SHARED
} frit_webgpu_shared;

typedef struct frit_webgpu_flight {   // a step between submit and the end of it
    frit_ticket ticket;               // 0: free
    frit_gpu_buffer readback;
    uint64_t submit, n_bytes;
    frit_step_output *results;   // of the caller; NULL: there is no output
    int64_t n_outs, width;
    const float *rows;   // the results, in `readback` while it is mapped: until the flight's next step
    // Picks (picks.h): rows and tokens stay until the flight's next step, and so does the batch if the host runs them.
    bool picks_on_gpu;
    int32_t n_picks;
    int32_t *pick_rows;   // [n_picks]
    frit_token *tokens;   // [n_picks]; 0: not known yet, or failed
    uint8_t *batch;       // a packed one
    size_t rows_capacity, tokens_capacity, batch_capacity;
} frit_webgpu_flight;

// Commands of a step like the last one, which are encoded while the last one runs. `key` says what they depend on.
typedef struct frit_webgpu_ready {
    struct {
        frit_exec *exec;
        frit_wgpu_buffer readback;
        uint64_t n_bytes;
        int32_t n_rows, n_outs, n_parts, n_blocks, n_picks, pick_stages;
        uint32_t version;
    } key;
    frit_wgpu_command_buffer commands;   // NULL: none
} frit_webgpu_ready;

typedef struct frit_webgpu_device {
    frit_device base;
    frit_log log;
    frit_gpu gpu;
    char kind[384];   // name and features of the GPU, for people
    frit_pool *pool;
    frit_webgpu_kernel **kernels;   // of all executables, once each
    size_t n_kernels, kernels_capacity;
    frit_webgpu_tensor **tensors;
    size_t n_tensors, tensors_capacity;
    frit_webgpu_table **tables;
    size_t n_tables, tables_capacity;
    frit_webgpu_memory shared[FRIT_WEBGPU_N_SHARED];
    frit_webgpu_adapters adapters;
    uint32_t version;   // counts the growths of shared memory
    uint32_t *input;    // of a step [input_capacity]
    size_t input_capacity;
    frit_webgpu_flight flights[FRIT_WEBGPU_FLIGHTS];
    frit_pick_runner *pick_runner;
    frit_token *tokens;   // of a step [tokens_capacity]
    size_t tokens_capacity;
    frit_webgpu_ready ready;
    frit_ticket n_submitted, n_done;
    int number;            // of the adapter; -1: the best
    bool is_probed;        // free_bytes is known
    uint64_t free_bytes;   // without this device's own; 0: the GPU uses the host's memory
    uint64_t used_bytes;   // of weights, caches and shared memory
    frit_status failure;   // of a step that poll found done
    char sentence[FRIT_ERROR_BYTES];
} frit_webgpu_device;

frit_status frit_webgpu_reserve(frit_webgpu_device *device, frit_webgpu_shared which, uint64_t n_bytes);
// Returns the device's kernel with this description, compiled.
frit_status frit_webgpu_kernel_get(frit_webgpu_device *device, const frit_webgpu_kernel *wanted,
                                   frit_webgpu_kernel **out);
void frit_webgpu_define(frit_webgpu_kernel *kernel, const char *name, int64_t value);

// For tests and programs with a library of their own: the file of Dawn or wgpu-native that devices open from now on.
// NULL: those that the system finds.
void frit_webgpu_use_library(const char *path);
