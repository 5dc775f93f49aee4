// SPDX-License-Identifier: MIT
// Files with pages of the prefix cache: writing, reading, and removing them when they exceed their limit.
#include "engine/kv/kv_disk.h"

#include "base/buf.h"
#include "base/checksum.h"
#include "base/file/file.h"
#include "base/grow.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERSION = 1, KEY_CHARS = 2 * FRIT_SHA256_BYTES, OLD_SECONDS = 3600 };

static const char magic[8] = "fritpage", ending[] = ".page";

typedef struct head {
    char magic[8];
    uint64_t version;
    frit_kv_key key, parent;
    int32_t tokens[FRIT_PAGE_TOKENS];
    uint64_t groups, n_bytes;
    uint64_t sum;   // checksum of the head and the bytes
} head;

frit_kv_key frit_kv_key_after(const frit_kv_key *parent, const int32_t tokens[FRIT_PAGE_TOKENS])
{
    frit_kv_key key;
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, parent->bytes, sizeof parent->bytes);
    frit_sha256_add(&sum, tokens, FRIT_PAGE_TOKENS * sizeof *tokens);
    frit_sha256_end(&sum, key.bytes);
    return key;
}

// Returns the path "FOLDER/KEY.DEPTH.page", malloc'd.
static char *path_of(const frit_kv_disk_files *files, const frit_kv_disk_page *page)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/", files->folder);
    for (int i = 0; i < FRIT_SHA256_BYTES; i++) frit_buf_printf(&path, "%02x", page->key.bytes[i]);
    frit_buf_printf(&path, ".%d%s", page->depth, ending);
    if (!path.failed) return path.data;
    frit_buf_free(&path);
    return NULL;
}

// ------------------------------------------------------------------------------- writing

static uint64_t bytes_of(const frit_kv_disk_files *files, uint64_t groups)
{
    uint64_t n = 0;
    for (int g = 0; g < FRIT_MAX_GROUPS; g++) n += groups >> g & 1 ? files->group_bytes[g] : 0;
    return n;
}

static uint64_t sum_of(const frit_kv_disk_files *files, const head *h, const uint8_t *bytes)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, h, offsetof(head, sum));
    for (int g = 0; g < FRIT_MAX_GROUPS; g++)
        if (h->groups >> g & 1) frit_checksum_add(&sum, bytes + files->group_at[g], (size_t)files->group_bytes[g]);
    return frit_checksum_value(&sum);
}

static frit_status write_page(const frit_kv_disk_files *files, const char *path, const frit_kv_disk_page *page)
{
    head h = {.version = VERSION,
              .key = page->key,
              .parent = page->parent,
              .groups = page->groups,
              .n_bytes = bytes_of(files, page->groups)};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.tokens, page->tokens, sizeof h.tokens);
    h.sum = sum_of(files, &h, page->bytes);
    frit_file_writer *writer;
    FRIT_TRY(frit_folder_make_private(files->folder));
    FRIT_TRY(frit_file_writer_open_private(&writer, path));
    frit_status status = frit_file_writer_write(writer, &h, sizeof h);
    for (int g = 0; g < FRIT_MAX_GROUPS && status == FRIT_OK; g++)
        if (page->groups >> g & 1)
            status = frit_file_writer_write(writer, page->bytes + files->group_at[g], (size_t)files->group_bytes[g]);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

void frit_kv_disk_write(frit_kv_disk_files *files, const frit_kv_disk_page *page)
{
    const uint64_t n_bytes = sizeof(head) + bytes_of(files, page->groups);
    char *path = n_bytes <= files->max_bytes ? path_of(files, page) : NULL;
    if (!path) return;
    const frit_status status = write_page(files, path, page);
    if (status != FRIT_OK && !files->fails)   // a full disk fails for the next page too: one warning is enough
        frit_log_say(&files->log, FRIT_LOG_WARNING, "%s; the prefix cache keeps no prompts there", frit_error());
    files->fails = status != FRIT_OK;
    free(path);
    if (files->fails) return;
    files->n_unseen += n_bytes;   // other processes write too, so files are counted again at times
    if (files->n_bytes + files->n_unseen > files->max_bytes || files->n_unseen > files->max_bytes / 16)
        frit_kv_disk_trim(files);
}

// ------------------------------------------------------------------------------- reading

// Returns what is wrong with a file; NULL: nothing.
static const char *find_problem(const frit_kv_disk_files *files, const frit_kv_disk_page *page, const uint8_t *bytes,
                                uint64_t n_file, head *h)
{
    if (n_file < sizeof *h) return "ends within its head";
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, magic, sizeof magic) != 0) return "is not a page of the prefix cache";
    if (h->version != VERSION) return "was written by another version";
    if (h->groups >> FRIT_MAX_GROUPS != 0 || h->n_bytes != bytes_of(files, h->groups) ||
        n_file != sizeof *h + h->n_bytes)
        return "has lost or gained bytes";
    if (memcmp(&h->key, &page->key, sizeof h->key) != 0 || memcmp(h->tokens, page->tokens, sizeof h->tokens) != 0)
        return "holds another text than its name says";
    return NULL;
}

