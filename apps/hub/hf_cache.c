// SPDX-License-Identifier: MIT
// The cache of the Hugging Face hub.
#include "hub/hf_cache.h"

#include "hub/disk.h"
#include "hub/name.h"
#include "hub/repo.h"
#include "hub/studio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- paths

// Makes "models--org--repo".
static hub_status folder_name(const char *repo, hub_path *out)
{
    const char *slash = strchr(repo, '/');
    if (!slash) return hub_path_set(out, "models--%s", repo);
    return hub_path_set(out, "models--%.*s--%s", (int)(slash - repo), repo, slash + 1);
}

hub_status hub_cache_folder(const hub_settings *settings, const char *repo, hub_path *out)
{
    hub_path name;
    const hub_status status = folder_name(repo, &name);
    return status == HUB_OK ? hub_path_set(out, "%s/%s", settings->hub_cache.text, name.text) : status;
}

hub_status hub_cache_blob(const hub_settings *settings, const char *repo, const char *etag, hub_path *out)
{
    hub_path folder;
    const hub_status status = hub_cache_folder(settings, repo, &folder);
    return status == HUB_OK ? hub_path_set(out, "%s/blobs/%s", folder.text, etag) : status;
}

hub_status hub_cache_lock_path(const hub_settings *settings, const char *repo, const char *etag, hub_path *out)
{
    hub_path name;
    const hub_status status = folder_name(repo, &name);
    if (status != HUB_OK) return status;
    return hub_path_set(out, "%s/.locks/%s/%s.lock", settings->hub_cache.text, name.text, etag);
}

hub_status hub_cache_snapshot(const hub_settings *settings, const char *repo, const char *commit, hub_path *out)
{
    hub_path folder;
    const hub_status status = hub_cache_folder(settings, repo, &folder);
    return status == HUB_OK ? hub_path_set(out, "%s/snapshots/%s", folder.text, commit) : status;
}

static hub_status ref_path(const hub_settings *settings, const char *repo, const char *revision, hub_path *out)
{
    hub_path folder;
    const hub_status status = hub_cache_folder(settings, repo, &folder);
    return status == HUB_OK ? hub_path_set(out, "%s/refs/%s", folder.text, revision) : status;
}

// ---------------------------------------------------------------------------------------- refs and snapshots

hub_status hub_cache_read_ref(const hub_settings *settings, const char *repo, const char *revision, char commit[41])
{
    hub_path path;
    char *text;
    size_t n;
    if (hub_is_hex(revision, 40)) {
        memcpy(commit, revision, 41);
        return HUB_OK;
    }
    hub_status status = ref_path(settings, repo, revision, &path);
    if (status == HUB_OK) status = hub_read_text(path.text, 256, &text, &n);
    if (status != HUB_OK) return status;
    while (n > 0 && (unsigned char)text[n - 1] <= 32) text[--n] = 0;
    const bool good = hub_is_hex(text, 40);
    if (good) memcpy(commit, text, 41);
    free(text);
    return good ? HUB_OK : hub_fail(HUB_E_NOT_FOUND, "%s: is no commit of 40 digits", path.text);
}

hub_status hub_cache_write_ref(const hub_settings *settings, const char *repo, const char *revision, const char *commit)
{
    hub_path path;
    char before[41];
    if (hub_is_hex(revision, 40)) return HUB_OK;   // a commit needs no ref
    if (hub_cache_read_ref(settings, repo, revision, before) == HUB_OK && strcmp(before, commit) == 0) return HUB_OK;
    const hub_status status = ref_path(settings, repo, revision, &path);
    return status == HUB_OK ? hub_write_text(path.text, commit, strlen(commit)) : status;
}

hub_status hub_cache_place(const hub_settings *settings, const char *repo, const char *commit, const char *file,
                           const char *etag)
{
    hub_path snapshot, link, blob;
    hub_status status = hub_cache_snapshot(settings, repo, commit, &snapshot);
    if (status == HUB_OK) status = hub_path_set(&link, "%s/%s", snapshot.text, file);
    if (status == HUB_OK) status = hub_cache_blob(settings, repo, etag, &blob);
    return status == HUB_OK ? hub_link(blob.text, link.text) : status;
}

bool hub_cache_has_copy(const hub_settings *settings, const char *repo, const char *commit, const char *file,
                        uint64_t n_bytes)
{
    hub_path snapshot, path;
    if (n_bytes == UINT64_MAX || hub_cache_snapshot(settings, repo, commit, &snapshot) != HUB_OK) return false;
    if (hub_path_set(&path, "%s/%s", snapshot.text, file) != HUB_OK) return false;
    return !hub_is_link(path.text) && hub_file_bytes(path.text) == n_bytes;
}

// ---------------------------------------------------------------------------------------- finding

