// SPDX-License-Identifier: MIT
// Reads one GGUF file with a cursor over the mapped bytes. No number of the file is trusted.
//
//     header -> pairs -> directory of tensors -> start of the data -> check that every tensor is inside the data
//
// Counts and lengths are compared with the remaining bytes before anything is allocated or skipped; lists grow as their
// items are read; offsets are computed in checked arithmetic.
#include "format/gguf_shard.h"

#include "base/grow.h"
#include "base/number.h"
#include "base/utf8.h"
#include "format/mmproj.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long ull;

enum {
    MIN_PAIR_BYTES = 8 + 1 + 4 + 1,             // a key of one byte, a value of one byte
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,   // a name of one byte, one dimension
    MAX_KEY_BYTES = 65535,
    MAX_NAME_BYTES = 255,
    DEFAULT_ALIGNMENT = 32,
};

typedef struct reader {
    const char *path;
    const uint8_t *bytes;
    uint64_t at, n_bytes;
    uint64_t n_read;               // bytes of the file that are in memory; n_bytes unless ranges are read
    bool is_short;                 // true if the header is longer than n_read
    const frit_range_file *file;   // file whose ranges tensors are read from; NULL: the bytes are in memory
    frit_arena *arena;
    // The object that is read, for errors: "metadata pair 3 of 20" until its name is known, then "metadata key 'x'".
    const char *thing, *named_thing;
    uint64_t index, count;
    frit_str name;
} reader;

// --------------------------------------------------------------------------------------------- sentences

// "<path>: tensor 'x' <what is wrong>"
static frit_status refuse(const reader *r, frit_status status, const char *format, ...) FRIT_PRINTF(3, 4);

static frit_status refuse(const reader *r, frit_status status, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    frit_vformat(what, sizeof what, format, args);
    va_end(args);
    if (r->name.len > 0) {
        size_t shown = frit_utf8_valid_prefix(r->name.ptr, r->name.len < 128 ? r->name.len : 128);
        return frit_fail_file(status, "%s: %s '%.*s%s' %s", r->path, r->named_thing, (int)shown, r->name.ptr,
                              shown < r->name.len ? "..." : "", what);
    }
    if (r->count > 0)
        return frit_fail_file(status, "%s: %s %llu of %llu %s", r->path, r->thing, (ull)r->index + 1, (ull)r->count,
                              what);
    return frit_fail_file(status, "%s: %s %s", r->path, r->thing, what);
}

static frit_status truncated(const reader *r, const char *what, uint64_t n_needed)
{
    return refuse(r, FRIT_E_FORMAT,
                  "is cut off: its %s needs %llu bytes from byte %llu on, the file has %llu: it is truncated", what,
                  (ull)n_needed, (ull)r->at, (ull)r->n_bytes);
}

static void set_thing(reader *r, const char *thing, const char *named_thing, uint64_t index, uint64_t count)
{
    r->thing = thing;
    r->named_thing = named_thing;
    r->index = index;
    r->count = count;
    r->name = (frit_str){0};
}

// ------------------------------------------------------------------------------------------------ cursor

static uint64_t remaining(const reader *r)
{
    return r->n_bytes - r->at;
}

// Fails if the next n bytes are in the file, but not in memory. A caller that reads ranges then reads more.
static frit_status require_read(reader *r, uint64_t n)
{
    r->is_short = n > r->n_read - r->at;
    return r->is_short
               ? frit_fail_file(FRIT_E_LIMIT, "%s: the header has more than %llu bytes", r->path, (ull)r->n_read)
               : FRIT_OK;
}

static frit_status read_bytes(reader *r, const char *what, uint64_t n, const uint8_t **out)
{
    *out = NULL;
    if (n > remaining(r)) return truncated(r, what, n);
    FRIT_TRY(require_read(r, n));
    *out = r->bytes + r->at;
    r->at += n;
    return FRIT_OK;
}

static frit_status read_u32(reader *r, const char *what, uint32_t *out)
{
    const uint8_t *p;
    FRIT_TRY(read_bytes(r, what, 4, &p));
    *out = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return FRIT_OK;
}

static frit_status read_u64(reader *r, const char *what, uint64_t *out)
{
    const uint8_t *p;
    FRIT_TRY(read_bytes(r, what, 8, &p));
    *out = 0;
    for (int i = 0; i < 8; i++) *out |= (uint64_t)p[i] << 8 * i;
    return FRIT_OK;
}

