// SPDX-License-Identifier: MIT
// Four buffers that become one file, and marks with the position of each number.
#include "support/gguf_builder.h"

#include "base/grow.h"
#include "support/support.h"

enum { HEADER, PAIRS, DIRECTORY, DATA };

static void mark(gguf_builder *b, int section, const char *format, ...) FRIT_PRINTF(3, 4);

static void mark(gguf_builder *b, int section, const char *format, ...)
{
    assert_ok(FRIT_GROW(b->marks, b->mark_capacity, b->n_marks + 1, "marks"));
    gguf_mark *m = &b->marks[b->n_marks++];
    va_list args;
    va_start(args, format);
    vsnprintf(m->name, sizeof m->name, format, args);
    va_end(args);
    m->section = section;
    m->at = b->sections[section].len;
}

static void put(gguf_builder *b, int section, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) frit_buf_char(&b->sections[section], (char)(value >> 8 * i & 255));
}

static void put_text(gguf_builder *b, int section, const char *text)
{
    put(b, section, strlen(text), 8);
    frit_buf_text(&b->sections[section], text);
}

static void pad(frit_buf *buf, uint64_t before, uint64_t alignment)
{
    while ((before + buf->len) % alignment != 0) frit_buf_char(buf, 0);
}

// ------------------------------------------------------------------------------------------------- pairs

static unsigned start_pair(gguf_builder *b, const char *key, frit_value_type type)
{
    unsigned i = (unsigned)b->n_pairs++;
    mark(b, PAIRS, "pair %u key length", i);
    put(b, PAIRS, strlen(key), 8);
    mark(b, PAIRS, "pair %u key", i);
    frit_buf_text(&b->sections[PAIRS], key);
    mark(b, PAIRS, "pair %u type", i);
    put(b, PAIRS, type, 4);
    return i;
}

void gguf_add_value(gguf_builder *b, const char *key, frit_value_type type, const void *bytes)
{
    unsigned i = start_pair(b, key, type);
    mark(b, PAIRS, "pair %u value", i);
    frit_buf_append(&b->sections[PAIRS], bytes, frit_value_type_bytes(type));
}

void gguf_add_text(gguf_builder *b, const char *key, const char *text)
{
    unsigned i = start_pair(b, key, FRIT_VALUE_TEXT);
    mark(b, PAIRS, "pair %u value", i);
    put_text(b, PAIRS, text);
}

void gguf_add_u32(gguf_builder *b, const char *key, uint32_t value)
{
    gguf_add_value(b, key, FRIT_VALUE_U32, &value);
}

void gguf_add_i32(gguf_builder *b, const char *key, int32_t value)
{
    gguf_add_value(b, key, FRIT_VALUE_I32, &value);
}

void gguf_add_f32(gguf_builder *b, const char *key, float value)
{
    gguf_add_value(b, key, FRIT_VALUE_F32, &value);
}

void gguf_add_bool(gguf_builder *b, const char *key, bool value)
{
    gguf_add_value(b, key, FRIT_VALUE_BOOL, &(uint8_t){value});
}

static unsigned start_array(gguf_builder *b, const char *key, frit_value_type type, uint64_t n)
{
    unsigned i = start_pair(b, key, FRIT_VALUE_ARRAY);
    mark(b, PAIRS, "pair %u item type", i);
    put(b, PAIRS, type, 4);
    mark(b, PAIRS, "pair %u n items", i);
    put(b, PAIRS, n, 8);
    return i;
}

void gguf_add_array(gguf_builder *b, const char *key, frit_value_type type, uint64_t n, const void *items)
{
    unsigned i = start_array(b, key, type, n);
    size_t size = frit_value_type_bytes(type);
    for (uint64_t j = 0; j < n; j++) {
        mark(b, PAIRS, "pair %u item %u", i, (unsigned)j);
        frit_buf_append(&b->sections[PAIRS], (const char *)items + j * size, size);
    }
}

void gguf_add_texts(gguf_builder *b, const char *key, uint64_t n, const char *const *texts)
{
    unsigned i = start_array(b, key, FRIT_VALUE_TEXT, n);
    for (uint64_t j = 0; j < n; j++) {
        mark(b, PAIRS, "pair %u item %u", i, (unsigned)j);
        put_text(b, PAIRS, texts[j]);
    }
}

// ----------------------------------------------------------------------------------------------- tensors

