// SPDX-License-Identifier: MIT
// backend/cuda/runtime/driver.h: CUDA's driver, opened at run time. The declarations here replace the toolkit's
// headers, so that every build can use a GPU and none needs one.
//
//     frit_cuda_driver driver;
//     FRIT_TRY(frit_cuda_driver_open(&driver));                       // FRIT_E_NOT_FOUND: no driver, or no GPU
//     frit_cuda_gpu gpu;
//     FRIT_TRY(frit_cuda_gpu_open(&gpu, &driver, 0));
//     FRIT_TRY(frit_cuda_check(&driver, driver.memory_alloc(&address, n), "allocating the weights"));
#pragma once
#include "base/library.h"
#include "base/status.h"

typedef struct frit_cuda_context_ *frit_cuda_context;
typedef struct frit_cuda_module_ *frit_cuda_module;
typedef struct frit_cuda_function_ *frit_cuda_function;
typedef struct frit_cuda_stream_ *frit_cuda_stream;
typedef struct frit_cuda_event_ *frit_cuda_event;
typedef struct frit_cuda_graph_ *frit_cuda_graph;
typedef struct frit_cuda_graph_exec_ *frit_cuda_graph_exec;

// CUlaunchAttribute: 72 bytes.
typedef struct frit_cuda_launch_attribute {
    int id, pad;
    union {
        char bytes[64];
        int is_wanted;
    } value;
} frit_cuda_launch_attribute;

// CUlaunchConfig.
typedef struct frit_cuda_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    frit_cuda_stream stream;
    frit_cuda_launch_attribute *attributes;
    unsigned n_attributes;
} frit_cuda_launch_config;

// CUmemAllocationProp: memory of a GPU that others can be given access to.
typedef struct frit_cuda_shared_memory {
    int type, handle_types;      // type 1: pinned
    int location_type, device;   // location_type 1: a GPU
    void *meta;
    unsigned char flags[8];
} frit_cuda_shared_memory;

// CUmemAccessDesc.
typedef struct frit_cuda_access {
    int location_type, device, flags;   // flags 3: reads and writes
} frit_cuda_access;

enum {   // CUdevice_attribute, CUlaunchAttributeID, CUfunction_attribute, CUstreamCaptureMode
    FRIT_CUDA_MULTIPROCESSORS = 16,
    FRIT_CUDA_L2_BYTES = 38,
    FRIT_CUDA_MAJOR = 75,
    FRIT_CUDA_MINOR = 76,
    FRIT_CUDA_SHARED_OPTIN = 97,
    FRIT_CUDA_LAUNCH_PROGRAMMATIC = 6,
    FRIT_CUDA_MAX_DYNAMIC_SHARED = 8,
    FRIT_CUDA_SHARED_CARVEOUT = 9,
    FRIT_CUDA_CAPTURE_THREAD = 1
};

typedef struct frit_cuda_driver {
    frit_library *library;
    int version;   // 1000 * major + 10 * minor of the newest CUDA that it supports
#define CUDA(member, symbol, parameters) int(*member) parameters;
#include "backend/cuda/runtime/driver.def"
#undef CUDA
} frit_cuda_driver;

frit_status frit_cuda_driver_open(frit_cuda_driver *driver);
// Opens the driver from the library `name`; NULL: its usual name.
frit_status frit_cuda_driver_open_as(frit_cuda_driver *driver, const char *library);
void frit_cuda_driver_close(frit_cuda_driver *driver);
// FRIT_OK for result 0; otherwise an error that says what failed, with the driver's number and text.
frit_status frit_cuda_check(const frit_cuda_driver *driver, int result, const char *what);

typedef struct frit_cuda_gpu {
    const frit_cuda_driver *driver;
    frit_cuda_context context;
    int device;   // the driver's handle
    char name[128];
    int arch;   // 10 * major + minor: 90 for Hopper
    int n_multiprocessors, shared_bytes, l2_bytes;
    uint64_t memory_bytes;
} frit_cuda_gpu;

// True if the GPU has the tensor core instructions and asynchronous copies that kernels use (ptx.cuh): from sm_80 on.
// Other GPUs have all products in f32 (precise.h) and plain attention, and products of experts run on the CPU (ops.c).
static inline bool frit_cuda_has_tensor_products(const frit_cuda_gpu *gpu)
{
    return gpu->arch >= 80;
}

// Makes the context current on this thread.
frit_status frit_cuda_gpu_open(frit_cuda_gpu *gpu, const frit_cuda_driver *driver, int ordinal);
void frit_cuda_gpu_close(frit_cuda_gpu *gpu);