static const char *read_page(const frit_kv_disk_files *files, frit_kv_disk_page *page, const uint8_t *bytes,
                             uint64_t n_file)
{
    head h;
    const char *problem = find_problem(files, page, bytes, n_file, &h);
    if (problem) return problem;
    bytes += sizeof h;
    page->groups = (uint32_t)h.groups;
    for (int g = 0; g < FRIT_MAX_GROUPS; g++) {
        if (!(h.groups >> g & 1)) continue;
        memcpy(page->bytes + files->group_at[g], bytes, (size_t)files->group_bytes[g]);
        bytes += files->group_bytes[g];
    }
    return h.sum == sum_of(files, &h, page->bytes) ? NULL : "is damaged";
}

bool frit_kv_disk_read(frit_kv_disk_files *files, frit_kv_disk_page *page)
{
    frit_file *file;
    char *path = path_of(files, page);
    if (!path) return false;
    const frit_status status = frit_file_open(&file, path, true);
    const char *problem = status == FRIT_OK ? read_page(files, page, frit_file_data(file), frit_file_size(file)) : NULL;
    if (problem) {
        frit_log_say(&files->log, FRIT_LOG_WARNING, "%s: %s; its tokens run again", path, problem);
        frit_file_remove(path);
    } else if (status != FRIT_OK && status != FRIT_E_NOT_FOUND) {
        frit_log_say(&files->log, FRIT_LOG_WARNING, "%s; its tokens run again", frit_error());
    } else if (status == FRIT_OK) {
        frit_file_touch(path);
    }
    if (status == FRIT_OK) frit_file_close(file);
    free(path);
    return status == FRIT_OK && !problem;
}

// ------------------------------------------------------------------------------- removing

typedef struct found {
    char name[KEY_CHARS + 24];
    uint64_t n_bytes;
    int64_t minute;
    int32_t depth;
} found;

typedef struct listing {
    const frit_kv_disk_files *files;
    found *items;
    size_t n, capacity;
    uint64_t n_bytes;
    int64_t now;
} listing;

static void remove_name(const frit_kv_disk_files *files, const char *name)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/%s", files->folder, name);
    if (!path.failed) frit_file_remove(path.data);
    frit_buf_free(&path);
}

// True for a page's file, whole or being written. Other files in the folder are never touched.
static bool is_ours(const char *name, bool *is_whole)
{
    size_t n = strspn(name, "0123456789abcdef");
    if (n != KEY_CHARS || name[n] != '.') return false;
    n += 1 + strspn(name + n + 1, "0123456789");
    if (strncmp(name + n, ending, sizeof ending - 1) != 0) return false;
    n += sizeof ending - 1;
    *is_whole = name[n] == 0;
    return *is_whole || name[n] == '.';
}

static void list_file(void *ctx, const char *name, uint64_t n_bytes, int64_t changed)
{
    listing *l = ctx;
    bool is_whole;
    if (!is_ours(name, &is_whole)) return;
    if (!is_whole) {   // left by a process that ended early
        if (changed < l->now - OLD_SECONDS) remove_name(l->files, name);
        return;
    }
    l->n_bytes += n_bytes;
    if (FRIT_GROW(l->items, l->capacity, l->n + 1, "a list of files") != FRIT_OK) return;
    found *item = &l->items[l->n];
    if (strlen(name) >= sizeof item->name) return;
    *item = (found){.n_bytes = n_bytes, .minute = changed / 60};
    memcpy(item->name, name, strlen(name) + 1);
    item->depth = (int32_t)strtol(name + KEY_CHARS + 1, NULL, 10);
    l->n++;
}

static int compare_age(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->minute != y->minute) return x->minute < y->minute ? -1 : 1;
    return x->depth > y->depth ? -1 : x->depth < y->depth;
}

void frit_kv_disk_trim(frit_kv_disk_files *files)
{
    listing l = {.files = files, .now = (int64_t)time(NULL)};
    frit_folder_each(files->folder, list_file, &l);
    if (l.n_bytes > files->max_bytes) {
        // A margin, so that the next page does not trim again.
        const uint64_t most = files->max_bytes - files->max_bytes / 10;
        qsort(l.items, l.n, sizeof *l.items, compare_age);
        for (size_t i = 0; i < l.n && l.n_bytes > most; i++) {
            remove_name(files, l.items[i].name);
            l.n_bytes -= l.items[i].n_bytes;
        }
    }
    files->n_bytes = l.n_bytes;
    files->n_unseen = 0;
    free(l.items);
}
