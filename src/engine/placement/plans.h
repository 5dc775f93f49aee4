// SPDX-License-Identifier: MIT
// engine/placement/plans.h: plans by shape class, and the devices that run their segments.
#pragma once
#include "engine/lora/adapter.h"
#include "graph/segment.h"

// A class is made when it is first needed, for its largest shape. A step's batch says how many rows it has.
enum { FRIT_N_CLASSES = 6 };

typedef struct frit_planned_segment {   // a segment with its plan on its device
    frit_device *device;
    bool streams;   // reads weights of layers that run elsewhere (weight_stream.c)
    frit_plan *plan;
    frit_exec *exec;
    struct frit_observed *observed;   // [n_observed]; of an engine that observes (observe.h)
    int n_observed;
} frit_planned_segment;

typedef struct frit_shape_class {
    frit_arena arena;
    frit_graph graph;
    frit_segments segments;
    frit_planned_segment *planned;   // [segments.n], in the order of execution; NULL: not made yet
} frit_shape_class;

// The results of a plan: logits, hidden states, or an encoded source.
typedef enum frit_plan_kind {
    FRIT_PLAN_LOGITS,
    FRIT_PLAN_HIDDEN,
    FRIT_PLAN_ENCODE,
    FRIT_PLAN_NEXT,   // logits, and the hidden states of all rows
    FRIT_PLAN_KINDS,
} frit_plan_kind;

typedef struct frit_plan_cache {
    frit_shape_class classes[2][2][FRIT_N_RANKS][FRIT_PLAN_KINDS][FRIT_N_CLASSES];   // [media][steers][ranks]
    size_t n_made;   // in total; freeing plans counts too, so the number is another one
} frit_plan_cache;

// The plan for scheduled rows; made when it is first needed.
typedef struct frit_plan_key {
    int32_t n_rows;
    bool prefill;   // the step has prefill rows (frit_row_class)
    bool joins;     // frit_plan_options.joins_sequences
    bool streams;   // layers on the CPU run on the device that their weights are streamed to
    bool media;     // some rows are features of pictures
    frit_plan_kind kind;
    frit_adapter_class adapted;
} frit_plan_key;
frit_status frit_plans_get(frit_engine *engine, frit_plan_key key, frit_shape_class **out);
// Fills in the key of each class of the kind that steps use. Returns their number.
int frit_plans_list(const frit_engine *engine, frit_plan_kind kind, frit_plan_key keys[FRIT_N_CLASSES]);
// Has devices compile the kernels of plans that are not made yet, all of them together.
frit_status frit_plans_compile(frit_engine *engine, const frit_plan_key *keys, int n, frit_progress progress);
// Sets the bit of each device that reads adapters of matrix i in devices[i], and of layer k in devices[n_matrices + k].
frit_status frit_plans_find_adapted(const frit_engine *engine, uint16_t *devices);
// Calls fn with the graph for logits and, if the model has sources, the graph that encodes them.
typedef frit_status (*frit_graph_fn)(frit_engine *engine, frit_graph *graph, void *ctx);
frit_status frit_plans_each_graph(frit_engine *engine, frit_graph_fn fn, void *ctx);
// Returns the memory of a prepared plan on the device, beside weights and cache.
frit_status frit_plans_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out);
// The needs of plans on each device, without preparing any: scratch of all classes, and weights of all kinds.
typedef struct frit_plan_needs {
    uint64_t scratch_bytes[FRIT_MAX_DEVICES];
    frit_weight_uses weights[FRIT_MAX_DEVICES];
    frit_shape_class logits, source;   // the plans that read the weights
} frit_plan_needs;
frit_status frit_plans_measure(const frit_engine *engine, frit_plan_needs *needs);
void frit_plan_needs_free(frit_plan_needs *needs);
uint64_t frit_plans_scratch_bytes(const frit_engine *engine);
void frit_plans_free(frit_engine *engine);
