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
    int32_t n_ctx;        // positions of a session at most; 0: the model's trained context, if memory allows
    int32_t n_sessions;   // full-length sessions that the KV cache has room for; 0: 1
    int32_t n_threads;    // 0: one per fast core that this process may use, fewer where memory bandwidth is the limit
    // Most tokens of a step; 0: 512. Models in which every token sees all others run all tokens of a session in one
    // step: a longer push raises the limit.
    int32_t n_batch;
    int32_t n_threads_batch;   // threads of steps of 32 tokens or more; 0: n_threads if set, else one per core
    // "reference", or the best instruction set to use: "scalar", "avx2", ...; NULL: the best of this machine.
    const char *cpu;
    // Types of cached keys and values: "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1";
    // NULL: "f16", or "f32" with cpu "reference".
    const char *cache_type_k, *cache_type_v;
    // "auto" (NULL): on a machine with several NUMA nodes, each of the engine's threads is bound to one node and reads
    // weights in that node's memory. The caller's thread is never bound. "off": no thread is bound, no memory placed.
    // "tensor": each node computes a part of every matrix, with its own weights and cache; one node counts as two
    // halves. The same as a `device` "cpu:0-N" with a member for each node.
    const char *numa;
    // A folder that caches weights in the layout of this machine's kernels: one file per model, as large as the model.
    // Later engines map the file: they start faster, and processes share its memory. Damaged files and files of other
    // versions are written again, and failures are warnings. Files are never removed. A model that was opened from
    // memory is not cached. NULL: no cache.
    const char *weights_cache;
    bool no_fuse;   // run the graph without fusion (slower; for comparison)
    // Models with recurrent states or attention windows: the number of snapshots of a session that
    // frit_session_truncate can return to. To return to any other position, tokens run again. 0: 2, -1: none.
    int32_t n_state_copies;
    frit_progress_fn progress;   // called while weights are packed, and quantized if the model's options say so
    void *progress_ctx;
    // Most prompt tokens of a step while a session generates. This bounds the time until the session's next token. 0:
    // as many tokens as make a step 2.75 times as long as a step without prompts, by measurement, or 20 ms long on a
    // device with a queue; -1: no limit.
    int32_t prompt_budget;
    // The device to use beside the CPU, by the name of its backend ("cuda"); "cpu": none. NULL: the first usable one.
    // "cuda:0-3" or "cuda:0,2": several devices, which run the model together (`split`). "cpu:0-3": four members, each
    // with a part of the cores. With `deterministic` the numbers of `split` "tensor" do not depend on how many devices
    // there are, from "cpu:0" on.
    const char *device;
    // The number of layers that run on the device, counted from the end, the output first: a number, or "all". NULL or
    // "auto": as many as its memory has room for. Without a device a number is only a warning.
    const char *gpu_layers;
    // "REGEX=DEVICE", several separated by commas: operations on a tensor whose name matches run on this device, if it
    // can run them; the first rule that matches is used. NULL: none.
    const char *override_tensor;
    // Results do not depend on how a prompt is divided into steps, nor on the sessions that share a step, on any
    // processor: AMX is not used.
    bool deterministic;
    // Attention layers with a window keep positions before the window too: sessions can be truncated to any length, and
    // the cache is larger.
    bool full_windows;
    // Sessions run all their tokens, even where the cache has the same prefix (frit_session_cached).
    bool no_prefix_cache;
    // MiB of host memory for pages of the prefix cache that are evicted from a device's memory. They are copied back
    // when a session begins with their tokens. 0: none.
    int32_t prefix_host_mib;
    // "on" (NULL): fits the context (if n_ctx is 0), the layers of gpu_layers "auto" and the cache types (if none is
    // set) to free memory, and refuses a configuration that does not fit. "off": uses the model's trained context and
    // the default types without checking free memory.
    const char *fit;
    // "FOLDER" or "FOLDER:SIZE" (4G): keeps pages of the prefix cache in files, at most SIZE bytes, when memory has no
    // room for them and when the engine is freed; the least recently used are removed. Later engines of the model, in
    // any process, use them. The files contain the sessions' tokens. Failures are warnings. NULL: none.
    const char *prefix_disk;
    // How several devices divide the model. "tensor": each has a part of every layer, of the weights and of the cache.
    // "layer": each has some of the layers, one device after the other, in proportion to its free memory; steps of
    // different sessions keep all of them busy. "auto" (NULL): "tensor", or "layer" where the devices cannot reach each
    // other's memory, of which a warning in the model's log gives the reason.
    const char *split;
} frit_engine_options;

