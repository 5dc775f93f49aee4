// SPDX-License-Identifier: MIT
// engine/placement/placement.h: which device runs which layer.
//
// Layers are counted from the end: the output first, then the last layer, and the embedding when everything else is
// there. Each device beside the CPU takes layers as long as its memory holds their weights, their cache and the scratch
// of a step, or as many as the options say; the CPU runs the rest. Options may name tensors: what reads these runs
// elsewhere.
#pragma once
#include "base/map.h"
#include "engine/kv/kv_layout.h"

typedef struct frit_device_map {
    int8_t *layers;   // [n]: of the embedding, of each layer, of the output; by depth + 1 (graph.h)
    int32_t n;
    frit_map tensors;   // names of tensors that options place, to devices
} frit_device_map;

typedef struct frit_placement_options {
    const char *gpu_layers, *override_tensor;   // as in frit_engine_options
    frit_kv_shape shape;                        // of the cache, wherever it lies
    frit_kv_room room;                          // that it should have
} frit_placement_options;

// After the devices are opened: sets engine->device_map and engine->cache_devices.
frit_status frit_place_layers(frit_engine *engine, const frit_placement_options *options);
void frit_device_map_deinit(frit_device_map *places);
// frit_placement.wanted, with the engine as ctx.
int frit_placement_wanted(const void *engine, const frit_node *node);
// Names of devices are compared without case.
bool frit_device_has_name(const char *device, frit_str name);
// The device's number, or -1.
int frit_engine_find_device(const frit_engine *engine, frit_str name);
