// SPDX-License-Identifier: MIT
// backend/cuda/device.h: one NVIDIA GPU as a device of backend.h.
//
// All work goes through one stream, in the order in which it is submitted; a ticket is a number of a step on it. A
// step's input is copied to pinned memory, and from there to the GPU by a stream of its own, so that it arrives while
// the step before runs; its output comes back into pinned memory. There are FRIT_CUDA_FLIGHTS of both. Pinned memory,
// which the GPU reads too, is slow to write: inputs are made elsewhere, and what is as it was two steps ago stays.
//
//     device.c     opening, memory, the queue
//     weights.c    the model's tensors on the GPU
//     weight_stream.c     those that come with each step
//     ops.c        which nodes the GPU runs, and how each becomes launches
//     exec.c       a plan's launches, and running them
#pragma once
#include "backend/backend.h"
#include "backend/cuda/ops/autotune.h"
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/libraries.h"
#include "backend/cuda/kernels/args.h"
#include "backend/cuda/weights/load.h"
#include "backend/cuda/runtime/nvrtc.h"

enum { FRIT_CUDA_FLIGHTS = 2 };

typedef struct frit_cuda_memory {
    frit_memory base;
    uint64_t address;
} frit_cuda_memory;

typedef struct frit_cuda_buffer {   // that grows
    uint64_t address;               // on the GPU; 0: none
    void *host;                     // pinned; NULL: none
    size_t n_bytes;
} frit_cuda_buffer;

typedef struct frit_cuda_flight {   // a step between submit and the end of it
    frit_ticket ticket;             // 0: free
    frit_cuda_event is_uploaded, is_done;
    frit_cuda_buffer input;      // on both sides
    uint8_t *drafts[2];          // [draft_room]: the input that is made; the one that was sent before
    size_t draft_room, n_sent;   // n_sent: bytes of the latter
    frit_cuda_buffer output;     // on the host
    frit_cuda_buffer picked;     // on the host: written by kernels
    frit_step_output *results;   // of the caller; NULL: there is no output
    int64_t n_outs, width;
    const frit_gpu_pick *picks;   // [n_picks], in the draft that was sent
    int32_t n_picks;
} frit_cuda_flight;

// Rows of each matrix of a stack: from begin[i] on, i 0 of the first tensor of a pair. Zero: all rows, of one matrix.
typedef struct frit_cuda_cut {
    int64_t n_matrices, begin[2], n;
} frit_cuda_cut;

// Matrices that come with each step, of one executable at a time (weight_stream.c).
enum { FRIT_CUDA_SLOTS = 2 };
typedef struct frit_cuda_slot {
    uint64_t address, n_bytes;
    const frit_exec *holds;                        // whose; NULL: none
    frit_cuda_event is_filled[FRIT_CUDA_PIECES];   // by the streams of the loader
    frit_cuda_event is_read;                       // by the launches of the last step
    bool was_read;
} frit_cuda_slot;

typedef struct frit_cuda_picks {   // picks.h
    struct frit_cuda_kernel *kernel;
    uint64_t works;    // frit_gpu_pick_work [FRIT_GPU_PICK_WAVE]
    uint64_t tokens;   // i32 [room]: of the last step's picks
    int32_t room, n;
} frit_cuda_picks;

typedef struct frit_cuda_tensor {   // a tensor of the model on the GPU
    frit_tensor tensor, second;     // second: of a pair, with data or a recipe
    bool is_tiled;
    frit_cuda_row_order order;   // of tiles
    int head_size;               // 0: rows are in natural order
    frit_cuda_cut cut;
    uint64_t address, n_bytes;
} frit_cuda_tensor;

// Two matrices of one type as tiles: rows of both in turn (FRIT_ROWS_GATED), or the tiles of the first, then those of
// the second.
typedef struct frit_cuda_pair {
    const frit_tensor *first, *second;
    frit_cuda_row_order order;
    int head_size;   // of FRIT_ROWS_ADJACENT and _HALVES
    frit_cuda_cut cut;
} frit_cuda_pair;

typedef struct frit_cuda_blas_plan {
    frit_cublaslt_shape shape;
    frit_cublaslt_product product;
} frit_cuda_blas_plan;

