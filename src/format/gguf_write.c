// SPDX-License-Identifier: MIT
// Writing GGUF v3: the header and directory are built in memory, the data is written from the tensors to the file.
#include "format/gguf_shard.h"

#include "base/file/partial_file.h"
#include "base/sha256.h"

static void put(frit_buf *out, uint64_t number, size_t n_bytes)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(number >> 8 * i);
    frit_buf_append(out, bytes, n_bytes);
}

static void put_text(frit_buf *out, frit_str text)
{
    put(out, text.len, 8);
    frit_buf_append(out, text.ptr, text.len);
}

static void put_value(frit_buf *out, const frit_value *value)
{
    put(out, value->type, 4);
    if (value->type == FRIT_VALUE_TEXT) {
        put_text(out, value->text);
    } else if (value->type == FRIT_VALUE_F32) {
        float f = (float)value->f;
        frit_buf_append(out, &f, sizeof f);
    } else if (value->type != FRIT_VALUE_ARRAY) {
        put(out, value->u, frit_value_type_bytes(value->type));   // the union's bits, for i64 and f64 as well
    } else {
        put(out, value->array.type, 4);
        put(out, value->array.n, 8);
        if (value->array.type != FRIT_VALUE_TEXT)
            frit_buf_append(out, value->array.items, (size_t)value->array.n * frit_value_type_bytes(value->array.type));
        else
            for (uint64_t i = 0; i < value->array.n; i++) put_text(out, frit_value_item_text(value, i));
    }
}

static frit_status put_tensor(frit_buf *out, const frit_tensor *tensor, uint64_t alignment, uint64_t *offset)
{
    int n_dims = tensor->n_dims > 0 ? tensor->n_dims : 1;   // a scalar is a row of one
    if (!frit_dtype_is_of_files(tensor->dtype))
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "tensor '%s' has the type %s, which GGUF does not have; expected another type, such as bf16",
                         tensor->name, frit_dtype_get(tensor->dtype)->name);
    put_text(out, frit_str_of(tensor->name));
    put(out, (uint64_t)n_dims, 4);
    for (int i = n_dims - 1; i >= 0; i--) put(out, (uint64_t)tensor->shape[i], 8);
    put(out, (uint64_t)frit_dtype_get(tensor->dtype)->gguf_id, 4);
    put(out, *offset, 8);
    uint64_t end;
    if (!frit_add_u64(*offset, tensor->n_bytes, &end) || !frit_gguf_align(end, alignment, offset))
        return frit_fail(FRIT_E_LIMIT, "tensor '%s' ends after offset 2^64", tensor->name);
    return FRIT_OK;
}

static frit_status put_header(frit_buf *out, const frit_gguf_contents *c, uint64_t alignment)
{
    frit_buf_append(out, "GGUF", 4);
    put(out, 3, 4);
    put(out, c->n_tensors, 8);
    put(out, c->meta->n, 8);
    for (size_t i = 0; i < c->meta->n; i++) {
        put_text(out, c->meta->pairs[i].key);
        put_value(out, &c->meta->pairs[i].value);
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < c->n_tensors; i++) FRIT_TRY(put_tensor(out, &c->tensors[i], alignment, &offset));
    return out->failed ? frit_fail_memory(out->len, "the header of a GGUF file") : FRIT_OK;
}

static frit_status write_padding(frit_file_writer *writer, uint64_t alignment)
{
    static const uint8_t zeros[4096];
    uint64_t n = (alignment - frit_file_writer_offset(writer) % alignment) % alignment;
    for (; n > sizeof zeros; n -= sizeof zeros) FRIT_TRY(frit_file_writer_write(writer, zeros, sizeof zeros));
    return frit_file_writer_write(writer, zeros, (size_t)n);
}

static frit_status write_tensor(frit_file_writer *writer, const frit_gguf_contents *c, size_t i)
{
    const frit_tensor *tensor = &c->tensors[i];
    if (!c->write) return frit_file_writer_write(writer, tensor->data, (size_t)tensor->n_bytes);
    const uint64_t begin = frit_file_writer_offset(writer);
    FRIT_TRY(c->write(c->ctx, i, writer));
    const uint64_t n = frit_file_writer_offset(writer) - begin;
    if (n == tensor->n_bytes) return FRIT_OK;
    return frit_fail(FRIT_E_INTERNAL, "tensor '%s' was written with %llu bytes instead of %llu", tensor->name,
                     (unsigned long long)n, (unsigned long long)tensor->n_bytes);
}

// Padding follows the directory and every tensor, the last one too. A file without tensors ends with its metadata.
static frit_status write_tensors(frit_file_writer *writer, const frit_gguf_contents *c, size_t first,
                                 uint64_t alignment, bool is_part)
{
    for (size_t i = first; i < c->n_tensors; i++) {
        FRIT_TRY(write_padding(writer, alignment));
        FRIT_TRY(write_tensor(writer, c, i));
        if (is_part) FRIT_TRY(frit_partial_file_flush(writer));
    }
    return c->n_tensors > 0 ? write_padding(writer, alignment) : FRIT_OK;
}

