// SPDX-License-Identifier: MIT
// frit/engine.h: a model placed on this machine, and its steps.
#ifndef FRIT_ENGINE_H
#define FRIT_ENGINE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct frit_engine frit_engine;
typedef struct frit_session frit_session;
typedef struct frit_sampler frit_sampler;

typedef struct frit_engine_options {
    int32_t n_ctx;             // positions of one session at most; 0: what the model was trained for, if memory allows
    int32_t n_sessions;        // sessions of full length that the KV cache has room for; 0: 1
    int32_t n_threads;         // 0: one per fast core that this process may use, or fewer where memory gives no more
    int32_t n_batch;           // rows of one step at most; 0: 512. Where every token sees all others, all of a
                               // session's tokens run in one step: a longer push raises it
    int32_t n_threads_batch;   // for steps of 32 rows and more; 0: n_threads if that is named, else one per core
    // "reference", or the best instruction set allowed: "scalar", "avx2", ...; NULL: the best there is
    const char *cpu;
    // Types of cached keys and values: "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1";
    // NULL: "f16", or "f32" with cpu "reference".
    const char *cache_type_k, *cache_type_v;
    // "auto" (NULL): on machines with several memory nodes threads stay on one each, beside the weights that they read.
    // Only threads of the engine's own: the caller's goes where it likes. "off": no thread is bound, no memory placed.
    const char *numa;
    // A folder for packed weights, in the order of this machine's kernels: as many bytes as the model has, once for
    // each model. The next engine maps them and starts faster, and processes share the memory. What is damaged or of
    // another version is written again; what goes wrong costs a warning. Files are never removed. NULL: no folder.
    // Models that come from no file are not kept.
    const char *weights_cache;
    bool no_fuse;   // run the graph without fusion (slower; for comparison)
    // Models with states or windows: places that frit_session_truncate can go back to, each with a copy of the state
    // and the positions of the windows; from anywhere else the tokens run again. 0: 2, -1: none.
    int32_t n_state_copies;
    frit_progress_fn progress;   // called while weights are packed, and quantized if the model's options say so
    void *progress_ctx;
    // Tokens of prompts that one step runs at most while some session generates, so that none waits long for its next
    // token; 0: as many as take 2.75 times as long as a step without prompts, as measured; -1: any number.
    int32_t prompt_budget;
    // The device beside the CPU, by the name of its backend; "cpu": none. NULL: what there is.
    const char *device;
    // How many layers run on it, counted from the end, the output first: a number, or "all"; NULL or "auto": as many as
    // it has memory for. Without such a device it says nothing but a warning.
    const char *gpu_layers;
    // "PATTERN=DEVICE", several separated by commas: what reads a tensor whose name has a match of the regex runs
    // there, if the device can; the first one that matches counts. NULL: none.
    const char *override_tensor;
    // Numbers do not depend on how a prompt is cut into steps, nor on how many sessions have tokens in one, whatever
    // the processor: on the CPU without AMX.
    bool deterministic;
    // Layers that look back at a window keep the positions before it too: more memory, and sessions can go back to any.
    bool full_windows;
    // Sessions run all their tokens, also where another one has run the same beginning (frit_session_cached).
    bool no_prefix_cache;
    // MiB of the host's memory for pages that only the prefix cache has, and that must give way in the memory of a
    // device; they come back when a session begins with their tokens. 0: none.
    int32_t prefix_host_mib;
    // "on" (NULL): the context, where n_ctx is 0, the layers of gpu_layers "auto" and the types of the cache, where
    // none is named, are what free memory allows; what does not fit is refused. "off": the context is what the model
    // was trained for and the types are the defaults, whatever is free.
    const char *fit;
    // "FOLDER" or "FOLDER:SIZE" (4G): pages of the prefix cache that memory has no room for, and those that are there
    // when the engine is freed, become files of so many bytes at most; the longest unused go. Later engines of a model
    // find them, in other processes too. The files tell what was said. What goes wrong costs a warning. NULL: none.
    const char *prefix_disk;
    uint64_t reserved[1];
} frit_engine_options;

// Chooses a context that fits into memory if n_ctx is 0, then packs the weights, unless another engine of the model has
// them in the same order. A cache of f16 becomes one of q8_0, on the CPU and unless `deterministic` is set, where
// n_ctx does not fit otherwise, or 4,096 tokens if it is 0. What was chosen and is not the default goes to the model's
// log, as a warning. FRIT_E_MEMORY with numbers if it does not fit, FRIT_E_INVALID for a model without weights or
// options outside their rows' limits, FRIT_E_CANCELLED if `progress` returns false.
FRIT_API frit_status frit_engine_new(frit_engine **out, frit_model *model, const frit_engine_options *options);
FRIT_API void frit_engine_free(frit_engine *engine);   // sessions left over can only be freed then

