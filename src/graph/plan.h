// SPDX-License-Identifier: MIT
// graph/plan.h: an executable graph: rewritten (fuse.c), grouped into phases (phase.h), with an offset in one scratch
// buffer for every stored result.
//
// A result is stored if another fusion reads it. Buffers are placed by lifetime: a result needs its bytes from the
// phase that computes it to the last phase that reads it,
//
//     offset ^  [ a ........ ]      [ e .... ]
//            |        [ b ... ][ d ...... ]            first fit, largest first
//            +------------------------------> phases
//
// A result never overlaps the results that its phase reads, so kernels may treat them as distinct memory, and the
// fusions of a phase may run at once, except that a prologue runs before the products that read it and an epilogue
// after them. The sources of a prologue live as long as its result, so that products may compute it for themselves.
//
// In a group of ranks (shard.h), what an exchange reads lives until the next exchange: other ranks may be later.
//
// Results of other graphs that the graph reads are in separate memory, its inputs, and exist before it runs.
//
// A plan is made for at most max_rows rows. frit_plan_set_rows narrows it to the rows of a step without allocating. A
// backend turns a plan into its own executable form once (backend.h: prepare).
#pragma once
#include "graph/phase.h"

typedef struct frit_plan {
    frit_graph *graph;
    frit_phases phases;
    // [graph->n_nodes]: the offset of a result in the scratch buffer, of an input in the memory of inputs; aliases have
    // the offset of their source. UINT64_MAX: not stored.
    uint64_t *offsets;
    uint64_t scratch_bytes, input_bytes;
    int64_t n_rows, n_outs;   // current rows and outputs of the shapes
    bool decode_kernels;      // copied from the options
    bool joins_sequences;     // copied from the options
    bool streams;             // copied from the options
    bool no_fuse;             // copied from the options
} frit_plan;

typedef struct frit_plan_options {
    bool no_fuse;           // every node is a fusion by itself
    bool is_fused;          // frit_fuse has already rewritten the graph
    bool decode_kernels;    // all rows are decode rows (frit_row_class), however many there are
    bool joins_sequences;   // with decode_kernels: products may multiply the rows of all sequences by prefill kernels
    bool streams;           // matrices come with each step, and do not stay on the device (frit_backend.streams)
    bool early_prologues;   // sources of a phase live until the next phase's prologues have run (frit_backend)
    frit_can_join_fn can_join;   // the joins that the device supports; NULL: all
    const void *device;
} frit_plan_options;

// Allocates in the graph's arena.
frit_status frit_plan_new(frit_plan **out, frit_graph *graph, const frit_plan_options *options);
static inline bool frit_node_is_result_input(const frit_node *node)   // its values are in the plan's inputs
{
    return node->op == FRIT_OP_INPUT && node->input == FRIT_INPUT_RESULT;
}
void frit_plan_set_rows(frit_plan *plan, int64_t n_rows, int64_t n_outs);
void frit_plan_print(const frit_plan *plan, frit_buf *out);

// Rewrites the graph in place (fuse.c). Returns how many patterns were applied.
int frit_fuse(frit_graph *graph);
