// SPDX-License-Identifier: MIT
// Copies tensors of an earlier file instead of encoding them again.
#include "convert/convert.h"
#include "base/sha256.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

// ENCODERS is increased when encoders give other bytes.
enum { ENCODERS = 1, PIECE_BYTES = 1 << 20, CHECKED_ROWS = 8 };

// ------------------------------------------------------------------------------------- hashes

// Hashes pieces of a tensor's rows on all threads, then the pieces' hashes.
typedef struct hashing {
    const frit_tensor *tensor;
    int64_t n_rows, n_each, n_pieces;
    uint8_t (*pieces)[FRIT_SHA256_BYTES];
    _Atomic bool failed;
} hashing;

static void hash_pieces(void *ctx, int thread, int n_threads)
{
    hashing *h = ctx;
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(h->tensor), n_bytes = (size_t)h->n_each * row_bytes;
    const bool has_data = h->tensor->data != NULL;
    uint8_t *rows = has_data ? NULL : malloc(n_bytes),
            *scratch = has_data ? NULL : malloc(frit_tensor_scratch_bytes(h->tensor) + 1);
    if (!has_data && (!rows || !scratch)) h->failed = true;
    for (int64_t k = thread; k < h->n_pieces && !h->failed; k += n_threads) {
        const int64_t begin = k * h->n_each, n = h->n_rows - begin < h->n_each ? h->n_rows - begin : h->n_each;
        frit_sha256 sum;
        frit_sha256_init(&sum);
        frit_sha256_add(&sum, frit_tensor_rows(h->tensor, begin, n, rows, scratch), (size_t)n * row_bytes);
        frit_sha256_end(&sum, h->pieces[k]);
    }
    free(rows);
    free(scratch);
}

static frit_status hash_rows(const frit_tensor *tensor, frit_pool *pool, frit_sha256 *sum)
{
    const int64_t each = PIECE_BYTES / (int64_t)(frit_tensor_row_bytes(tensor) + 1);
    hashing h = {.tensor = tensor, .n_rows = frit_tensor_n_rows(tensor), .n_each = each > 0 ? each : 1};
    h.n_pieces = (h.n_rows + h.n_each - 1) / h.n_each;
    h.pieces = calloc((size_t)h.n_pieces + 1, sizeof *h.pieces);
    if (!h.pieces) return frit_fail_memory((size_t)h.n_pieces * sizeof *h.pieces, tensor->name);
    frit_pool_run(pool, hash_pieces, &h);
    frit_sha256_add(sum, h.pieces, (size_t)h.n_pieces * sizeof *h.pieces);
    free(h.pieces);
    return h.failed ? frit_fail_memory(PIECE_BYTES, tensor->name) : FRIT_OK;
}

// Hashes type and shape of both tensors, the source's rows and the importance of columns.
static frit_status find_origin(const frit_tensor *tensor, frit_pool *pool, frit_origin *out)
{
    frit_encode_origin origin;
    uint8_t hash[FRIT_SHA256_BYTES];
    frit_sha256 sum;
    if (frit_dtype_get(tensor->dtype)->block_elems == 1 || !frit_tensor_get_origin(tensor, &origin)) return FRIT_OK;
    const char *types[] = {frit_dtype_get(tensor->dtype)->name, frit_dtype_get(origin.from->dtype)->name};
    const int64_t numbers[] = {ENCODERS, tensor->n_dims, origin.n_importance};
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, numbers, sizeof numbers);
    frit_sha256_add(&sum, tensor->shape, sizeof tensor->shape);
    for (int i = 0; i < 2; i++) frit_sha256_add(&sum, types[i], strlen(types[i]) + 1);
    if (origin.importance)
        frit_sha256_add(&sum, origin.importance, (size_t)origin.n_importance * sizeof *origin.importance);
    FRIT_TRY(hash_rows(origin.from, pool, &sum));
    frit_sha256_end(&sum, hash);
    memcpy(out->hash, hash, sizeof out->hash);
    return FRIT_OK;
}

frit_status frit_origins_find(const frit_checkpoint *ckpt, frit_pool *pool, frit_origin *origins)
{
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        origins[i] = (frit_origin){0};
        FRIT_TRY(find_origin(&ckpt->tensors[i], pool, &origins[i]));
        for (size_t k = 0; k < ckpt->n_files; k++) frit_file_drop_pages(ckpt->files[k]);
    }
    return FRIT_OK;
}

