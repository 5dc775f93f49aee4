// SPDX-License-Identifier: MIT
// backend/webgpu/runtime/gpu.h: a GPU through WebGPU: buffers, pipelines, and lists of dispatches.
//
//     FRIT_TRY(frit_gpu_open(&gpu, NULL, -1));
//     FRIT_TRY(frit_gpu_buffer_new(&gpu, n_bytes, FRIT_GPU_STORAGE, "weights", &buffer));
//     FRIT_TRY(frit_gpu_pipeline_new(&gpu, "norm", wgsl, "urw", &pipeline));
//     FRIT_TRY(frit_gpu_group_new(&gpu, &pipeline, ranges, &group));
//     FRIT_TRY(frit_gpu_submit(&gpu, &(frit_gpu_list){.dispatches = list, .n_dispatches = 1}));
//     FRIT_TRY(frit_gpu_read(&gpu, &buffer, 0, values, n_bytes));
//
// A library that is used wrongly may end the process (wgpu-native does so in wgpuQueueSubmit). Therefore frit checks
// ranges, usages, alignment and aliases of each group and the size of each dispatch, asks for the errors of a new list
// before it is submitted, and asks if the device is lost before each submit.
#pragma once
#include "backend/webgpu/runtime/abi.h"
#include "base/library.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { FRIT_GPU_BINDINGS = 12, FRIT_GPU_LAYOUTS = 32, FRIT_GPU_ADAPTERS = 8 };

typedef struct frit_gpu_functions {
#define WGPU(member, symbol, result, parameters) result(*member) parameters;
#include "backend/webgpu/runtime/webgpu.def"
#undef WGPU
    // wgpu-native only, otherwise NULL: modules with chosen checks; waits for a submit; all adapters.
    frit_wgpu_shader_module (*module_trusted)(frit_wgpu_device device, const frit_wgpu_named *descriptor,
                                              uint64_t checks);
    uint32_t (*poll)(frit_wgpu_device device, uint32_t waits, const uint64_t *submit);
    uint64_t (*submit_for_index)(frit_wgpu_queue queue, size_t n, const frit_wgpu_command_buffer *commands);
    size_t (*enumerate)(frit_wgpu_instance instance, const void *options, frit_wgpu_adapter *adapters);
} frit_gpu_functions;

typedef struct frit_gpu_layout {   // of the bindings of a kernel
    char kinds[FRIT_GPU_BINDINGS + 1];
    frit_wgpu_bind_group_layout group;
    frit_wgpu_pipeline_layout pipeline;
} frit_gpu_layout;

typedef struct frit_gpu_features {
    bool has_f16, has_subgroups, has_timestamps;
    bool is_software;   // the adapter is a processor (lavapipe, SwiftShader)
    bool is_discrete;   // the GPU has memory of its own
} frit_gpu_features;

typedef struct frit_gpu {
    frit_library *library;
    frit_gpu_functions call;
    const char *library_name;   // "Dawn" or "wgpu-native"
    frit_wgpu_instance instance;
    frit_wgpu_adapter adapter;
    frit_wgpu_device device;
    frit_wgpu_queue queue;
    frit_wgpu_limits limits;
    frit_gpu_features features;
    char name[256];
    frit_gpu_layout layouts[FRIT_GPU_LAYOUTS];
    int n_layouts;
    uint64_t last_submit;   // of wgpu-native
    _Atomic bool is_lost;
    _Atomic bool has_error;   // an error outside of error scopes
    char failure[512];        // sentence of the loss or the error
} frit_gpu;

typedef enum frit_gpu_usage {
    FRIT_GPU_STORAGE,
    FRIT_GPU_UNIFORM,
    FRIT_GPU_READBACK,   // copied to, and read by the host
} frit_gpu_usage;

typedef struct frit_gpu_buffer {
    frit_wgpu_buffer handle;   // NULL: none
    uint64_t n_bytes;
    frit_gpu_usage usage;
    // Mapping a READBACK buffer: 0 not started, 1 waiting, 2 mapped, 3 failed.
    _Atomic int map_state;
} frit_gpu_buffer;

