// SPDX-License-Identifier: MIT
// Reads importance files.
#include "convert/importance.h"

#include "base/file/file.h"
#include "format/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void frit_importance_deinit(frit_importance *importance)
{
    frit_map_free(&importance->index);
    frit_arena_free(&importance->arena);
    *importance = (frit_importance){0};
}

frit_importance_entry *frit_importance_find(const frit_importance *importance, const char *name)
{
    int64_t i;
    return frit_map_get(&importance->index, frit_str_of(name), &i) ? &importance->entries[i] : NULL;
}

static frit_status grow_entries(frit_importance *importance)
{
    const size_t capacity = importance->capacity > 0 ? 2 * importance->capacity : 64;
    if (importance->n < importance->capacity) return FRIT_OK;
    frit_importance_entry *entries = frit_arena_new(&importance->arena, frit_importance_entry, capacity);
    if (!entries) return frit_fail_memory(capacity * sizeof *entries, "the entries of importance");
    if (importance->n > 0) memcpy(entries, importance->entries, importance->n * sizeof *entries);
    importance->entries = entries;
    importance->capacity = capacity;
    return FRIT_OK;
}

frit_status frit_importance_add(frit_importance *importance, const char *name, size_t n_values, size_t n_counts,
                                frit_importance_entry **out)
{
    if (frit_importance_find(importance, name))
        return frit_fail(FRIT_E_FORMAT, "importance of '%.100s' occurs twice", name);
    FRIT_TRY(grow_entries(importance));
    frit_arena *arena = &importance->arena;
    frit_importance_entry *entry = &importance->entries[importance->n];
    *entry = (frit_importance_entry){.name = frit_arena_text(arena, name, strlen(name)),
                                     .n_values = n_values,
                                     .n_counts = n_counts,
                                     .sums = frit_arena_new(arena, double, n_values),
                                     .counts = frit_arena_new(arena, int64_t, n_counts)};
    if (!entry->name || !entry->sums || !entry->counts ||
        !frit_map_put(&importance->index, frit_str_of(entry->name), (int64_t)importance->n))
        return frit_fail_memory(n_values * sizeof(double), name);
    importance->n++;
    *out = entry;
    return FRIT_OK;
}

void frit_importance_means(const frit_importance *importance, const frit_importance_entry *entry, float *means)
{
    const size_t n_each = entry->n_values / entry->n_counts;
    for (size_t i = 0; i < entry->n_values; i++) {
        const int64_t count = entry->counts[i / n_each];
        const float sum = (float)entry->sums[i], none = importance->is_legacy ? sum : 1;
        means[i] = count > 0 ? sum / (float)count : none;
    }
}

// ------------------------------------------------------------------------------------- numbers

static frit_status check_sum(const char *path, const char *name, size_t i, double value)
{
    if (isfinite(value) && value >= 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: value %zu of '%.100s' is %g, expected a finite number of 0 or more", path,
                          i, name, value);
}

