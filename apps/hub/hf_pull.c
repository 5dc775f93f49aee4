// SPDX-License-Identifier: MIT
// The Hugging Face hub: lists files and fetches them into its cache.
#include "hub/disk.h"
#include "hub/hf_cache.h"
#include "hub/http.h"
#include "hub/name.h"
#include "hub/repo.h"
#include "hub/transfer.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER = 32 << 20 };

// Escapes "folder/a b.gguf" as a part of an address.
static hub_status escape(const char *text, bool slash_too, hub_path *out)
{
    size_t n = 0;
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (n + 4 > sizeof out->text) return hub_fail(HUB_E_NAME, "a name is too long for an address");
        if (isalnum(c) || strchr("-._~", c) || (c == '/' && !slash_too))
            out->text[n++] = (char)c;
        else
            n += (size_t)snprintf(out->text + n, 4, "%%%02X", c);
    }
    out->text[n] = 0;
    return HUB_OK;
}

static const char *token_of(const hub_pull *pull)
{
    return pull->settings->hub_token[0] ? pull->settings->hub_token : NULL;
}

static hub_status ask(const hub_pull *pull, const hub_name *name, hub_repo *repo)
{
    hub_path url, revision;
    hub_reply reply;
    const hub_settings *settings = pull->settings;
    if (settings->offline)
        return hub_fail(HUB_E_NETWORK,
                        "%s: is not on this machine, or not whole, and HF_HUB_OFFLINE forbids to fetch it",
                        pull->typed);
    hub_status status = escape(name->revision, true, &revision);
    if (status == HUB_OK)
        status = hub_path_set(&url, "%s/api/models/%s/revision/%s?blobs=true", settings->hub_endpoint.text, name->repo,
                              revision.text);
    if (status != HUB_OK) return status;
    const hub_request request = {
        .url = url.text, .token = token_of(pull), .watch = &pull->watch, .max_bytes = MAX_ANSWER};
    status = hub_http_get(&request, &reply);
    if (status != HUB_OK) return status;
    if (reply.head.status != 200)
        status = hub_http_refused(&reply.head, url.text, pull->typed, token_of(pull) != NULL);
    else
        status = hub_repo_parse(repo, reply.body ? reply.body : "", reply.n, pull->typed);
    hub_reply_free(&reply);
    return status;
}

static hub_status file_url(const hub_pull *pull, const hub_name *name, const hub_repo *repo, const char *file,
                           hub_path *out)
{
    hub_path escaped;
    const hub_status status = escape(file, false, &escaped);
    if (status != HUB_OK) return status;
    return hub_path_set(out, "%s/%s/resolve/%s/%s", pull->settings->hub_endpoint.text, name->repo, repo->commit,
                        escaped.text);
}

// A mirror's list may lack sizes and hashes. Then they are requested for the file, as huggingface-hub does for each
// file.
static hub_status ask_file(const hub_pull *pull, const char *url, hub_file *file)
{
    hub_reply reply;
    char etag[136];
    const hub_request request = {
        .url = url, .token = token_of(pull), .watch = &pull->watch, .head_only = true, .follows_near = true};
    if (file->etag[0] && file->n_bytes != UINT64_MAX) return HUB_OK;
    hub_status status = hub_http_get(&request, &reply);
    if (status != HUB_OK) return status;
    const hub_head *head = &reply.head;
    const char *said = head->linked_etag[0] ? head->linked_etag : head->etag;
    const bool is_near = head->status == 200;
    if (head->status >= 400)
        status = hub_http_refused(head, url, file->path, token_of(pull) != NULL);
    else if (!hub_read_etag(said, etag, sizeof etag) || !hub_is_etag(etag))
        status = hub_fail(HUB_E_DATA, "%s: the server gives no etag that can name a file: '%.100s'", file->path, said);
    if (status == HUB_OK) {
        snprintf(file->etag, sizeof file->etag, "%s", etag);
        if (hub_is_hex(etag, 64)) memcpy(file->digest, etag, 65);
        file->n_bytes = head->linked_bytes != UINT64_MAX ? head->linked_bytes : is_near ? head->n_bytes : UINT64_MAX;
    }
    hub_reply_free(&reply);
    return status;
}

// ---------------------------------------------------------------------------------------- what is to be fetched

static void size_text(uint64_t n_bytes, char out[32])
{
    if (n_bytes < (uint64_t)1 << 30)
        snprintf(out, 32, "%.1f MiB", (double)n_bytes / (1 << 20));
    else
        snprintf(out, 32, "%.1f GiB", (double)n_bytes / (1 << 30));
}