typedef struct frit_engine_info {
    const char *backend;   // "cpu"
    const char *isa;       // "avx2"
    int32_t n_ctx, n_threads, n_batch;
    int32_t n_threads_batch;   // for steps of 32 rows and more
    uint64_t kv_bytes;         // reserved for keys and values
    uint64_t kv_token_bytes;   // of these, what one token needs
    uint64_t scratch_bytes;    // buffers of the plans built so far
    uint64_t weight_bytes;     // of the weights that steps read, each once
    // Of these, in memory in the order of this machine's kernels; engines of one model that read the same order share
    // them. The others are read where the file is mapped.
    uint64_t packed_bytes;
    uint64_t reserved[6];
} frit_engine_info;
// To be called by the engine's thread, between steps: the figures grow with the plans that steps build.
FRIT_API frit_status frit_engine_get_info(const frit_engine *engine, frit_engine_info *info);

// What an engine with these options would need of each memory, and what it would choose: nothing is loaded.
//
//     frit_estimate_new(&estimate, model, &(frit_engine_options){.n_ctx = 8192});
//     for (size_t i = 0; frit_estimate_get_device(estimate, i, &device); i++) ...
typedef struct frit_estimate frit_estimate;

typedef struct frit_estimate_info {
    const char *why_not;   // the sentence with which frit_engine_new would refuse; NULL: all fits
    int32_t n_ctx, n_ctx_train, n_sessions;
    const char *cache_type_k, *cache_type_v;
    uint64_t kv_token_bytes;   // of the cache, for one token
    size_t n_devices;
    uint64_t reserved[8];
} frit_estimate_info;

typedef struct frit_estimate_device {   // a memory: of a device, or the host's, which is the last one
    const char *name;                   // "cpu"
    int32_t n_layers;                   // that run there, embedding and output counted
    uint64_t packed_bytes;              // weights that are loaded, in the order of the device's kernels
    // Weights that are read where the file is mapped: they may leave memory, and are read from the file again.
    uint64_t mapped_bytes;
    uint64_t kv_bytes;        // keys, values and states of all sessions at full length
    uint64_t scratch_bytes;   // intermediate results of a step, and workspaces of threads
    uint64_t free_bytes;      // that can be used now, without swapping and within control groups
    uint64_t reserved[8];
} frit_estimate_device;

// Fails as frit_engine_new does, but for memory: then the estimate says why not.
FRIT_API frit_status frit_estimate_new(frit_estimate **out, frit_model *model, const frit_engine_options *options);
FRIT_API void frit_estimate_free(frit_estimate *estimate);
// The texts live as long as the estimate.
FRIT_API frit_status frit_estimate_get_info(const frit_estimate *estimate, frit_estimate_info *info);
FRIT_API bool frit_estimate_get_device(const frit_estimate *estimate, size_t i, frit_estimate_device *device);

// Runs one step over whatever its sessions have queued: single tokens first, then prompts, n_batch rows at most.
// *n_rows: the rows that ran; 0 when nothing was queued; n_rows may be NULL. Fails only for what concerns the engine:
// FRIT_E_IO if the model's file shrank, FRIT_E_MEMORY; nothing has run then, and further steps may be tried. What
// concerns one session is its status (frit_session_status), and the others are served all the same.
// Sessions take room in the cache when their tokens run, and wait for it. FRIT_E_LIMIT if all of them wait: one must be
// freed or truncated.
FRIT_API frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows);

// A step in two halves, so that the next one is made while a device runs this one. frit_engine_submit gives the devices
// what is queued, and returns; *step (may be NULL) is the step's number, from 1 on, or 0 if nothing was queued. Two
// steps may be in flight; a third waits for the first, and fails with what that failed with. Results reach the sessions
// in the order of steps: when frit_engine_wait returns, when frit_engine_poll says *done, or in a call that waits.
//
//     frit_engine_submit(engine, &a, NULL);   ...   frit_engine_submit(engine, &b, NULL);
//     frit_engine_wait(engine, a);                  // b still runs
//
// Meanwhile sessions can be made and pushed to, asked for picks and looked at; what is in flight counts as pending.
// frit_engine_step, frit_session_next, _truncate, _encode, _set_adapters, _fork, _save, _load and _free, and
// frit_embed_texts wait for all steps first. frit_engine_free waits too, and drops the results. On the CPU the step has
// run when frit_engine_submit returns; a step whose results go to row functions has its results handed out before
// another one is submitted.
//
// A step that fails late (a device's error) has not run, nor has one that was submitted after it: their tokens are
// queued again. Sessions of recurrent models fail with it, for their state is lost. The status of a step is remembered
// until the second one after it is submitted.
FRIT_API frit_status frit_engine_submit(frit_engine *engine, uint64_t *step, int32_t *n_rows);
// FRIT_E_INVALID for a step that was not submitted.
FRIT_API frit_status frit_engine_poll(frit_engine *engine, uint64_t step, bool *done);
FRIT_API frit_status frit_engine_wait(frit_engine *engine, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
