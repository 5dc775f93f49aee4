// SPDX-License-Identifier: MIT
// Checkpoints: the list of sources, opening, and the tensors by name.
#include "format/checkpoint.h"

#include "base/grow.h"
#include "format/gguf.h"
#include "format/rows.h"
#include "format/safetensors.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// Sources in the order in which they are asked to recognise a path.
static const frit_checkpoint_source *const sources[] = {
    &frit_source_gguf,
    &frit_source_safetensors,
    &frit_source_folder,
};

// ------------------------------------------------------------------------------------------- recognising

// Files often mistaken for models, by their first bytes, with a hint for the error.
static const struct {
    const char *prefix, *what;
} lookalikes[] = {
    {"version https://git-lfs", "a Git LFS pointer; fetch the file itself with 'git lfs pull'"},
    {"lmgg", "a GGML file from before GGUF; convert it again from the original model"},
    {"fmgg", "a GGML file from before GGUF; convert it again from the original model"},
    {"tjgg", "a GGML file from before GGUF; convert it again from the original model"},
    {"algg", "a GGLA adapter, not a model"},
    {"PK\003\004", "a zip archive, perhaps of PyTorch weights; convert it to GGUF or safetensors first"},
    {"\200\002", "a Python pickle, perhaps of PyTorch weights; convert it to GGUF or safetensors first"},
    {"<!DOCTYPE", "a web page; the download failed"},
    {"<html", "a web page; the download failed"},
};

// "a GGUF file, a safetensors file or a Hugging Face folder"
static void list_sources(frit_buf *out)
{
    for (size_t i = 0; i < FRIT_COUNT(sources); i++) {
        if (i > 0) frit_buf_text(out, i + 1 < FRIT_COUNT(sources) ? ", " : " or ");
        frit_buf_printf(out, "a %s", sources[i]->name);
    }
}

static void describe_start(const uint8_t *bytes, uint64_t n_bytes, frit_buf *out)
{
    if (n_bytes == 0) {
        frit_buf_text(out, "it is empty");
        return;
    }
    size_t n = n_bytes < 8 ? (size_t)n_bytes : 8;
    frit_buf_text(out, "it starts with bytes");
    for (size_t i = 0; i < n; i++) frit_buf_printf(out, " %02x", bytes[i]);
    frit_buf_text(out, " (\"");
    for (size_t i = 0; i < n; i++) frit_buf_char(out, bytes[i] >= 32 && bytes[i] < 127 ? (char)bytes[i] : '.');
    frit_buf_text(out, "\")");
    for (size_t i = 0; i < FRIT_COUNT(lookalikes); i++) {
        size_t length = strlen(lookalikes[i].prefix);
        if (length > n_bytes || memcmp(bytes, lookalikes[i].prefix, length) != 0) continue;
        frit_buf_printf(out, ": %s", lookalikes[i].what);
        break;
    }
}

static frit_status refuse_unrecognised(const char *path)
{
    frit_file *file = NULL;
    if (frit_path_get_kind(path) == FRIT_PATH_FILE) FRIT_TRY(frit_file_open(&file, path, false));
    frit_buf expected = {0}, start = {0};
    list_sources(&expected);
    if (file) describe_start(frit_file_data(file), frit_file_size(file), &start);
    frit_status status = expected.failed || start.failed
                             ? frit_fail_memory(expected.len + start.len, "a sentence")
                             : frit_fail_file(FRIT_E_FORMAT, "%s is not %s%s%s", path, expected.data, file ? "; " : "",
                                              file ? start.data : "");
    frit_buf_free(&expected);
    frit_buf_free(&start);
    frit_file_close(file);
    return status;
}

static frit_status find_source(const char *path, const frit_checkpoint_source **out)
{
    frit_path_kind kind = frit_path_get_kind(path);
    if (kind == FRIT_PATH_NONE || kind == FRIT_PATH_OTHER) {   // opening reports the reason
        frit_file *file;
        FRIT_TRY(frit_file_open(&file, path, false));
        frit_file_close(file);
    }
    for (size_t i = 0; i < FRIT_COUNT(sources); i++) {
        if (!sources[i]->recognises(path)) continue;
        *out = sources[i];
        return FRIT_OK;
    }
    return refuse_unrecognised(path);
}

