// SPDX-License-Identifier: MIT
// backend/backend.h: the interface of devices that run plans. A backend is a struct of functions and a row in
// backend.c.
//
// The engine opens the devices, allocates their memory, has each device load its weights and prepare the plans of its
// segments once, and submits steps. Nodes that a device does not run go to another device (graph/segment.h); the CPU
// runs all nodes.
//
// A device has a queue. Steps run in the order in which they are submitted; a ticket is a position in the queue:
//
//     submit(device, exec, batch, ...) -> ticket      returns as soon as the device has its own copy of the batch
//     poll(device, ticket)                            true if the step has run
//     wait(device, ticket)                            returns when the step has run, with its error
//
// Memory of a device is a handle. `map` returns its address if the host can see it. All other access goes through
// `read`, `write` and `copy`, which run in the order of the queue.
//
// A device belongs to one thread at a time.
#pragma once
#include "backend/store.h"
#include "base/log.h"
#include "base/thread/meeting.h"
#include "graph/weight_use.h"

#include "frit_tools.h"

typedef struct frit_device frit_device;   // an opened backend; each backend embeds this struct first
typedef struct frit_exec frit_exec;       // a prepared plan

typedef struct frit_memory {   // memory of a device; each backend embeds this struct first
    frit_device *device;
    uint64_t n_bytes;
} frit_memory;

typedef struct frit_address {
    frit_memory *memory;
    uint64_t offset;
} frit_address;

typedef uint64_t frit_ticket;   // 0: before the first step

typedef struct frit_step_output {   // output of one step on the host, filled when its ticket is done
    // Set by the step: the plan's output [n_outs, n], valid until the device runs another step. NULL if the host cannot
    // see it and `wants_rows` is false.
    const float *rows;
    bool wants_rows;             // the host reads `rows`; otherwise they may stay on the device
    frit_out_row *taken;         // [n_outs]: copies of the rows, and if they are finite; NULL: not requested
    frit_picked_token *picked;   // [n_picks] of the batch
    frit_logprob *tops;          // [lists.n_tops] of the batch
} frit_step_output;

// A GPU that this machine need not have. Its device compiles the kernels of plans; it loads and runs nothing.
typedef struct frit_device_target {
    const char *gpu;                          // a name: "h100"
    bool has_blas;                            // the machine with the GPU has cuBLASLt
    const struct frit_cubin_archive *known;   // kernels that are compiled already; NULL: none
    struct frit_cubin_list *kernels;          // receives the kernels
} frit_device_target;

typedef struct frit_device_options {
    // Threads for decode and for prefill. 0: automatic; n_threads_batch 0 with n_threads set: n_threads.
    int32_t n_threads, n_threads_batch;
    const char *cpu;   // cap on the CPU's instruction set, or "reference"; NULL: none
    const char
        *numa;   // "off": threads and memory are not placed by memory node; NULL: they are if there are several nodes
    // A folder that caches weights in the backend's own order, or NULL, and a hash that identifies the model's files.
    const char *weights_cache;
    uint64_t weights_source;
    // Results do not depend on the rows of a step; all least_rows (below) are 0.
    bool deterministic;
    bool in_place;                      // floats are read from the mapped files, and not copied for speed
    bool coarse;                        // products with floats may round their inputs to bf16 if that is faster
    bool fp8_inputs;                    // products with fp8_128 weights may round their inputs to fp8
    frit_stores *stores;                // the model's stores, which devices share; NULL: the device has its own
    const frit_device_target *target;   // opens this GPU instead of one of the machine; NULL: none
    // The backend's device `number`: one of n_members of a group, or alone if n_members is 1. n_members 0: the backend
    // chooses.
    int32_t number, n_members;
    const frit_log *log;
} frit_device_options;

