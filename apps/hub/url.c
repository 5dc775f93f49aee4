// SPDX-License-Identifier: MIT
// Files at an address, stored as HOST/HASH OF THE ADDRESS/FILE in frit's own folder, with a file that contains the
// address.
#include "hub/disk.h"
#include "hub/http.h"
#include "hub/name.h"
#include "hub/transfer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static hub_status folder_of(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    char host[256], hex[17];
    uint8_t sum[32];
    hub_host_of(name->url.text, host);
    for (char *c = host; *c; c++)
        if (*c == ':') *c = '_';
    if (!frit_sha256_of(name->url.text, strlen(name->url.text), sum)) return hub_fail(HUB_E_MEMORY, "out of memory");
    for (int i = 0; i < 8; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    if (!hub_is_word(host, strlen(host))) return hub_fail(HUB_E_NAME, "'%.200s' is not the name of a host", host);
    return hub_path_set(out, "%s/%s/%s", settings->url_cache.text, host, hex);
}

static hub_status find(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    hub_path folder;
    hub_status status = folder_of(settings, name, &folder);
    if (status == HUB_OK) status = hub_path_set(out, "%s/%s", folder.text, name->part);
    if (status != HUB_OK) return status;
    if (hub_file_bytes(out->text) != UINT64_MAX) return HUB_OK;
    return hub_fail(HUB_E_NOT_FOUND, "%s: is not on this machine", name->url.text);
}

// ---------------------------------------------------------------------------------------- fetching

// Finds size and etag by requesting the first byte, because some servers do not answer HEAD.
static hub_status probe(const hub_pull *pull, const hub_name *name, hub_head *head)
{
    hub_reply reply;
    const hub_request request = {.url = name->url.text, .watch = &pull->watch, .head_only = true};
    const hub_status status = hub_http_get(&request, &reply);
    if (status != HUB_OK) return status;
    *head = reply.head;
    hub_reply_free(&reply);
    if (head->status == 405 || head->status == 501) {   // the server does not support HEAD: the file is fetched in one
                                                        // piece
        head->n_bytes = UINT64_MAX;
        head->etag[0] = head->modified[0] = 0;
        return HUB_OK;
    }
    return head->status == 200 ? HUB_OK : hub_http_refused(head, name->url.text, pull->typed, false);
}

static void announce(const hub_pull *pull, const hub_name *name, uint64_t n_bytes)
{
    char text[1200], size[48] = "of unknown size";
    if (n_bytes != UINT64_MAX) snprintf(size, sizeof size, "%.1f MiB", (double)n_bytes / (1 << 20));
    snprintf(text, sizeof text, "%s: %s; license: not stated by an address", name->part, size);
    pull->watch.say(pull->watch.ctx, text);
}

static hub_status fetch(const hub_pull *pull, const hub_name *name, const hub_head *head, const char *folder,
                        const hub_path *out)
{
    hub_path part, lock, source;
    const char *identity = head->etag[0] == '"' ? head->etag : head->modified;
    hub_status status = hub_path_set(&part, "%s.part", out->text);
    if (status == HUB_OK) status = hub_path_set(&lock, "%s.lock", out->text);
    if (status == HUB_OK) status = hub_path_set(&source, "%s/address", folder);
    if (status == HUB_OK) status = hub_write_text(source.text, name->url.text, strlen(name->url.text));
    if (status != HUB_OK) return status;
    announce(pull, name, head->n_bytes);
    const hub_transfer transfer = {.url = name->url.text,
                                   .part = part.text,
                                   .target = out->text,
                                   .identity = identity,
                                   .n_bytes = head->n_bytes,
                                   .digest = pull->sha256 ? pull->sha256 : "",
                                   .file = name->part,
                                   .is_address = true,
                                   .what = name->part,
                                   .typed = pull->typed,
                                   .n_connections = pull->n_connections,
                                   .total = head->n_bytes,
                                   .watch = &pull->watch};
    return hub_fetch(&transfer, lock.text);
}