void gguf_add_tensor(gguf_builder *b, const char *name, frit_dtype dtype, int n_dims, const int64_t *shape,
                     const void *data)
{
    unsigned i = (unsigned)b->n_tensors++;
    uint64_t n_bytes = frit_dtype_row_bytes(dtype, shape[n_dims - 1]);
    for (int j = 0; j < n_dims - 1; j++) n_bytes *= (uint64_t)shape[j];
    pad(&b->sections[DATA], 0, b->alignment ? b->alignment : 32);
    mark(b, DIRECTORY, "tensor %u name length", i);
    put(b, DIRECTORY, strlen(name), 8);
    mark(b, DIRECTORY, "tensor %u name", i);
    frit_buf_text(&b->sections[DIRECTORY], name);
    mark(b, DIRECTORY, "tensor %u n dims", i);
    put(b, DIRECTORY, (uint64_t)n_dims, 4);
    for (int j = 0; j < n_dims; j++) {
        mark(b, DIRECTORY, "tensor %u dim %d", i, j);
        put(b, DIRECTORY, (uint64_t)shape[n_dims - 1 - j], 8);
    }
    mark(b, DIRECTORY, "tensor %u type", i);
    put(b, DIRECTORY, (uint64_t)frit_dtype_get(dtype)->gguf_id, 4);
    mark(b, DIRECTORY, "tensor %u offset", i);
    put(b, DIRECTORY, b->sections[DATA].len, 8);
    if (data) frit_buf_append(&b->sections[DATA], data, (size_t)n_bytes);
    for (uint64_t j = 0; !data && j < n_bytes; j++) frit_buf_char(&b->sections[DATA], (char)(i + j));
}

// ------------------------------------------------------------------------------------------------- whole

frit_buf gguf_build(gguf_builder *b)
{
    static const struct {
        const char *name;
        size_t at;
    } numbers[] = {{"magic", 0}, {"version", 4}, {"n tensors", 8}, {"n pairs", 16}};
    uint64_t alignment = b->alignment ? b->alignment : 32;
    frit_buf *header = &b->sections[HEADER], file = {0};
    if (header->len == 0)
        for (size_t i = 0; i < FRIT_COUNT(numbers); i++) {
            mark(b, HEADER, "%s", numbers[i].name);
            b->marks[b->n_marks - 1].at = numbers[i].at;
        }
    frit_buf_clear(header);
    frit_buf_text(header, "GGUF");
    put(b, HEADER, b->version ? b->version : 3, 4);
    put(b, HEADER, b->n_tensors, 8);
    put(b, HEADER, b->n_pairs, 8);
    for (int i = HEADER; i <= DIRECTORY; i++) frit_buf_append(&file, b->sections[i].data, b->sections[i].len);
    if (b->n_tensors > 0) {
        pad(&file, 0, alignment);
        frit_buf_append(&file, b->sections[DATA].data, b->sections[DATA].len);
        pad(&file, 0, alignment);
    }
    if (file.failed) fail_msg("out of memory");
    return file;
}

size_t gguf_place(const gguf_builder *b, const char *name)
{
    size_t start[4] = {0};
    uint64_t alignment = b->alignment ? b->alignment : 32;
    for (int i = PAIRS; i <= DATA; i++) start[i] = start[i - 1] + b->sections[i - 1].len;
    start[DATA] = (size_t)((start[DATA] + alignment - 1) / alignment * alignment);
    if (strcmp(name, "data") == 0) return start[DATA];
    for (size_t i = 0; i < b->n_marks; i++)
        if (strcmp(b->marks[i].name, name) == 0) return start[b->marks[i].section] + b->marks[i].at;
    fail_msg("the file has no place '%s'", name);
    return 0;
}

void gguf_patch(const gguf_builder *b, frit_buf *file, const char *place, uint64_t value, size_t n_bytes)
{
    size_t at = gguf_place(b, place);
    if (at + n_bytes > file->len) fail_msg("place '%s' lies after the end", place);
    for (size_t i = 0; i < n_bytes; i++) file->data[at + i] = (char)(value >> 8 * i & 255);
}

void gguf_builder_free(gguf_builder *b)
{
    for (size_t i = 0; i < FRIT_COUNT(b->sections); i++) frit_buf_free(&b->sections[i]);
    free(b->marks);
    *b = (gguf_builder){0};
}
