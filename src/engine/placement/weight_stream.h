// SPDX-License-Identifier: MIT
// engine/placement/weight_stream.h: prompts of layers whose weights are not on a device. A device with memory for some
// layers computes long steps faster than the CPU even if it gets the weights of other layers with each step
// (frit_backend.streams). Nodes that touch the cache run where the cache lies. The plan of such a step has segments of
// the first device with its own weights, segments of that device with streamed weights, and segments of the CPU.
#pragma once
#include "graph/segment.h"

struct frit_engine;
struct frit_shape_class;
struct frit_adapter_class;

typedef struct frit_weight_stream {
    // Has one more device than the engine, before the CPU: the first device with streamed weights.
    frit_placement placement;
    bool is_on;
} frit_weight_stream;

// Called when layers are placed: decides if prompts stream weights, and from how many rows of a session on.
frit_status frit_weight_stream_decide(struct frit_engine *engine, bool is_deterministic);
// Replaces the additional device in segments by the engine's own, and marks the segments that stream.
void frit_weight_stream_resolve(const struct frit_engine *engine, struct frit_shape_class *c);