// Chooses a context that fits into memory if n_ctx is 0, then packs the weights, unless another engine of the model has
// packed them in the same layout. On the CPU, unless `deterministic` is set, an f16 cache becomes q8_0 if n_ctx (4,096
// tokens if it is 0) would not fit otherwise. Each choice that is not the default is a warning in the model's log.
// FRIT_E_MEMORY, with numbers, if it does not fit; FRIT_E_INVALID for a model without weights, or options outside the
// limits of their rows; FRIT_E_CANCELLED if `progress` returns false.
FRIT_API frit_status frit_engine_new(frit_engine **out, frit_model *model, const frit_engine_options *options);
// Sessions of a freed engine can only be freed.
FRIT_API void frit_engine_free(frit_engine *engine);

// Prepares the engine for steps of all sizes that generate text, so that no step has to: makes their plans, compiles
// kernels and measures products on devices that do so, on all threads. Without this call a step prepares what it needs
// and waits for it, up to a minute on a GPU whose kernels are not cached (weights_cache). Plans for adapters, and for
// hidden states of models that generate, stay unprepared. `progress` (may be NULL) is called on the calling thread.
// FRIT_E_CANCELLED if it returns false; what was prepared until then is kept.
FRIT_API frit_status frit_engine_prepare(frit_engine *engine, frit_progress_fn progress, void *progress_ctx);

typedef struct frit_engine_info {
    const char *backend;   // "cpu"
    const char *isa;       // "avx2"
    int32_t n_ctx, n_threads, n_batch;
    int32_t n_threads_batch;   // threads of steps of 32 tokens or more
    uint64_t kv_bytes;         // size of the KV cache
    uint64_t kv_token_bytes;   // bytes of the KV cache per token
    uint64_t scratch_bytes;    // buffers of the plans that steps have built so far
    uint64_t weight_bytes;     // weights that steps read, each counted once
    // Weights in memory in the layout of this machine's kernels, included in weight_bytes. Engines of one model with
    // the same layout share them. Other weights are read from the mapped file.
    uint64_t packed_bytes;
    uint64_t reserved[6];
} frit_engine_info;
// Must be called between steps, by the engine's thread.
FRIT_API frit_status frit_engine_get_info(const frit_engine *engine, frit_engine_info *info);

// An estimate of the memory that an engine with some options would need, and of the values that it would choose. Loads
// no weights.
//
//     frit_estimate_new(&estimate, model, &(frit_engine_options){.n_ctx = 8192});
//     for (size_t i = 0; frit_estimate_get_device(estimate, i, &device); i++) ...
typedef struct frit_estimate frit_estimate;

typedef struct frit_estimate_info {
    const char *why_not;   // the sentence with which frit_engine_new would fail; NULL: the engine fits
    int32_t n_ctx, n_ctx_train, n_sessions;
    const char *cache_type_k, *cache_type_v;
    uint64_t kv_token_bytes;   // of the cache, for one token
    size_t n_devices;
    uint64_t reserved[8];
} frit_estimate_info;

// The memory of a device; the last one is the host's.
typedef struct frit_estimate_device {
    const char *name;        // "cpu"
    int32_t n_layers;        // layers that run there, embedding and output included
    uint64_t packed_bytes;   // weights in the layout of the device's kernels
    // Weights that are read from the mapped file: the system may drop them from memory and read them again.
    uint64_t mapped_bytes;
    uint64_t kv_bytes;        // keys, values and states of all sessions at full length
    uint64_t scratch_bytes;   // intermediate results of a step, and workspaces of threads
    uint64_t free_bytes;      // usable now without swapping, within the limits of control groups
    uint64_t reserved[8];
} frit_estimate_device;

