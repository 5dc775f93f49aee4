// SPDX-License-Identifier: MIT
// engine/observe.h: passes the inputs of matrix products on: sums of squares for an importance file
// (convert/importance.h), and whole rows to a caller that registers for them (quantize/covariance.h).
//
// Plans of an engine that observes have the inputs of all products and the routes of experts as results, beside the
// output. After each step all threads add the inputs up. Each thread adds columns of its own, so that sums do not
// depend on the number of threads. Plans of other engines are unchanged.
#pragma once
#include "base/thread/thread.h"
#include "convert/importance.h"
#include "engine/placement/plans.h"

// Rows that a matrix read in a step: row i is x + rows[i] * width, read by expert or head each[i]. With `rows` and
// `each` NULL, row i is x + i * width and the tensor is one matrix.
typedef struct frit_input_rows {
    const float *x;
    const int64_t *rows;
    const int32_t *each;
    int64_t n;
} frit_input_rows;

// Receives the rows that tensors read.
typedef struct frit_input_observer {
    // Called while plans are made. Sets *index to the tensor's number in calls of `add`, or to -1 if its rows are not
    // wanted. `same` is the index of a tensor that reads the same rows, or -1.
    frit_status (*enter)(void *ctx, const char *name, int64_t width, int64_t n_each, int64_t same, int64_t *index);
    // Called after each step, once for each tensor that was entered.
    frit_status (*add)(void *ctx, int64_t index, const frit_input_rows *rows, frit_pool *pool);
    void *ctx;
} frit_input_observer;

// The input of one tensor in a plan.
typedef struct frit_observed {
    const char *name;             // of the tensor
    const frit_node *x, *route;   // route NULL: the tensor has no experts
    int64_t width;                // columns of a matrix
    int64_t n_values, n_counts;
    size_t entry;    // of the importance
    int64_t index;   // for frit_input_observer.add; -1: none
} frit_observed;

// Layers [first, end) of a model; end 0: all layers.
typedef struct frit_observed_layers {
    int32_t first;   // above 0: the layers read frit_observed_rows.given
    int32_t end;
    bool is_residual;   // results are the output of the last layer, without the final norm
    bool no_results;    // steps have no results and compute only the inputs of observed tensors
} frit_observed_layers;

// Hidden states of sessions, from the first token of each session on. Session i begins at i * `apart` floats; with
// several sessions each step has all tokens of each.
typedef struct frit_observed_rows {
    const float *given;   // input of the first layer; NULL: embeddings of the tokens
    float *taken;         // gets the output of the last layer; may be `given`; NULL: not wanted
    int64_t apart;
} frit_observed_rows;

struct frit_observer {
    frit_importance *importance;   // borrowed; NULL: none
    frit_input_observer inputs;    // `add` NULL: none
    frit_pool *pool;
    frit_observed_layers layers;
    frit_observed_rows rows;
};

// Replaces the observer of inputs; NULL ends it. Steps from now on call it. Frees the plans.
frit_status frit_observe_inputs(frit_engine *engine, const frit_input_observer *inputs);
// Restricts steps to some layers while the engine observes. Called before the first step.
void frit_observe_layers(frit_engine *engine, frit_observed_layers layers);
void frit_observe_rows(frit_engine *engine, frit_observed_rows rows);
// Copies frit_observed_rows.given of a step to the input of a segment.
frit_status frit_observe_give(const frit_engine *engine, const frit_planned_segment *planned, frit_address to,
                              const frit_batch *batch);
// Adds the inputs of a segment's products to its results, before the segment is planned. `head` is the matrix that
// reads the graph's output if that is hidden states, or NULL.
frit_status frit_observe_keep(const frit_engine *engine, frit_planned_segment *planned, frit_graph *graph,
                              const frit_tensor *head);
// Passes on the inputs of a step that was submitted.
frit_status frit_observe_segment(const frit_engine *engine, const frit_planned_segment *planned,
                                 const frit_batch *batch, frit_ticket ticket);
void frit_observer_free(struct frit_observer *observer);
