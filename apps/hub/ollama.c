// SPDX-License-Identifier: MIT
// Models of ollama: its store, which ollama itself uses too, and its registry.
//
//     manifests/registry.ollama.ai/library/llama3.2/latest
//     blobs/sha256-HEX
#include "hub/disk.h"
#include "hub/http.h"
#include "hub/manifest.h"
#include "hub/name.h"
#include "hub/transfer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usual_host[] = "registry.ollama.ai";

static hub_status manifest_path(const char *store, const hub_name *name, hub_path *out)
{
    char host[256];
    snprintf(host, sizeof host, "%s", name->host[0] ? name->host : usual_host);
    return hub_path_set(out, "%s/manifests/%s/%s/%s", store, host, name->repo, name->revision);
}

static hub_status blob_path(const char *store, const hub_layer *layer, hub_path *out)
{
    return hub_path_set(out, "%s/blobs/sha256-%s", store, layer->sha256);
}

static hub_status read_manifest(const char *path, hub_manifest *out)
{
    char *text;
    size_t n;
    hub_status status = hub_read_text(path, HUB_MANIFEST_BYTES, &text, &n);
    if (status != HUB_OK) return status;
    status = hub_manifest_parse(out, text, n, path);
    free(text);
    return status;
}

// Finds the store that has the complete model.
static hub_status find_store(const hub_settings *settings, const hub_name *name, size_t *store, hub_manifest *manifest)
{
    hub_path path;
    for (size_t i = 0; i < settings->n_ollama; i++) {
        hub_status status = manifest_path(settings->ollama[i].text, name, &path);
        if (status != HUB_OK) return status;
        if (hub_file_bytes(path.text) == UINT64_MAX) continue;
        *store = i;
        status = read_manifest(path.text, manifest);
        if (status != HUB_OK) return status;
        const hub_layer *model = &manifest->layers[manifest->model];
        status = blob_path(settings->ollama[i].text, model, &path);
        if (status != HUB_OK) return status;
        if (hub_file_bytes(path.text) == model->n_bytes) return HUB_OK;
    }
    return hub_fail(HUB_E_NOT_FOUND, "ollama:%s:%s: is not in ollama's store %s", name->repo, name->revision,
                    settings->ollama[0].text);
}

static hub_status find(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    size_t store;
    hub_manifest manifest;
    const hub_status status = find_store(settings, name, &store, &manifest);
    return status == HUB_OK ? blob_path(settings->ollama[store].text, &manifest.layers[manifest.model], out) : status;
}

// ---------------------------------------------------------------------------------------- fetching

static hub_status registry_of(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    if (name->host[0]) return hub_path_set(out, "https://%s", name->host);
    *out = settings->ollama_registry;
    return HUB_OK;
}

static hub_status ask(const hub_pull *pull, const hub_name *name, hub_reply *reply, hub_manifest *manifest)
{
    hub_path url, registry;
    *reply = (hub_reply){0};
    if (pull->settings->offline)
        return hub_fail(HUB_E_NETWORK, "%s: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it",
                        pull->typed);
    hub_status status = registry_of(pull->settings, name, &registry);
    if (status == HUB_OK)
        status = hub_path_set(&url, "%s/v2/%s/manifests/%s", registry.text, name->repo, name->revision);
    if (status != HUB_OK) return status;
    const hub_request request = {.url = url.text,
                                 .accept = "application/vnd.docker.distribution.manifest.v2+json",
                                 .watch = &pull->watch,
                                 .max_bytes = HUB_MANIFEST_BYTES};
    status = hub_http_get(&request, reply);
    if (status != HUB_OK) return status;
    if (reply->head.status != 200)
        status = hub_http_refused(&reply->head, url.text, pull->typed, false);
    else
        status = hub_manifest_parse(manifest, reply->body ? reply->body : "", reply->n, pull->typed);
    if (status != HUB_OK) hub_reply_free(reply);
    return status;
}

static hub_status fetch_layer(const hub_pull *pull, const hub_name *name, const hub_layer *layer, uint64_t *done,
                              uint64_t total)
{
    hub_path url, registry, blob, part, lock;
    char what[128];
    const char *store = pull->settings->ollama[0].text;
    hub_status status = registry_of(pull->settings, name, &registry);
    if (status == HUB_OK)
        status = hub_path_set(&url, "%s/v2/%s/blobs/sha256:%s", registry.text, name->repo, layer->sha256);
    if (status == HUB_OK) status = blob_path(store, layer, &blob);
    if (status == HUB_OK) status = hub_path_set(&part, "%s.frit.part", blob.text);
    if (status == HUB_OK) status = hub_path_set(&lock, "%s/.locks/sha256-%s.lock", store, layer->sha256);
    if (status != HUB_OK) return status;
    const bool was_there = hub_file_bytes(blob.text) == layer->n_bytes;
    snprintf(what, sizeof what, "%.40s of %.60s", layer->kind, name->repo);
    const hub_transfer transfer = {.url = url.text,
                                   .part = part.text,
                                   .target = blob.text,
                                   .identity = layer->sha256,
                                   .n_bytes = layer->n_bytes,
                                   .digest = layer->sha256,
                                   .file = strcmp(layer->kind, "model") == 0 ? ".gguf" : "",
                                   .what = what,
                                   .typed = pull->typed,
                                   .n_connections = pull->n_connections,
                                   .before = *done,
                                   .total = total,
                                   .watch = &pull->watch};
    status = hub_fetch(&transfer, lock.text);
    if (status == HUB_OK && !was_there) *done += layer->n_bytes;
    return status;
}

