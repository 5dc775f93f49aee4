// SPDX-License-Identifier: MIT
// Reading and writing the files of packed weights.
#include "backend/store_cache.h"
#include "base/check.h"
#include "base/checksum.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SECTION_BYTES = 4 << 20, WEIGHTS_ALIGN = 4096 };

typedef struct head {
    char magic[8];
    uint64_t layout;
    frit_store_key key;
    uint64_t n_bytes, n_sections;
    uint64_t hash;   // hash of the fields above and of the sections' hashes
} head;

static const char magic[8] = "fritpack";

static uint64_t sum_of(uint64_t seed, const void *bytes, size_t n)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, &seed, sizeof seed);
    frit_checksum_add(&sum, bytes, n);
    return frit_checksum_value(&sum);
}

frit_store_key frit_store_key_of(const frit_store_cache *cache, frit_str description)
{
    const uint64_t seed = cache->source ^ FRIT_STORE_LAYOUT;
    return (frit_store_key){
        {sum_of(seed, description.ptr, description.len), sum_of(~seed, description.ptr, description.len)}};
}

static uint64_t sections_of(uint64_t n_bytes)
{
    return n_bytes / SECTION_BYTES + (n_bytes % SECTION_BYTES != 0);
}

static uint64_t head_hash(const head *h, const uint64_t *hashes)
{
    const uint64_t seed = sum_of(0, h, offsetof(head, hash));
    return sum_of(seed, hashes, (size_t)h->n_sections * sizeof *hashes);
}

// False if no file can have so many bytes.
static bool place_weights(uint64_t n_bytes, uint64_t *weights_at, uint64_t *n_file)
{
    return frit_align_u64(sizeof(head) + sections_of(n_bytes) * sizeof(uint64_t), WEIGHTS_ALIGN, weights_at) &&
           frit_add_u64(*weights_at, n_bytes, n_file) && *n_file <= SIZE_MAX;
}

const char *frit_store_file_check(const uint8_t *bytes, uint64_t n_file, frit_store_key key, uint64_t n_bytes,
                                  uint64_t *weights_at)
{
    head h;
    uint64_t expected;
    if (n_file < sizeof h) return "ends within its head";
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0) return "is no file of packed weights";
    if (h.layout != FRIT_STORE_LAYOUT) return "was written by a version with another layout";
    if (memcmp(&h.key, &key, sizeof key) != 0) return "holds other weights than its name says";
    if (h.n_bytes != n_bytes || h.n_sections != sections_of(n_bytes)) return "holds another number of weights";
    if (!place_weights(n_bytes, weights_at, &expected) || n_file != expected) return "has lost or gained bytes";
    const uint64_t *hashes = (const uint64_t *)(const void *)(bytes + sizeof h);
    return h.hash == head_hash(&h, hashes) ? NULL : "has a damaged head";
}

// ------------------------------------------------------------------------------- sections

typedef struct sections {
    const uint8_t *weights;
    uint64_t n_bytes, n;
    const uint64_t *expected;   // NULL: hashes are written to `made`
    uint64_t *made;
    _Atomic uint64_t next, damaged;   // damaged: a damaged section, or n
} sections;

static void hash_some(void *ctx, int thread, int n_threads)
{
    (void)thread, (void)n_threads;
    sections *s = ctx;
    for (uint64_t i; (i = atomic_fetch_add(&s->next, 1)) < s->n;) {
        const uint64_t at = i * SECTION_BYTES, left = s->n_bytes - at;
        const uint64_t hash = sum_of(i, s->weights + at, left < SECTION_BYTES ? (size_t)left : SECTION_BYTES);
        if (!s->expected)
            s->made[i] = hash;
        else if (s->expected[i] != hash)
            atomic_store(&s->damaged, i);
    }
}

// ------------------------------------------------------------------------------- files

static char *path_of(const frit_store_cache *cache, frit_store_key key)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/%016" PRIx64 "%016" PRIx64 ".packed", cache->folder, key.words[0], key.words[1]);
    if (!path.failed) return path.data;
    frit_buf_free(&path);
    return NULL;
}

static void warn_about(const frit_store_cache *cache, const char *path, const char *what)
{
    frit_log_say(&cache->log, FRIT_LOG_WARNING, "%s: %s; the weights are packed anew", path, what);
}

