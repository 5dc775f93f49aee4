// SPDX-License-Identifier: MIT
// graph/segment.h: a graph cut into segments: graphs that each run on one device, one after the other.
//
// A node runs on the device that it is meant for, if that runs such nodes; otherwise on the last device, the CPU, which
// runs all. What touches a layer of the cache runs where the layer lies. A segment has as many nodes as can run before
// another device must: from device to device go results (FRIT_INPUT_RESULT), which the engine copies in between.
//
//     device 0    embed, layers 0 to 15                          logits
//     device 1                           layers 16 to 31 ...     (CPU)
//                                 ^ a crossing            ^ a crossing
//
// frit_fuse has rewritten the graph before it is cut; phases are made of each segment by itself.
#pragma once
#include "graph/graph.h"

enum { FRIT_MAX_DEVICES = 8 };

typedef struct frit_placement {
    int n_devices;   // the last one runs every node
    const void *ctx;
    int (*wanted)(const void *ctx, const frit_node *node);   // the device that the node is meant for
    bool (*runs)(const void *ctx, int device, const frit_node *node);
    const int8_t *cache_devices;   // where each layer of the cache lies
} frit_placement;

// What one segment reads of another.
typedef struct frit_crossing {
    int from;                  // the other segment
    const frit_node *result;   // one of its results
    frit_node *input;          // the node that stands for it
} frit_crossing;

typedef struct frit_segment {
    int device;
    frit_graph graph;
    frit_crossing *inputs;
    int n_inputs;
    const frit_node *given;   // an input that the step fills; NULL: it reads none
} frit_segment;

typedef struct frit_segments {
    frit_segment *list;   // in the order in which they run
    int n;
    int output;    // the segment that makes the graph's output
    int kept_in;   // and the one that makes its other result, which is `kept` there; NULL: it has none
    const frit_node *kept;
} frit_segments;

// Where the layers of the cache lie that the graph touches, into devices [n_layers]: the device that their nodes are
// meant for, if it runs all of these; otherwise the last. -1 stays what no node touches. To be asked of all graphs that
// share a cache, one after the other, with what the others gave; before graphs are cut.
frit_status frit_segments_place_cache(const frit_placement *placement, const frit_graph *graph, int8_t *devices,
                                      int32_t n_layers);
// Allocates in the graph's arena. All on one device: the graph itself, which is not copied.
frit_status frit_segments_make(frit_segments *out, frit_graph *graph, const frit_placement *placement);