static uint64_t missing_bytes(const hub_settings *settings, const hub_manifest *manifest, uint64_t *n_kept)
{
    uint64_t n_missing = 0;
    *n_kept = 0;
    for (size_t i = 0; i < manifest->n; i++) {
        hub_path blob, part;
        if (blob_path(settings->ollama[0].text, &manifest->layers[i], &blob) != HUB_OK) continue;
        if (hub_file_bytes(blob.text) == manifest->layers[i].n_bytes) continue;
        n_missing += manifest->layers[i].n_bytes;
        if (hub_path_set(&part, "%s.frit.part", blob.text) == HUB_OK) *n_kept += hub_used_bytes(part.text);
    }
    return n_missing;
}

// Reads the first line of the license, which is a separate layer.
static void read_license(const hub_settings *settings, size_t store, const hub_manifest *manifest, char out[80])
{
    snprintf(out, 80, "not stated");
    for (size_t i = 0; i < manifest->n; i++) {
        hub_path path;
        char *text;
        size_t n;
        if (strcmp(manifest->layers[i].kind, "license") != 0) continue;
        if (blob_path(settings->ollama[store].text, &manifest->layers[i], &path) != HUB_OK) continue;
        if (hub_read_text(path.text, 1 << 20, &text, &n) != HUB_OK) continue;
        const char *line = text + strspn(text, " \t\r\n");
        const size_t n_line = strcspn(line, "\r\n");
        snprintf(out, 80, "%.*s", (int)(n_line < 79 ? n_line : 79), line);
        free(text);
        return;
    }
}

static void announce(const hub_pull *pull, const hub_name *name, const hub_manifest *manifest, uint64_t n_missing)
{
    char text[1024], license[80];
    read_license(pull->settings, 0, manifest, license);
    snprintf(text, sizeof text, "%s:%s: %.1f MiB in %zu layers, %.1f MiB to fetch; license: %s", name->repo,
             name->revision, (double)manifest->n_bytes / (1 << 20), manifest->n, (double)n_missing / (1 << 20),
             license);
    pull->watch.say(pull->watch.ctx, text);
}

// Fetches small layers first, so that the license is shown before the large layer.
static hub_status fetch_layers(const hub_pull *pull, const hub_name *name, const hub_manifest *manifest)
{
    uint64_t done = 0, n_kept;
    const uint64_t n_missing = missing_bytes(pull->settings, manifest, &n_kept);
    hub_status status =
        hub_check_room(pull->settings->ollama[0].text, n_missing > n_kept ? n_missing - n_kept : 0, pull->typed);
    for (size_t i = 0; i < manifest->n && status == HUB_OK; i++)
        if (i != manifest->model) status = fetch_layer(pull, name, &manifest->layers[i], &done, n_missing);
    if (status == HUB_OK && n_missing > 0) announce(pull, name, manifest, n_missing);
    return status == HUB_OK ? fetch_layer(pull, name, &manifest->layers[manifest->model], &done, n_missing) : status;
}

static hub_status pull_model(const hub_pull *pull, const hub_name *name, hub_path *out)
{
    hub_reply reply;
    hub_manifest manifest;
    hub_path path;
    hub_status status = ask(pull, name, &reply, &manifest);
    if (status != HUB_OK) return status;
    status = fetch_layers(pull, name, &manifest);
    if (status == HUB_OK) status = manifest_path(pull->settings->ollama[0].text, name, &path);
    if (status == HUB_OK) status = hub_write_text(path.text, reply.body, reply.n);   // last: the model is complete
    if (status == HUB_OK) status = blob_path(pull->settings->ollama[0].text, &manifest.layers[manifest.model], out);
    hub_reply_free(&reply);
    return status;
}

// ---------------------------------------------------------------------------------------- listing

typedef struct listing {
    const char *store;
    size_t n_root;   // length of ".../manifests/"
    hub_each_fn each;
    void *ctx;
    int depth;
} listing;