static frit_status read_sums(const char *path, const void *bytes, frit_importance_entry *entry)
{
    for (size_t i = 0; i < entry->n_values; i++) {
        float value;
        memcpy(&value, (const char *)bytes + i * sizeof value, sizeof value);
        FRIT_TRY(check_sum(path, entry->name, i, (double)value));
        entry->sums[i] = (double)value;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- GGUF

static frit_status read_counts(const char *path, const frit_tensor *tensor, frit_importance_entry *entry)
{
    for (size_t i = 0; i < entry->n_counts; i++) {
        float value;
        memcpy(&value, (const char *)tensor->data + i * sizeof value, sizeof value);
        if (!(value >= 0 && value <= 9e15f))   // whole numbers that int64_t can represent
            return frit_fail_file(FRIT_E_FORMAT, "%s: count %zu of '%.100s' is %g, expected a number of tokens", path,
                                  i, entry->name, (double)value);
        entry->counts[i] = llround((double)value);
    }
    return FRIT_OK;
}

static bool is_numbers(const frit_tensor *tensor)
{
    return tensor && tensor->dtype == FRIT_DTYPE_F32 && tensor->data && frit_tensor_n_elems(tensor) > 0;
}

// Reads the two tensors of a matrix.
static frit_status read_pair(frit_importance *importance, const frit_checkpoint *ckpt, const frit_tensor *sums)
{
    static const char suffix[] = ".in_sum2";
    const size_t n = strlen(sums->name), n_name = n - (sizeof suffix - 1);
    char name[300], other[320];
    if (n < sizeof suffix || strcmp(sums->name + n_name, suffix) != 0) return FRIT_OK;
    if (n_name >= sizeof name)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the name '%.40s...' has more than 300 bytes", ckpt->path, sums->name);
    snprintf(name, sizeof name, "%.*s", (int)n_name, sums->name);
    snprintf(other, sizeof other, "%s.counts", name);
    const frit_tensor *counts = frit_checkpoint_find(ckpt, other);
    if (!is_numbers(sums) || !is_numbers(counts))
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: '%.100s' needs sums and counts in f32, expected NAME.in_sum2 and NAME.counts",
                              ckpt->path, name);
    const int64_t n_values = frit_tensor_n_elems(sums), n_counts = frit_tensor_n_elems(counts);
    if (n_values % n_counts != 0)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: '%.100s' has %" PRId64 " values and %" PRId64 " counts, expected a multiple",
                              ckpt->path, name, n_values, n_counts);
    frit_importance_entry *entry;
    FRIT_TRY(frit_importance_add(importance, name, (size_t)n_values, (size_t)n_counts, &entry));
    FRIT_TRY(read_counts(ckpt->path, counts, entry));
    return read_sums(ckpt->path, sums->data, entry);
}

const char *frit_importance_file_name(const char *path)
{
    for (const char *at = path; *at; at++)
        if (*at == '/' || *at == '\\') path = at + 1;
    return path;
}

static frit_status keep_dataset(frit_importance *importance, frit_str text)
{
    const char *copy = frit_arena_text(&importance->arena, text.ptr, text.len);
    if (!copy) return frit_fail_memory(text.len, "the name of a text");
    importance->dataset = frit_importance_file_name(copy);
    return FRIT_OK;
}

static frit_status read_head(frit_importance *importance, const frit_meta *meta)
{
    const frit_value *sets = frit_meta_find(meta, "imatrix.datasets");
    FRIT_TRY(frit_meta_get_i64(meta, "imatrix.chunk_count", &importance->n_chunks, NULL));
    FRIT_TRY(frit_meta_get_i64(meta, "imatrix.chunk_size", &importance->chunk_size, NULL));
    const bool has_text = sets && sets->type == FRIT_VALUE_ARRAY && sets->array.type == FRIT_VALUE_TEXT;
    return has_text && sets->array.n > 0 ? keep_dataset(importance, frit_value_item_text(sets, 0)) : FRIT_OK;
}

static frit_status read_gguf(frit_importance *importance, const char *path, const void *bytes, size_t n_bytes)
{
    frit_checkpoint *ckpt;
    FRIT_TRY(frit_checkpoint_new(&ckpt, path));
    frit_status status = frit_gguf_parse(ckpt, path, bytes, n_bytes);
    if (status == FRIT_OK) status = read_head(importance, &ckpt->meta);
    for (size_t i = 0; i < ckpt->n_tensors && status == FRIT_OK; i++)
        status = read_pair(importance, ckpt, &ckpt->tensors[i]);
    if (status == FRIT_OK && importance->n == 0)
        status = frit_fail_file(FRIT_E_FORMAT, "%s: no importance in it, expected tensors NAME.in_sum2 and NAME.counts",
                                path);
    frit_checkpoint_close(ckpt);
    return status;
}

// ------------------------------------------------------------------------------------- legacy

typedef struct reader {
    const char *path;
    const uint8_t *at;
    uint64_t left;
} reader;

static frit_status read_i32(reader *r, const char *what, int32_t *out)
{
    if (r->left < sizeof *out) return frit_fail_file(FRIT_E_FORMAT, "%s: the file ends before %s", r->path, what);
    memcpy(out, r->at, sizeof *out);
    r->at += sizeof *out;
    r->left -= sizeof *out;
    return FRIT_OK;
}

