// SPDX-License-Identifier: MIT
// backend/backend.h: what a machine must do to run plans. A backend is a struct of functions and a row in backend.c.
//
// The engine opens one device, asks it for cache memory, lets it prepare each plan once, and runs prepared plans.
// Ops that a backend lacks run on the CPU reference: a missing row is slower, never wrong.
#pragma once
#include "base/log.h"
#include "graph/plan.h"

#include "frit_tools.h"

typedef struct frit_device frit_device;   // an opened backend; each backend embeds this struct first
typedef struct frit_exec frit_exec;       // a prepared plan

typedef struct frit_device_options {
    // For few rows and for many. 0: automatic; of n_threads_batch beside n_threads: the same.
    int32_t n_threads, n_threads_batch;
    const char *cpu;    // cap on the CPU's instruction set, or "reference"; NULL: none
    const char *numa;   // "off": threads and memory are not placed by memory nodes; NULL: where there are several
    // A folder for weights in the backend's own order; NULL: they are not kept. And a hash of what is known of the
    // files that they come from.
    const char *weights_cache;
    uint64_t weights_source;
    const frit_log *log;
} frit_device_options;

typedef struct frit_backend {
    const char *name;
    frit_status (*open)(frit_device **out, const frit_device_options *options);
    void (*close)(frit_device *device);
    const char *(*isa)(const frit_device *device);
    int32_t (*n_threads)(const frit_device *device, bool many_rows);
    // Rows of a session from which other kernels pay, which round differently; 0: there are none.
    int32_t (*many_rows)(const frit_device *device);

    // Zeroed memory that kernels can use; pages are only backed when touched, where the system allows it.
    frit_status (*alloc)(frit_device *device, uint64_t n_bytes, void **memory);
    void (*release)(frit_device *device, void *memory, uint64_t n_bytes);

    // Which nodes it runs together (graph/phase.h): for the plans that it prepares. `device` is a frit_device.
    frit_takes_fn takes;
    // Makes the plan executable: picks kernels, allocates scratch, packs weights. The plan must outlive the result.
    frit_status (*prepare)(frit_device *device, frit_plan *plan, frit_exec **out);
    // Runs it; *output points to the result rows [n_outs, n] until the next run. Allocates nothing.
    frit_status (*run)(frit_device *device, frit_exec *exec, const frit_batch *batch, const frit_cache *cache,
                       const float **output);
    void (*exec_free)(frit_device *device, frit_exec *exec);

    // NULL, or: counts from zero where the time of runs goes (on), or stops. Row i of what was counted; false past the
    // end.
    frit_status (*profile)(frit_device *device, bool on);
    bool (*profile_row)(const frit_device *device, size_t i, frit_profile_row *row);

    // "reference", an instruction set's name, ...: how this backend runs the op. For frit info --ops.
    const char *(*op_kernel)(frit_op op);
} frit_backend;

struct frit_device {
    const frit_backend *backend;
    frit_progress_fn progress;   // told while weights are packed; may be NULL
    void *progress_ctx;
};

extern const frit_backend frit_backend_cpu;

const frit_backend *frit_backend_find(const char *name);   // NULL name: the best one for this machine
