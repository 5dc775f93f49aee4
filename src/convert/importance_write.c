// SPDX-License-Identifier: MIT
// Writes and merges importance files, and describes their matrices.
#include "convert/importance.h"

#include "base/file/file.h"
#include "format/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

frit_status frit_importance_new(frit_importance **out)
{
    FRIT_REQUIRE(out);
    *out = calloc(1, sizeof **out);
    return *out ? FRIT_OK : frit_fail_memory(sizeof **out, "importance");
}

void frit_importance_free(frit_importance *importance)
{
    if (!importance) return;
    frit_importance_deinit(importance);
    free(importance);
}

frit_status frit_importance_read(frit_importance **out, const char *path)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(path);
    frit_importance *importance;
    FRIT_TRY(frit_importance_new(&importance));
    const frit_status status = frit_importance_open(importance, path);
    if (status != FRIT_OK)
        frit_importance_free(importance);
    else
        *out = importance;
    return status;
}

// ------------------------------------------------------------------------------------- adding up

static frit_status merge_entry(frit_importance *into, const frit_importance_entry *from)
{
    frit_importance_entry *to = frit_importance_find(into, from->name);
    if (!to) FRIT_TRY(frit_importance_add(into, from->name, from->n_values, from->n_counts, &to));
    if (to->n_values != from->n_values || to->n_counts != from->n_counts)
        return frit_fail(FRIT_E_INVALID, "importance of '%s' has %zu values and %zu counts, expected %zu and %zu",
                         from->name, from->n_values, from->n_counts, to->n_values, to->n_counts);
    for (size_t i = 0; i < to->n_values; i++) to->sums[i] += from->sums[i];
    for (size_t i = 0; i < to->n_counts; i++) to->counts[i] += from->counts[i];
    return FRIT_OK;
}

frit_status frit_importance_merge(frit_importance *into, const frit_importance *from)
{
    FRIT_REQUIRE(into);
    FRIT_REQUIRE(from);
    if (into->n > 0 && into->is_legacy != from->is_legacy)
        return frit_fail(FRIT_E_INVALID, "a legacy file counts calls and a GGUF file tokens: they cannot be added");
    if (into->n == 0) into->is_legacy = from->is_legacy;
    if (into->chunk_size == 0) into->chunk_size = from->chunk_size;
    if (!into->dataset && from->dataset)
        into->dataset = frit_arena_text(&into->arena, from->dataset, strlen(from->dataset));
    into->n_chunks += from->n_chunks;
    for (size_t i = 0; i < from->n; i++) FRIT_TRY(merge_entry(into, &from->entries[i]));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- GGUF

typedef struct writing {
    const frit_importance *importance;
    const frit_importance_entry **sorted;   // [n], by name
    int64_t n_chunks, chunk_size;
    const char *dataset;
    const frit_meta *more;   // additional metadata; NULL: none
    frit_arena arena;
    frit_meta meta;
} writing;

static int compare(const void *a, const void *b)
{
    const frit_importance_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static frit_status add_tensor(writing *w, frit_tensor *out, const char *name, const char *suffix, int64_t n_rows,
                              int64_t width)
{
    const size_t n = (size_t)(n_rows * width), n_name = strlen(name) + strlen(suffix) + 1;
    char *full = frit_arena_alloc(&w->arena, n_name, 1);
    float *data = frit_arena_new(&w->arena, float, n);
    if (!full || !data) return frit_fail_memory(n * sizeof *data, name);
    snprintf(full, n_name, "%s%s", name, suffix);
    *out = (frit_tensor){.name = full,
                         .dtype = FRIT_DTYPE_F32,
                         .n_dims = 2,
                         .shape = {n_rows, width, 1, 1},
                         .data = data,
                         .n_bytes = n * sizeof *data};
    return FRIT_OK;
}

static frit_status add_entry(writing *w, const frit_importance_entry *entry, frit_tensor out[2])
{
    const int64_t n_counts = (int64_t)entry->n_counts, width = (int64_t)entry->n_values / n_counts;
    FRIT_TRY(add_tensor(w, &out[0], entry->name, ".in_sum2", n_counts, width));
    FRIT_TRY(add_tensor(w, &out[1], entry->name, ".counts", n_counts, 1));
    float *sums = (float *)(uintptr_t)out[0].data, *counts = (float *)(uintptr_t)out[1].data;
    for (size_t i = 0; i < entry->n_values; i++) sums[i] = (float)entry->sums[i];
    for (size_t i = 0; i < entry->n_counts; i++) counts[i] = (float)entry->counts[i];
    return FRIT_OK;
}

static frit_status write_gguf(writing *w, const char *path)
{
    const size_t n = w->importance->n;
    frit_tensor *tensors = frit_arena_new(&w->arena, frit_tensor, 2 * n + 1);
    if (!tensors) return frit_fail_memory(2 * n * sizeof *tensors, "the tensors of importance");
    frit_str names[1] = {{0}};
    if (w->dataset) names[0] = frit_str_of(w->dataset);
    const frit_value datasets = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, w->dataset ? 1 : 0, names}};
    const frit_value n_chunks = {.type = FRIT_VALUE_U32, .u = (uint64_t)w->n_chunks},
                     chunk_size = {.type = FRIT_VALUE_U32, .u = (uint64_t)w->chunk_size};
    FRIT_TRY(frit_meta_add_text(&w->meta, "general.type", "imatrix"));
    FRIT_TRY(frit_meta_add(&w->meta, frit_str_of("imatrix.datasets"), datasets));
    FRIT_TRY(frit_meta_add(&w->meta, frit_str_of("imatrix.chunk_count"), n_chunks));
    FRIT_TRY(frit_meta_add(&w->meta, frit_str_of("imatrix.chunk_size"), chunk_size));
    for (size_t i = 0; w->more && i < w->more->n; i++)
        FRIT_TRY(frit_meta_add(&w->meta, w->more->pairs[i].key, w->more->pairs[i].value));
    for (size_t i = 0; i < n; i++) FRIT_TRY(add_entry(w, w->sorted[i], tensors + 2 * i));
    return frit_gguf_write_contents(&(frit_gguf_contents){&w->meta, tensors, 2 * n, NULL, NULL}, path);
}