// --------------------------------------------------------------------------------------- opening, closing

frit_status frit_checkpoint_new(frit_checkpoint **out, const char *path)
{
    *out = NULL;
    frit_checkpoint *ckpt = calloc(1, sizeof *ckpt);
    if (!ckpt) return frit_fail_memory(sizeof *ckpt, "a checkpoint");
    frit_meta_init(&ckpt->meta, &ckpt->arena);
    ckpt->path = frit_arena_text(&ckpt->arena, path, strlen(path));
    ckpt->format = "";
    if (!ckpt->path) {
        frit_checkpoint_close(ckpt);
        return frit_fail_memory(strlen(path), "a path");
    }
    *out = ckpt;
    return FRIT_OK;
}

static bool lies_in_mapped_file(const frit_checkpoint *ckpt, const uint8_t *data)
{
    for (size_t i = 0; i < ckpt->n_files; i++) {
        const uintptr_t begin = (uintptr_t)frit_file_data(ckpt->files[i]), at = (uintptr_t)data;
        if (at >= begin && at - begin < frit_file_size(ckpt->files[i])) return frit_file_is_mapped(ckpt->files[i]);
    }
    return false;
}

// Adds the mapped range of a tensor, or of the parts of its recipe.
static void find_mapped(const frit_checkpoint *ckpt, frit_tensor *tensor)
{
    if (tensor->data) tensor->is_mapped = lies_in_mapped_file(ckpt, tensor->data);
    const frit_recipe *recipe = tensor->data ? NULL : tensor->recipe;
    for (size_t i = 0; recipe && i < recipe->n_parts; i++) find_mapped(ckpt, &recipe->parts[i]);
}

frit_status frit_checkpoint_open(frit_checkpoint **out, const char *path, const frit_checkpoint_options *options)
{
    static const frit_checkpoint_options defaults = {0};
    const frit_checkpoint_source *source = NULL;
    frit_checkpoint *ckpt;
    *out = NULL;
    if (!options) options = &defaults;
    FRIT_TRY(find_source(path, &source));
    FRIT_TRY(frit_checkpoint_new(&ckpt, path));
    frit_status status = frit_checkpoint_report(options, 0);
    if (status == FRIT_OK) status = source->open(ckpt, path, options);
    if (status == FRIT_OK) status = frit_checkpoint_report(options, 1);
    if (status != FRIT_OK) {
        frit_checkpoint_close(ckpt);
        return status;
    }
    for (size_t i = 0; i < ckpt->n_tensors; i++) find_mapped(ckpt, &ckpt->tensors[i]);
    *out = ckpt;
    return FRIT_OK;
}

void frit_checkpoint_close(frit_checkpoint *ckpt)
{
    if (!ckpt) return;
    for (size_t i = 0; i < ckpt->n_files; i++) frit_file_close(ckpt->files[i]);
    frit_map_free(&ckpt->tensor_index);
    frit_meta_deinit(&ckpt->meta);
    frit_arena_free(&ckpt->arena);
    free(ckpt);
}

frit_status frit_checkpoint_report(const frit_checkpoint_options *options, double done)
{
    if (!options->progress || options->progress(options->progress_ctx, done)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "loading was cancelled");
}

bool frit_checkpoint_is_intact(const frit_checkpoint *ckpt)
{
    for (size_t i = 0; i < ckpt->n_files; i++)
        if (!frit_file_is_intact(ckpt->files[i])) return false;
    return true;
}

bool frit_checkpoint_reads(const frit_checkpoint *ckpt, const char *path)
{
    for (size_t i = 0; i < ckpt->n_files; i++)
        if (frit_path_is_same(frit_file_path(ckpt->files[i]), path)) return true;
    return false;
}

