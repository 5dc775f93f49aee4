// SPDX-License-Identifier: MIT
// engine/placement/placement.h: assigns layers to devices.
//
// Layers are assigned from the end: the output first, then the last layer, and the embedding at last. Each device other
// than the CPU takes layers as long as its memory holds their weights, their cache and the scratch of a step, or as
// many as options request. The CPU runs the rest. Options may name tensors whose readers run on another device.
#pragma once
#include "base/map.h"
#include "engine/kv/kv_layout.h"

typedef struct frit_device_map {
    int8_t *layers;   // [n]: devices of the embedding, each layer and the output; by depth + 1 (graph.h)
    int32_t n;
    frit_map tensors;   // tensor names placed by options -> device
} frit_device_map;

typedef struct frit_placement_options {
    const char *gpu_layers, *override_tensor;   // as in frit_engine_options
    frit_kv_shape shape;                        // of the cache on all devices
    frit_kv_room room;                          // capacity of the cache
} frit_placement_options;

// Sets engine->device_map and engine->cache_devices. Called when devices are open.
frit_status frit_place_layers(frit_engine *engine, const frit_placement_options *options);
void frit_device_map_deinit(frit_device_map *map);
// frit_placement.wanted; ctx is the engine.
int frit_placement_wanted(const void *engine, const frit_node *node);
// Compares the name of a device without case.
bool frit_device_has_name(const char *device, frit_str name);
// Returns the number of a device, or -1.
int frit_engine_find_device(const frit_engine *engine, frit_str name);
