// SPDX-License-Identifier: MIT
// engine/placement/plans.h: plans by shape class, and where their segments run.
#pragma once
#include "engine/lora/adapter.h"
#include "graph/segment.h"

// Classes are made when they are first needed, each for its largest shape; a step's batch says how many rows it has.
enum { FRIT_N_CLASSES = 6 };

typedef struct frit_plan_part {   // of one segment
    frit_device *device;
    bool streams;   // reads matrices of layers that run elsewhere (weight_stream.c)
    frit_plan *plan;
    frit_exec *exec;
    struct frit_observed *observed;   // [n_observed]: of engines that observe (observe.h)
    int n_observed;
} frit_plan_part;

typedef struct frit_plan_class {
    frit_arena arena;
    frit_graph graph;
    frit_segments segments;
    frit_plan_part *parts;   // [segments.n], in the order in which they run; NULL: not made yet
} frit_plan_class;

// What plans of a class give: logits, hidden states, or what an encoder makes of a source.
typedef enum frit_plan_kind {
    FRIT_PLAN_LOGITS,
    FRIT_PLAN_HIDDEN,
    FRIT_PLAN_ENCODE,
    FRIT_PLAN_NEXT,   // logits, and the hidden states of all rows
    FRIT_PLAN_KINDS,
} frit_plan_kind;

typedef struct frit_plan_cache {
    frit_plan_class classes[2][FRIT_N_RANKS][FRIT_PLAN_KINDS][FRIT_N_CLASSES];   // [steers][ranks]: of adapters
    size_t n_made;                                                               // ever
} frit_plan_cache;

// The plan for the rows that were scheduled; made on first use.
typedef struct frit_plan_key {
    int32_t n_rows;
    bool prefill;   // the step has prefill rows (frit_row_class)
    bool joins;     // frit_plan_options.joins_sequences
    bool streams;   // so that layers on the CPU run where matrices are streamed to
    frit_plan_kind kind;
    frit_adapter_class adapted;
} frit_plan_key;
frit_status frit_plans_get(frit_engine *engine, frit_plan_key key, frit_plan_class **out);
// Sets the bit of each device that reads adapters of matrix i in devices[i], and of layer k after all matrices.
frit_status frit_plans_find_adapted(const frit_engine *engine, uint8_t *devices);
// Calls fn with the graphs that have all layers between them: of logits, and of sources where the model has those.
typedef frit_status (*frit_graph_fn)(frit_engine *engine, frit_graph *graph, void *ctx);
frit_status frit_plans_each_graph(frit_engine *engine, frit_graph_fn fn, void *ctx);
// What a plan takes of a device's memory beside weights and cache, once it is prepared.
frit_status frit_plans_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
// What plans need of each device, without preparing any: bytes of scratch of all classes, and the weights of all kinds
// of plans.
typedef struct frit_plan_needs {
    uint64_t scratch_bytes[FRIT_MAX_DEVICES];
    frit_weight_uses weights[FRIT_MAX_DEVICES];
    frit_plan_class logits, source;   // that read them
} frit_plan_needs;
frit_status frit_plans_measure(const frit_engine *engine, frit_plan_needs *needs);
void frit_plan_needs_free(frit_plan_needs *needs);
uint64_t frit_plans_scratch_bytes(const frit_engine *engine);
void frit_plans_free(frit_engine *engine);
