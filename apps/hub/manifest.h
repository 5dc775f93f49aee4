// SPDX-License-Identifier: MIT
// hub/manifest.h: the manifest of a model in ollama's registry: a list of blobs by their SHA-256, one of which is a
// GGUF file.
#pragma once
#include "hub/hub.h"

enum { HUB_MAX_LAYERS = 64, HUB_MANIFEST_BYTES = 1 << 20 };

typedef struct hub_layer {
    char sha256[65];
    char kind[64];   // "model", "template", "license", "params" ...; "config": not a layer
    uint64_t n_bytes;
} hub_layer;

typedef struct hub_manifest {
    hub_layer layers[HUB_MAX_LAYERS];
    size_t n;
    size_t model;       // index of the layer with the model
    uint64_t n_bytes;   // of all layers
} hub_manifest;

hub_status hub_manifest_parse(hub_manifest *out, const char *json, size_t n, const char *what);