typedef struct frit_cuda_device {
    frit_device base;
    frit_log log;
    frit_cuda_driver driver;
    frit_cuda_gpu gpu;
    frit_nvrtc nvrtc;
    frit_cuda_compiler compiler;
    char package[1024];   // the compiler's folder
    frit_pool *pool;
    frit_cuda_loader loader;
    frit_cuda_stream stream, uploads;
    frit_cuda_tensor *tensors;
    size_t n_tensors, tensors_room;
    frit_cuda_kernel **kernels;   // of all executables, once each
    size_t n_kernels, kernels_room;
    frit_cuda_memory scratch;          // of the largest plan
    uint64_t work, work_bytes;         // of the launch that needs most
    frit_cublaslt blas;                // .library is NULL: not installed
    frit_cuda_blas_plan *blas_plans;   // [n_blas_plans], by shape
    size_t n_blas_plans;
    frit_cuda_choices choices;
    frit_cuda_flight flights[FRIT_CUDA_FLIGHTS];
    frit_cuda_slot slots[FRIT_CUDA_SLOTS];
    frit_exec *streaming;   // executables with slots, the newest first
    size_t n_streaming;     // ever
    frit_exec *streamed;    // the one that ran last
    frit_cuda_picks picks;
    struct frit_cuda_adapters *adapters;   // adapt.h; NULL: there were none
    struct frit_cuda_profile *profile;     // profile.h; NULL: times are not counted
    frit_ticket n_submitted, n_done;
    frit_status failure;   // of a step that was waited for by poll
    char sentence[FRIT_ERROR_BYTES];
} frit_cuda_device;

frit_status frit_cuda_alloc_bytes(frit_cuda_device *device, uint64_t n_bytes, const char *what, uint64_t *address);
void frit_cuda_free_bytes(frit_cuda_device *device, uint64_t address);
// Makes room for n_bytes on the sides that are asked for; what was there is lost.
frit_status frit_cuda_buffer_reserve(frit_cuda_device *device, frit_cuda_buffer *buffer, size_t n_bytes, bool on_gpu,
                                     bool on_host);
frit_status frit_cuda_scratch_reserve(frit_cuda_device *device, uint64_t n_bytes);
frit_status frit_cuda_work_reserve(frit_cuda_device *device, uint64_t n_bytes);
// A kernel as described; the one that the device has already, if there is one. All that are new are compiled by
// frit_cuda_kernels_build, in parallel.
frit_status frit_cuda_kernel_take(frit_cuda_device *device, const frit_cuda_kernel *wanted, frit_cuda_kernel **out);
frit_status frit_cuda_kernels_build(frit_cuda_device *device);

// ------------------------------------------------------------------------------- weights.c

// Whether both have the same rows in the same order.
bool frit_cuda_tensor_equals(const frit_cuda_tensor *a, const frit_cuda_tensor *b);
// Copies it to t->address; it is there after frit_cuda_loader_wait.
frit_status frit_cuda_tensor_fill(frit_cuda_device *device, const frit_cuda_tensor *t);
// Of what a plan reads: tiles, and the rest.
frit_status frit_cuda_plan_weights(const frit_plan *plan, uint64_t *tiles, uint64_t *rest);
frit_status frit_cuda_weight_bytes(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
void frit_cuda_tensors_free(frit_cuda_device *device);

// ------------------------------------------------------------------------------- exec.c

frit_status frit_cuda_prepare(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
frit_status frit_cuda_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);   // exec_bytes.c
frit_address frit_cuda_value(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                             frit_ticket *ticket);
void frit_cuda_exec_free(frit_device *device, frit_exec *exec);
// Waits until a flight is done and gives its results to the caller.
frit_status frit_cuda_land(frit_cuda_device *device, frit_cuda_flight *flight);

// ------------------------------------------------------------------------------- ops.c

bool frit_cuda_runs(const frit_device *device, const frit_node *node);
bool frit_cuda_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other);
// Rows of a stack of matrices that the node reads as source i; zero: it reads a matrix.
frit_cuda_cut frit_cuda_cut_of(const frit_node *node, int source);
// Whether source i of such a node is a matrix that products or lookups read, as tiles.
bool frit_cuda_is_tiled(const frit_node *node, int source);
