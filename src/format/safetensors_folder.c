// SPDX-License-Identifier: MIT
// The safetensors files of a folder: one model.safetensors, or the shards that an index names.
//
//     model.safetensors.index.json    {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//
// All tensors of every shard are read. The index must agree: its tensors are in the shards that it names.
#include "format/safetensors.h"

#include "format/json.h"

#include <inttypes.h>
#include <stdlib.h>

static const uint64_t max_index_bytes = 64 << 20;
enum { MAX_SHARDS = 4096 };

static const char index_name[] = "model.safetensors.index.json";

typedef struct shards {
    frit_checkpoint *ckpt;
    const char *folder;
    const frit_checkpoint_options *options;
    frit_safetensors_each_fn each;
    void *ctx;
    const char **names;   // file names, in the order of their first mention
    size_t n;
    size_t i_shard;        // the current shard
    frit_map name_index;   // file name -> index in `names`
    frit_map home;         // tensor name -> index in `names`
} shards;

static char *join(frit_arena *arena, const char *folder, const char *name)
{
    size_t n_folder = strlen(folder), n_name = strlen(name);
    char *path = frit_arena_alloc(arena, n_folder + n_name + 2, 1);
    if (!path) return NULL;
    memcpy(path, folder, n_folder);
    if (n_folder > 0 && folder[n_folder - 1] != '/') path[n_folder++] = '/';
    memcpy(path + n_folder, name, n_name);
    return path;
}

static bool has_file(const char *folder, const char *name)
{
    frit_arena arena = {0};
    const char *path = join(&arena, folder, name);
    bool found = path && frit_path_get_kind(path) == FRIT_PATH_FILE;
    frit_arena_free(&arena);
    return found;
}

// ---------------------------------------------------------------------------------------- reading shards

static frit_status take_tensor(void *ctx, const frit_safetensors_entry *entry)
{
    shards *s = ctx;
    frit_str name = frit_str_of(entry->name);
    int64_t other;
    if (frit_map_get(&s->home, name, &other))
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is in two shards, %s and %s", s->folder, entry->name,
                              s->names[other], s->names[s->i_shard]);
    if (!frit_map_put(&s->home, name, (int64_t)s->i_shard)) return frit_fail_memory(name.len, "a tensor name");
    return s->each(s->ctx, entry);
}

static frit_status read_shard(shards *s)
{
    const char *path = join(&s->ckpt->arena, s->folder, s->names[s->i_shard]);
    if (!path) return frit_fail_memory(strlen(s->folder), "a path");
    if (frit_path_get_kind(path) == FRIT_PATH_NONE)
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s: the shard %s, which %s names, is missing", s->folder,
                              s->names[s->i_shard], index_name);
    frit_file *file;
    FRIT_TRY(frit_file_open(&file, path, s->options->no_mmap));
    FRIT_TRY(frit_checkpoint_add_file(s->ckpt, file));
    FRIT_TRY(frit_safetensors_read(path, frit_file_data(file), frit_file_size(file), &s->ckpt->arena, take_tensor, s));
    return frit_checkpoint_report(s->options, (double)(s->i_shard + 1) / (double)s->n);
}

static frit_status read_shards(shards *s)
{
    for (s->i_shard = 0; s->i_shard < s->n; s->i_shard++) FRIT_TRY(read_shard(s));
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- the index

static bool is_plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strpbrk(name, "/\\:");
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), n_suffix = strlen(suffix);
    return n >= n_suffix && strcmp(text + n - n_suffix, suffix) == 0;
}

