// SPDX-License-Identifier: MIT
// backend/cuda/device.h: one NVIDIA GPU as a device of backend.h.
//
// All kernels run on one stream, in the order in which steps are submitted; a ticket is the number of a step. The input
// of a step is uploaded on a stream of its own while the step before runs (step_input.h), and its output is copied to
// pinned memory. Each of FRIT_CUDA_FLIGHTS flights has memory for the input and output of one step.
//
//     device.c             opening, memory, the queue, the table of functions for backend.h
//     exec.c               preparing plans, submitting steps and waiting for them
//     ops/ops.c            which nodes the GPU runs, and the launches of each
//     weights/weights.c    the model's tensors on the GPU
//     picks.c              picking tokens
#pragma once
#include "backend/backend.h"
#include "backend/cuda/group/peers.h"
#include "backend/cuda/ops/autotune.h"
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/libraries.h"
#include "backend/cuda/kernels/args.h"
#include "backend/cuda/weights/load.h"
#include "backend/cuda/runtime/nvrtc.h"

enum { FRIT_CUDA_FLIGHTS = 2, FRIT_CUDA_ALL_FLIGHTS = 4 };   // of steps; of steps and of their late picks

typedef struct frit_cuda_memory {
    frit_memory base;
    uint64_t address;
} frit_cuda_memory;

typedef struct frit_cuda_buffer {   // grows when a step needs more
    uint64_t address;               // on the GPU; 0: none
    void *host;                     // pinned; NULL: none
    size_t n_bytes;
} frit_cuda_buffer;

typedef struct frit_cuda_flight {   // a step, or picks after a step, between submit and the end of it
    frit_ticket ticket;             // 0: free
    frit_cuda_event is_uploaded, is_done;
    frit_cuda_buffer input;        // on the GPU and on the host
    uint8_t *staging[2];           // [staging_room]: the input that is written; the input of the flight's last step
    size_t staging_room, n_sent;   // n_sent: bytes of the last step's input
    frit_cuda_buffer output;       // on the host
    frit_cuda_buffer picked;       // on the host: written by kernels
    frit_step_output *results;     // of the caller; NULL: there is no output
    int64_t n_outs, width;
    const frit_gpu_pick *picks;   // [n_picks], in staging[1]
    int32_t n_picks;
} frit_cuda_flight;

// A stack of matrices, of each of which n rows are used: from begin[0] on in the first tensor of a pair, begin[1] in
// the second. All zero: the tensor is a single matrix, and all rows are used.
typedef struct frit_cuda_cut {
    int64_t n_matrices, begin[2], n;
} frit_cuda_cut;

// Memory for matrices that are copied for each step (weight_stream.h), of one executable at a time.
enum { FRIT_CUDA_STREAM_BUFFERS = 2 };
typedef struct frit_cuda_stream_buffer {
    uint64_t address, n_bytes;
    const frit_exec *holds;                        // the executable whose matrices it has; NULL: none
    frit_cuda_event is_filled[FRIT_CUDA_PIECES];   // by the streams of the loader
    frit_cuda_event is_read;                       // by the launches of the last step
    bool was_read;
} frit_cuda_stream_buffer;

typedef struct frit_cuda_picks {   // picks.h
    struct frit_cuda_kernel *kernel;
    uint64_t works;    // frit_gpu_pick_work [FRIT_GPU_PICK_WAVE]
    uint64_t tokens;   // i32 [FRIT_CUDA_FLIGHTS, room]: picks of the last step of each flight
    int32_t room, n;   // n: picks of the last step
    int last, next;    // flights of the last step with picks, and of the step that is being submitted
} frit_cuda_picks;

typedef struct frit_cuda_tensor {   // a tensor of the model on the GPU
    frit_tensor tensor, second;     // second: has data or a recipe if this is a pair
    bool is_tiled;
    frit_cuda_row_order order;   // of tiles
    int head_size;               // 0: rows are in natural order
    frit_cuda_cut cut;
    uint64_t address, n_bytes;
} frit_cuda_tensor;

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
    frit_cubin_archive *archive;   // of the compiler; NULL: none
    bool is_target;                // a GPU of target.h: nothing is loaded, and no step runs
    bool has_blas;                 // products of many rows are cuBLASLt's
    frit_cuda_peers peers;         // the GPU is a member of a group
    bool has_fp8_inputs;           // products with fp8_128 weights may quantize their inputs (gemm_fp8.h)
    bool is_deterministic;   // the numbers of a row do not depend on the number of rows: all have the same kernels
    frit_pool *pool;
    frit_cuda_loader loader;
    frit_cuda_stream stream, uploads;
    frit_cuda_event is_read, is_sent;   // of copies to and from other GPUs (group/receive.h)
    uint64_t linked;                    // bit i: the driver was asked for access to GPU i
    frit_cuda_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    frit_cuda_kernel **kernels;   // of all executables, once each
    size_t n_kernels, kernels_capacity;
    frit_cuda_memory scratch;          // as large as the largest plan needs
    uint64_t work, work_bytes;         // as much as the largest launch needs
    frit_cublaslt blas;                // .library is NULL: not installed
    frit_cuda_blas_plan *blas_plans;   // [n_blas_plans], by shape
    size_t n_blas_plans;
    frit_cuda_autotune autotune;
    frit_cuda_flight flights[FRIT_CUDA_ALL_FLIGHTS];   // steps, then the picks after each of them (`pick`)
    frit_cuda_stream_buffer stream_buffers[FRIT_CUDA_STREAM_BUFFERS];
    frit_exec *streaming;   // executables that stream weights, the newest first
    size_t n_streaming;     // number of executables that ever streamed
    frit_exec *streamed;    // the streaming executable that ran last
    frit_cuda_picks picks;
    struct frit_cuda_recordings *recordings;   // recordings.h; NULL: no step was recorded yet
    struct frit_cuda_adapters *adapters;       // adapt.h; NULL: there was no adapter yet
    struct frit_cuda_profile *profile;         // profile.h; NULL: times are not counted
    frit_ticket n_submitted, n_done;
    frit_status failure;   // of a step that poll found done
    char sentence[FRIT_ERROR_BYTES];
} frit_cuda_device;

frit_status frit_cuda_alloc_bytes(frit_cuda_device *device, uint64_t n_bytes, const char *what, uint64_t *address);
void frit_cuda_free_bytes(frit_cuda_device *device, uint64_t address);
// Makes room for n_bytes on the GPU, on the host or on both. The content is lost if the buffer grows.
frit_status frit_cuda_buffer_reserve(frit_cuda_device *device, frit_cuda_buffer *buffer, size_t n_bytes, bool on_gpu,
                                     bool on_host);
frit_status frit_cuda_scratch_reserve(frit_cuda_device *device, uint64_t n_bytes);
frit_status frit_cuda_work_reserve(frit_cuda_device *device, uint64_t n_bytes);
// Returns the device's kernel with this description, which is added if it is new. New kernels are compiled by
// frit_cuda_kernels_build, in parallel.
frit_status frit_cuda_kernel_get(frit_cuda_device *device, const frit_cuda_kernel *wanted, frit_cuda_kernel **out);
frit_status frit_cuda_kernels_build(frit_cuda_device *device);
