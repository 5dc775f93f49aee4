// SPDX-License-Identifier: MIT
// engine/engine.h: an engine places a model on devices: a KV cache in pages, plans by shape class, its sessions.
//
// The headers of this folder include each other in one order, which tools/check.c knows: model.h, adapter.h; kv.h;
// session.h; schedule.h; plans.h; flight.h; engine.h. fit.h, classifier.h and saved.h stand beside it.
//
// The life of a step: schedule.c chooses rows of sessions -> step.c takes the plan of its shape class (plans.c) and
// submits it -> flight.c waits for it -> results go to the sessions' logits, picks and row functions.
//
// What a steady step needs is allocated when the engine, its sessions and its plans are made; the step itself allocates
// nothing.
#pragma once
#include "engine/sched/flight.h"
#include "engine/place/place.h"
#include "engine/place/weight_stream.h"

typedef struct frit_noted_adapter {
    const frit_adapter *adapter;   // only compared
    uint64_t number;               // 1, 2, ...: of each that came into the slot
} frit_noted_adapter;

// When rows are of which class (frit_row_class), by what all devices of the engine can.
typedef struct frit_row_rules {
    int32_t
        least[FRIT_ROW_CLASSES];   // queued tokens of a session from which its rows are of a class; INT32_MAX: never
    bool mixes_classes;            // a step may have decode rows beside prefill rows
    bool only_prefill;             // all steps run prefill kernels (frit_engine_only_prefill)
    int32_t joins_above;           // decode steps of more sequences multiply their rows together; INT32_MAX: none
} frit_row_rules;

struct frit_engine {
    frit_model *model;
    frit_arena arena;
    frit_hparams hp;                          // the model's, with the rotation frequencies of n_ctx
    frit_device *devices[FRIT_MAX_DEVICES];   // the last one is the CPU
    int n_devices;
    frit_placement placement;
    frit_places places;
    frit_streaming streaming;
    int8_t *cache_devices;                         // [layers of the cache]
    frit_weight_bytes weights[FRIT_MAX_DEVICES];   // [n_devices]
    bool reads_files;   // steps may read mapped weights: not where devices with memory of their own have all of them
    frit_kv kv;
    uint64_t kv_token_bytes;
    frit_plan_cache plans;
    frit_key_rotation *rotations;   // [layers of the cache], of cached keys; NULL: not found yet (rotations.c)
    frit_adapter_slots adapters;
    frit_noted_adapter *noted;   // [n_noted]: what is in the slots of adapters, for the prefix cache
    int32_t n_noted;
    uint64_t n_adapters_seen;
    frit_flight flights[FRIT_MAX_FLIGHTS];   // step number i is in flights[i % FRIT_MAX_FLIGHTS]
    uint64_t n_submitted, n_landed;          // steps; those between are in flight
    uint64_t landed_ns;                      // when the last one did
    frit_step *step;                         // the one that is being made
    frit_pick_run *pick_run;                 // for devices that run no picks; NULL: all do
    frit_session *ahead;                     // whose last token runs already (ahead.h); NULL: none
    frit_session *sessions;                  // a queue: a session with rows in a step goes to the end
    int32_t n_ctx, n_batch;
    frit_row_rules rows;
    bool prompt_first;       // the prompt whose turn it was did not suit the last step (schedule.c)
    int32_t prompt_budget;   // prompt rows of one step while other sessions generate; 0: by the pace, -1: any number
    double share_time;       // of the prompt that was last begun (prompt_share.c)
    frit_pace pace;
    double few_ns[FRIT_PACE_FEW + 1];   // a step of so many single tokens and drafts, on average; 0, -1: not known
    int32_t n_drafts;                   // queued since the last step was submitted
    double n_expected;                  // of these, how many are right on average
    frit_draft_budget drafts;           // of draft models
    int32_t max_outs;                   // rows with logits of one step, so that they stay within a few MiB
    struct frit_observer *observer;     // of importance (observe.h); NULL: none
    bool no_fuse;
    bool in_step;   // row functions are called from inside a step and may not start another
};

// Fills in engine->rotations. FRIT_E_UNSUPPORTED with what stands in the way, as a part of a sentence.
frit_status frit_engine_find_rotations(frit_engine *engine);
// Whether plans of many rows stream, with adapters of this class: these lie where the layers are (weight_stream.c).
bool frit_engine_streams(const frit_engine *engine, const frit_adapter_class *adapted);
// Opens and closes the devices that options ask for (devices.c).
frit_status frit_engine_open_devices(frit_engine *engine, const frit_engine_options *options);
void frit_engine_close_devices(frit_engine *engine);
static inline frit_device *frit_engine_cpu(const frit_engine *engine)
{
    return engine->devices[engine->n_devices - 1];
}
// Each device's weights: their bytes into engine->weights, and loading them (devices.c).
frit_status frit_engine_count_weights(frit_engine *engine, const frit_plan_needs *needs);
frit_status frit_engine_load_weights(frit_engine *engine, const frit_plan_needs *needs, frit_progress progress);

// What its sessions' files begin with, without adapters (session_file.c).
struct frit_saved_header;
frit_status frit_engine_describe(const frit_engine *engine, struct frit_saved_header *h);

// The folder for the prefix cache that options name, if they do (prefix.c). FRIT_E_INVALID.
frit_status frit_prefix_open_disk(frit_engine *engine, const char *prefix_disk);

// From now on all steps run by the kernels for prompts, however few rows a session has: for many sessions that go on
// together, which no caller waits for one by one.
void frit_engine_only_prefill(frit_engine *engine);

// Steps may give logits of as many rows, where the model knows so many tokens that they would be cut for the sake of
// memory. Each step reads all weights.
void frit_engine_allow_outs(frit_engine *engine, int32_t n_rows);

// Where all rows of a session run in one step: makes room for steps of n_rows, and forgets the plans. FRIT_E_MEMORY if
// that is not there.
frit_status frit_engine_grow(frit_engine *engine, size_t n_rows);
