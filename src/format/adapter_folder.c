// SPDX-License-Identifier: MIT
// Folders of adapters: adapter_config.json and adapter_model.safetensors.
#include "format/adapter.h"
#include "format/json.h"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t max_config_bytes = 16 << 20;
static const char weights_name[] = "adapter_model.safetensors", config_name[] = "adapter_config.json";

static bool ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text), n_suffix = strlen(suffix);
    return n >= n_suffix && strcmp(text + n - n_suffix, suffix) == 0;
}

bool frit_adapter_is_peft(const char *path)
{
    return frit_path_get_kind(path) == FRIT_PATH_FOLDER || ends_with(path, weights_name);
}

static const char *join(frit_arena *arena, const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = frit_arena_alloc(arena, n, 1);
    if (path) snprintf(path, n, "%s/%s", folder, name);
    return path;
}

static frit_status open_weights(frit_adapter_file *file, const char *folder, const frit_checkpoint_options *options,
                                frit_file **out)
{
    frit_arena *arena = &file->ckpt->arena;
    const char *path = join(arena, folder, weights_name), *pickle = join(arena, folder, "adapter_model.bin");
    if (!path || !pickle) return frit_fail_memory(strlen(folder), "a path");
    if (frit_path_get_kind(path) != FRIT_PATH_FILE) {
        if (frit_path_get_kind(pickle) == FRIT_PATH_FILE)
            return frit_fail_file(
                FRIT_E_UNSUPPORTED,
                "%s: the adapter is a Python pickle (adapter_model.bin), which can run code and is never "
                "opened; convert it to safetensors",
                folder);
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s: has no %s", folder, weights_name);
    }
    FRIT_TRY(frit_file_open(out, path, options && options->no_mmap));
    return frit_checkpoint_add_file(file->ckpt, *out);
}

// The folder of an adapter, from its own path or the path of its weights.
static frit_status folder_of(const char *path, frit_buf *folder)
{
    const bool is_folder = frit_path_get_kind(path) == FRIT_PATH_FOLDER;
    const size_t n = strlen(path), n_file = is_folder ? 0 : sizeof weights_name - 1;
    frit_buf_printf(folder, "%.*s", (int)(n - n_file), path);
    while (folder->len > 1 && folder->data[folder->len - 1] == '/') folder->data[--folder->len] = 0;
    if (folder->len == 0) frit_buf_text(folder, ".");
    return folder->failed ? frit_fail_memory(n, "a path") : FRIT_OK;
}

// Reads adapter_config.json; *text is malloc'd.
static frit_status read_config_file(const char *folder, char **text, size_t *n)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/%s", folder, config_name);
    frit_status status = path.failed ? frit_fail_memory(path.len, "a path") : FRIT_OK;
    if (status == FRIT_OK && frit_path_get_kind(path.data) != FRIT_PATH_FILE)
        status =
            frit_fail_file(FRIT_E_NOT_FOUND, "%s: has no %s, expected a PEFT adapter's folder", folder, config_name);
    if (status == FRIT_OK) status = frit_file_read(path.data, max_config_bytes, text, n);
    frit_buf_free(&path);
    return status;
}

bool frit_adapter_has_config(const char *path)
{
    frit_buf folder = {0};
    char *text = NULL;
    size_t n;
    const bool has = folder_of(path, &folder) == FRIT_OK && read_config_file(folder.data, &text, &n) == FRIT_OK;
    free(text);
    frit_buf_free(&folder);
    return has;
}

frit_status frit_adapter_base_of(const char *path, frit_buf *out)
{
    frit_buf folder = {0};
    char *text = NULL;
    size_t n = 0;
    frit_status status = folder_of(path, &folder);
    if (status == FRIT_OK) status = read_config_file(folder.data, &text, &n);
    json_t *config = status == FRIT_OK ? frit_json_read(text, n, 0, NULL) : NULL;
    const char *base = json_string_value(json_object_get(config, "base_model_name_or_path"));
    if (base) frit_buf_text(out, base);
    if (out->failed) status = frit_fail_memory(n, "a path");
    json_decref(config);
    free(text);
    frit_buf_free(&folder);
    return status;
}

frit_status frit_adapter_open_peft(frit_adapter_file *file, const char *path, const frit_checkpoint *base,
                                   const frit_checkpoint_options *options)
{
    frit_buf folder = {0};
    char *config = NULL;
    size_t n_config;
    frit_status status = folder_of(path, &folder);
    if (status == FRIT_OK) status = frit_checkpoint_new(&file->ckpt, folder.data);
    if (status == FRIT_OK) status = read_config_file(folder.data, &config, &n_config);
    frit_buf_free(&folder);
    FRIT_TRY(status);
    const char *at = file->ckpt->path, *slash = strrchr(at, '/');
    frit_file *weights = NULL;
    file->name = slash ? slash + 1 : at;
    status = open_weights(file, at, options, &weights);
    if (status == FRIT_OK)
        status = frit_adapter_read_peft(file, base, config, n_config, frit_file_data(weights), frit_file_size(weights),
                                        options ? options->log : NULL);
    free(config);
    return status;
}