typedef struct frit_gpu_range {   // n_bytes 0: to the end of the buffer
    const frit_gpu_buffer *buffer;
    uint64_t offset, n_bytes;
} frit_gpu_range;

typedef struct frit_gpu_pipeline {
    frit_wgpu_compute_pipeline handle;
    int layout;   // index in gpu->layouts
} frit_gpu_pipeline;

typedef struct frit_gpu_dispatch {
    const frit_gpu_pipeline *pipeline;
    frit_wgpu_bind_group group;
    uint32_t grid[3];
} frit_gpu_dispatch;

typedef struct frit_gpu_copy {
    const frit_gpu_buffer *from, *to;   // different buffers
    uint64_t from_offset, to_offset, n_bytes;
} frit_gpu_copy;

typedef struct frit_gpu_list {   // copies, dispatches, and copies after them
    const frit_gpu_copy *before;
    const frit_gpu_dispatch *dispatches;
    const frit_gpu_copy *copies;
    size_t n_before, n_dispatches, n_copies;
    bool is_new;   // errors of encoding are asked for
} frit_gpu_list;

// Opens an adapter of the first library that can be loaded: `library`, or Dawn, or wgpu-native if it is NULL. number:
// in the order of the library; -1: the best. FRIT_E_NOT_FOUND: there is no library, or no such adapter.
frit_status frit_gpu_open(frit_gpu *gpu, const char *library, int number);
// Number of adapters; 0: none, or no library.
int frit_gpu_n_adapters(const char *library);
void frit_gpu_close(frit_gpu *gpu);

frit_status frit_gpu_buffer_new(frit_gpu *gpu, uint64_t n_bytes, frit_gpu_usage usage, const char *what,
                                frit_gpu_buffer *out);
void frit_gpu_buffer_free(frit_gpu *gpu, frit_gpu_buffer *buffer);
// Offsets and sizes are multiples of 4. Write and clear run in the order of submits; read waits for all submits.
frit_status frit_gpu_write(frit_gpu *gpu, const frit_gpu_buffer *to, uint64_t offset, const void *from,
                           uint64_t n_bytes);
frit_status frit_gpu_read(frit_gpu *gpu, const frit_gpu_buffer *from, uint64_t offset, void *to, uint64_t n_bytes);

// `kinds` has a letter for each binding: u uniform, r storage that is read, w storage that is read and written.
frit_status frit_gpu_pipeline_new(frit_gpu *gpu, const char *name, const char *wgsl, const char *kinds,
                                  frit_gpu_pipeline *out);
void frit_gpu_pipeline_free(frit_gpu *gpu, frit_gpu_pipeline *pipeline);
// A range for each binding of the pipeline.
frit_status frit_gpu_group_new(frit_gpu *gpu, const frit_gpu_pipeline *pipeline, const frit_gpu_range *ranges,
                               frit_wgpu_bind_group *out);

// Encodes and submits a list.
frit_status frit_gpu_submit(frit_gpu *gpu, const frit_gpu_list *list);
// The two halves of it: encoding takes longer, and may be done while the GPU works. Commands are submitted once, or
// dropped.
frit_status frit_gpu_encode(frit_gpu *gpu, const frit_gpu_list *list, frit_wgpu_command_buffer *out);
frit_status frit_gpu_submit_commands(frit_gpu *gpu, frit_wgpu_command_buffer commands);
void frit_gpu_drop_commands(frit_gpu *gpu, frit_wgpu_command_buffer commands);   // NULL is allowed
// Starts mapping a READBACK buffer, and waits until it is mapped. *out is valid until frit_gpu_unmap.
frit_status frit_gpu_map_begin(frit_gpu *gpu, frit_gpu_buffer *buffer, uint64_t n_bytes);
bool frit_gpu_is_mapped(frit_gpu *gpu, frit_gpu_buffer *buffer);
frit_status frit_gpu_map_wait(frit_gpu *gpu, frit_gpu_buffer *buffer, uint64_t submit, uint64_t n_bytes,
                              const void **out);
void frit_gpu_unmap(frit_gpu *gpu, frit_gpu_buffer *buffer);
// FRIT_OK, or the loss of the device, or an error that no other call has reported.
frit_status frit_gpu_check(frit_gpu *gpu);
