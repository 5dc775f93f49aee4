// SPDX-License-Identifier: MIT
// The files of a repository: from the hub's JSON, or from a folder.
#include "hub/repo.h"

#include "common/grow.h"
#include "hub/disk.h"
#include "hub/name.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hub_status hub_repo_add(hub_repo *repo, const char *path, uint64_t n_bytes, hub_file **out)
{
    if (repo->n == HUB_MAX_REPO_FILES)
        return hub_fail(HUB_E_DATA, "a repository has more than %d files", HUB_MAX_REPO_FILES);
    if (!APP_GROW(repo->files, repo->capacity, repo->n + 1)) return hub_fail(HUB_E_MEMORY, "out of memory");
    hub_file *file = &repo->files[repo->n];
    *file = (hub_file){.path = strdup(path), .n_bytes = n_bytes};
    if (!file->path) return hub_fail(HUB_E_MEMORY, "out of memory");
    repo->n++;
    if (out) *out = file;
    return HUB_OK;
}

void hub_repo_free(hub_repo *repo)
{
    for (size_t i = 0; i < repo->n; i++) free(repo->files[i].path);
    free(repo->files);
    *repo = (hub_repo){0};
}

// ---------------------------------------------------------------------------------------- the hub's answer

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

// Reads a license identifier: "apache-2.0". It may be in the model card or only among the tags.
static void read_license(hub_repo *repo, const json_t *root)
{
    const json_t *tags = json_object_get(root, "tags");
    const char *license = text_of(json_object_get(root, "cardData"), "license");
    const char *more = text_of(json_object_get(root, "cardData"), "license_name");
    if (strcmp(license, "other") == 0 && more[0]) license = more;
    for (size_t i = 0; !license[0] && i < json_array_size(tags); i++) {
        const char *tag = json_string_value(json_array_get(tags, i));
        if (tag && strncmp(tag, "license:", 8) == 0) license = tag + 8;
    }
    snprintf(repo->license, sizeof repo->license, "%s", license);
}

// Returns false if the size is invalid.
static bool read_size(const json_t *value, uint64_t *out)
{
    *out = UINT64_MAX;
    if (!value || json_is_null(value)) return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static hub_status read_file(hub_repo *repo, const json_t *item, const char *what)
{
    const char *path = json_string_value(json_object_get(item, "rfilename"));
    const json_t *lfs = json_object_get(item, "lfs");
    hub_file *file;
    uint64_t n_bytes;
    if (!path) return hub_fail(HUB_E_DATA, "%s: the server's list has a file without a name", what);
    if (!hub_is_safe_path(path))
        return hub_fail(
            HUB_E_DATA,
            "%s: the server names a file '%.100s', which may lie outside of the cache or has control characters", what,
            path);
    if (!read_size(json_object_get(item, "size"), &n_bytes))
        return hub_fail(HUB_E_DATA, "%s: the size of '%.100s' is not a number of bytes", what, path);
    const hub_status status = hub_repo_add(repo, path, n_bytes, &file);
    if (status != HUB_OK) return status;
    const char *sum = text_of(lfs, "sha256"), *blob = text_of(item, "blobId");
    if (hub_is_hex(sum, 64)) {   // the hub names blobs by this hash
        memcpy(file->digest, sum, 65);
        memcpy(file->etag, sum, 65);
    } else if (!json_is_object(lfs) && hub_is_hex(blob, 40)) {
        memcpy(file->digest, blob, 41);
        memcpy(file->etag, blob, 41);
    }
    return HUB_OK;
}

hub_status hub_repo_parse(hub_repo *repo, const char *json, size_t n, const char *what)
{
    json_error_t where;
    *repo = (hub_repo){0};
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &where);
    if (!root) return hub_fail(HUB_E_DATA, "%s: the server's answer is no JSON: %s", what, where.text);
    const json_t *files = json_object_get(root, "siblings"), *gated = json_object_get(root, "gated");
    const char *commit = text_of(root, "sha");
    hub_status status = HUB_OK;
    if (!hub_is_hex(commit, 40))
        status = hub_fail(HUB_E_DATA, "%s: the server's answer has no commit (\"sha\" with 40 digits)", what);
    else if (!json_is_array(files))
        status = hub_fail(HUB_E_DATA, "%s: the server's answer has no list of files (\"siblings\")", what);
    else
        memcpy(repo->commit, commit, 41);
    read_license(repo, root);
    repo->is_gated = gated && !json_is_false(gated) && !json_is_null(gated);
    for (size_t i = 0; status == HUB_OK && i < json_array_size(files); i++)
        status = read_file(repo, json_array_get(files, i), what);
    json_decref(root);
    if (status != HUB_OK) hub_repo_free(repo);
    return status;
}

// ---------------------------------------------------------------------------------------- folders

typedef struct folder_walk {
    hub_repo *repo;
    size_t n_root;   // length of the folder's path, with its '/'
    int depth;
} folder_walk;

static hub_status add_entry(void *ctx, const char *path, const char *name, bool is_folder)
{
    folder_walk *walk = ctx;
    hub_status status = HUB_OK;
    (void)name;
    if (is_folder && walk->depth < 8) {
        walk->depth++;
        status = hub_each_entry(path, add_entry, walk);
        walk->depth--;
        return status;
    }
    const uint64_t n_bytes = hub_file_bytes(path);   // of the target of a link; 0 if the target does not exist
    if (n_bytes == UINT64_MAX || !hub_is_safe_path(path + walk->n_root)) return HUB_OK;
    return hub_repo_add(walk->repo, path + walk->n_root, n_bytes, NULL);
}

hub_status hub_repo_read_folder(hub_repo *repo, const char *folder)
{
    folder_walk walk = {.repo = repo, .n_root = strlen(folder) + 1};
    *repo = (hub_repo){0};
    const hub_status status = hub_each_entry(folder, add_entry, &walk);
    if (status != HUB_OK) hub_repo_free(repo);
    return status;
}
