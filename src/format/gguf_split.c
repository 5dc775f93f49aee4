// SPDX-License-Identifier: MIT
// Split sets: one model in files NAME-00001-of-00005.gguf to NAME-00005-of-00005.gguf.
//
// Each shard is a GGUF file of its own with the keys split.no (counted from 0), split.count and split.tensors.count
// (of the whole set). The first shard has the metadata. A split.count of 0 or 1 means a single file.
#include "format/gguf_shard.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_PARTS = 99999, SUFFIX_BYTES = sizeof "-00001-of-00005.gguf" - 1 };

typedef struct split {
    int64_t no, count;
    int64_t n_tensors;   // -1: not given
} split;

static const char *const split_keys[] = {"split.no", "split.count", "split.tensors.count"};

static frit_status read_split(const frit_gguf_shard *shard, split *out)
{
    *out = (split){.count = 1, .n_tensors = -1};
    if (frit_meta_get_i64(&shard->meta, split_keys[0], &out->no, NULL) != FRIT_OK ||
        frit_meta_get_i64(&shard->meta, split_keys[1], &out->count, NULL) != FRIT_OK ||
        frit_meta_get_i64(&shard->meta, split_keys[2], &out->n_tensors, NULL) != FRIT_OK)
        return frit_fail_in(shard->path, FRIT_E_FORMAT);
    if (out->count < 0 || out->count > MAX_PARTS)
        return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key 'split.count' is %" PRId64 ", expected 0 to %d",
                              shard->path, out->count, MAX_PARTS);
    if (out->count > 1 && (out->no < 0 || out->no >= out->count))
        return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key 'split.no' is %" PRId64 ", expected 0 to %" PRId64,
                              shard->path, out->no, out->count - 1);
    return FRIT_OK;
}

// Writes "-00002-of-00005.gguf" for shard 1 of 5.
static const char *suffix_text(int64_t no, int64_t count, char text[32])
{
    snprintf(text, 32, "-%05d-of-%05d.gguf", (int)(no + 1) % 100000, (int)count % 100000);
    return text;
}

const char *frit_gguf_shard_path(frit_arena *arena, const char *path, int no, int count)
{
    char suffix[32];
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".gguf") == 0) n -= 5;
    char *text = frit_arena_alloc(arena, n + sizeof suffix, 1);
    if (!text) return NULL;
    memcpy(text, path, n);
    memcpy(text + n, suffix_text(no, count, suffix), SUFFIX_BYTES + 1);
    return text;
}

// -------------------------------------------------------------------------------- do shards belong together?

static bool same_value(const frit_value *a, const frit_value *b)
{
    if (a->type != b->type) return false;
    if (a->type == FRIT_VALUE_TEXT)
        return a->text.len == b->text.len && memcmp(a->text.ptr, b->text.ptr, a->text.len) == 0;
    if (a->type != FRIT_VALUE_ARRAY) return a->u == b->u;
    if (a->array.type != b->array.type || a->array.n != b->array.n) return false;
    if (a->array.type != FRIT_VALUE_TEXT)
        return memcmp(a->array.items, b->array.items, a->array.n * frit_value_type_bytes(a->array.type)) == 0;
    for (uint64_t i = 0; i < a->array.n; i++) {
        frit_str x = frit_value_item_text(a, i), y = frit_value_item_text(b, i);
        if (x.len != y.len || memcmp(x.ptr, y.ptr, x.len) != 0) return false;
    }
    return true;
}

static bool is_of_shard(frit_str key)
{
    for (size_t i = 0; i < FRIT_COUNT(split_keys); i++)
        if (frit_str_is(key, split_keys[i])) return true;
    return frit_str_is(key, "general.alignment");
}

// Later shards repeat little metadata or none. Repeated keys must have the first shard's values.
static frit_status check_meta(const frit_gguf_shard *shard, const frit_meta *first)
{
    for (size_t i = 0; i < shard->meta.n; i++) {
        const frit_pair *pair = &shard->meta.pairs[i];
        int64_t at;
        if (is_of_shard(pair->key) || !frit_map_get(&first->index, pair->key, &at)) continue;
        if (same_value(&pair->value, &first->pairs[at].value)) continue;
        return frit_fail_file(
            FRIT_E_FORMAT,
            "%s: metadata key '%.*s' has another value than in the first part: the parts are of different sets",
            shard->path, (int)(pair->key.len < 128 ? pair->key.len : 128), pair->key.ptr);
    }
    return FRIT_OK;
}

static frit_status check_split(const frit_gguf_shard *shard, const split *expected)
{
    split found;
    FRIT_TRY(read_split(shard, &found));
    if (found.count != expected->count)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: is part of a set of %" PRId64 " files, expected a set of %" PRId64
                              ": the parts are of different sets",
                              shard->path, found.count, expected->count);
    if (found.no != expected->no)
        return frit_fail_file(
            FRIT_E_FORMAT, "%s: is part %" PRId64 " of the set by its metadata, expected part %" PRId64 " by its name",
            shard->path, found.no + 1, expected->no + 1);
    if (found.n_tensors >= 0 && expected->n_tensors >= 0 && found.n_tensors != expected->n_tensors)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: the set has %" PRId64 " tensors by this part, %" PRId64
                              " by another: the parts are of different sets",
                              shard->path, found.n_tensors, expected->n_tensors);
    return FRIT_OK;
}

// --------------------------------------------------------------------------------------------- the others