// Reads a length and that number of bytes.
static frit_status read_text(reader *r, const char *what, frit_str *out)
{
    uint64_t n;
    FRIT_TRY(read_u64(r, what, &n));
    if (n > remaining(r))
        return refuse(r, FRIT_E_FORMAT, "has a %s of %llu bytes, but only %llu bytes remain in the file", what, (ull)n,
                      (ull)remaining(r));
    FRIT_TRY(require_read(r, n));
    *out = (frit_str){(const char *)r->bytes + r->at, (size_t)n};
    r->at += n;
    return FRIT_OK;
}

// Reads the name of a pair or a tensor, which errors use from now on.
static frit_status read_name(reader *r, const char *what, size_t max_bytes, frit_str *out)
{
    frit_str name;
    FRIT_TRY(read_text(r, what, &name));
    if (name.len == 0) return refuse(r, FRIT_E_FORMAT, "has an empty %s", what);
    if (name.len > max_bytes)
        return refuse(r, FRIT_E_FORMAT, "has a %s of %zu bytes, expected at most %zu", what, name.len, max_bytes);
    if (memchr(name.ptr, 0, name.len)) return refuse(r, FRIT_E_FORMAT, "has a %s with a zero byte in it", what);
    if (frit_utf8_valid_prefix(name.ptr, name.len) != name.len)
        return refuse(r, FRIT_E_FORMAT, "has a %s that is not valid UTF-8", what);
    *out = r->name = name;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------------- pairs

static frit_status check_bools(const reader *r, const uint8_t *bools, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (bools[i] > 1) return refuse(r, FRIT_E_FORMAT, "is a bool of value %u, expected 0 or 1", bools[i]);
    return FRIT_OK;
}

// Two passes over the strings: the first checks that all are complete, the second stores them.
static frit_status read_text_items(reader *r, frit_value *value)
{
    uint64_t start = r->at, n = value->array.n;
    frit_str skipped;
    for (uint64_t i = 0; i < n; i++) FRIT_TRY(read_text(r, "array item", &skipped));
    frit_str *items = frit_arena_new(r->arena, frit_str, (size_t)n);
    if (!items) return frit_fail_memory((size_t)n * sizeof *items, "an array of text");
    r->at = start;
    for (uint64_t i = 0; i < n; i++) FRIT_TRY(read_text(r, "array item", &items[i]));
    value->array.items = items;
    return FRIT_OK;
}

static frit_status read_array(reader *r, frit_value *value)
{
    uint32_t type;
    uint64_t n;
    const uint8_t *items;
    FRIT_TRY(read_u32(r, "array item type", &type));
    FRIT_TRY(read_u64(r, "array length", &n));
    if (type >= FRIT_VALUE_TYPE_COUNT)
        return refuse(r, FRIT_E_FORMAT, "is an array of unknown value type %u, expected 0 to 12", type);
    if (type == FRIT_VALUE_ARRAY)
        return refuse(r, FRIT_E_UNSUPPORTED, "is an array of arrays, expected an array of numbers, bools or text");
    bool text = type == FRIT_VALUE_TEXT;
    uint64_t min_bytes = text ? 8 : frit_value_type_bytes((frit_value_type)type);
    if (n > remaining(r) / min_bytes)
        return refuse(r, FRIT_E_FORMAT, "is an array of %llu items of type %s, but only %llu bytes remain in the file",
                      (ull)n, frit_value_type_name((frit_value_type)type), (ull)remaining(r));
    value->array.type = (frit_value_type)type;
    value->array.n = n;
    if (text) return read_text_items(r, value);
    FRIT_TRY(read_bytes(r, "array", n * min_bytes, &items));
    value->array.items = items;
    return type == FRIT_VALUE_BOOL ? check_bools(r, items, n) : FRIT_OK;
}

static frit_status read_value(reader *r, frit_value *value)
{
    uint32_t type;
    const uint8_t *bytes;
    FRIT_TRY(read_u32(r, "value type", &type));
    if (type >= FRIT_VALUE_TYPE_COUNT)
        return refuse(r, FRIT_E_FORMAT, "has unknown value type %u, expected 0 to 12", type);
    *value = (frit_value){.type = (frit_value_type)type};
    if (type == FRIT_VALUE_TEXT) return read_text(r, "text", &value->text);
    if (type == FRIT_VALUE_ARRAY) return read_array(r, value);
    FRIT_TRY(read_bytes(r, "value", frit_value_type_bytes(value->type), &bytes));
    frit_value_load(value->type, bytes, value);
    return type == FRIT_VALUE_BOOL ? check_bools(r, bytes, 1) : FRIT_OK;
}

static frit_status read_pairs(reader *r, uint64_t n_pairs, frit_meta *meta)
{
    for (uint64_t i = 0; i < n_pairs; i++) {
        frit_str key;
        frit_value value;
        set_thing(r, "metadata pair", "metadata key", i, n_pairs);
        FRIT_TRY(read_name(r, "key", MAX_KEY_BYTES, &key));
        FRIT_TRY(read_value(r, &value));
        if (frit_map_get(&meta->index, key, &(int64_t){0})) return refuse(r, FRIT_E_FORMAT, "occurs twice");
        FRIT_TRY(frit_meta_add(meta, key, value));
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------------- header

static frit_status read_magic(reader *r)
{
    const uint8_t *m;
    FRIT_TRY(read_bytes(r, "magic number", 4, &m));
    if (memcmp(m, "FUGG", 4) == 0)
        return refuse(r, FRIT_E_UNSUPPORTED, "is big-endian, expected little-endian: convert the file's byte order");
    if (memcmp(m, "GGUF", 4) != 0)
        return refuse(r, FRIT_E_FORMAT, "starts with bytes %02x %02x %02x %02x, expected 47 47 55 46 (\"GGUF\")", m[0],
                      m[1], m[2], m[3]);
    return FRIT_OK;
}

static frit_status read_version(reader *r, uint32_t *version)
{
    FRIT_TRY(read_u32(r, "version", version));
    uint32_t v = *version;
    if (v == 2 || v == 3) return FRIT_OK;
    // The magic number is the same in both byte orders; a version in the high byte shows a big-endian file.
    if ((v & 0xffffff) == 0 && v >> 24 >= 1 && v >> 24 <= 16)
        return refuse(r, FRIT_E_UNSUPPORTED,
                      "is big-endian (version bytes 00 00 00 %02x), expected little-endian: "
                      "convert the file's byte order",
                      v >> 24);
    if (v == 1) return refuse(r, FRIT_E_UNSUPPORTED, "has GGUF version 1, expected 2 or 3: convert the model again");
    return refuse(r, v == 0 || v > 0xffff ? FRIT_E_FORMAT : FRIT_E_UNSUPPORTED, "has GGUF version %u, expected 2 or 3",
                  v);
}

static frit_status check_count(const reader *r, const char *what, uint64_t n, uint64_t min_bytes)
{
    if (n <= remaining(r) / min_bytes) return FRIT_OK;
    return refuse(r, FRIT_E_FORMAT, "has %llu %s by its header, but only %llu bytes remain in the file", (ull)n, what,
                  (ull)remaining(r));
}

frit_status frit_gguf_alignment(const char *path, const frit_meta *meta, uint64_t *alignment)
{
    int64_t n = DEFAULT_ALIGNMENT;
    *alignment = DEFAULT_ALIGNMENT;
    if (frit_meta_get_i64(meta, "general.alignment", &n, NULL) != FRIT_OK) return frit_fail_in(path, FRIT_E_FORMAT);
    if (n <= 0 || n % 8 != 0 || n > UINT32_MAX)
        return frit_fail_file(FRIT_E_FORMAT, "%s: metadata key 'general.alignment' is %lld, expected a multiple of 8",
                              path, (long long)n);
    *alignment = (uint64_t)n;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------------ tensors

static frit_status read_shape(reader *r, frit_tensor *tensor)
{
    uint32_t n_dims;
    uint64_t n_elems = 1;
    FRIT_TRY(read_u32(r, "number of dimensions", &n_dims));
    if (n_dims < 1 || n_dims > FRIT_MAX_DIMS)
        return refuse(r, FRIT_E_FORMAT, "has %u dimensions, expected 1 to %d", n_dims, FRIT_MAX_DIMS);
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = 1;
    tensor->n_dims = (int)n_dims;
    for (int i = tensor->n_dims - 1; i >= 0; i--) {   // the file has them innermost first
        uint64_t n;
        FRIT_TRY(read_u64(r, "shape", &n));
        if (n < 1 || n > INT64_MAX)
            return refuse(r, FRIT_E_FORMAT, "has a dimension of %lld, expected at least 1", (long long)n);
        if (!frit_mul_u64(n_elems, n, &n_elems) || n_elems > INT64_MAX)
            return refuse(r, FRIT_E_FORMAT, "has more than 2^63 - 1 elements");
        tensor->shape[i] = (int64_t)n;
    }
    return FRIT_OK;
}

static frit_status read_dtype(reader *r, frit_tensor *tensor)
{
    uint32_t id;
    FRIT_TRY(read_u32(r, "type", &id));
    if (!frit_dtype_from_gguf(id, &tensor->dtype)) {
        const char *removed = frit_dtype_removed_name(id);
        if (removed)
            return refuse(r, FRIT_E_UNSUPPORTED,
                          "has type %u (%s), which was removed from GGUF: convert the model again", id, removed);
        return refuse(r, FRIT_E_UNSUPPORTED, "has type %u, which is not a known number format", id);
    }
    const frit_dtype_info *type = frit_dtype_get(tensor->dtype);
    int64_t row = tensor->shape[tensor->n_dims - 1];
    if (row % type->block_elems != 0)
        return refuse(r, FRIT_E_FORMAT, "has rows of %lld elements, expected a multiple of %d for type %s",
                      (long long)row, type->block_elems, type->name);
    uint64_t n_blocks = (uint64_t)frit_tensor_n_elems(tensor) / (uint64_t)type->block_elems;
    if (!frit_mul_u64(n_blocks, (uint64_t)type->block_bytes, &tensor->n_bytes))
        return refuse(r, FRIT_E_FORMAT, "has a size in bytes that exceeds 2^64");
    return FRIT_OK;
}

// `data` is NULL and the offset is in `places` until the start of the data is known.
typedef struct place {
    uint64_t start, end;   // in the data section
    size_t tensor;
} place;

typedef struct directory {
    frit_tensor *tensors;
    place *places;
    size_t n, capacity;
} directory;

static frit_status directory_grow(directory *dir, frit_arena *arena)
{
    size_t places_capacity = dir->capacity;
    FRIT_TRY(FRIT_GROW(dir->places, places_capacity, dir->n + 1, "the list of tensors"));
    return FRIT_GROW_IN(arena, dir->tensors, dir->capacity, dir->n + 1, "the list of tensors");
}

static frit_status read_tensor(reader *r, uint64_t alignment, frit_tensor *tensor, place *where)
{
    frit_str name;
    FRIT_TRY(read_name(r, "name", MAX_NAME_BYTES, &name));
    tensor->name = frit_arena_text(r->arena, name.ptr, name.len);
    if (!tensor->name) return frit_fail_memory(name.len, "a tensor name");
    FRIT_TRY(read_shape(r, tensor));
    FRIT_TRY(read_dtype(r, tensor));
    FRIT_TRY(read_u64(r, "offset", &where->start));
    if (where->start % alignment != 0)
        return refuse(r, FRIT_E_FORMAT, "has offset %llu, expected a multiple of the alignment %llu", (ull)where->start,
                      (ull)alignment);
    if (!frit_add_u64(where->start, tensor->n_bytes, &where->end))
        return refuse(r, FRIT_E_FORMAT, "has offset %llu and %llu bytes, which together exceed 2^64", (ull)where->start,
                      (ull)tensor->n_bytes);
    return FRIT_OK;
}

static frit_status read_directory(reader *r, uint64_t n_tensors, uint64_t alignment, directory *dir)
{
    for (uint64_t i = 0; i < n_tensors; i++) {
        set_thing(r, "tensor", "tensor", i, n_tensors);
        if (dir->n == dir->capacity) FRIT_TRY(directory_grow(dir, r->arena));
        dir->places[dir->n].tensor = dir->n;
        FRIT_TRY(read_tensor(r, alignment, &dir->tensors[dir->n], &dir->places[dir->n]));
        dir->n++;
    }
    return FRIT_OK;
}

static int compare_places(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->start, y = ((const place *)b)->start;
    return x < y ? -1 : x > y;
}

// Sets the data pointers, after checks that every tensor is inside the file and none overlap.
static frit_status place_tensors(reader *r, uint64_t alignment, directory *dir)
{
    uint64_t data_start;
    if (!frit_gguf_align(r->at, alignment, &data_start))
        return refuse(r, FRIT_E_FORMAT, "is too large for an aligned start of the data");
    for (size_t i = 0; i < dir->n; i++) {
        frit_tensor *tensor = &dir->tensors[i];
        uint64_t start, end;
        set_thing(r, "tensor", "tensor", i, dir->n);
        r->name = frit_str_of(tensor->name);
        if (!frit_add_u64(data_start, dir->places[i].start, &start) || !frit_add_u64(start, tensor->n_bytes, &end))
            return refuse(r, FRIT_E_FORMAT, "has offset %llu, which exceeds 2^64 in the file",
                          (ull)dir->places[i].start);
        if (end > r->n_bytes)
            return refuse(r, FRIT_E_FORMAT, "needs bytes %llu to %llu, the file has %llu: it is truncated", (ull)start,
                          (ull)end, (ull)r->n_bytes);
        if (r->file)
            FRIT_TRY(frit_range_tensor(r->arena, tensor, r->file, start));
        else if (r->n_read == r->n_bytes)
            tensor->data = r->bytes + start;
    }
    if (dir->n > 1) qsort(dir->places, dir->n, sizeof *dir->places, compare_places);
    for (size_t i = 1; i < dir->n; i++) {
        const place *before = &dir->places[i - 1], *here = &dir->places[i];
        if (here->start >= before->end) continue;
        r->name = frit_str_of(dir->tensors[here->tensor].name);
        return refuse(r, FRIT_E_FORMAT, "starts at offset %llu, inside tensor '%s' (offsets %llu to %llu)",
                      (ull)here->start, dir->tensors[before->tensor].name, (ull)before->start, (ull)before->end);
    }
    return FRIT_OK;
}

// --------------------------------------------------------------------------------------------- the whole

static frit_status read_all(reader *r, frit_gguf_shard *shard, directory *dir)
{
    uint64_t n_tensors, n_pairs, alignment;
    set_thing(r, "the header", "", 0, 0);
    FRIT_TRY(read_magic(r));
    FRIT_TRY(read_version(r, &shard->version));
    FRIT_TRY(read_u64(r, "number of tensors", &n_tensors));
    FRIT_TRY(read_u64(r, "number of metadata pairs", &n_pairs));
    FRIT_TRY(check_count(r, "metadata pairs", n_pairs, MIN_PAIR_BYTES));
    FRIT_TRY(check_count(r, "tensors", n_tensors, MIN_TENSOR_BYTES));
    FRIT_TRY(read_pairs(r, n_pairs, &shard->meta));
    FRIT_TRY(frit_gguf_alignment(r->path, &shard->meta, &alignment));
    FRIT_TRY(read_directory(r, n_tensors, alignment, dir));
    return place_tensors(r, alignment, dir);
}

static frit_status read_shard(reader *r, frit_gguf_shard *shard)
{
    directory dir = {0};
    shard->path = r->path;
    frit_meta_init(&shard->meta, r->arena);
    frit_status status = read_all(r, shard, &dir);
    free(dir.places);
    shard->tensors = dir.tensors;
    shard->n_tensors = dir.n;
    if (status != FRIT_OK) frit_gguf_shard_free(shard);
    return status;
}

frit_status frit_gguf_shard_read(frit_gguf_shard *shard, frit_arena *arena, const char *path, const uint8_t *bytes,
                                 uint64_t n_bytes)
{
    reader r = {.path = path, .bytes = bytes, .n_bytes = n_bytes, .n_read = n_bytes, .arena = arena};
    return read_shard(&r, shard);
}

// Reads the first bytes of the file into the reader's arena.
static frit_status read_start(reader *r, const frit_range_file *file, uint64_t n)
{
    uint8_t *bytes = n <= SIZE_MAX ? frit_arena_new(r->arena, uint8_t, (size_t)n) : NULL;
    if (!bytes) return frit_fail_memory((size_t)n, "the header of a model");
    r->bytes = bytes;
    r->n_read = n;
    return frit_range_read(file, 0, bytes, (size_t)n);
}

// Finds the length of the header by reading more and more of the file, in memory that is freed afterwards.
static frit_status measure_header(const reader *whole, const frit_range_file *file, uint64_t *n_header)
{
    enum { FIRST = 1 << 20, GROWTH = 4 };
    frit_status status = FRIT_OK;
    bool is_short = true;
    for (uint64_t n = FIRST; is_short && status == FRIT_OK; n *= GROWTH) {
        frit_arena arena = {0};
        frit_gguf_shard shard = {0};
        reader r = *whole;
        r.arena = &arena;
        status = read_start(&r, file, n < r.n_bytes ? n : r.n_bytes);
        if (status == FRIT_OK) status = read_shard(&r, &shard);
        is_short = r.is_short;
        if (is_short) status = FRIT_OK;
        *n_header = r.at;
        frit_gguf_shard_free(&shard);
        frit_arena_free(&arena);
    }
    return status;
}

frit_status frit_gguf_shard_read_ranges(frit_gguf_shard *shard, frit_arena *arena, const frit_range_file *file)
{
    reader r = {.path = file->path, .n_bytes = file->n_bytes, .arena = arena};
    uint64_t n_header;
    *shard = (frit_gguf_shard){0};
    FRIT_TRY(measure_header(&r, file, &n_header));
    FRIT_TRY(read_start(&r, file, n_header));
    r.file = file;
    return read_shard(&r, shard);
}

frit_status frit_gguf_shard_open(frit_gguf_shard *shard, frit_arena *arena, const char *path, bool no_mmap)
{
    *shard = (frit_gguf_shard){0};
    const char *copy = frit_arena_text(arena, path, strlen(path));
    if (!copy) return frit_fail_memory(strlen(path), "a path");
    FRIT_TRY(frit_file_open(&shard->file, path, no_mmap));
    return frit_gguf_shard_read(shard, arena, copy, frit_file_data(shard->file), frit_file_size(shard->file));
}

void frit_gguf_shard_free(frit_gguf_shard *shard)
{
    frit_meta_deinit(&shard->meta);
    frit_file_close(shard->file);
    *shard = (frit_gguf_shard){0};
}

frit_status frit_gguf_shard_move(frit_gguf_shard *shard, frit_checkpoint *ckpt)
{
    size_t n_before = ckpt->n_tensors;
    if (shard->file) {
        frit_file *file = shard->file;
        shard->file = NULL;
        FRIT_TRY(frit_checkpoint_add_file(ckpt, file));
    }
    if (!ckpt->format[0]) {
        frit_meta_deinit(&ckpt->meta);
        ckpt->meta = shard->meta;
        shard->meta = (frit_meta){0};
        ckpt->format = shard->version == 2 ? "GGUF v2" : "GGUF v3";
    }
    for (size_t i = 0; i < shard->n_tensors; i++) {
        const frit_tensor *twin = frit_checkpoint_find(ckpt, shard->tensors[i].name);
        if (twin)
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' occurs twice%s", shard->path, twin->name,
                                  (size_t)(twin - ckpt->tensors) < n_before ? ": an earlier part of the set has it too"
                                                                            : "");
        FRIT_TRY(frit_checkpoint_add_tensor(ckpt, &shard->tensors[i]));
    }
    return FRIT_OK;
}

static frit_status respell(frit_checkpoint *ckpt, frit_checkpoint_part part, const frit_log *log)
{
    return part == FRIT_CHECKPOINT_VISION ? frit_mmproj_respell(ckpt) : frit_gguf_respell(ckpt, log);
}

static frit_status parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes,
                         frit_checkpoint_part part)
{
    frit_gguf_shard shard = {0};
    FRIT_TRY(frit_gguf_shard_read(&shard, &ckpt->arena, path, bytes, n_bytes));
    frit_status status = frit_gguf_shard_move(&shard, ckpt);
    frit_gguf_shard_free(&shard);
    return status == FRIT_OK ? respell(ckpt, part, NULL) : status;
}

frit_status frit_gguf_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes)
{
    return parse(ckpt, path, bytes, n_bytes, FRIT_CHECKPOINT_TEXT);
}

frit_status frit_mmproj_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes)
{
    return parse(ckpt, path, bytes, n_bytes, FRIT_CHECKPOINT_VISION);
}

// ------------------------------------------------------------------------------------------------- source

static bool recognises(const char *path)
{
    frit_file *file;
    if (frit_path_get_kind(path) != FRIT_PATH_FILE || frit_file_open(&file, path, false) != FRIT_OK) return false;
    const uint8_t *bytes = frit_file_data(file);
    bool yes = frit_file_size(file) >= 4 && (memcmp(bytes, "GGUF", 4) == 0 || memcmp(bytes, "FUGG", 4) == 0);
    frit_file_close(file);
    return yes;
}

static frit_status open_gguf(frit_checkpoint *ckpt, const char *path, const frit_checkpoint_options *options)
{
    frit_gguf_shard shard;
    FRIT_TRY(frit_gguf_shard_open(&shard, &ckpt->arena, path, options->no_mmap));
    frit_status status = frit_gguf_set_open(&shard, ckpt, options);
    frit_gguf_shard_free(&shard);
    return status == FRIT_OK ? respell(ckpt, options->part, options->log) : status;
}

const frit_checkpoint_source frit_source_gguf = {"GGUF file", recognises, open_gguf};