// ------------------------------------------------------------------------------------- legacy

static frit_status write_i32(frit_file_writer *writer, int64_t value)
{
    const int32_t number = (int32_t)value;
    return frit_file_writer_write(writer, &number, sizeof number);
}

static int64_t largest_count(const frit_importance_entry *entry)
{
    int64_t largest = 0;
    for (size_t i = 0; i < entry->n_counts; i++) largest = entry->counts[i] > largest ? entry->counts[i] : largest;
    return largest;
}

// Writes means times calls. A call is a window of the text.
static frit_status write_entry(writing *w, const frit_importance_entry *entry, frit_file_writer *writer)
{
    const int64_t chunk = w->importance->is_legacy ? 1 : w->chunk_size;
    const int64_t n_calls = (largest_count(entry) + chunk - 1) / chunk;
    const size_t n_name = strlen(entry->name);
    float *values = malloc(entry->n_values * sizeof *values);
    if (!values) return frit_fail_memory(entry->n_values * sizeof *values, entry->name);
    frit_importance_means(w->importance, entry, values);
    for (size_t i = 0; i < entry->n_values && n_calls > 0; i++) values[i] *= (float)n_calls;
    frit_status status = write_i32(writer, (int64_t)n_name);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, entry->name, n_name);
    if (status == FRIT_OK) status = write_i32(writer, n_calls);
    if (status == FRIT_OK) status = write_i32(writer, (int64_t)entry->n_values);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, values, entry->n_values * sizeof *values);
    free(values);
    return status;
}

static frit_status write_entries(writing *w, frit_file_writer *writer)
{
    const char *dataset = w->dataset ? w->dataset : "";
    FRIT_TRY(write_i32(writer, (int64_t)w->importance->n));
    for (size_t i = 0; i < w->importance->n; i++) FRIT_TRY(write_entry(w, w->sorted[i], writer));
    FRIT_TRY(write_i32(writer, w->n_chunks));
    FRIT_TRY(write_i32(writer, (int64_t)strlen(dataset)));
    return frit_file_writer_write(writer, dataset, strlen(dataset));
}