void frit_checkpoint_hash(const frit_checkpoint *ckpt, frit_sha256 *sum)
{
    enum { PAGES = 256, PAGE_BYTES = 4096 };
    for (size_t i = 0; i < ckpt->n_files; i++) {
        const uint64_t n = frit_file_size(ckpt->files[i]), page = n < PAGE_BYTES ? n : PAGE_BYTES;
        frit_sha256_add(sum, &n, sizeof n);
        for (uint64_t k = 0; k < PAGES && n > 0; k++)
            frit_sha256_add(sum, frit_file_data(ckpt->files[i]) + (n - page) / PAGES * k, (size_t)page);
    }
}

// ------------------------------------------------------------------------------------- tensors and files

frit_status frit_checkpoint_add_tensor(frit_checkpoint *ckpt, const frit_tensor *tensor)
{
    if (frit_checkpoint_find(ckpt, tensor->name))
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' occurs twice", ckpt->path, tensor->name);
    FRIT_TRY(
        FRIT_GROW_IN(&ckpt->arena, ckpt->tensors, ckpt->tensor_capacity, ckpt->n_tensors + 1, "the list of tensors"));
    if (!frit_map_put(&ckpt->tensor_index, frit_str_of(tensor->name), (int64_t)ckpt->n_tensors))
        return frit_fail_memory(ckpt->n_tensors * 32, "the index of tensors");
    ckpt->tensors[ckpt->n_tensors++] = *tensor;
    return FRIT_OK;
}

frit_status frit_checkpoint_add_file(frit_checkpoint *ckpt, frit_file *file)
{
    const frit_status status =
        FRIT_GROW_IN(&ckpt->arena, ckpt->files, ckpt->file_capacity, ckpt->n_files + 1, "the list of files");
    if (status != FRIT_OK) {
        frit_file_close(file);
        return status;
    }
    ckpt->files[ckpt->n_files++] = file;
    return FRIT_OK;
}

const frit_tensor *frit_checkpoint_find(const frit_checkpoint *ckpt, const char *name)
{
    int64_t at;
    return frit_map_get(&ckpt->tensor_index, frit_str_of(name), &at) ? &ckpt->tensors[at] : NULL;
}

int64_t frit_tensor_n_elems(const frit_tensor *tensor)
{
    int64_t n = 1;
    for (int i = 0; i < tensor->n_dims; i++) n *= tensor->shape[i];
    return n;
}

const char *frit_tensor_shape_text(const frit_tensor *tensor, char text[96])
{
    size_t at = 0;
    for (int i = 0; i < tensor->n_dims; i++)
        at += (size_t)snprintf(text + at, 96 - at, "%s%" PRId64, i ? ", " : "[", tensor->shape[i]);
    snprintf(text + at, 96 - at, "%s", tensor->n_dims ? "]" : "[]");
    return text;
}

void frit_tensor_decode_row(const frit_tensor *tensor, int64_t row, float *values)
{
    assert(tensor->data && row >= 0 && row < frit_tensor_n_rows(tensor));
    const uint8_t *bytes = frit_tensor_rows(tensor, row, 1, NULL, NULL);
    frit_dtype_get(tensor->dtype)->decode(bytes, values, frit_tensor_width(tensor));
}

frit_status frit_tensor_decode_rows(const frit_tensor *tensor, int64_t begin, int64_t n, float *values)
{
    const int64_t width = frit_tensor_width(tensor);
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(tensor), n_bytes = (row_bytes + 15) / 16 * 16;
    uint8_t *memory = malloc(n_bytes + frit_tensor_scratch_bytes(tensor));
    if (!memory) return frit_fail_memory(n_bytes + frit_tensor_scratch_bytes(tensor), tensor->name);
    for (int64_t i = 0; i < n; i++)
        frit_dtype_get(tensor->dtype)
            ->decode(frit_tensor_rows(tensor, begin + i, 1, memory, memory + n_bytes), values + i * width, width);
    free(memory);
    return FRIT_OK;
}