static const uint8_t *check_file(const frit_store_cache *cache, frit_pool *pool, const frit_file *file,
                                 frit_store_key key, uint64_t n_bytes)
{
    const uint8_t *bytes = frit_file_data(file);
    const char *path = frit_file_path(file);
    uint64_t weights_at = 0;
    const char *problem = frit_store_file_check(bytes, frit_file_size(file), key, n_bytes, &weights_at);
    if (!problem && !frit_file_is_mapped(file)) problem = "cannot be mapped";
    if (problem) {
        warn_about(cache, path, problem);
        return NULL;
    }
    sections s = {.weights = bytes + weights_at,
                  .n_bytes = n_bytes,
                  .n = sections_of(n_bytes),
                  .expected = (const uint64_t *)(const void *)(bytes + sizeof(head))};
    atomic_init(&s.damaged, s.n);
    frit_pool_run(pool, hash_some, &s);
    if (atomic_load(&s.damaged) == s.n) return s.weights;
    warn_about(cache, path, "is damaged");
    return NULL;
}

const uint8_t *frit_store_cache_read(const frit_store_cache *cache, frit_pool *pool, frit_store_key key,
                                     uint64_t n_bytes, frit_file **file)
{
    char *path = path_of(cache, key);
    *file = NULL;
    if (!path) return NULL;
    const frit_status status = frit_file_open(file, path, false);
    if (status != FRIT_OK && status != FRIT_E_NOT_FOUND)
        frit_log_say(&cache->log, FRIT_LOG_WARNING, "%s; the weights are packed anew", frit_error());
    const uint8_t *weights = *file ? check_file(cache, pool, *file, key, n_bytes) : NULL;
    if (weights) frit_log_say(&cache->log, FRIT_LOG_INFO, "%s: packed weights of an earlier start", path);
    if (!weights && *file) {
        frit_file_close(*file);
        *file = NULL;
    }
    free(path);
    return weights;
}

static frit_status write_all(const char *path, const head *h, const uint64_t *hashes, const uint8_t *weights,
                             uint64_t weights_at)
{
    static const uint8_t zeros[WEIGHTS_ALIGN];
    frit_file_writer *writer;
    FRIT_TRY(frit_file_writer_open(&writer, path));
    frit_status status = frit_file_writer_write(writer, h, sizeof *h);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, hashes, (size_t)h->n_sections * sizeof *hashes);
    const uint64_t gap = weights_at - frit_file_writer_offset(writer);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, zeros, (size_t)gap);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, weights, (size_t)h->n_bytes);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

static frit_status write_file(const frit_store_cache *cache, frit_pool *pool, const char *path, frit_store_key key,
                              const uint8_t *weights, uint64_t n_bytes)
{
    uint64_t weights_at, n_file;
    if (!place_weights(n_bytes, &weights_at, &n_file))
        return frit_fail_file(FRIT_E_LIMIT, "%s: %llu bytes of weights do not fit into a file", path,
                              (unsigned long long)n_bytes);
    head h = {.layout = FRIT_STORE_LAYOUT, .key = key, .n_bytes = n_bytes, .n_sections = sections_of(n_bytes)};
    memcpy(h.magic, magic, sizeof magic);
    uint64_t *hashes = calloc((size_t)h.n_sections + 1, sizeof *hashes);
    if (!hashes) return frit_fail_memory((size_t)h.n_sections * sizeof *hashes, "the hashes of packed weights");
    sections s = {.weights = weights, .n_bytes = n_bytes, .n = h.n_sections, .made = hashes};
    frit_pool_run(pool, hash_some, &s);
    h.hash = head_hash(&h, hashes);
    frit_status status = frit_folder_make(cache->folder);
    if (status == FRIT_OK) status = write_all(path, &h, hashes, weights, weights_at);
    free(hashes);
    return status;
}

void frit_store_cache_write(const frit_store_cache *cache, frit_pool *pool, frit_store_key key, const uint8_t *weights,
                            uint64_t n_bytes)
{
    char *path = path_of(cache, key);
    if (!path) return;
    if (write_file(cache, pool, path, key, weights, n_bytes) == FRIT_OK)
        frit_log_say(&cache->log, FRIT_LOG_INFO, "%s: keeps %.1f MiB of packed weights", path,
                     (double)n_bytes / (1024 * 1024));
    else
        frit_log_say(&cache->log, FRIT_LOG_WARNING, "%s; packed weights are not kept", frit_error());
    free(path);
}