static frit_status write_legacy(writing *w, const char *path)
{
    frit_file_writer *writer;
    FRIT_TRY(frit_file_writer_open(&writer, path));
    const frit_status status = write_entries(w, writer);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

static frit_status write_any(writing *w, const char *path, bool legacy)
{
    const frit_importance *importance = w->importance;
    w->sorted = frit_arena_new(&w->arena, const frit_importance_entry *, importance->n + 1);
    if (!w->sorted) return frit_fail_memory(importance->n * sizeof *w->sorted, "the order of matrices");
    for (size_t i = 0; i < importance->n; i++) w->sorted[i] = &importance->entries[i];
    qsort(w->sorted, importance->n, sizeof *w->sorted, compare);
    if (legacy) return write_legacy(w, path);
    if (importance->is_legacy)
        return frit_fail_file(FRIT_E_INVALID,
                              "%s: a legacy file does not say how many tokens it counts, expected to write one "
                              "of its kind",
                              path);
    return write_gguf(w, path);
}

frit_status frit_importance_write(const frit_importance *importance, const char *path,
                                  const frit_importance_file *options)
{
    FRIT_REQUIRE(importance);
    FRIT_REQUIRE(path);
    FRIT_REQUIRE_UNUSED(options);
    return frit_importance_write_with(importance, path, options, NULL);
}

frit_status frit_importance_write_with(const frit_importance *importance, const char *path,
                                       const frit_importance_file *options, const frit_meta *more)
{
    static const frit_importance_file defaults;
    const frit_importance_file *o = options ? options : &defaults;
    writing w = {.importance = importance,
                 .more = more,
                 .n_chunks = o->n_chunks > 0 ? o->n_chunks : importance->n_chunks,
                 .chunk_size = o->chunk_size > 0 ? o->chunk_size : importance->chunk_size,
                 .dataset = o->dataset ? frit_importance_file_name(o->dataset) : importance->dataset};
    if (w.chunk_size <= 0) w.chunk_size = 512;
    frit_meta_init(&w.meta, &w.arena);
    const frit_status status = write_any(&w, path, o->legacy);
    frit_meta_deinit(&w.meta);
    frit_arena_free(&w.arena);
    return status;
}

// ------------------------------------------------------------------------------------- statistics

static void measure_means(const float *means, size_t n, frit_importance_info *info)
{
    info->min = info->max = (double)means[0];
    for (size_t i = 0; i < n; i++) {
        const double x = (double)means[i];
        info->sum += x;
        info->min = x < info->min ? x : info->min;
        info->max = x > info->max ? x : info->max;
        info->active += (x > 1e-5) / (double)n;
    }
    info->mean = info->sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)means[i], share = info->sum > 0 ? x / info->sum : 0;
        info->deviation += (x - info->mean) * (x - info->mean) / (double)n;
        if (share > 0) info->entropy -= share * log2(share);
    }
    info->deviation = sqrt(info->deviation);
}

bool frit_importance_get_info(const frit_importance *importance, size_t i, frit_importance_info *info)
{
    FRIT_REQUIRE_OR(false, info);
    *info = (frit_importance_info){0};
    FRIT_REQUIRE_OR(false, importance);
    if (i >= importance->n) return false;
    const frit_importance_entry *entry = &importance->entries[i];
    *info = (frit_importance_info){.name = entry->name,
                                   .n_values = entry->n_values,
                                   .n_counts = entry->n_counts,
                                   .n_tokens = largest_count(entry)};
    for (size_t k = 0; k < entry->n_counts; k++) info->n_counts_zero += entry->counts[k] == 0;
    float *means = malloc(entry->n_values * sizeof *means);
    if (!means) return true;   // without figures
    frit_importance_means(importance, entry, means);
    measure_means(means, entry->n_values, info);
    free(means);
    return true;
}
