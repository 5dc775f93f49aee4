// SPDX-License-Identifier: MIT
// backend/backend.h: what a machine must do to run plans. A backend is a struct of functions and a row in backend.c.
//
// The engine opens the devices, asks them for memory, lets each load its weights and prepare the plans of its segments
// once, and submits steps. What a device does not run, another one does (graph/segment.h); the CPU runs everything.
//
// A device works through a queue. What is submitted runs later, in order; a ticket is a place in the queue:
//
//     submit(device, exec, batch, ...) -> ticket      returns as soon as the device has its own copy of the batch
//     poll(device, ticket)                            has it run?
//     wait(device, ticket)                            until it has; says what failed
//
// Memory of a device is a handle: `map` tells its address where the host can see it. Everything else goes through
// `read`, `write` and `copy`, which take their turn in the queue.
//
// A device belongs to one thread at a time.
#pragma once
#include "backend/store.h"
#include "base/log.h"
#include "graph/weight_use.h"

#include "frit_tools.h"

typedef struct frit_device frit_device;   // an opened backend; each backend embeds this struct first
typedef struct frit_exec frit_exec;       // a prepared plan

typedef struct frit_memory {   // of a device; each backend embeds this struct first
    frit_device *device;
    uint64_t n_bytes;
} frit_memory;

typedef struct frit_address {
    frit_memory *memory;
    uint64_t offset;
} frit_address;

typedef uint64_t frit_ticket;   // 0: before everything

typedef struct frit_step_output {   // of one step, on the host: filled when its ticket is done
    // Set by the step: [n_outs, n] of the plan's output; until the device runs another. NULL where the host cannot see
    // them and `wants_rows` is false.
    const float *rows;
    bool wants_rows;             // the host reads `rows`; otherwise they may stay where they are
    frit_out_row *taken;         // [n_outs]: where each row is copied, and whether it is finite; NULL: not requested
    frit_picked_token *picked;   // [n_picks] of the batch
    frit_logprob *tops;          // [lists.n_tops] of the batch
} frit_step_output;

typedef struct frit_device_options {
    // For few rows and for many. 0: automatic; of n_threads_batch beside n_threads: the same.
    int32_t n_threads, n_threads_batch;
    const char *cpu;    // cap on the CPU's instruction set, or "reference"; NULL: none
    const char *numa;   // "off": threads and memory are not placed by memory nodes; NULL: where there are several
    // A folder for weights in the backend's own order; NULL: they are not kept. And a hash of what is known of the
    // files that they come from.
    const char *weights_cache;
    uint64_t weights_source;
    // Results do not depend on how many rows a step has; then least_rows (below) are 0.
    bool deterministic;
    bool in_place;         // floats are read where files are mapped, and not copied for speed
    bool coarse;           // products with floats may round what they read to bfloat16, where that is faster
    frit_stores *stores;   // of the model, for devices that read the same weights; NULL: the device has its own
    const frit_log *log;
} frit_device_options;

typedef struct frit_device_info {
    const char *isa;                      // instruction set, or kind of machine
    int32_t n_threads, n_threads_batch;   // for steps of few and of many rows
    // Queued tokens of a session from which its rows are of a class; 0: the device has no kernels of its own for the
    // class. least_rows[FRIT_ROWS_DECODE] is unused.
    int32_t least_rows[FRIT_ROW_CLASSES];
    bool mixes_classes;   // a step may have decode rows beside prefill rows (frit_batch.n_decode_rows)
    // A decode step with more sequences may round differently (frit_plan_options.joins_sequences). 0: none does.
    int32_t joins_above;
    uint64_t free_bytes;   // of memory of its own; 0: it has none, and uses the host's
} frit_device_info;

// What weights need. Each tensor counts once.
typedef struct frit_weight_bytes {
    uint64_t stored;     // in the device's store, once all are loaded
    uint64_t missing;    // of these, not loaded yet
    uint64_t in_place;   // read where the file is mapped
} frit_weight_bytes;

// What an executable of a plan needs beside weights and cache.
typedef struct frit_exec_bytes {
    uint64_t shared;   // that all executables of the device use: the largest counts
    uint64_t own;
} frit_exec_bytes;