// Finds the model of a name in a snapshot.
static hub_status find_in(const char *folder, const hub_name *name, hub_path *out)
{
    hub_repo repo;
    hub_choice choice;
    hub_status status = hub_repo_read_folder(&repo, folder);
    if (status != HUB_OK) return status;
    status = hub_choose(&repo, name->part, 0, name->repo, &choice);
    if (status == HUB_OK) {
        status = hub_path_set(out, "%s%s%s", folder, choice.main[0] ? "/" : "", choice.main);
        hub_choice_free(&choice);
    }
    hub_repo_free(&repo);
    return status;
}

hub_status hub_hf_find(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    char commit[41];
    hub_path snapshot;
    hub_status status = hub_cache_read_ref(settings, name->repo, name->revision, commit);
    if (status == HUB_OK) status = hub_cache_snapshot(settings, name->repo, commit, &snapshot);
    if (status == HUB_OK) status = find_in(snapshot.text, name, out);
    if (status == HUB_E_NOT_FOUND && strcmp(name->revision, "main") == 0)
        status = hub_studio_find(settings, name, out);   // the same files, fetched by LM Studio
    return status;
}

// ---------------------------------------------------------------------------------------- listing

typedef struct listing {
    const hub_settings *settings;
    hub_each_fn each;
    void *ctx;
    hub_path repo;        // "org/repo"
    hub_path snapshots;   // its folder
} listing;

// Searches the branch or tag of a commit, "main" before others; "" if there is no branch or tag.
typedef struct ref_search {
    const char *commit, *root;
    hub_path found;
} ref_search;

static hub_status look_at_ref(void *ctx, const char *path, const char *name, bool is_folder)
{
    ref_search *search = ctx;
    char *text;
    size_t n;
    (void)name;
    if (is_folder) return hub_each_entry(path, look_at_ref, search);
    if (hub_read_text(path, 256, &text, &n) != HUB_OK) return HUB_OK;
    const char *ref = path + strlen(search->root) + 1;
    if (strncmp(text, search->commit, 40) == 0 && (!search->found.text[0] || strcmp(ref, "main") == 0))
        hub_path_set(&search->found, "%s", ref);
    free(text);
    return HUB_OK;
}

static hub_status find_ref(const listing *list, const char *commit, hub_path *out)
{
    hub_path refs;
    ref_search search = {.commit = commit, .root = refs.text};
    const hub_status status =
        hub_path_set(&refs, "%.*srefs", (int)(strlen(list->snapshots.text) - 9), list->snapshots.text);
    if (status == HUB_OK) hub_each_entry(refs.text, look_at_ref, &search);
    if (!search.found.text[0]) hub_path_set(&search.found, "%s", commit);
    *out = search.found;
    return status;
}

static void give(const listing *list, const char *ref, const char *folder, const hub_repo *repo, const char *part,
                 const char *file, uint64_t n_bytes)
{
    hub_path name, path;
    const bool is_main = strcmp(ref, "main") == 0;
    (void)repo;
    if (hub_path_set(&name, "hf:%s%s%s%s%s", list->repo.text, is_main ? "" : "@", is_main ? "" : ref,
                     part[0] ? ":" : "", part) != HUB_OK)
        return;
    if (hub_path_set(&path, "%s%s%s", folder, file[0] ? "/" : "", file) != HUB_OK) return;
    list->each(list->ctx, &(hub_model){name.text, path.text, n_bytes, hub_file_changed(path.text)});
}

// Lists every GGUF file, by quantization if only one file has it, or the folder of safetensors.
static hub_status list_snapshot(void *ctx, const char *folder, const char *commit, bool is_folder)
{
    const listing *list = ctx;
    hub_repo repo;
    hub_path ref;
    hub_variant *variants = NULL;
    size_t n = 0;
    if (!is_folder || !hub_is_hex(commit, 40)) return HUB_OK;
    hub_status status = find_ref(list, commit, &ref);
    if (status == HUB_OK) status = hub_repo_read_folder(&repo, folder);
    if (status != HUB_OK) return status;
    status = hub_repo_variants(&repo, &variants, &n);
    for (size_t i = 0; status == HUB_OK && i < n; i++) {
        const hub_variant *v = &variants[i];
        size_t n_alike = 0;
        for (size_t j = 0; j < n; j++) n_alike += strcmp(variants[j].quant, v->quant) == 0;
        const char *file = repo.files[v->first].path;
        if (v->n_files == v->n_parts)
            give(list, ref.text, folder, &repo, v->quant[0] && n_alike == 1 ? v->quant : file, file, v->n_bytes);
    }
    hub_choice choice;
    if (status == HUB_OK && n == 0 && hub_choose(&repo, "", 0, "", &choice) == HUB_OK) {
        give(list, ref.text, folder, &repo, "", "", choice.n_bytes);
        hub_choice_free(&choice);
    }
    free(variants);
    hub_repo_free(&repo);
    return status;
}

