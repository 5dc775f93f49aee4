// SPDX-License-Identifier: MIT
// A Hugging Face folder as a checkpoint: config.json gives the keys, the shards give the tensors, both under the names
// that a GGUF file would have.
//
//     folder/config.json                        hf_config.c, hf_rope.c, and the family's rows
//     folder/model.safetensors, or an index     safetensors_folder.c
//
// The files of the tokenizer are not read here: they do not become keys (text/vocab_file.h).
#include "format/hf.h"
#include "format/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t max_config_bytes = 16 << 20;

typedef struct folder {
    frit_hf hf;
    const frit_checkpoint_options *options;
    size_t n_unplaced;
    const char *unplaced;   // the first tensor that the family has no place for
} folder;

// ---------------------------------------------------------------------------------------- names

// Matches "model.layers.12.mlp.up_proj.weight" with "model.layers.*.mlp.up_proj"; the rest is "weight" or "bias".
static bool match(const char *name, const char *pattern, int64_t *layer, const char **part)
{
    *layer = -1;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*name++ != *pattern) return false;
            continue;
        }
        if (*name < '0' || *name > '9' || (*name == '0' && name[1] >= '0' && name[1] <= '9')) return false;
        for (*layer = 0; *name >= '0' && *name <= '9' && *layer < 1000000; name++) *layer = 10 * *layer + (*name - '0');
    }
    if (*name != '.') return false;
    *part = name + 1;
    return true;
}

static void write_gguf_name(char *text, size_t size, const char *pattern, int64_t layer, const char *part)
{
    const char *star = strchr(pattern, '*');
    if (!star)
        snprintf(text, size, "%s.%s", pattern, part);
    else
        snprintf(text, size, "%.*s%" PRId64 "%s.%s", (int)(star - pattern), pattern, layer, star + 1, part);
}

enum { NAME_BYTES = 128 };

// ---------------------------------------------------------------------------------------- tensors

static frit_status has_bias(const frit_hf *hf, const frit_hf_tensor *row, bool *out)
{
    *out = row->bias_if && strcmp(row->bias_if, FRIT_HF_ALWAYS) == 0;
    if (!row->bias_if || *out) return FRIT_OK;
    return frit_hf_get_flag(hf, hf->config, "", row->bias_if, out);
}

// The row for a tensor's name, or NULL.
static frit_status find_row(const frit_hf *hf, const char *name, const frit_hf_tensor **row, int64_t *layer,
                            const char **part)
{
    for (size_t i = 0; (*row = frit_hf_tensor_get(hf->family, i)); i++) {
        if (!match(name, (*row)->name, layer, part)) continue;
        if (*layer >= (int64_t)frit_hf_written(hf, "block_count")) continue;
        if (strcmp(*part, "weight") == 0) return FRIT_OK;
        bool biased = false;
        FRIT_TRY(has_bias(hf, *row, &biased));
        if (biased && strcmp(*part, "bias") == 0) return FRIT_OK;
    }
    return FRIT_OK;
}

// Tables that old versions of transformers saved although they follow from the configuration.
static bool is_redundant(const char *name)
{
    static const char *const suffix = ".rotary_emb.inv_freq";
    size_t n = strlen(name), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

static frit_status place(void *ctx, const frit_safetensors_entry *entry)
{
    folder *f = ctx;
    frit_arena *arena = &f->hf.ckpt->arena;
    const frit_hf_tensor *row;
    const char *part;
    int64_t layer;
    FRIT_TRY(find_row(&f->hf, entry->name, &row, &layer, &part));
    if (!row) {
        if (!is_redundant(entry->name) && f->n_unplaced++ == 0) f->unplaced = entry->name;
        return FRIT_OK;
    }
    frit_tensor tensor;
    FRIT_TRY(frit_safetensors_to_tensor(entry, &tensor));
    if (row->rewrite && strcmp(part, "weight") == 0) FRIT_TRY(row->rewrite(&tensor, arena));
    char name[NAME_BYTES];
    write_gguf_name(name, sizeof name, row->gguf, layer, part);
    tensor.name = frit_arena_text(arena, name, strlen(name));
    if (!tensor.name) return frit_fail_memory(strlen(name), "a tensor name");
    return frit_checkpoint_add_tensor(f->hf.ckpt, &tensor);
}

static frit_status check_present(const folder *f, const frit_hf_tensor *row, int64_t layer, const char *part)
{
    char name[NAME_BYTES];
    write_gguf_name(name, sizeof name, row->gguf, layer, part);
    if (frit_checkpoint_find(f->hf.ckpt, name)) return FRIT_OK;
    write_gguf_name(name, sizeof name, row->name, layer, part);
    return frit_fail(FRIT_E_FORMAT, "%s: tensor '%s' is missing", f->hf.ckpt->path, name);
}

static frit_status check_complete(const folder *f)
{
    const frit_hf *hf = &f->hf;
    bool tied = hf->family->is_tied;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "tie_word_embeddings", &tied));
    int64_t n_layer = (int64_t)frit_hf_written(hf, "block_count");
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(hf->family, i)); i++) {
        if (row->may_be_tied && tied) continue;
        bool biased = false;
        FRIT_TRY(has_bias(hf, row, &biased));
        for (int64_t layer = 0; layer < (strchr(row->name, '*') ? n_layer : 1); layer++) {
            FRIT_TRY(check_present(f, row, layer, "weight"));
            if (biased) FRIT_TRY(check_present(f, row, layer, "bias"));
        }
    }
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- the folder