typedef struct frit_progress {
    frit_progress_fn fn;   // may be NULL
    void *ctx;
} frit_progress;

typedef struct frit_backend {
    const char *name;
    // Runs the picks of a batch, and takes tokens that are picks of the step before; otherwise the engine does both.
    bool picks;
    bool queues;            // runs steps while the host goes on
    bool streams;           // runs plans whose matrices come with each step (frit_plan_options)
    bool early_prologues;   // may run prologues with the end of the phase before (frit_plan_options)
    bool by_name;           // opened only where --device names it
    // Keys lie in pages by position and values by dimension, where their types have no blocks: as its attention reads
    // them. Otherwise keys by dimension and values by position.
    bool values_by_dim;
    // NULL in *out: this machine has no such device, which is no failure.
    frit_status (*open)(frit_device **out, const frit_device_options *options);
    void (*close)(frit_device *device);   // NULL is allowed
    void (*info)(const frit_device *device, frit_device_info *info);

    // Zeroed memory that kernels can use; pages are only backed when touched, where the system allows it. An address of
    // which the host reads and writes, while nothing is in the queue; NULL: none.
    frit_status (*alloc)(frit_device *device, uint64_t n_bytes, frit_memory **out);
    void (*release)(frit_device *device, frit_memory *memory);   // NULL is allowed
    void *(*map)(const frit_memory *memory);
    // From and to the host: done when they return. And within the device.
    frit_status (*read)(frit_device *device, frit_address from, void *to, uint64_t n_bytes);
    frit_status (*write)(frit_device *device, frit_address to, const void *from, uint64_t n_bytes);
    frit_status (*copy)(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes);

    // Whether it runs the node at all; and which nodes it runs together (graph/phase.h), for the plans that it
    // prepares. `device` is a frit_device.
    bool (*runs)(const frit_device *device, const frit_node *node);
    frit_takes_fn takes;
    // What the device needs to read these weights; loads nothing. NULL, as `load`: they are loaded by `prepare`.
    frit_status (*weight_bytes)(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
    // Loads those that are not in its store yet. FRIT_E_CANCELLED if `progress` says so; nothing is loaded then.
    frit_status (*load)(frit_device *device, const frit_weight_uses *uses, frit_progress progress);
    // Adapter i of the batches that follow (frit_batch.scales); NULL: takes adapter i away. The table may go, and the
    // numbers too where the host does not see the device's memory; otherwise they stay until i is set again. NULL, or:
    // the device runs ops of adapters.
    frit_status (*set_adapter)(frit_device *device, int32_t i, const frit_adapter_table *adapter);
    // Makes the plan executable: picks kernels, allocates scratch, loads weights that are not yet. Plan and cache must
    // outlive the result.
    frit_status (*prepare)(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
    // What `prepare` would allocate for the plan; loads and allocates nothing. NULL: the plan's scratch and its inputs.
    frit_status (*exec_bytes)(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
    // Where one of the plan's inputs lies, or one of its results: this until the device runs another executable.
    frit_address (*value)(frit_exec *exec, const frit_node *node);
    // Runs it for the rows of the batch: they are data of the step, and plans keep their largest shape (a device whose
    // kernels look at the plan's shapes calls frit_plan_set_rows when it runs). A device that runs it later keeps a
    // copy of the batch (frit_batch_pack). `output` stays, and is filled when the ticket is done. Allocates nothing.
    frit_status (*submit)(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                          frit_ticket *ticket);
    bool (*poll)(frit_device *device, frit_ticket ticket);
    frit_status (*wait)(frit_device *device, frit_ticket ticket);   // FRIT_OK, or the first failure since the last wait
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
};

extern const frit_backend frit_backend_cpu, frit_backend_cuda;

const frit_backend *frit_backend_find(const char *name);   // NULL: no backend has this name
// The backends whose devices an engine opens, in order; NULL past the end. The last one is the CPU.
const frit_backend *frit_backend_get(int i);
// For tests: this backend stands before the CPU in engines that are made from now on; NULL: none does.
void frit_backend_set_first(const frit_backend *backend);
// Bytes from one place to another, of whichever devices, after all that was submitted to the first.
frit_status frit_backend_copy(frit_address to, frit_address from, uint64_t n_bytes);