static hub_status list_repo(void *ctx, const char *path, const char *name, bool is_folder)
{
    listing *list = ctx;
    if (!is_folder || strncmp(name, "models--", 8) != 0) return HUB_OK;
    hub_status status = hub_path_set(&list->repo, "%s", name + 8);
    char *split = strstr(list->repo.text, "--");
    if (split) {
        *split = '/';
        memmove(split + 1, split + 2, strlen(split + 2) + 1);
    }
    if (status == HUB_OK) status = hub_path_set(&list->snapshots, "%s/snapshots", path);
    return status == HUB_OK ? hub_each_entry(list->snapshots.text, list_snapshot, list) : status;
}

hub_status hub_hf_each(const hub_settings *settings, hub_each_fn each, void *ctx)
{
    listing list = {.settings = settings, .each = each, .ctx = ctx};
    return hub_each_entry(settings->hub_cache.text, list_repo, &list);
}

// ---------------------------------------------------------------------------------------- removing

// Removes blobs without a link from a snapshot, and parts of downloads.
typedef struct sweep {
    hub_path snapshots;
    const char *blob;   // path of the blob whose links are searched
    bool is_used;
    bool all_parts;   // remove incomplete files
    uint64_t *freed;
} sweep;

static hub_status look_for_link(void *ctx, const char *path, const char *name, bool is_folder)
{
    sweep *s = ctx;
    (void)name;
    if (is_folder) return hub_is_link(path) ? HUB_OK : hub_each_entry(path, look_for_link, s);
    s->is_used = s->is_used || hub_is_same_file(path, s->blob);   // by a link, or by a second name
    return HUB_OK;
}

static hub_status sweep_blob(void *ctx, const char *path, const char *name, bool is_folder)
{
    sweep *s = ctx;
    if (is_folder) return HUB_OK;
    if (strchr(name, '.')) return HUB_OK;   // part of another download
    s->blob = path;
    s->is_used = false;
    hub_each_entry(s->snapshots.text, look_for_link, s);
    return s->is_used ? HUB_OK : hub_remove(path, s->freed);
}

// Removes the files of one variant, and blobs that no snapshot needs any more.
static hub_status remove_files(const hub_path *repo_folder, const char *folder, const hub_repo *repo,
                               const hub_choice *choice, uint64_t *freed)
{
    hub_path path, blobs;
    sweep s = {.freed = freed};
    uint64_t links = 0;
    hub_status status = HUB_OK;
    for (size_t i = 0; status == HUB_OK && i < choice->n_files; i++) {
        status = hub_path_set(&path, "%s/%s", folder, repo->files[choice->files[i]].path);
        if (status == HUB_OK) status = hub_remove(path.text, &links);
    }
    *freed += links;
    if (status == HUB_OK) status = hub_path_set(&s.snapshots, "%s/snapshots", repo_folder->text);
    if (status == HUB_OK) status = hub_path_set(&blobs, "%s/blobs", repo_folder->text);
    return status == HUB_OK ? hub_each_entry(blobs.text, sweep_blob, &s) : status;
}

static hub_status remove_repo(const hub_settings *settings, const char *repo, const hub_path *folder, uint64_t *freed)
{
    hub_path locks, name;
    uint64_t none = 0;
    hub_status status = hub_remove(folder->text, freed);
    if (status == HUB_OK) status = folder_name(repo, &name);
    if (status == HUB_OK) status = hub_path_set(&locks, "%s/.locks/%s", settings->hub_cache.text, name.text);
    return status == HUB_OK ? hub_remove(locks.text, &none) : status;
}

hub_status hub_hf_remove(const hub_settings *settings, const hub_name *name, uint64_t *freed)
{
    char commit[41];
    hub_path folder, snapshot;
    hub_repo repo;
    hub_choice choice;
    hub_status status = hub_cache_folder(settings, name->repo, &folder);
    if (status == HUB_OK && !hub_is_folder(folder.text))
        return hub_fail(HUB_E_NOT_FOUND, "hf:%s: is not in the cache %s", name->repo, settings->hub_cache.text);
    if (status == HUB_OK && !name->part[0]) return remove_repo(settings, name->repo, &folder, freed);
    if (status == HUB_OK) status = hub_cache_read_ref(settings, name->repo, name->revision, commit);
    if (status == HUB_OK) status = hub_cache_snapshot(settings, name->repo, commit, &snapshot);
    if (status == HUB_OK) status = hub_repo_read_folder(&repo, snapshot.text);
    if (status != HUB_OK) return status;
    status = hub_choose(&repo, name->part, 0, name->repo, &choice);
    if (status == HUB_OK) {
        status = remove_files(&folder, snapshot.text, &repo, &choice, freed);
        hub_choice_free(&choice);
    }
    hub_repo_free(&repo);
    hub_path left;
    if (status == HUB_OK && hub_path_set(&left, "%s", snapshot.text) == HUB_OK &&
        hub_repo_read_folder(&repo, left.text) == HUB_OK) {
        const bool is_empty = repo.n == 0;
        hub_repo_free(&repo);
        if (is_empty) status = remove_repo(settings, name->repo, &folder, freed);
    }
    return status;
}