static frit_status read_entry(frit_importance *importance, reader *r)
{
    char name[300];
    int32_t n_name, n_calls, n;
    FRIT_TRY(read_i32(r, "the length of a name", &n_name));
    if (n_name < 1 || n_name >= (int32_t)sizeof name)
        return frit_fail_file(FRIT_E_FORMAT, "%s: a name has %d bytes, expected 1 to 299: not an importance file",
                              r->path, (int)n_name);
    if (r->left < (uint64_t)n_name) return frit_fail_file(FRIT_E_FORMAT, "%s: the file ends in a name", r->path);
    if (memchr(r->at, 0, (size_t)n_name)) return frit_fail_file(FRIT_E_FORMAT, "%s: a name has a zero byte", r->path);
    snprintf(name, sizeof name, "%.*s", (int)n_name, (const char *)r->at);
    r->at += n_name;
    r->left -= (uint64_t)n_name;
    FRIT_TRY(read_i32(r, "the number of calls", &n_calls));
    FRIT_TRY(read_i32(r, "the number of values", &n));
    if (n_calls < 0 || n < 1)
        return frit_fail_file(FRIT_E_FORMAT, "%s: '%.100s' has %d values of %d calls, expected 1 or more", r->path,
                              name, (int)n, (int)n_calls);
    if (r->left / sizeof(float) < (uint64_t)n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the file ends in the %d values of '%.100s'", r->path, (int)n, name);
    frit_importance_entry *entry;
    FRIT_TRY(frit_importance_add(importance, name, (size_t)n, 1, &entry));
    entry->counts[0] = n_calls;
    FRIT_TRY(read_sums(r->path, r->at, entry));
    r->at += (uint64_t)n * sizeof(float);
    r->left -= (uint64_t)n * sizeof(float);
    return FRIT_OK;
}

static frit_status read_tail(frit_importance *importance, reader *r)
{
    int32_t n_chunks, n;
    if (r->left == 0) return FRIT_OK;
    FRIT_TRY(read_i32(r, "the number of chunks", &n_chunks));
    importance->n_chunks = n_chunks;
    if (r->left == 0) return FRIT_OK;
    FRIT_TRY(read_i32(r, "the name of the text", &n));
    if (n < 0 || r->left < (uint64_t)n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the file ends in the name of the text", r->path);
    return n > 0 ? keep_dataset(importance, (frit_str){(const char *)r->at, (size_t)n}) : FRIT_OK;
}

static frit_status read_legacy(frit_importance *importance, const char *path, const void *bytes, size_t n_bytes)
{
    reader r = {path, bytes, n_bytes};
    int32_t n;
    importance->is_legacy = true;
    FRIT_TRY(read_i32(&r, "the number of entries", &n));
    if (n < 1 || (uint64_t)n > r.left / 13)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %d entries in %" PRIu64 " bytes: not an importance file", r.path,
                              (int)n, r.left);
    for (int32_t i = 0; i < n; i++) FRIT_TRY(read_entry(importance, &r));
    return read_tail(importance, &r);
}

frit_status frit_importance_parse(frit_importance *importance, const char *path, const void *bytes, size_t n_bytes)
{
    *importance = (frit_importance){0};
    const bool is_gguf = n_bytes >= 4 && memcmp(bytes, "GGUF", 4) == 0;
    frit_status status =
        is_gguf ? read_gguf(importance, path, bytes, n_bytes) : read_legacy(importance, path, bytes, n_bytes);
    if (status == FRIT_OK) return FRIT_OK;
    frit_importance_deinit(importance);
    return frit_fail_in(path, status);
}

frit_status frit_importance_open(frit_importance *importance, const char *path)
{
    frit_file *file;
    *importance = (frit_importance){0};
    FRIT_TRY(frit_file_open(&file, path, true));
    const frit_status status =
        frit_importance_parse(importance, path, frit_file_data(file), (size_t)frit_file_size(file));
    frit_file_close(file);
    return status;
}
