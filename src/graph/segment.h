// SPDX-License-Identifier: MIT
// graph/segment.h: cuts a graph into segments: graphs that run in order, each on one device.
//
// A node runs on its wanted device if that device supports the node, otherwise on the last device, the CPU, which
// supports all nodes. Nodes that touch a layer of the cache run on the device of that layer. A segment has as many
// nodes as can run before another device must run. The engine copies results (FRIT_INPUT_RESULT) between segments.
//
//     device 0    embed, layers 0 to 15                          logits
//     device 1                           layers 16 to 31 ...     (CPU)
//                                 ^ a crossing            ^ a crossing
//
// frit_fuse rewrites the graph before it is cut. Each segment has its own phases.
#pragma once
#include "graph/graph.h"

enum { FRIT_MAX_DEVICES = 9 };   // eight, and the CPU

typedef struct frit_placement {
    int n_devices;   // the last one runs every node
    const void *ctx;
    int (*wanted)(const void *ctx, const frit_node *node);   // the device that should run the node
    bool (*runs)(const void *ctx, int device, const frit_node *node);
    const int8_t *cache_devices;   // device of each layer of the cache
} frit_placement;

// A result of one segment that another reads.
typedef struct frit_crossing {
    int from;                  // the segment that computes it
    const frit_node *result;   // in that segment
    frit_node *input;          // in the segment that reads it
} frit_crossing;

typedef struct frit_segment {
    int device;
    frit_graph graph;
    frit_crossing *inputs;
    int n_inputs;
    const frit_node *given;   // an input that the step fills, or NULL
} frit_segment;

typedef struct frit_segments {
    frit_segment *list;   // in order of execution
    int n;
    int output;                // the segment that computes the graph's output
    const frit_node *result;   // the graph's other result, in segment result_segment, or NULL
    int result_segment;
} frit_segments;

// Sets devices [n_layers] for the layers of the cache that the graph touches: the wanted device of the layer's nodes if
// it runs them all, otherwise the last device. Layers that no node touches keep -1. Call it for all graphs that share a
// cache, with one array, before the graphs are cut.
frit_status frit_segments_place_cache(const frit_placement *placement, const frit_graph *graph, int8_t *devices,
                                      int32_t n_layers);
// Allocates in the graph's arena. If one device runs all nodes, the segment is the graph itself, without a copy.
frit_status frit_segments_make(frit_segments *out, frit_graph *graph, const frit_placement *placement);
