// SPDX-License-Identifier: MIT
// engine/placement/weight_stream.h: prompts of layers on the CPU. A device that has memory for some layers only still
// computes steps of many rows faster than the CPU does, if it is given the matrices of the other layers for each step
// (frit_backend.streams). What touches the cache stays where that lies. So a plan of such steps has segments of the
// first device with its own weights, segments of the same device whose matrices are streamed, and segments of the CPU.
#pragma once
#include "graph/segment.h"

struct frit_engine;
struct frit_plan_class;
struct frit_adapter_class;

typedef struct frit_streaming {
    // Has a device more than the engine, before the CPU: the first device with streamed matrices.
    frit_placement placement;
    bool is_on;
} frit_streaming;

// Once layers have their places: decides whether prompts stream, and from how many rows of a session on.
frit_status frit_streaming_decide(struct frit_engine *engine, bool is_deterministic);
// Sets the engine's devices of the segments, and which parts stream.
void frit_streaming_resolve(const struct frit_engine *engine, struct frit_plan_class *c);