typedef struct frit_device_info {
    const char *isa;                      // instruction set, or kind of machine
    int32_t n_threads, n_threads_batch;   // for decode and for prefill steps
    // Queued tokens of a session from which its rows are of a class; 0: the device has no kernels of its own for the
    // class. least_rows[FRIT_ROWS_DECODE] is unused.
    int32_t least_rows[FRIT_ROW_CLASSES];
    bool mixes_classes;   // a step may have decode rows and prefill rows (frit_batch.n_decode_rows)
    // A decode step with more sequences may round differently (frit_plan_options.joins_sequences). 0: none does.
    int32_t joins_above;
    uint64_t free_bytes;   // free memory of the device; 0: it uses the host's memory
    int32_t n_ranks;       // a group of devices (group.h): how many; 0: one device
    bool is_exact;         // a group whose sums do not depend on the number of ranks (graph/shard.h)
} frit_device_info;

// Memory for weights. Each tensor counts once.
typedef struct frit_weight_bytes {
    uint64_t stored;     // in the device's store when all are loaded
    uint64_t missing;    // part of `stored` that is not loaded yet
    uint64_t in_place;   // read from the mapped file
} frit_weight_bytes;

// Memory of an executable besides weights and cache.
typedef struct frit_exec_bytes {
    uint64_t shared;   // shared by all executables of the device: the largest counts
    uint64_t own;
} frit_exec_bytes;

typedef struct frit_progress {
    frit_progress_fn fn;   // may be NULL
    void *ctx;
} frit_progress;

enum { FRIT_NUMBERED_DEVICES = 8 };
#define FRIT_NUMBERED(name)                                                                    \
    {                                                                                          \
        name ":0", name ":1", name ":2", name ":3", name ":4", name ":5", name ":6", name ":7" \
    }