static frit_status add_shard(shards *s, const char *tensor, const char *file)
{
    if (!file)
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: the file of tensor '%s' is not text", s->folder, index_name,
                              tensor);
    if (frit_map_get(&s->name_index, frit_str_of(file), &(int64_t){0})) return FRIT_OK;
    if (!is_plain_name(file))
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: '%s' is not a file name without folders", s->folder, index_name,
                              file);
    if (!ends_with(file, ".safetensors"))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s: shard '%s' is not a safetensors file", s->folder, index_name,
                              file);
    if (s->n == MAX_SHARDS)
        return frit_fail_file(FRIT_E_LIMIT, "%s/%s: has more than %d shards", s->folder, index_name, MAX_SHARDS);
    if (!frit_map_put(&s->name_index, frit_str_of(file), (int64_t)s->n)) return frit_fail_memory(64, "shard names");
    s->names[s->n++] = file;
    return FRIT_OK;
}

static frit_status check_homes(const shards *s, json_t *weight_map)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value)
    {
        const char *file = json_string_value(value);
        int64_t home;
        if (!frit_map_get(&s->home, frit_str_of(tensor), &home))
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s', which %s places in %s, is in no shard", s->folder,
                                  tensor, index_name, file);
        if (strcmp(s->names[home], file) != 0)
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' is in %s, but %s places it in %s", s->folder, tensor,
                                  s->names[home], index_name, file);
    }
    return FRIT_OK;
}

static frit_status read_weight_map(shards *s, json_t *weight_map)
{
    if (!json_is_object(weight_map) || json_object_size(weight_map) == 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: has no weight_map {tensor: file}", s->folder, index_name);
    const char *tensor;
    json_t *value;
    json_object_foreach(weight_map, tensor, value) FRIT_TRY(add_shard(s, tensor, json_string_value(value)));
    FRIT_TRY(read_shards(s));
    return check_homes(s, weight_map);
}

static frit_status read_index(shards *s)
{
    const char *path = join(&s->ckpt->arena, s->folder, index_name);
    if (!path) return frit_fail_memory(strlen(s->folder), "a path");
    char *text;
    size_t n_bytes;
    FRIT_TRY(frit_file_read(path, max_index_bytes, &text, &n_bytes));
    json_error_t error;
    json_t *root = frit_json_read(text, n_bytes, 0, &error);
    free(text);
    if (!root) return frit_fail_file(FRIT_E_FORMAT, "%s: not valid JSON in line %d: %s", path, error.line, error.text);
    frit_status status = read_weight_map(s, json_object_get(root, "weight_map"));
    json_decref(root);
    return status;
}

// ---------------------------------------------------------------------------------------- the folder

static frit_status fail_without_weights(const char *folder)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin",
                                          "consolidated.00.pth", "model.pt"};
    for (size_t i = 0; i < FRIT_COUNT(pickles); i++)
        if (has_file(folder, pickles[i]))
            return frit_fail_file(FRIT_E_UNSUPPORTED,
                                  "%s: the weights are a Python pickle (%s), which can run code and is never opened; "
                                  "convert them to safetensors",
                                  folder, pickles[i]);
    return frit_fail_file(FRIT_E_NOT_FOUND, "%s: has neither model.safetensors nor %s", folder, index_name);
}

static frit_status read_files(shards *s)
{
    static const char *const single = "model.safetensors";
    if (has_file(s->folder, index_name) && !has_file(s->folder, single)) {
        s->names = frit_arena_new(&s->ckpt->arena, const char *, MAX_SHARDS);
        if (!s->names) return frit_fail_memory(MAX_SHARDS * sizeof(char *), "shard names");
        return read_index(s);
    }
    if (!has_file(s->folder, single)) return fail_without_weights(s->folder);
    s->names = (const char *[]){single};
    s->n = 1;
    return read_shards(s);
}

frit_status frit_safetensors_read_folder(frit_checkpoint *ckpt, const char *folder,
                                         const frit_checkpoint_options *options, frit_safetensors_each_fn each,
                                         void *ctx)
{
    shards s = {.ckpt = ckpt, .folder = folder, .options = options, .each = each, .ctx = ctx};
    frit_status status = read_files(&s);
    frit_map_free(&s.name_index);
    frit_map_free(&s.home);
    return status;
}
