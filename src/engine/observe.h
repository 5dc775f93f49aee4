// SPDX-License-Identifier: MIT
// engine/observe.h: sums over what products read: of squares (convert/importance.h), and of products of any two columns
// (covariance.h).
//
// An engine that observes makes plans whose results are, beside the output, the inputs of all products and the routes
// of experts. After each step all threads add them up, each its own columns, so that sums do not depend on how many
// threads there are. Plans of other engines know nothing of it.
#pragma once
#include "convert/importance.h"
#include "quantize/covariance.h"
#include "engine/place/plans.h"

// What a matrix reads in a plan.
typedef struct frit_observed {
    const char *name;             // of the matrix
    const frit_node *x, *route;   // route NULL: not a matrix of experts
    int64_t width;                // columns of the matrix
    int64_t n_values, n_counts;
    size_t entry;         // in the importance
    int64_t covariance;   // entry in the covariance; -1: none
} frit_observed;

// Layers [first, end) of a model; end 0: all.
typedef struct frit_observed_layers {
    int32_t first;   // above 0: reads rows that are given
    int32_t end;
    bool is_residual;   // results are what the layers leave, without the final norm
    bool no_results;    // there are none, and steps compute no more than what the observed matrices read
} frit_observed_layers;

// Of the tokens of the sessions that run, from the first one of each on: what the first of the layers reads, and where
// what they leave goes, which may be the same place. NULL: from the tokens; nowhere. Those of the next session are
// `apart` numbers away; where there are several, a step runs all of each.
typedef struct frit_observed_rows {
    const float *given;
    float *taken;
    int64_t apart;
} frit_observed_rows;

struct frit_observer {
    frit_importance *importance;   // both are borrowed, and may be NULL
    frit_covariance *covariance;
    frit_pool *pool;
    frit_observed_layers layers;
    frit_observed_rows rows;
};

// Steps compute these layers alone, while the engine observes; before the first of them.
void frit_observe_layers(frit_engine *engine, frit_observed_layers layers);
void frit_observe_rows(frit_engine *engine, frit_observed_rows rows);
// Copies the given rows of a step to where a part reads them.
frit_status frit_observe_give(const frit_engine *engine, const frit_plan_part *part, frit_address to,
                              const frit_batch *batch);
// Adds what the products of a segment read to its results, before it is planned. `head`: the matrix that reads the
// graph's output, where that is hidden states; may be NULL.
frit_status frit_observe_keep(const frit_engine *engine, frit_plan_part *part, frit_graph *graph,
                              const frit_tensor *head);
// Adds the rows of a step up that was submitted.
frit_status frit_observe_part(const frit_engine *engine, const frit_plan_part *part, const frit_batch *batch,
                              frit_ticket ticket);
void frit_observer_free(struct frit_observer *observer);