// Fails as frit_engine_new does, except for lack of memory: frit_estimate_info.why_not then has the sentence.
FRIT_API frit_status frit_estimate_new(frit_estimate **out, frit_model *model, const frit_engine_options *options);
FRIT_API void frit_estimate_free(frit_estimate *estimate);
// The texts live as long as the estimate.
FRIT_API frit_status frit_estimate_get_info(const frit_estimate *estimate, frit_estimate_info *info);
FRIT_API bool frit_estimate_get_device(const frit_estimate *estimate, size_t i, frit_estimate_device *device);

// Runs one step of the tokens that sessions have queued: single tokens first, then prompts, at most n_batch tokens.
// *n_rows (n_rows may be NULL) is the number of tokens that ran, 0 if none was queued.
//
// Fails only for faults of the engine: FRIT_E_IO if the model's file shrank, FRIT_E_MEMORY. No token has run then, and
// the step may be tried again. A fault of one session becomes its status (frit_session_status), and other sessions run
// nevertheless. Sessions take pages of the cache when their tokens run, and wait if no page is free. FRIT_E_LIMIT if
// all sessions wait: free or truncate one.
FRIT_API frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows);

// A step in two calls, so that the caller prepares the next step while a device runs this one. frit_engine_submit hands
// queued tokens to the devices and returns; *step (step may be NULL) is the step's number, from 1 on, or 0 if no token
// was queued. Two steps may be in flight; submitting a third waits for the first, and fails if that failed. Sessions
// receive results in the order of steps: when frit_engine_wait returns, when frit_engine_poll sets *done, or in another
// call that waits.
//
//     frit_engine_submit(engine, &a, NULL);   ...   frit_engine_submit(engine, &b, NULL);
//     frit_engine_wait(engine, a);                  // b still runs
//
// While steps are in flight, sessions can be created, pushed to, asked for picks and inspected; tokens in flight count
// as pending. frit_engine_step, frit_session_next, _encode, _set_adapters, _fork, _save, _load and _free, and
// frit_embed_texts wait for all steps first; frit_session_truncate waits for steps with tokens that it forgets.
// frit_engine_free waits too, and drops the results. On the CPU a step has run when frit_engine_submit returns. Row
// functions of a step are called before the next step is submitted.
//
// If a step fails after it was submitted (a device's error), its tokens and the tokens of later steps are queued again.
// Sessions of recurrent models fail instead, because their state is lost. The status of a step is kept until the second
// step after it is submitted.
FRIT_API frit_status frit_engine_submit(frit_engine *engine, uint64_t *step, int32_t *n_rows);
// Both functions return the status of the step; FRIT_E_INVALID for a step that was not submitted.
FRIT_API frit_status frit_engine_poll(frit_engine *engine, uint64_t step, bool *done);
FRIT_API frit_status frit_engine_wait(frit_engine *engine, uint64_t step);

// Keeps the device busy while the caller works: submits the next step, and waits for the step before it. So one step is
// in flight when the function returns, and the caller reads the tokens of the one before. Where no device has a queue
// (CPUs), or nothing can be submitted after the step in flight, the function waits for that step. *n_rows (n_rows may
// be NULL) is the number of tokens that were submitted. Pictures for which sessions wait (frit_push_options.media) are
// encoded in pieces, one beside each step; *n_rows is 0 while there is nothing else to do. Fails as frit_engine_step
// does; the tokens of all steps that were in flight are queued again then.
//
//     for each session that generates:
//         if (frit_session_has_picked(session)) {
//             frit_session_picked(session, &picked);    // write the token; frit_session_stop at the end of the text
//             frit_sampler_accept(sampler, picked.token);
//             if (!ahead) frit_session_push(session, &picked.token, 1, NULL);
//             if (!ahead) frit_session_pick(session, sampler, NULL);
//         }
//         frit_session_pick_ahead(session, sampler, NULL, &ahead);
//     frit_engine_advance(engine, NULL);
FRIT_API frit_status frit_engine_advance(frit_engine *engine, int32_t *n_rows);

#ifdef __cplusplus
}
#endif
#endif