frit_status frit_gguf_measure(const frit_gguf_contents *contents, const char *path, uint64_t *n_bytes)
{
    frit_buf header = {0};
    uint64_t alignment;
    FRIT_TRY(frit_gguf_alignment(path, contents->meta, &alignment));
    frit_status status = put_header(&header, contents, alignment);
    *n_bytes = header.len;
    frit_buf_free(&header);
    for (size_t i = 0; i < contents->n_tensors && status == FRIT_OK; i++) {
        uint64_t begin, end;
        const bool fits = frit_gguf_align(*n_bytes, alignment, &begin) &&
                          frit_add_u64(begin, contents->tensors[i].n_bytes, &end) &&
                          frit_gguf_align(end, alignment, n_bytes);
        if (!fits) status = frit_fail_file(FRIT_E_LIMIT, "%s: has more than 2^64 bytes", path);
    }
    return status;
}

frit_status frit_gguf_write_contents(const frit_gguf_contents *contents, const char *path)
{
    frit_buf header = {0};
    frit_file_writer *writer = NULL;
    uint64_t alignment;
    FRIT_TRY(frit_gguf_alignment(path, contents->meta, &alignment));
    frit_status status = put_header(&header, contents, alignment);
    if (status == FRIT_OK) status = frit_file_writer_open(&writer, path);
    if (status == FRIT_OK) status = frit_file_writer_write(writer, header.data, header.len);
    if (status == FRIT_OK) status = write_tensors(writer, contents, 0, alignment, false);
    frit_buf_free(&header);
    if (status == FRIT_OK) return frit_file_writer_commit(writer);
    frit_file_writer_abort(writer);
    return status;
}

frit_status frit_gguf_write(const frit_checkpoint *ckpt, const char *path)
{
    return frit_gguf_write_contents(&(frit_gguf_contents){&ckpt->meta, ckpt->tensors, ckpt->n_tensors, NULL, NULL},
                                    path);
}

// ------------------------------------------------------------------------------------- in several runs

// Hashes everything that determines the bytes of the file.
static void make_key(const uint8_t *origin, const frit_buf *header, uint8_t key[FRIT_PARTIAL_KEY_BYTES])
{
    static const char magic[FRIT_PARTIAL_KEY_BYTES - FRIT_SHA256_BYTES + 1] = "fritpart";
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, origin, FRIT_SHA256_BYTES);
    frit_sha256_add(&sum, header->data, header->len);
    memcpy(key, magic, sizeof magic - 1);
    frit_sha256_end(&sum, key + sizeof magic - 1);
}

// Counts the tensors that lie within the first n bytes, and finds the end of the last one.
static size_t count_whole(const frit_gguf_contents *c, uint64_t n, uint64_t alignment, uint64_t *end)
{
    for (size_t i = 0; i < c->n_tensors; i++) {
        uint64_t begin;
        if (!frit_gguf_align(*end, alignment, &begin) || begin > n || n - begin < c->tensors[i].n_bytes) return i;
        *end = begin + c->tensors[i].n_bytes;
    }
    return c->n_tensors;
}

static frit_status write_rest(frit_file_writer *writer, const frit_gguf_contents *c, const frit_buf *header,
                              uint64_t alignment, uint64_t n_kept, void (*kept)(void *ctx, size_t n_tensors))
{
    uint64_t end = header->len;
    const bool has_header = n_kept >= end;
    const size_t first = has_header ? count_whole(c, n_kept, alignment, &end) : 0;
    FRIT_TRY(frit_partial_file_keep(writer, has_header ? end : FRIT_PARTIAL_KEY_BYTES));
    if (!has_header)
        FRIT_TRY(frit_file_writer_write(writer, header->data + FRIT_PARTIAL_KEY_BYTES,
                                        header->len - FRIT_PARTIAL_KEY_BYTES));
    if (first > 0) kept(c->ctx, first);
    return write_tensors(writer, c, first, alignment, true);
}

frit_status frit_gguf_write_in_runs(const frit_gguf_contents *contents, const char *path, const uint8_t *origin,
                                    void (*kept)(void *ctx, size_t n_tensors))
{
    uint8_t key[FRIT_PARTIAL_KEY_BYTES];
    uint64_t n_kept, alignment;
    frit_buf header = {0};
    frit_file_writer *writer = NULL;
    FRIT_TRY(frit_gguf_alignment(path, contents->meta, &alignment));
    frit_status status = put_header(&header, contents, alignment);
    if (status == FRIT_OK) make_key(origin, &header, key);
    if (status == FRIT_OK && header.len >= FRIT_PARTIAL_KEY_BYTES)
        status = frit_partial_file_open(&writer, path, key, &n_kept);
    if (status == FRIT_OK && !writer) {   // another process writes the file
        frit_buf_free(&header);
        return frit_gguf_write_contents(contents, path);
    }
    if (status == FRIT_OK) status = write_rest(writer, contents, &header, alignment, n_kept, kept);
    if (status == FRIT_OK)
        status = frit_partial_file_commit(writer, header.data);
    else if (status == FRIT_E_CANCELLED)
        frit_partial_file_leave(writer);
    else
        frit_file_writer_abort(writer);
    frit_buf_free(&header);
    return status;
}
