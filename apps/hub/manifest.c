// SPDX-License-Identifier: MIT
// Reads manifests of ollama.
#include "hub/manifest.h"

#include "hub/name.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static hub_status add(hub_manifest *out, const json_t *item, bool is_config, const char *what)
{
    const char *digest = json_string_value(json_object_get(item, "digest"));
    const char *type = json_string_value(json_object_get(item, "mediaType"));
    const json_t *size = json_object_get(item, "size");
    if (out->n == HUB_MAX_LAYERS) return hub_fail(HUB_E_DATA, "%s: has more than %d layers", what, HUB_MAX_LAYERS);
    if (!digest || strncmp(digest, "sha256:", 7) != 0 || !hub_is_hex(digest + 7, 64))
        return hub_fail(HUB_E_DATA, "%s: a layer's digest is '%.100s', expected sha256: and 64 digits", what,
                        digest ? digest : "");
    if (!json_is_integer(size) || json_integer_value(size) < 0 || json_integer_value(size) > (json_int_t)1 << 50)
        return hub_fail(HUB_E_DATA, "%s: a layer's size is not a number of bytes", what);
    hub_layer *layer = &out->layers[out->n++];
    memcpy(layer->sha256, digest + 7, 65);
    layer->n_bytes = (uint64_t)json_integer_value(size);
    out->n_bytes += layer->n_bytes;
    const char *dot = type ? strrchr(type, '.') : NULL;
    snprintf(layer->kind, sizeof layer->kind, "%s", is_config ? "config" : dot ? dot + 1 : "");
    return HUB_OK;
}

hub_status hub_manifest_parse(hub_manifest *out, const char *json, size_t n, const char *what)
{
    json_error_t where;
    size_t n_models = 0;
    *out = (hub_manifest){0};
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &where);
    if (!root) return hub_fail(HUB_E_DATA, "%s: the manifest is no JSON: %s", what, where.text);
    const json_t *layers = json_object_get(root, "layers"), *config = json_object_get(root, "config");
    hub_status status = HUB_OK;
    if (!json_is_array(layers)) status = hub_fail(HUB_E_DATA, "%s: the manifest has no layers", what);
    for (size_t i = 0; status == HUB_OK && i < json_array_size(layers); i++)
        status = add(out, json_array_get(layers, i), false, what);
    for (size_t i = 0; status == HUB_OK && i < out->n; i++) {
        if (strcmp(out->layers[i].kind, "model") != 0) continue;
        out->model = i;
        n_models++;
    }
    if (status == HUB_OK && config) status = add(out, config, true, what);
    if (status == HUB_OK && n_models != 1)
        status =
            hub_fail(HUB_E_DATA, "%s: the manifest has %zu models, expected 1 (frit reads GGUF files)", what, n_models);
    json_decref(root);
    return status;
}