static void announce(const hub_pull *pull, const hub_name *name, const hub_repo *repo, const hub_choice *choice,
                     uint64_t n_missing)
{
    char text[1024], all[32], missing[32];
    const hub_watch *watch = &pull->watch;
    size_text(choice->n_bytes, all);
    size_text(n_missing, missing);
    if (choice->why[0]) watch->say(watch->ctx, choice->why);
    snprintf(text, sizeof text, "%s, %.300s: %s in %zu file%s, %s to fetch; license: %s%s", name->repo,
             choice->main[0] ? choice->main : "safetensors", all, choice->n_files, choice->n_files == 1 ? "" : "s",
             missing, repo->license[0] ? repo->license : "not stated",
             repo->is_gated ? " (its terms must be accepted on its page)" : "");
    watch->say(watch->ctx, text);
}

typedef struct job {
    const hub_pull *pull;
    const hub_name *name;
    hub_repo *repo;
    const hub_choice *choice;
    uint64_t done, total;
} job;

static hub_status blob_paths(const job *j, const hub_file *file, hub_path *blob, hub_path *part, hub_path *lock)
{
    const hub_settings *settings = j->pull->settings;
    hub_status status = hub_cache_blob(settings, j->name->repo, file->etag, blob);
    if (status == HUB_OK) status = hub_path_set(part, "%s.frit.part", blob->text);
    return status == HUB_OK ? hub_cache_lock_path(settings, j->name->repo, file->etag, lock) : status;
}

// Finds etags and sizes of all requested files, and the missing bytes. A part counts as missing although the disk has
// room for it already, because this is only known when it is opened.
static hub_status look_at_files(job *j, uint64_t *n_missing)
{
    *n_missing = 0;
    j->total = 0;
    for (size_t i = 0; i < j->choice->n_files; i++) {
        hub_file *file = &j->repo->files[j->choice->files[i]];
        hub_path url, blob, part, lock;
        hub_status status = file_url(j->pull, j->name, j->repo, file->path, &url);
        if (status == HUB_OK) status = ask_file(j->pull, url.text, file);
        if (status == HUB_OK) status = blob_paths(j, file, &blob, &part, &lock);
        if (status != HUB_OK) return status;
        if (file->n_bytes == UINT64_MAX || hub_file_bytes(blob.text) == file->n_bytes) continue;
        if (hub_cache_has_copy(j->pull->settings, j->name->repo, j->repo->commit, file->path, file->n_bytes)) continue;
        if (*n_missing + file->n_bytes < *n_missing)
            return hub_fail(HUB_E_DATA, "%s: the sizes of the files together exceed 2^64 bytes", j->pull->typed);
        *n_missing += file->n_bytes;
    }
    j->total = *n_missing;
    return HUB_OK;
}

static uint64_t bytes_on_disk(const job *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < j->choice->n_files; i++) {
        hub_path blob, part, lock;
        if (blob_paths(j, &j->repo->files[j->choice->files[i]], &blob, &part, &lock) != HUB_OK) continue;
        sum += hub_used_bytes(part.text);
    }
    return sum;
}

static hub_status fetch_file(job *j, hub_file *file)
{
    hub_path url, blob, part, lock;
    if (hub_cache_has_copy(j->pull->settings, j->name->repo, j->repo->commit, file->path, file->n_bytes)) return HUB_OK;
    hub_status status = file_url(j->pull, j->name, j->repo, file->path, &url);
    if (status == HUB_OK) status = blob_paths(j, file, &blob, &part, &lock);
    if (status != HUB_OK) return status;
    const bool was_there = hub_file_bytes(blob.text) == file->n_bytes;
    const hub_transfer transfer = {.url = url.text,
                                   .token = token_of(j->pull),
                                   .part = part.text,
                                   .target = blob.text,
                                   .identity = file->etag,
                                   .n_bytes = file->n_bytes,
                                   .digest = file->digest,
                                   .file = file->path,
                                   .what = file->path,
                                   .typed = j->pull->typed,
                                   .n_connections = j->pull->n_connections,
                                   .before = j->done,
                                   .total = j->total,
                                   .watch = &j->pull->watch};
    status = hub_fetch(&transfer, lock.text);
    if (status == HUB_OK && !was_there && file->n_bytes != UINT64_MAX) j->done += file->n_bytes;
    if (status == HUB_OK)
        status = hub_cache_place(j->pull->settings, j->name->repo, j->repo->commit, file->path, file->etag);
    return status;
}

static hub_status tag_cache(const hub_settings *settings)
{
    static const char text[] = "Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag.\n"
                               "# For information about cache directory tags, see: https://bford.info/cachedir/\n";
    hub_path path;
    const hub_status status = hub_path_set(&path, "%s/CACHEDIR.TAG", settings->hub_cache.text);
    if (status != HUB_OK || hub_file_bytes(path.text) != UINT64_MAX) return status;
    return hub_write_text(path.text, text, sizeof text - 1);
}