// Lists the model of "host/namespace/model/tag".
static hub_status list_manifest(const listing *list, const char *path)
{
    hub_path rest, name, blob;
    hub_manifest manifest;
    hub_name parsed = {0};
    if (hub_path_set(&rest, "%s", path + list->n_root) != HUB_OK) return HUB_OK;
    char *tag = strrchr(rest.text, '/'), *repo = strchr(rest.text, '/');
    if (!tag || repo == tag) return HUB_OK;
    *tag++ = 0;
    *repo++ = 0;
    const bool is_usual = strcmp(rest.text, usual_host) == 0;
    if (is_usual && strncmp(repo, "library/", 8) == 0) repo += 8;
    if (hub_path_set(&name, "ollama:%s%s%s:%s", is_usual ? "" : rest.text, is_usual ? "" : "/", repo, tag) != HUB_OK)
        return HUB_OK;
    if (hub_parse_ollama(&parsed, name.text + 7) != HUB_OK || read_manifest(path, &manifest) != HUB_OK) return HUB_OK;
    const hub_layer *model = &manifest.layers[manifest.model];
    if (blob_path(list->store, model, &blob) == HUB_OK && hub_file_bytes(blob.text) == model->n_bytes)
        list->each(list->ctx, &(hub_model){name.text, blob.text, model->n_bytes, hub_file_changed(path)});
    return HUB_OK;
}

static hub_status list_entry(void *ctx, const char *path, const char *name, bool is_folder)
{
    listing *list = ctx;
    (void)name;
    if (!is_folder) return list->depth == 3 ? list_manifest(list, path) : HUB_OK;
    if (list->depth == 3) return HUB_OK;
    list->depth++;
    const hub_status status = hub_each_entry(path, list_entry, list);
    list->depth--;
    return status;
}

static hub_status each_model(const hub_settings *settings, hub_each_fn each, void *ctx)
{
    hub_status status = HUB_OK;
    for (size_t i = 0; i < settings->n_ollama && status == HUB_OK; i++) {
        hub_path root;
        status = hub_path_set(&root, "%s/manifests", settings->ollama[i].text);
        if (status != HUB_OK) break;
        listing list = {.store = settings->ollama[i].text, .n_root = strlen(root.text) + 1, .each = each, .ctx = ctx};
        status = hub_each_entry(root.text, list_entry, &list);
    }
    return status;
}

// ---------------------------------------------------------------------------------------- removing

typedef struct removal {
    hub_manifest *manifest;   // manifest to remove
    bool is_kept[HUB_MAX_LAYERS];
    bool is_unsure;   // a manifest cannot be read, so its blobs are unknown
} removal;

static hub_status keep_others(void *ctx, const char *path, const char *name, bool is_folder)
{
    removal *r = ctx;
    hub_manifest other;
    (void)name;
    if (is_folder) return hub_each_entry(path, keep_others, r);
    if (read_manifest(path, &other) != HUB_OK) {
        r->is_unsure = true;
        return HUB_OK;
    }
    for (size_t i = 0; i < r->manifest->n; i++)
        for (size_t j = 0; j < other.n; j++)
            r->is_kept[i] = r->is_kept[i] || strcmp(r->manifest->layers[i].sha256, other.layers[j].sha256) == 0;
    return HUB_OK;
}

static hub_status remove_model(const hub_settings *settings, const hub_name *name, uint64_t *freed)
{
    size_t store;
    hub_manifest manifest;
    hub_path path, root;
    uint64_t none = 0;
    removal r = {.manifest = &manifest};
    hub_status status = find_store(settings, name, &store, &manifest);
    if (status != HUB_OK) return status;
    const char *folder = settings->ollama[store].text;
    status = manifest_path(folder, name, &path);
    if (status == HUB_OK) status = hub_remove(path.text, &none);
    if (status == HUB_OK) status = hub_path_set(&root, "%s/manifests", folder);
    if (status == HUB_OK) status = hub_each_entry(root.text, keep_others, &r);
    for (size_t i = 0; i < manifest.n && status == HUB_OK && !r.is_unsure; i++) {
        if (r.is_kept[i]) continue;
        status = blob_path(folder, &manifest.layers[i], &path);
        if (status == HUB_OK) status = hub_remove(path.text, freed);
    }
    return status;
}

// ---------------------------------------------------------------------------------------- show

static hub_status show(const hub_pull *pull, const hub_name *name, json_t **out)
{
    hub_reply reply = {0};
    hub_manifest manifest;
    size_t store = 0;
    char license[80];
    hub_path path;
    const bool is_here = find_store(pull->settings, name, &store, &manifest) == HUB_OK;
    if (!is_here) {
        const hub_status status = ask(pull, name, &reply, &manifest);
        hub_reply_free(&reply);
        if (status != HUB_OK) return status;
    }
    const hub_layer *model = &manifest.layers[manifest.model];
    *out = json_pack("{s:I, s:s}", "bytes", (json_int_t)model->n_bytes, "sha256", model->sha256);
    if (!*out) return hub_fail(HUB_E_MEMORY, "out of memory");
    if (!is_here || blob_path(pull->settings->ollama[store].text, model, &path) != HUB_OK) return HUB_OK;
    read_license(pull->settings, store, &manifest, license);
    json_object_set_new(*out, "path", json_string(path.text));
    json_object_set_new(*out, "license", json_string(license));
    return HUB_OK;
}

const hub_source hub_source_ollama = {
    .prefix = "ollama:",
    .title = "ollama",
    .parse = hub_parse_ollama,
    .find = find,
    .pull = pull_model,
    .each = each_model,
    .remove = remove_model,
    .show = show,
};
