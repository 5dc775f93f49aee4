// SPDX-License-Identifier: MIT
// Reading and writing archives of compiled kernels.
#include "backend/cuda/runtime/cubin_archive.h"
#include "base/check.h"
#include "base/checksum.h"
#include "base/file/file.h"
#include "base/grow.h"

#include <stdlib.h>

enum { LAYOUT = 1 };
static const char magic[8] = "fritkern";

typedef struct head {
    char magic[8];
    uint64_t layout;
    frit_cubin_archive_info info;
    uint64_t n;      // entries of the index, which follows
    uint64_t hash;   // of the fields before it, and of the index
} head;

_Static_assert(sizeof(head) == 128 && sizeof(frit_cubin_entry) == 40, "heads and entries have no padding");

struct frit_cubin_archive {
    frit_file *file;
    frit_cubin_archive_info info;
    const uint8_t *index;   // frit_cubin_entry [n]
    uint64_t n;
};

static uint64_t hash_of(const void *first, size_t n_first, const void *second, size_t n_second)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, first, n_first);
    frit_checksum_add(&sum, second, n_second);
    return frit_checksum_value(&sum);
}

static int compare_keys(frit_cubin_key a, frit_cubin_key b)
{
    for (int i = 0; i < 2; i++)
        if (a.words[i] != b.words[i]) return a.words[i] < b.words[i] ? -1 : 1;
    return 0;
}

static frit_cubin_entry entry_at(const uint8_t *index, uint64_t i)
{
    frit_cubin_entry entry;
    memcpy(&entry, index + i * sizeof entry, sizeof entry);
    return entry;
}

// ------------------------------------------------------------------------------- reading

static const char *check_index(const uint8_t *index, uint64_t n, uint64_t index_end, uint64_t n_bytes)
{
    for (uint64_t i = 0; i < n; i++) {
        const frit_cubin_entry e = entry_at(index, i);
        if (e.n_bytes == 0 || e.offset < index_end || e.offset > n_bytes || e.n_bytes > n_bytes - e.offset)
            return "has a kernel that lies outside of the file";
        if (i > 0 && compare_keys(entry_at(index, i - 1).key, e.key) >= 0) return "has an index that is not sorted";
    }
    return NULL;
}

static const char *check_info(const frit_cubin_archive_info *info)
{
    for (int i = 1; i < FRIT_CUBIN_GPUS; i++)
        if (info->multiprocessors[i] != 0 && info->multiprocessors[i] <= info->multiprocessors[i - 1])
            return "has numbers of multiprocessors that are not ascending";
    return info->multiprocessors[0] == 0 ? "names no GPU" : NULL;
}

const char *frit_cubin_archive_check(const uint8_t *bytes, uint64_t n_bytes, frit_cubin_archive_info *info, uint64_t *n,
                                     uint64_t *index_at)
{
    head h;
    if (n_bytes < sizeof h) return "ends within its head";
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0) return "is no archive of compiled kernels";
    if (h.layout != LAYOUT) return "was written by a version with another layout";
    if (h.n > (n_bytes - sizeof h) / sizeof(frit_cubin_entry)) return "ends within its index";
    const size_t index_bytes = (size_t)h.n * sizeof(frit_cubin_entry);
    if (h.hash != hash_of(&h, offsetof(head, hash), bytes + sizeof h, index_bytes)) return "has a damaged index";
    *info = h.info;
    *n = h.n;
    *index_at = sizeof h;
    const char *problem = check_info(info);
    return problem ? problem : check_index(bytes + sizeof h, h.n, sizeof h + index_bytes, n_bytes);
}

frit_status frit_cubin_archive_open(frit_cubin_archive **out, const char *path)
{
    *out = NULL;
    if (frit_path_get_kind(path) == FRIT_PATH_NONE)
        return frit_fail(FRIT_E_NOT_FOUND, "%s: there is no archive of compiled kernels", path);
    frit_cubin_archive *archive = calloc(1, sizeof *archive);
    if (!archive) return frit_fail_memory(sizeof *archive, "an archive of compiled kernels");
    frit_status status = frit_file_open(&archive->file, path, false);
    if (status == FRIT_OK) {
        const uint8_t *bytes = frit_file_data(archive->file);
        uint64_t index_at = 0;
        const char *problem =
            frit_cubin_archive_check(bytes, frit_file_size(archive->file), &archive->info, &archive->n, &index_at);
        if (problem) status = frit_fail(FRIT_E_FORMAT, "%s %s", path, problem);
        if (!problem) archive->index = bytes + index_at;
    }
    if (status != FRIT_OK) {
        frit_cubin_archive_close(archive);
        return status;
    }
    *out = archive;
    return FRIT_OK;
}

void frit_cubin_archive_close(frit_cubin_archive *archive)
{
    if (!archive) return;
    frit_file_close(archive->file);
    free(archive);
}

