// SPDX-License-Identifier: MIT
// graph/plan.h: a graph made executable: rewritten (fuse.c), grouped into phases (phase.h), every result that is kept
// at an offset of one scratch buffer.
//
// A result is kept if another fusion reads it. Buffers are placed by lifetime: a result needs its bytes from the phase
// that makes it to the last phase that reads it,
//
//     offset ^  [ a ........ ]      [ e .... ]
//            |        [ b ... ][ d ...... ]            first fit, largest first
//            +------------------------------> phases
//
// A result never overlaps what its phase reads, so kernels may treat them as distinct memory, and the fusions of a
// phase may run at once, but for those that read each other: a prologue runs before the products that read it, an
// epilogue after them. What a prologue reads stays as long as what it makes, so that products may compute it for
// themselves.
//
// Results of other graphs that it reads lie in memory of their own, its inputs: those are there before it runs.
//
// A plan is made for at most max_rows rows; frit_plan_set_rows narrows it to a step's actual rows without allocating.
// A backend turns a plan into its own executable form once (backend.h: prepare).
#pragma once
#include "graph/phase.h"

typedef struct frit_plan {
    frit_graph *graph;
    frit_phases phases;
    // [graph->n_nodes]: of each result in the scratch buffer, aliases too; of inputs and their aliases in the memory of
    // inputs; UINT64_MAX for what is not kept.
    uint64_t *offsets;
    uint64_t scratch_bytes, input_bytes;
    int64_t n_rows, n_outs;   // what the shapes are set to now
    bool decode_kernels;      // of the options
    bool joins_sequences;     // of the options
    bool streams;             // of the options
} frit_plan;

typedef struct frit_plan_options {
    bool no_fuse;           // every node by itself
    bool is_fused;          // frit_fuse has rewritten the graph before
    bool decode_kernels;    // all rows are decode rows (frit_row_class), however many there are
    bool joins_sequences;   // with decode_kernels: products may multiply the rows of all sequences by prefill kernels
    bool streams;           // matrices come with each step, and do not stay on the device (frit_backend.streams)
    bool early_prologues;   // what a phase reads stays while the next one's prologues run (frit_backend)
    frit_takes_fn takes;    // what the device that runs the plan takes; NULL: everything
    const void *device;
} frit_plan_options;

// Allocates in the graph's arena.
frit_status frit_plan_new(frit_plan **out, frit_graph *graph, const frit_plan_options *options);
static inline bool frit_node_is_input(const frit_node *node)   // of a plan's inputs
{
    return node->op == FRIT_OP_INPUT && node->input == FRIT_INPUT_RESULT;
}
void frit_plan_set_rows(frit_plan *plan, int64_t n_rows, int64_t n_outs);
void frit_plan_print(const frit_plan *plan, frit_buf *out);

// The rewriting table (fuse.c): changes the graph in place; returns how many patterns were applied.
int frit_fuse(frit_graph *graph);
