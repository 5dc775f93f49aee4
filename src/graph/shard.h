// SPDX-License-Identifier: MIT
// graph/shard.h: divides a graph among the ranks of a group of devices (docs/dev/shard.md).
//
// frit_shard_graph rewrites a graph into the graph that every rank runs. All cuts are equal, so all ranks have one
// graph and one plan: only the weights differ, whose nodes say which part a rank reads (frit_shard_cut). A value is
//
//     whole      every rank has all of it
//     sliced     every rank has a part of one dimension
//     partial    the value is the sum of what the ranks have
//
// The column `cut` of ops.def names the rule that an op follows. REDUCE, GATHER and PART stand where an op needs a
// value in another state. An op without a rule, or whose sizes cannot be cut equally, is computed by every rank:
//
//     whole, linear with rows of w, sliced, glu, sliced, linear with columns of w, partial, reduce, whole
#pragma once
#include "graph/graph.h"

enum { FRIT_MAX_RANKS = 8 };

typedef struct frit_shard_options {
    int32_t n_ranks;   // 1 to FRIT_MAX_RANKS
    // Sums over the inner dimension of a matrix are sums of 8 leaves, or of 4 or 2 if 8 do not divide it, which are
    // added as a balanced tree. Results then have the same bits for all numbers of ranks that divide the leaves, and
    // for one rank.
    bool is_exact;
    // Matrices with fewer numbers are not cut if only a GATHER would read the result.
    int64_t least_elems;
    // [layers of the cache]: how many parts the KV heads of a layer are cut into; 0: not decided yet. Graphs that share
    // a cache share the array, in which the first graph that writes to a layer decides.
    int8_t *cache_parts;
} frit_shard_options;

// Rewrites the graph in place, after frit_fuse. Nodes keep their addresses, and their results the values that they had.
frit_status frit_shard_graph(frit_graph *graph, const frit_shard_options *options);

// The part of a tensor that a rank reads. Allocates in the arena if the part needs a recipe (format/rows.h) or a name.
frit_status frit_shard_tensor(frit_arena *arena, const frit_tensor *whole, const frit_shard_cut *cut, int32_t rank,
                              frit_tensor *out);

// Returns the tensor that takes the place of a WEIGHT node's tensor; NULL with an error.
typedef const frit_tensor *(*frit_shard_tensor_fn)(void *ctx, const frit_node *weight);
// Copies a graph for one rank, whose weights are replaced. The nodes of both graphs have the same ids.
frit_status frit_shard_copy(frit_graph *out, frit_arena *arena, const frit_graph *graph, frit_shard_tensor_fn tensor_of,
                            void *ctx);