const frit_cubin_archive_info *frit_cubin_archive_get_info(const frit_cubin_archive *archive)
{
    return &archive->info;
}

const char *frit_cubin_archive_path(const frit_cubin_archive *archive)
{
    return frit_file_path(archive->file);
}

const uint8_t *frit_cubin_archive_find(const frit_cubin_archive *archive, frit_cubin_key key, size_t *n_bytes,
                                       bool *is_damaged)
{
    uint64_t begin = 0, end = archive->n;
    *is_damaged = false;
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        const frit_cubin_entry e = entry_at(archive->index, middle);
        const int order = compare_keys(e.key, key);
        if (order < 0) begin = middle + 1;
        if (order > 0) end = middle;
        if (order != 0) continue;
        const uint8_t *code = frit_file_data(archive->file) + e.offset;
        *is_damaged = !frit_file_is_intact(archive->file) || hash_of(code, (size_t)e.n_bytes, NULL, 0) != e.checksum;
        *n_bytes = (size_t)e.n_bytes;
        return *is_damaged ? NULL : code;
    }
    return NULL;
}

// ------------------------------------------------------------------------------- writing

frit_status frit_cubin_list_add(frit_cubin_list *list, frit_cubin_key key, const uint8_t *code, size_t n_bytes)
{
    for (size_t i = 0; i < list->n; i++)
        if (compare_keys(list->items[i].key, key) == 0) return FRIT_OK;
    FRIT_TRY(FRIT_GROW(list->items, list->capacity, list->n + 1, "a list of compiled kernels"));
    frit_cubin_item *item = &list->items[list->n];
    *item = (frit_cubin_item){.key = key, .code = malloc(n_bytes + 1), .n_bytes = n_bytes};
    if (!item->code) return frit_fail_memory(n_bytes, "a compiled kernel");
    memcpy(item->code, code, n_bytes);
    list->n++;
    return FRIT_OK;
}

frit_status frit_cubin_list_add_archive(frit_cubin_list *list, const frit_cubin_archive *archive)
{
    for (uint64_t i = 0; i < archive->n; i++) {
        const frit_cubin_key key = entry_at(archive->index, i).key;
        size_t n_bytes = 0;
        bool is_damaged;
        const uint8_t *code = frit_cubin_archive_find(archive, key, &n_bytes, &is_damaged);
        if (code) FRIT_TRY(frit_cubin_list_add(list, key, code, n_bytes));
    }
    return FRIT_OK;
}

void frit_cubin_list_free(frit_cubin_list *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->items[i].code);
    free(list->items);
    *list = (frit_cubin_list){0};
}

static int compare_items(const void *a, const void *b)
{
    return compare_keys(((const frit_cubin_item *)a)->key, ((const frit_cubin_item *)b)->key);
}

static frit_status write_parts(frit_file_writer *writer, const head *h, const frit_cubin_entry *index,
                               const frit_cubin_list *list)
{
    FRIT_TRY(frit_file_writer_write(writer, h, sizeof *h));
    FRIT_TRY(frit_file_writer_write(writer, index, list->n * sizeof *index));
    for (size_t i = 0; i < list->n; i++)
        FRIT_TRY(frit_file_writer_write(writer, list->items[i].code, list->items[i].n_bytes));
    return FRIT_OK;
}

static frit_status write_file(const char *path, const head *h, const frit_cubin_entry *index,
                              const frit_cubin_list *list)
{
    frit_file_writer *writer;
    FRIT_TRY(frit_file_writer_open(&writer, path));
    const frit_status status = write_parts(writer, h, index, list);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

frit_status frit_cubin_archive_write(const char *path, const frit_cubin_archive_info *info, frit_cubin_list *list,
                                     uint64_t *n_bytes)
{
    frit_cubin_entry *index = calloc(list->n + 1, sizeof *index);
    if (!index) return frit_fail_memory(list->n * sizeof *index, "the index of an archive");
    if (list->n > 0) qsort(list->items, list->n, sizeof *list->items, compare_items);
    head h = {.layout = LAYOUT, .info = *info, .n = list->n};
    memcpy(h.magic, magic, sizeof magic);
    uint64_t at = sizeof h + list->n * sizeof *index;
    for (size_t i = 0; i < list->n; i++) {
        const frit_cubin_item *item = &list->items[i];
        index[i] = (frit_cubin_entry){.key = item->key,
                                      .offset = at,
                                      .n_bytes = item->n_bytes,
                                      .checksum = hash_of(item->code, item->n_bytes, NULL, 0)};
        at += item->n_bytes;
    }
    h.hash = hash_of(&h, offsetof(head, hash), index, list->n * sizeof *index);
    *n_bytes = at;
    const frit_status status = write_file(path, &h, index, list);
    free(index);
    return status;
}