static hub_status fetch_all(job *j, hub_path *out)
{
    uint64_t n_missing;
    const hub_settings *settings = j->pull->settings;
    hub_path snapshot;
    hub_status status = look_at_files(j, &n_missing);
    if (status != HUB_OK) return status;
    if (n_missing > 0) announce(j->pull, j->name, j->repo, j->choice, n_missing);
    const uint64_t n_kept = bytes_on_disk(j);
    status = hub_check_room(settings->hub_cache.text, n_missing > n_kept ? n_missing - n_kept : 0, j->pull->typed);
    if (status == HUB_OK) status = tag_cache(settings);
    for (size_t i = 0; status == HUB_OK && i < j->choice->n_files; i++)
        status = fetch_file(j, &j->repo->files[j->choice->files[i]]);
    // The ref is written last, so that it never refers to an incomplete snapshot.
    if (status == HUB_OK) status = hub_cache_write_ref(settings, j->name->repo, j->name->revision, j->repo->commit);
    if (status == HUB_OK) status = hub_cache_snapshot(settings, j->name->repo, j->repo->commit, &snapshot);
    if (status != HUB_OK) return status;
    return hub_path_set(out, "%s%s%s", snapshot.text, j->choice->main[0] ? "/" : "", j->choice->main);
}

hub_status hub_hf_pull(const hub_pull *pull, const hub_name *name, hub_path *out)
{
    hub_repo repo;
    hub_choice choice;
    hub_status status = ask(pull, name, &repo);
    if (status != HUB_OK) return status;
    status = hub_choose(&repo, name->part, pull->room_bytes, pull->typed, &choice);
    if (status == HUB_OK) {
        job j = {.pull = pull, .name = name, .repo = &repo, .choice = &choice};
        status = fetch_all(&j, out);
        hub_choice_free(&choice);
    }
    hub_repo_free(&repo);
    return status;
}

// ---------------------------------------------------------------------------------------- show

static json_t *variants_json(const hub_settings *settings, const hub_name *name, const hub_repo *repo)
{
    hub_variant *variants;
    size_t n;
    json_t *list = json_array();
    if (hub_repo_variants(repo, &variants, &n) != HUB_OK) n = 0;
    for (size_t i = 0; i < n; i++) {
        hub_path path;
        hub_name one = *name;
        snprintf(one.part, sizeof one.part, "%s", repo->files[variants[i].first].path);
        const bool is_here = hub_hf_find(settings, &one, &path) == HUB_OK;
        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:b}", "quantization", variants[i].quant, "file",
                                              repo->files[variants[i].first].path, "bytes",
                                              (json_int_t)variants[i].n_bytes, "here", is_here));
    }
    free(variants);
    return list;
}

hub_status hub_hf_show(const hub_pull *pull, const hub_name *name, json_t **out)
{
    hub_path path;
    hub_repo repo;
    const bool is_here = hub_hf_find(pull->settings, name, &path) == HUB_OK;
    json_t *json = json_object();
    if (is_here) json_object_set_new(json, "path", json_string(path.text));
    const hub_status status = ask(pull, name, &repo);
    if (status == HUB_OK) {
        hub_choice choice;
        json_object_set_new(json, "commit", json_string(repo.commit));
        json_object_set_new(json, "license", json_string(repo.license[0] ? repo.license : "not stated"));
        json_object_set_new(json, "variants", variants_json(pull->settings, name, &repo));
        if (hub_choose(&repo, name->part, pull->room_bytes, pull->typed, &choice) == HUB_OK) {
            json_object_set_new(json, "file", json_string(choice.main[0] ? choice.main : "safetensors"));
            json_object_set_new(json, "bytes", json_integer((json_int_t)choice.n_bytes));
            if (choice.why[0]) json_object_set_new(json, "choice", json_string(choice.why));
            hub_choice_free(&choice);
        } else {
            json_object_set_new(json, "choice", json_string(hub_error()));
        }
        hub_repo_free(&repo);
    } else if (is_here) {
        json_object_set_new(json, "server", json_string(hub_error()));
    }
    if (status == HUB_OK || is_here) {
        *out = json;
        return HUB_OK;
    }
    json_decref(json);
    return status;
}

const hub_source hub_source_hf = {
    .prefix = "hf:",
    .title = "Hugging Face hub",
    .parse = hub_parse_hf,
    .find = hub_hf_find,
    .pull = hub_hf_pull,
    .each = hub_hf_each,
    .remove = hub_hf_remove,
    .show = hub_hf_show,
};