typedef struct frit_backend {
    const char *name;
    // Runs the picks of a batch, and resolves input tokens that the previous step picked; otherwise the engine does.
    bool picks;
    bool queues;            // runs steps asynchronously
    bool streams;           // runs plans whose matrices come with each step (frit_plan_options)
    bool early_prologues;   // may run prologues at the end of the previous phase (frit_plan_options)
    bool by_name;           // opened only if --device names it
    // The names of its devices by number, "cuda:0" to FRIT_NUMBERED_DEVICES of them, and how many this machine has.
    // NULL: its devices have no numbers.
    const char *const *numbered;
    int (*count)(void);
    // Bit k of the result: device `number` can access the memory of device k. NULL: none can.
    uint64_t (*reaches)(int number);
    // The layout that its attention reads, for types without blocks. True: values are transposed in their pages,
    // [dim, position], and keys are not. False: keys are transposed, values are not.
    bool values_by_dim;
    // Sets *out to NULL without an error if this machine has no such device.
    frit_status (*open)(frit_device **out, const frit_device_options *options);
    void (*close)(frit_device *device);   // NULL is allowed
    void (*info)(const frit_device *device, frit_device_info *info);
    // Makes the device a member of a group of devices of its kind (group.h), before it loads anything. NULL: it cannot
    // be one.
    frit_status (*join)(frit_device *device, const frit_rank *rank);

    // `alloc` returns zeroed memory; the system backs its pages when they are touched, if it can. `map` returns the
    // address at which the host may read and write it while the queue is empty, or NULL.
    frit_status (*alloc)(frit_device *device, uint64_t n_bytes, frit_memory **out);
    // Memory for the layers of a cache, which are laid out in n_bytes: a group gives each rank its part of them, and
    // reads and writes them as if they lay there whole. NULL: `alloc` is called.
    frit_status (*alloc_cache)(frit_device *device, const frit_cache *cache, uint64_t n_bytes, frit_memory **out);
    void (*free)(frit_device *device, frit_memory *memory);   // NULL is allowed
    void *(*map)(const frit_memory *memory);
    // read and write copy from and to the host, and have finished when they return. copy copies within the device.
    frit_status (*read)(frit_device *device, frit_address from, void *to, uint64_t n_bytes);
    frit_status (*write)(frit_device *device, frit_address to, const void *from, uint64_t n_bytes);
    frit_status (*copy)(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes);
    // Queues a copy from the memory of another device of the backend, which runs after all steps that both devices have
    // queued, and before those that either queues later. NULL: copies go through the host.
    frit_status (*receive)(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes);

    // `runs` is true if the device supports the node. `can_join` is true if it runs two nodes together (graph/phase.h);
    // its `device` is a frit_device.
    bool (*runs)(const frit_device *device, const frit_node *node);
    frit_can_join_fn can_join;
    // Memory for these weights; loads nothing. NULL, like `load`, if `prepare` loads weights.
    frit_status (*weight_bytes)(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
    // Loads the weights that are not in its store yet. FRIT_E_CANCELLED if `progress` cancels; nothing is loaded then.
    frit_status (*load)(frit_device *device, const frit_weight_uses *uses, frit_progress progress);
    // Sets adapter i of later batches (frit_batch.scales); an adapter of NULL removes it. The table may be freed after
    // the call. Its tensors may be freed too if the host cannot see the device's memory, otherwise they must live until
    // i is set again. NULL if the device does not run the ops of adapters.
    frit_status (*set_adapter)(frit_device *device, int32_t i, const frit_adapter_table *adapter);
    // Makes the plan executable: chooses kernels, allocates scratch, loads missing weights. Plan and cache must outlive
    // the result.
    frit_status (*prepare)(frit_device *device, frit_plan *plan, const frit_cache *cache, frit_exec **out);
    // Compiles the kernels of plans that `prepare` will be called for, together, so that it need not compile them one
    // plan after the other. FRIT_E_CANCELLED if `progress` cancels. NULL: the device compiles nothing.
    frit_status (*compile)(frit_device *device, frit_plan *const *plans, size_t n, const frit_cache *cache,
                           frit_progress progress);
    // Chooses, and loads, algorithms of products that the executable's first steps would choose. NULL: there are none.
    frit_status (*tune)(frit_exec *exec);
    // Memory that `prepare` would allocate for the plan. NULL: the plan's scratch and inputs.
    frit_status (*exec_bytes)(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
    // Address of an input or a result of the plan. A result is valid until the device runs another executable.
    frit_address (*value)(frit_exec *exec, const frit_node *node);
    // Runs the executable for the rows of the batch. The plan keeps its largest shape; a device whose kernels read the
    // shapes calls frit_plan_set_rows when it runs. A device that runs later copies the batch (frit_batch_pack).
    // `output` must live until the ticket is done. Allocates nothing.
    frit_status (*submit)(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                          frit_ticket *ticket);
    // Picks from the output of the step that was submitted last, whether or not it has run, before another one is
    // submitted. Of the batch it uses `picks`, `n_picks` and `lists`; rows of the picks are those of the step. Their
    // tokens are numbered after the picks of the step (`~i` in the tokens of the next one). The ticket stands for the
    // step and these picks. NULL: the device picks in steps only.
    frit_status (*pick)(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                        frit_ticket *ticket);
    bool (*poll)(frit_device *device, frit_ticket ticket);
    frit_status (*wait)(frit_device *device, frit_ticket ticket);   // FRIT_OK, or the first failure since the last wait
    void (*exec_free)(frit_device *device, frit_exec *exec);

    // `profile` starts from zero to count the time of ops, or stops. `profile_row` sets row i of the result; false past
    // the end. NULL: the device has no profile.
    frit_status (*profile)(frit_device *device, bool on);
    bool (*profile_row)(const frit_device *device, size_t i, frit_profile_row *row);

    // The kernel that runs the op, for frit info --ops: "reference", the name of an instruction set, ...
    const char *(*op_kernel)(frit_op op);
} frit_backend;

struct frit_device {
    const frit_backend *backend;
};

extern const frit_backend frit_backend_cpu, frit_backend_cuda, frit_backend_webgpu;

const frit_backend *frit_backend_find(const char *name);   // NULL: no backend has this name
// The backends whose devices an engine opens, in order; NULL past the end. The last one is the CPU.
const frit_backend *frit_backend_get(int i);
// For tests: engines that are made from now on open this backend before the CPU; NULL: none.
void frit_backend_set_first(const frit_backend *backend);
// Copies a row of n numbers of output, which is on the host, if a copy is requested. Sets `bad` if a number is not
// finite.
void frit_out_row_take(frit_out_row *taken, const float *row, int64_t n);
// Copies bytes between any two devices, after all steps that were submitted to the device of `from`. Waits for them,
// unless both devices are of a backend with `receive`.
frit_status frit_backend_copy(frit_address to, frit_address from, uint64_t n_bytes);