// general.name: the last component of the path.
static frit_status add_name(frit_checkpoint *ckpt)
{
    const char *path = ckpt->path, *end = path + strlen(path);
    while (end > path && end[-1] == '/') end--;
    const char *begin = end;
    while (begin > path && begin[-1] != '/') begin--;
    size_t n = (size_t)(end - begin);
    if (n == 0 || *begin == '.') return FRIT_OK;
    const char *name = frit_arena_text(&ckpt->arena, begin, n);
    if (!name) return frit_fail_memory(n, "the model's name");
    return frit_meta_add_text(&ckpt->meta, "general.name", name);
}

// No keys hold the text of this model.
static frit_status add_tokenizer(folder *f)
{
    return frit_meta_add_text(&f->hf.ckpt->meta, "tokenizer.ggml.model", "none");
}

static frit_status read_folder(folder *f)
{
    frit_checkpoint *ckpt = f->hf.ckpt;
    FRIT_TRY(frit_hf_read_config(&f->hf));
    FRIT_TRY(add_name(ckpt));
    FRIT_TRY(add_tokenizer(f));
    FRIT_TRY(frit_safetensors_read_folder(ckpt, ckpt->path, f->options, place, f));
    if (f->n_unplaced > 0)
        frit_log_say(f->options->log, FRIT_LOG_WARNING, "%s: %zu tensors have no place in a model of type '%s': '%s'%s",
                     ckpt->path, f->n_unplaced, f->hf.family->model_type, f->unplaced,
                     f->n_unplaced > 1 ? " and others" : "");
    return check_complete(f);
}

static frit_status load_config(const char *folder_path, const char *path, json_t **config)
{
    if (frit_path_get_kind(path) != FRIT_PATH_FILE)
        return frit_fail(FRIT_E_NOT_FOUND, "%s: there is no config.json, as in the folder of a Hugging Face model",
                         folder_path);
    char *text;
    size_t n_bytes;
    FRIT_TRY(frit_file_read(path, max_config_bytes, &text, &n_bytes));
    json_error_t error;
    *config = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!*config) return frit_fail(FRIT_E_FORMAT, "%s: not valid JSON in line %d: %s", path, error.line, error.text);
    return FRIT_OK;
}

static bool recognises(const char *path)
{
    return frit_path_get_kind(path) == FRIT_PATH_FOLDER;
}

static frit_status open_folder(frit_checkpoint *ckpt, const char *path, const frit_checkpoint_options *options)
{
    frit_buf config_path = {0};
    json_t *config = NULL;
    frit_buf_printf(&config_path, "%s/config.json", path);
    frit_status status =
        config_path.failed ? frit_fail_memory(config_path.len, "a path") : load_config(path, config_path.data, &config);
    if (status == FRIT_OK) {
        ckpt->format = "safetensors";
        folder f = {.hf = {.ckpt = ckpt, .path = config_path.data, .config = config}, .options = options};
        status = read_folder(&f);
    }
    json_decref(config);
    frit_buf_free(&config_path);
    return status;
}

const frit_checkpoint_source frit_source_folder = {"Hugging Face folder", recognises, open_folder};
