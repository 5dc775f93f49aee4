// SPDX-License-Identifier: MIT
// graph/plan.h: a graph made executable: fused, ordered, every intermediate result at an offset of one scratch buffer.
//
// Buffers are placed by lifetime: a result needs its bytes from the step that makes it to the last step that reads it,
//
//     offset ^  [ a ........ ]      [ e .... ]
//            |        [ b ... ][ d ...... ]            first fit, largest first
//            +------------------------------> steps
//
// A result never overlaps a source of its own step, so kernels may treat them as distinct memory. Steps between two
// barriers share no bytes that one of them writes, and do not depend on each other, but for followers: norms of heads,
// rotation and the writing of keys and values work head by head, so whoever made some heads of a product may go on with
// these at once:
//
//     level 0      q = linear      k = linear      v = linear
//     level 1      rope(q)         rope(k)
//     level 2                      kv_write(rope(k), v)
//
// Who does not run them so needs a barrier wherever the level changes. And what a norm reads stays as long as what it
// makes: whoever reads the norm may compute it himself, and the sum of a norm and a residual (NORM_ADD) too.
//
// A plan is made for at most max_rows rows; frit_plan_set_rows narrows it to a step's actual rows without allocating.
// A backend turns a plan into its own executable form once (backend.h: prepare).
#pragma once
#include "graph/graph.h"

typedef struct frit_plan_step {
    frit_node *node;
    uint64_t offset;          // of the result in the scratch buffer
    uint64_t second_offset;   // of the second result (ADD_NORM's sum)
    bool has_buffer;          // false for what writes to the cache
    bool barrier;             // before this step: since the last one, what it reads or overwrites was touched
    int level;   // 0, or that of a follower: it reads what steps of lower levels make since the last barrier
} frit_plan_step;

typedef struct frit_plan {
    frit_graph *graph;
    frit_plan_step *steps;   // what remains to execute, in order; leaves and aliases (RESHAPE) are not steps
    int n_steps;
    uint64_t *offsets;   // [graph->n_nodes]: of each result, aliases too; UINT64_MAX for leaves and without a result
    uint64_t scratch_bytes;
    int64_t n_rows, n_outs;   // what the shapes are set to now
    bool few_rows;            // of the options
} frit_plan;

typedef struct frit_plan_options {
    bool no_fuse;
    bool few_rows;   // kernels for few rows, however many there are: results do not depend on who shares a step
} frit_plan_options;

// Allocates in the graph's arena.
frit_status frit_plan_new(frit_plan **out, frit_graph *graph, const frit_plan_options *options);
void frit_plan_set_rows(frit_plan *plan, int64_t n_rows, int64_t n_outs);
void frit_plan_print(const frit_plan *plan, frit_buf *out);

// The fusion table (fuse.c): rewrites the graph in place; returns how many patterns were applied.
int frit_fuse(frit_graph *graph);
