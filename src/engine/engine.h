// SPDX-License-Identifier: MIT
// engine/engine.h: a model placed on devices: its weights, a KV cache in pages, plans by shape class, and sessions.
//
// The life of a step: sched/schedule.c chooses rows of sessions -> sched/step.c takes the plan of its shape class
// (placement/plans.c) and submits it -> sched/flight.c waits for it -> its results go to the logits, picks and row
// functions of sessions.
//
// Memory for steps is allocated when the engine, its sessions and its plans are made. A step allocates nothing.
//
// Headers of the engine include each other in one order, which tools/check.c knows: model.h, adapter.h; kv.h;
// session.h; schedule.h; plans.h; flight.h; engine.h.
#pragma once
#include "engine/media/media.h"
#include "engine/placement/placement.h"
#include "engine/placement/weight_stream.h"
#include "engine/sched/flight.h"
#include "engine/spec/draft_budget.h"

// Adapters numbered in the order in which they came into the engine, for the prefix cache (kv/session_prefix.c): an
// index is used again when its adapter is gone, a number is not.
typedef struct frit_adapter_number {
    const frit_adapter *adapter;   // only compared
    uint64_t number;               // from 1 on
} frit_adapter_number;
typedef struct frit_adapter_numbers {
    frit_adapter_number *items;   // [n]: of engine->adapters
    int32_t n;
    uint64_t n_seen;
} frit_adapter_numbers;

// When rows are of which class (frit_row_class), by what all devices of the engine can.
typedef struct frit_row_rules {
    int32_t least[FRIT_ROW_CLASSES];   // queued tokens from which a session's rows are of a class; INT32_MAX: never
    bool mixes_classes;                // a step may have decode rows beside prefill rows
    bool only_prefill;                 // all steps run prefill kernels (frit_engine_only_prefill)
    int32_t joins_above;               // decode steps of more sequences multiply their rows together; INT32_MAX: none
} frit_row_rules;

// State of the scheduler beside its sessions (sched/schedule.c).
typedef struct frit_schedule_state {
    int32_t
        prompt_budget;    // prompt rows of a step while other sessions generate; 0: by measured times, -1: any number
    bool prompt_first;    // the first prompt got no part of the last step and goes first in the next one
    double prompt_time;   // frit_session_prompt.time of the prompt that began last (sched/prompt_share.c)
    int32_t max_outs;     // rows of a step with logits, so that these stay within a few MiB
    // Devices that work one after the other on a step, each with a queue, so that each can have a step of its own; 1:
    // steps are not divided among sessions.
    int32_t n_stages;
    bool divides;   // the step that is being made has the rows of some sessions only, for the sake of the stages
} frit_schedule_state;

// Steps in flight (sched/flight.c): numbers n_completed + 1 to n_submitted.
typedef struct frit_flights {
    frit_flight ring[FRIT_MAX_FLIGHTS];   // step number i is in ring[i % FRIT_MAX_FLIGHTS]
    uint64_t n_submitted, n_completed;
    uint64_t completed_ns;   // when the last step completed
} frit_flights;

// Drafts of all sessions (spec/speculate.c, spec/drafter.c).
typedef struct frit_engine_drafts {
    int32_t n_queued;           // since the last step was submitted
    double n_expected;          // of n_queued: how many are right on average
    frit_draft_budget budget;   // what draft models may cost
} frit_engine_drafts;

struct frit_engine {
    frit_model *model;
    frit_arena arena;
    frit_hparams hp;   // the model's, with the rotation frequencies of n_ctx
    int32_t n_ctx, n_batch;
    // Devices, and what lies on them (placement/).
    frit_device *devices[FRIT_MAX_DEVICES];       // the last one is the CPU
    const char *device_names[FRIT_MAX_DEVICES];   // as users know them: "cuda", or "cuda:1" of several
    int n_devices;
    int n_split;               // the first devices, among which layers are divided; 1: they are not
    const char *device_name;   // of the first device, or of all that layers are divided among: "cuda:0-1"
    frit_placement placement;
    frit_device_map device_map;
    frit_weight_stream weight_stream;
    int8_t *cache_devices;                         // [layers of the cache]
    int8_t *cache_parts;                           // [layers of the cache]: frit_shard_options; NULL: no group
    frit_weight_bytes weights[FRIT_MAX_DEVICES];   // [n_devices]
    bool reads_files;   // steps may read mapped files: false if devices with memory of their own have all weights
    frit_plan_cache plans;
    bool no_fuse;   // plans fuse no nodes
    frit_kv kv;
    uint64_t kv_token_bytes;
    frit_key_rotation *rotations;   // [layers of the cache], of cached keys; NULL: not found yet (kv/find_rotations.c)
    frit_engine_adapters adapters;
    frit_adapter_numbers adapter_numbers;
    // Steps and their sessions.
    frit_session *sessions;   // a queue: sessions with rows in a step go to its end
    frit_session *ahead;      // the session whose last token runs ahead of the caller (sched/ahead.h); NULL: none
    frit_step *step;          // the step that is being made
    bool in_step;             // row functions are being called, and may not start another step
    frit_flights flights;
    frit_row_rules rows;
    frit_schedule_state schedule;
    frit_step_cost cost;
    frit_engine_drafts drafts;
    frit_pick_runner *pick_runner;    // for devices that run no picks; NULL: all do
    frit_soft_runs soft;              // pictures that sessions may read (media/soft.h)
    frit_pictures *pictures;          // encodes pictures; NULL: none came yet (media/media.h)
    struct frit_observer *observer;   // what steps are observed for (observe.h); NULL: nothing
};

// Fills in engine->rotations. FRIT_E_UNSUPPORTED with the reason, as a part of a sentence.
frit_status frit_engine_find_rotations(frit_engine *engine);
// True if prefill plans stream weights, with adapters of this class: adapters lie where the layers are
// (placement/weight_stream.c).
bool frit_engine_streams_weights(const frit_engine *engine, const frit_adapter_class *adapted);
// Opens and closes the devices that options name (placement/devices.c).
frit_status frit_engine_open_devices(frit_engine *engine, const frit_engine_options *options,
                                     const frit_device_target *target);
void frit_engine_close_devices(frit_engine *engine);
// Divides a graph among the ranks if the device is a group (placement/shard.c). The first call is made after
// frit_engine_prepare_groups.
frit_status frit_engine_prepare_groups(frit_engine *engine);
frit_status frit_engine_shard(const frit_engine *engine, frit_device *device, frit_graph *graph);
static inline frit_device *frit_engine_cpu(const frit_engine *engine)
{
    return engine->devices[engine->n_devices - 1];
}
// Counts the bytes of each device's weights in engine->weights, and loads them (placement/devices.c).
frit_status frit_engine_count_weights(frit_engine *engine, const frit_plan_needs *needs);
frit_status frit_engine_load_weights(frit_engine *engine, const frit_plan_needs *needs, frit_progress progress);

// Fills in the header of its sessions' files, but for adapters and sizes (session/session_file.c).
struct frit_saved_header;
frit_status frit_engine_describe(const frit_engine *engine, struct frit_saved_header *h);

// From now on all steps run prefill kernels, however few rows a session has. For many sessions that generate together.
void frit_engine_only_prefill(frit_engine *engine);

// Lets steps give logits of n_rows rows, for callers that want more than the few MiB of logits that are usual.
void frit_engine_allow_outs(frit_engine *engine, int32_t n_rows);

// Makes room for steps of n_rows, for models that run all rows of a session in one step, and frees the plans.
// FRIT_E_MEMORY if there is not enough memory.
frit_status frit_engine_grow(frit_engine *engine, size_t n_rows);