frit_status frit_origins_add(frit_meta *meta, const frit_origin *origins, size_t n)
{
    const frit_value value = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U64, 2 * n, origins}};
    return frit_meta_add(meta, frit_str_of(FRIT_ORIGINS_KEY), value);
}

// ------------------------------------------------------------------------------------- an earlier file

// Returns the hashes of a file; NULL: it has none.
static const uint8_t *origins_of(const frit_checkpoint *ckpt)
{
    const frit_value *value = frit_meta_find(&ckpt->meta, FRIT_ORIGINS_KEY);
    const bool has_all = value && value->type == FRIT_VALUE_ARRAY && value->array.type == FRIT_VALUE_U64 &&
                         value->array.n == 2 * (uint64_t)ckpt->n_tensors;
    return has_all ? value->array.items : NULL;
}

frit_status frit_reuse_open(frit_checkpoint **out, const char *path)
{
    FRIT_TRY(frit_checkpoint_open(out, path, &(frit_checkpoint_options){0}));
    if (origins_of(*out)) return FRIT_OK;
    frit_checkpoint_close(*out);
    *out = NULL;
    return frit_fail_file(
        FRIT_E_INVALID,
        "%s: does not say what its tensors were made from, expected a file of a size or of a mix with importance",
        path);
}

// Sets *is_equal if some sampled rows of both are equal.
static frit_status check_rows(const frit_tensor *tensor, const frit_tensor *earlier, bool *is_equal)
{
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(tensor);
    const int64_t n_rows = frit_tensor_n_rows(tensor);
    uint8_t *row = malloc(row_bytes + 1), *scratch = malloc(frit_tensor_scratch_bytes(tensor) + 1);
    const frit_status status = row && scratch ? FRIT_OK : frit_fail_memory(row_bytes, tensor->name);
    *is_equal = status == FRIT_OK;
    for (int64_t i = 0; i < CHECKED_ROWS && *is_equal; i++) {
        const int64_t at = (n_rows - 1) * i / (CHECKED_ROWS - 1);
        const uint8_t *made = frit_tensor_rows(tensor, at, 1, row, scratch);
        *is_equal = memcmp(made, (const uint8_t *)earlier->data + (size_t)at * row_bytes, row_bytes) == 0;
    }
    free(row);
    free(scratch);
    return status;
}

// Checks all numbers, as encoding does: the earlier file may come from a version that did not.
static frit_status copy_tensor(frit_tensor *tensor, const frit_origin *origin, const frit_checkpoint *earlier,
                               frit_pool *pool, size_t *n_taken)
{
    frit_encode_origin source;
    int64_t at;
    bool is_equal;
    frit_origin found;
    if (!frit_map_get(&earlier->tensor_index, frit_str_of(tensor->name), &at)) return FRIT_OK;
    const frit_tensor *other = &earlier->tensors[at];
    memcpy(&found, origins_of(earlier) + (size_t)at * sizeof found, sizeof found);
    const bool is_same = memcmp(&found, origin, sizeof found) == 0 && other->dtype == tensor->dtype && other->data &&
                         other->n_bytes == tensor->n_bytes;
    if (!is_same) return FRIT_OK;
    FRIT_TRY(check_rows(tensor, other, &is_equal));
    if (!is_equal) return FRIT_OK;
    if (frit_tensor_get_origin(tensor, &source)) FRIT_TRY(frit_convert_check_finite(source.from, pool));
    FRIT_TRY(frit_convert_check_finite(other, pool));
    tensor->data = other->data;
    tensor->is_mapped = other->is_mapped;
    tensor->recipe = NULL;
    tensor->first_row = 0;
    ++*n_taken;
    return FRIT_OK;
}

frit_status frit_reuse_take(frit_checkpoint *ckpt, const frit_origin *origins, const frit_checkpoint *earlier,
                            frit_pool *pool, size_t *n_taken, size_t *n_quantized)
{
    *n_taken = *n_quantized = 0;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        if (origins[i].hash[0] == 0 && origins[i].hash[1] == 0) continue;
        ++*n_quantized;
        FRIT_TRY(copy_tensor(&ckpt->tensors[i], &origins[i], earlier, pool, n_taken));
    }
    return FRIT_OK;
}
