// SPDX-License-Identifier: MIT
// Reading and writing the files of compiled kernels.
#include "backend/cuda/runtime/cubin_cache.h"
#include "base/checksum.h"
#include "base/file/file.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LAYOUT = 2, MAX_FILE_BYTES = 256 << 20 };

typedef struct head {
    char magic[8];
    uint64_t layout;
    frit_cubin_key key;
    uint64_t maker;
    uint64_t n_bytes;
    uint64_t hash;   // of the fields before it, and of the code
} head;

static const char magic[8] = "fritcubn";

static uint64_t hash_of(const void *first, size_t n_first, const void *second, size_t n_second)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, first, n_first);
    frit_checksum_add(&sum, second, n_second);
    return frit_checksum_value(&sum);
}

frit_cubin_key frit_cubin_key_of(frit_str description)
{
    static const char seeds[2] = {'a', 'b'};
    return (frit_cubin_key){{hash_of(&seeds[0], 1, description.ptr, description.len),
                             hash_of(&seeds[1], 1, description.ptr, description.len)}};
}

const char *frit_cubin_file_check(const uint8_t *bytes, size_t n, frit_cubin_key key, size_t *code_at)
{
    head h;
    if (n < sizeof h) return "ends within its head";
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0) return "is no file of compiled kernels";
    if (h.layout != LAYOUT) return "was written by a version with another layout";
    if (memcmp(&h.key, &key, sizeof key) != 0) return "contains other kernels than its name says";
    if (h.n_bytes != n - sizeof h) return "has lost or gained bytes";
    *code_at = sizeof h;
    return h.hash == hash_of(&h, offsetof(head, hash), bytes + sizeof h, n - sizeof h) ? NULL : "is damaged";
}

static bool print_path(frit_buf *path, const char *folder, frit_cubin_key key)
{
    frit_buf_printf(path, "%s/%016" PRIx64 "%016" PRIx64 ".cubin", folder, key.words[0], key.words[1]);
    return !path->failed;
}

static void warn_of_file(const frit_log *log, const char *format, const char *path, const char *what)
{
    frit_log_say(log, FRIT_LOG_WARNING, format, path, what);
}

static uint64_t maker_of(const char *bytes)
{
    head h;
    memcpy(&h, bytes, sizeof h);
    return h.maker;
}

uint8_t *frit_cubin_cache_read(const frit_cubin_cache *cache, frit_cubin_key key, size_t *n_bytes)
{
    frit_buf path = {0};
    char *bytes = NULL;
    size_t n = 0, code_at = 0;
    const frit_status status = print_path(&path, cache->folder, key)
                                   ? frit_file_read(path.data, MAX_FILE_BYTES, &bytes, &n)
                                   : FRIT_E_NOT_FOUND;
    const char *problem = NULL;
    if (status == FRIT_OK) problem = frit_cubin_file_check((const uint8_t *)bytes, n, key, &code_at);
    if (status != FRIT_OK && status != FRIT_E_NOT_FOUND) problem = "cannot be read";
    if (problem) warn_of_file(cache->log, "%s %s; the kernel is compiled again", path.data, problem);
    frit_buf_free(&path);
    const bool is_other = status == FRIT_OK && !problem && cache->maker && maker_of(bytes) != cache->maker;
    if (status != FRIT_OK || problem || is_other) {
        free(bytes);
        return NULL;
    }
    *n_bytes = n - code_at;
    memmove(bytes, bytes + code_at, n - code_at);
    return (uint8_t *)bytes;
}

static frit_status write_file(const char *path, const head *h, const uint8_t *code, size_t n)
{
    frit_file_writer *writer;
    FRIT_TRY(frit_file_writer_open(&writer, path));
    frit_status status = frit_file_writer_write(writer, h, sizeof *h);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, code, n);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

void frit_cubin_cache_write(const frit_cubin_cache *cache, frit_cubin_key key, const uint8_t *code, size_t n)
{
    frit_buf path = {0};
    head h = {.layout = LAYOUT, .key = key, .maker = cache->maker, .n_bytes = n};
    memcpy(h.magic, magic, sizeof magic);
    h.hash = hash_of(&h, offsetof(head, hash), code, n);
    frit_status status = frit_folder_make(cache->folder);
    if (status == FRIT_OK && print_path(&path, cache->folder, key)) status = write_file(path.data, &h, code, n);
    if (status != FRIT_OK)
        warn_of_file(cache->log, "%s: compiled kernels are not kept: %s", cache->folder, frit_error());
    frit_buf_free(&path);
}
