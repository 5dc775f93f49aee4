// SPDX-License-Identifier: MIT
// hub/hf_cache.h: the cache of the Hugging Face hub, as huggingface-hub lays it out:
//
//     models--ORG--REPO/refs/main                  a commit
//     models--ORG--REPO/blobs/ETAG                 a file's bytes
//     models--ORG--REPO/snapshots/COMMIT/FILE      a link to them
//     .locks/models--ORG--REPO/ETAG.lock
#pragma once
#include "hub/hub.h"

hub_status hub_cache_folder(const hub_settings *settings, const char *repo, hub_path *out);
hub_status hub_cache_blob(const hub_settings *settings, const char *repo, const char *etag, hub_path *out);
hub_status hub_cache_lock_path(const hub_settings *settings, const char *repo, const char *etag, hub_path *out);
hub_status hub_cache_snapshot(const hub_settings *settings, const char *repo, const char *commit, hub_path *out);
// Reads the commit of a branch or tag at the last download. HUB_E_NOT_FOUND: there was none.
hub_status hub_cache_read_ref(const hub_settings *settings, const char *repo, const char *revision, char commit[41]);
hub_status hub_cache_write_ref(const hub_settings *settings, const char *repo, const char *revision,
                               const char *commit);
// True if a file is in a snapshot without a blob: on disks without links, huggingface-hub stores files in snapshots.
bool hub_cache_has_copy(const hub_settings *settings, const char *repo, const char *commit, const char *file,
                        uint64_t n_bytes);
// Links a file of a snapshot to its blob.
hub_status hub_cache_place(const hub_settings *settings, const char *repo, const char *commit, const char *file,
                           const char *etag);

hub_status hub_hf_find(const hub_settings *settings, const hub_name *name, hub_path *out);
hub_status hub_hf_each(const hub_settings *settings, hub_each_fn each, void *ctx);
hub_status hub_hf_remove(const hub_settings *settings, const hub_name *name, uint64_t *freed);
hub_status hub_hf_pull(const hub_pull *pull, const hub_name *name, hub_path *out);
hub_status hub_hf_show(const hub_pull *pull, const hub_name *name, struct json_t **out);