static frit_status open_member(frit_gguf_shard *shard, frit_checkpoint *ckpt, const char *path, const split *expected,
                               bool no_mmap)
{
    if (frit_path_get_kind(path) == FRIT_PATH_NONE)
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s: part %" PRId64 " of %" PRId64 " is missing, expected the file %s",
                              ckpt->path, expected->no + 1, expected->count, path);
    FRIT_TRY(frit_gguf_shard_open(shard, &ckpt->arena, path, no_mmap));
    frit_status status = check_split(shard, expected);
    if (status != FRIT_OK) frit_gguf_shard_free(shard);
    return status;
}

// Appends shard `no` of the set: `given` if it has that number, otherwise opened from the path with the shard's suffix.
static frit_status append_member(frit_checkpoint *ckpt, frit_gguf_shard *given, int64_t given_no, const split *expected,
                                 char *path, bool no_mmap)
{
    frit_gguf_shard other = {0}, *shard = given;
    if (expected->no != given_no) {
        char suffix[32];
        suffix_text(expected->no, expected->count, suffix);
        memcpy(path + strlen(path) - SUFFIX_BYTES, suffix, SUFFIX_BYTES);
        shard = &other;
        FRIT_TRY(open_member(shard, ckpt, path, expected, no_mmap));
    }
    frit_status status = expected->no > 0 ? check_meta(shard, &ckpt->meta) : FRIT_OK;
    if (status == FRIT_OK) status = frit_gguf_shard_move(shard, ckpt);
    frit_gguf_shard_free(&other);
    return status;
}

static frit_status open_all(frit_checkpoint *ckpt, frit_gguf_shard *given, const split *set, char *path,
                            const frit_checkpoint_options *options)
{
    split expected = *set;
    for (expected.no = 0; expected.no < set->count; expected.no++) {
        FRIT_TRY(append_member(ckpt, given, set->no, &expected, path, options->no_mmap));
        FRIT_TRY(frit_checkpoint_report(options, (double)(expected.no + 1) / (double)set->count));
    }
    if (set->n_tensors >= 0 && (uint64_t)set->n_tensors != ckpt->n_tensors)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: the %" PRId64 " parts have %zu tensors, expected %" PRId64 " by their metadata",
                              ckpt->path, set->count, ckpt->n_tensors, set->n_tensors);
    for (size_t i = 0; i < FRIT_COUNT(split_keys); i++) FRIT_TRY(frit_meta_remove(&ckpt->meta, split_keys[i]));
    return FRIT_OK;
}

frit_status frit_gguf_set_open(frit_gguf_shard *shard, frit_checkpoint *ckpt, const frit_checkpoint_options *options)
{
    split set;
    FRIT_TRY(read_split(shard, &set));
    if (options->one_shard || set.count <= 1) return frit_gguf_shard_move(shard, ckpt);
    char suffix[32];
    suffix_text(set.no, set.count, suffix);
    size_t length = strlen(shard->path);
    if (length < SUFFIX_BYTES || strcmp(shard->path + length - SUFFIX_BYTES, suffix) != 0)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: is part %" PRId64 " of %" PRId64
                              " by its metadata, so its name should end in '%s' for the others to be found",
                              shard->path, set.no + 1, set.count, suffix);
    char *path = frit_arena_text(&ckpt->arena, shard->path, length);
    if (!path) return frit_fail_memory(length, "a path");
    return open_all(ckpt, shard, &set, path, options);
}

// -------------------------------------------------------------------------------------- files read by ranges

// Appends file `no` of n_files. `set` is that of the first file.
static frit_status append_file(frit_checkpoint *ckpt, const frit_range_file *file, int64_t no, size_t n_files,
                               split *set)
{
    frit_gguf_shard shard;
    FRIT_TRY(frit_gguf_shard_read_ranges(&shard, &ckpt->arena, file));
    frit_status status = no == 0 ? read_split(&shard, set) : FRIT_OK;
    const int64_t n_expected = set->count > 1 ? set->count : 1;
    split expected = *set;
    expected.no = no;
    if (status == FRIT_OK && (int64_t)n_files != n_expected)
        status = frit_fail_file(FRIT_E_INVALID, "%s: is one of %" PRId64 " files of a set, and %zu were given",
                                file->path, n_expected, n_files);
    if (status == FRIT_OK && n_expected > 1) status = check_split(&shard, &expected);
    if (status == FRIT_OK && no > 0) status = check_meta(&shard, &ckpt->meta);
    if (status == FRIT_OK) status = frit_gguf_shard_move(&shard, ckpt);
    frit_gguf_shard_free(&shard);
    return status;
}

frit_status frit_gguf_open_files(frit_checkpoint *ckpt, const frit_model_files *files)
{
    frit_range_file *list = frit_arena_new(&ckpt->arena, frit_range_file, files->n_files);
    split set;
    if (!list) return frit_fail_memory(files->n_files * sizeof *list, "the list of files");
    for (size_t i = 0; i < files->n_files; i++) {
        list[i] = (frit_range_file){ckpt->path, files->n_bytes[i], i, files->read, files->ctx};
        FRIT_TRY(append_file(ckpt, &list[i], (int64_t)i, files->n_files, &set));
    }
    if (set.count > 1 && set.n_tensors >= 0 && (uint64_t)set.n_tensors != ckpt->n_tensors)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the %" PRId64 " files have %zu tensors, expected %" PRId64,
                              ckpt->path, set.count, ckpt->n_tensors, set.n_tensors);
    for (size_t i = 0; set.count > 1 && i < FRIT_COUNT(split_keys); i++)
        FRIT_TRY(frit_meta_remove(&ckpt->meta, split_keys[i]));
    return frit_gguf_respell(ckpt, NULL);
}