static hub_status pull_url(const hub_pull *pull, const hub_name *name, hub_path *out)
{
    hub_path folder, part;
    hub_head head;
    hub_status status = folder_of(pull->settings, name, &folder);
    if (status == HUB_OK && find(pull->settings, name, out) == HUB_OK) return HUB_OK;
    if (status == HUB_OK && pull->settings->offline)
        status =
            hub_fail(HUB_E_NETWORK, "%s: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it", pull->typed);
    if (status == HUB_OK) status = probe(pull, name, &head);
    if (status == HUB_OK) status = hub_path_set(out, "%s/%s", folder.text, name->part);
    if (status == HUB_OK) status = hub_path_set(&part, "%s.part", out->text);
    if (status == HUB_OK && head.n_bytes != UINT64_MAX) {
        const uint64_t n_kept = hub_used_bytes(part.text);
        status = hub_check_room(pull->settings->url_cache.text, head.n_bytes > n_kept ? head.n_bytes - n_kept : 0,
                                name->part);
    }
    return status == HUB_OK ? fetch(pull, name, &head, folder.text, out) : status;
}

// ---------------------------------------------------------------------------------------- listing, removing

typedef struct listing {
    const hub_settings *settings;
    hub_each_fn each;
    void *ctx;
} listing;

static hub_status list_address(void *ctx, const char *path, const char *entry, bool is_folder)
{
    const listing *list = ctx;
    hub_path source, file;
    hub_name name;
    char *url;
    size_t n;
    (void)entry;
    if (!is_folder || hub_path_set(&source, "%s/address", path) != HUB_OK) return HUB_OK;
    if (hub_read_text(source.text, HUB_PATH_BYTES - 1, &url, &n) != HUB_OK) return HUB_OK;
    if (hub_is_name(url) && hub_name_read(list->settings, url, &name) == HUB_OK &&
        find(list->settings, &name, &file) == HUB_OK)
        list->each(list->ctx, &(hub_model){url, file.text, hub_file_bytes(file.text), hub_file_changed(file.text)});
    free(url);
    return HUB_OK;
}

static hub_status list_host(void *ctx, const char *path, const char *name, bool is_folder)
{
    (void)name;
    return is_folder ? hub_each_entry(path, list_address, ctx) : HUB_OK;
}

static hub_status each_url(const hub_settings *settings, hub_each_fn each, void *ctx)
{
    listing list = {settings, each, ctx};
    return hub_each_entry(settings->url_cache.text, list_host, &list);
}

static hub_status each_none(const hub_settings *settings, hub_each_fn each, void *ctx)
{
    (void)settings, (void)each, (void)ctx;   // the row of https lists both
    return HUB_OK;
}

static hub_status remove_url(const hub_settings *settings, const hub_name *name, uint64_t *freed)
{
    hub_path folder;
    const hub_status status = folder_of(settings, name, &folder);
    if (status != HUB_OK) return status;
    if (!hub_is_folder(folder.text)) return hub_fail(HUB_E_NOT_FOUND, "%s: is not on this machine", name->url.text);
    return hub_remove(folder.text, freed);
}

static hub_status show(const hub_pull *pull, const hub_name *name, json_t **out)
{
    hub_path path;
    hub_head head;
    if (find(pull->settings, name, &path) == HUB_OK) {
        *out = json_pack("{s:s, s:I}", "path", path.text, "bytes", (json_int_t)hub_file_bytes(path.text));
    } else {
        const hub_status status = probe(pull, name, &head);
        if (status != HUB_OK) return status;
        *out = json_object();
        if (head.n_bytes != UINT64_MAX) json_object_set_new(*out, "bytes", json_integer((json_int_t)head.n_bytes));
    }
    return *out ? HUB_OK : hub_fail(HUB_E_MEMORY, "out of memory");
}

const hub_source hub_source_https = {
    .prefix = "https://",
    .title = "address",
    .parse = hub_parse_https,
    .find = find,
    .pull = pull_url,
    .each = each_url,
    .remove = remove_url,
    .show = show,
};

const hub_source hub_source_http = {
    .prefix = "http://",
    .title = "address, not encrypted",
    .parse = hub_parse_http,
    .find = find,
    .pull = pull_url,
    .each = each_none,
    .remove = remove_url,
    .show = show,
};
