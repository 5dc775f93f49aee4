// SPDX-License-Identifier: MIT
// Models of LM Studio.
#include "hub/studio.h"

#include "hub/disk.h"
#include "hub/name.h"
#include "hub/repo.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

hub_status hub_studio_find(const hub_settings *settings, const hub_name *name, hub_path *out)
{
    hub_status status = HUB_E_NOT_FOUND;
    for (size_t i = 0; i < settings->n_studio && status == HUB_E_NOT_FOUND; i++) {
        hub_path folder;
        hub_repo repo;
        hub_choice choice;
        status = hub_path_set(&folder, "%s/%s", settings->studio[i].text, name->repo);
        if (status == HUB_OK) status = hub_repo_read_folder(&repo, folder.text);
        if (status != HUB_OK) return status;
        status = hub_choose(&repo, name->part, 0, name->repo, &choice);
        if (status == HUB_OK) {
            status = hub_path_set(out, "%s%s%s", folder.text, choice.main[0] ? "/" : "", choice.main);
            hub_choice_free(&choice);
        }
        hub_repo_free(&repo);
    }
    return status;
}

// ---------------------------------------------------------------------------------------- listing

typedef struct listing {
    hub_each_fn each;
    void *ctx;
    const char *publisher;
} listing;

static hub_status list_model(void *ctx, const char *path, const char *model, bool is_folder)
{
    const listing *list = ctx;
    hub_repo repo;
    hub_variant *variants = NULL;
    size_t n = 0;
    if (!is_folder) return HUB_OK;
    hub_status status = hub_repo_read_folder(&repo, path);
    if (status != HUB_OK) return status;
    status = hub_repo_variants(&repo, &variants, &n);
    for (size_t i = 0; status == HUB_OK && i < n; i++) {
        hub_path name, file;
        const char *first = repo.files[variants[i].first].path;
        if (hub_path_set(&name, "lmstudio:%s/%s:%s", list->publisher, model, first) == HUB_OK &&
            hub_path_set(&file, "%s/%s", path, first) == HUB_OK && variants[i].n_files == variants[i].n_parts)
            list->each(list->ctx, &(hub_model){name.text, file.text, variants[i].n_bytes, hub_file_changed(file.text)});
    }
    hub_choice choice;
    hub_path name;
    if (status == HUB_OK && n == 0 && hub_choose(&repo, "", 0, "", &choice) == HUB_OK) {
        if (hub_path_set(&name, "lmstudio:%s/%s", list->publisher, model) == HUB_OK)
            list->each(list->ctx, &(hub_model){name.text, path, choice.n_bytes, hub_file_changed(path)});
        hub_choice_free(&choice);
    }
    free(variants);
    hub_repo_free(&repo);
    return status;
}

static hub_status list_publisher(void *ctx, const char *path, const char *name, bool is_folder)
{
    listing *list = ctx;
    if (!is_folder || name[0] == '.') return HUB_OK;
    list->publisher = name;
    return hub_each_entry(path, list_model, list);
}

static hub_status each_model(const hub_settings *settings, hub_each_fn each, void *ctx)
{
    listing list = {.each = each, .ctx = ctx};
    hub_status status = HUB_OK;
    for (size_t i = 0; i < settings->n_studio && status == HUB_OK; i++)
        status = hub_each_entry(settings->studio[i].text, list_publisher, &list);
    return status;
}

static hub_status show(const hub_pull *pull, const hub_name *name, json_t **out)
{
    hub_path path;
    const hub_status status = hub_studio_find(pull->settings, name, &path);
    if (status != HUB_OK) return status;
    *out = json_pack("{s:s}", "path", path.text);
    return *out ? HUB_OK : hub_fail(HUB_E_MEMORY, "out of memory");
}

const hub_source hub_source_studio = {
    .prefix = "lmstudio:",
    .title = "LM Studio",
    .parse = hub_parse_studio,
    .find = hub_studio_find,
    .each = each_model,
    .show = show,
};
