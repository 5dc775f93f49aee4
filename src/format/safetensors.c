// SPDX-License-Identifier: MIT
// One safetensors file: checks each entry of the header's JSON, then all entries against each other.
#include "format/safetensors.h"

#include "base/check.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_BYTES = 8 };
static const uint64_t max_header_bytes = 100000000;   // as in the format's reference implementation

// The types of the format. A type without a number format in frit is refused when a tensor of that type is read.
static const struct {
    const char *name;
    int n_bits;
    int dtype;   // frit_dtype, or -1
} types[] = {
    // clang-format off
    {"F64",          64, FRIT_DTYPE_F64},
    {"F32",          32, FRIT_DTYPE_F32},
    {"F16",          16, FRIT_DTYPE_F16},
    {"BF16",         16, FRIT_DTYPE_BF16},
    {"I64",          64, FRIT_DTYPE_I64},
    {"I32",          32, FRIT_DTYPE_I32},
    {"I16",          16, FRIT_DTYPE_I16},
    {"I8",            8, FRIT_DTYPE_I8},
    {"U64",          64, -1},
    {"U32",          32, -1},
    {"U16",          16, -1},
    {"U8",            8, -1},
    {"BOOL",          8, -1},
    {"C64",          64, -1},
    {"F8_E4M3",       8, -1},
    {"F8_E5M2",       8, -1},
    {"F8_E4M3FNUZ",   8, -1},
    {"F8_E5M2FNUZ",   8, -1},
    {"F8_E8M0",       8, -1},
    {"F6_E2M3",       6, -1},
    {"F6_E3M2",       6, -1},
    {"F4",            4, -1},
    // clang-format on
};

static int find_type(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) return (int)i;
    return -1;
}

// ---------------------------------------------------------------------------------------- one entry

// The context of the entries of one header.
typedef struct reader {
    const char *path;
    const uint8_t *data;
    uint64_t n_data;
    frit_arena *names;
} reader;

static frit_status read_shape(const reader *r, const json_t *shape, frit_safetensors_entry *entry, uint64_t *n_elems)
{
    if (!json_is_array(shape))
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has no shape, expected a list of sizes", r->path,
                              entry->name);
    size_t n_dims = json_array_size(shape);
    if (n_dims > FRIT_SAFETENSORS_MAX_DIMS)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has %zu dimensions, expected at most %d", r->path,
                              entry->name, n_dims, FRIT_SAFETENSORS_MAX_DIMS);
    entry->n_dims = (int)n_dims;
    *n_elems = 1;
    for (size_t i = 0; i < n_dims; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s: dimension %zu of tensor '%s' is not a size, expected a whole number", r->path, i,
                                  entry->name);
        entry->shape[i] = json_integer_value(size);
        if (!frit_mul_u64(*n_elems, (uint64_t)entry->shape[i], n_elems))
            return frit_fail_file(FRIT_E_FORMAT, "%s: the shape of tensor '%s' has more than 2^64 elements", r->path,
                                  entry->name);
    }
    return FRIT_OK;
}

static frit_status read_offsets(const reader *r, const json_t *offsets, const char *name, uint64_t range[2])
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has no data_offsets, expected [begin, end]", r->path,
                              name);
    for (size_t i = 0; i < 2; i++) {
        const json_t *offset = json_array_get(offsets, i);
        if (!json_is_integer(offset) || json_integer_value(offset) < 0)
            return frit_fail_file(FRIT_E_FORMAT, "%s: the data_offsets of tensor '%s' are not two whole numbers",
                                  r->path, name);
        range[i] = (uint64_t)json_integer_value(offset);
    }
    if (range[0] > range[1])
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' begins at byte %" PRIu64 ", after its end at byte %" PRIu64, r->path,
                              name, range[0], range[1]);
    if (range[1] > r->n_data)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' ends at byte %" PRIu64 " of the data, but the file has only %" PRIu64
                              " bytes of data (truncated?)",
                              r->path, name, range[1], r->n_data);
    return FRIT_OK;
}

static frit_status read_entry(const reader *r, const char *name, const json_t *value, frit_safetensors_entry *entry)
{
    *entry = (frit_safetensors_entry){.path = r->path, .name = frit_arena_text(r->names, name, strlen(name))};
    if (!entry->name) return frit_fail_memory(strlen(name), "a tensor name");
    if (!json_is_object(value))
        return frit_fail_file(
            FRIT_E_FORMAT, "%s: the header's entry '%s' is not an object {dtype, shape, data_offsets}", r->path, name);
    const char *type_name = json_string_value(json_object_get(value, "dtype"));
    if (!type_name) return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has no dtype", r->path, name);
    int type = find_type(type_name);
    if (type < 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' has the unknown type '%.40s'", r->path, name,
                              type_name);
    entry->type = types[type].name;

    uint64_t n_elems = 0, n_bits = 0, range[2] = {0};
    FRIT_TRY(read_shape(r, json_object_get(value, "shape"), entry, &n_elems));
    FRIT_TRY(read_offsets(r, json_object_get(value, "data_offsets"), name, range));
    if (!frit_mul_u64(n_elems, (uint64_t)types[type].n_bits, &n_bits) || n_bits % 8 != 0)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' does not fill whole bytes: %" PRIu64 " elements of %d bits", r->path,
                              name, n_elems, types[type].n_bits);
    if (range[1] - range[0] != n_bits / 8)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: tensor '%s' has %" PRIu64 " bytes, but its shape and type (%" PRIu64
                              " elements of %s) need %" PRIu64,
                              r->path, name, range[1] - range[0], n_elems, entry->type, n_bits / 8);
    entry->data = r->data + range[0];
    entry->n_bytes = n_bits / 8;
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- all entries

static int by_place(const void *a, const void *b)
{
    const frit_safetensors_entry *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;   // empty tensors first
    return strcmp(x->name, y->name);
}

// The data must be covered exactly once: overlaps would be aliases, holes could hide another file.
static frit_status check_cover(const reader *r, const frit_safetensors_entry *entries, size_t n)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = (uint64_t)(entries[i].data - r->data);
        if (begin < end)
            return frit_fail_file(FRIT_E_FORMAT, "%s: tensors '%s' and '%s' overlap at byte %" PRIu64 " of the data",
                                  r->path, entries[i - 1].name, entries[i].name, begin);
        if (begin > end)
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s: bytes %" PRIu64 " to %" PRIu64
                                  " of the data, before tensor '%s', belong to no tensor",
                                  r->path, end, begin, entries[i].name);
        end = begin + entries[i].n_bytes;
    }
    if (end != r->n_data)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: the tensors end at byte %" PRIu64 " of the data, but the file has %" PRIu64
                              " bytes of data",
                              r->path, end, r->n_data);
    return FRIT_OK;
}

static bool is_free_form(const char *name)
{
    return strcmp(name, "__metadata__") == 0;
}

static frit_status read_entries(const reader *r, json_t *header, frit_safetensors_entry *entries, size_t *n)
{
    const char *name;
    json_t *value;
    *n = 0;
    json_object_foreach(header, name, value)
    {
        if (is_free_form(name)) continue;
        FRIT_TRY(read_entry(r, name, value, &entries[*n]));
        ++*n;
    }
    if (*n > 0) qsort(entries, *n, sizeof *entries, by_place);
    return check_cover(r, entries, *n);
}

// ---------------------------------------------------------------------------------------- the file

static frit_status load_header(const char *path, const uint8_t *bytes, uint64_t n_bytes, json_t **header,
                               uint64_t *data_offset)
{
    if (n_bytes < LENGTH_BYTES)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the file has %" PRIu64 " bytes, a safetensors file has at least %d",
                              path, n_bytes, LENGTH_BYTES);
    static const char lfs[] = "version https://git-lfs";
    if (n_bytes >= sizeof lfs && memcmp(bytes, lfs, sizeof lfs - 1) == 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s is a Git LFS pointer; fetch the file itself with 'git lfs pull'",
                              path);
    uint64_t length = 0;
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
    if (length > max_header_bytes)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: the header has %" PRIu64 " bytes by its length, expected at most %" PRIu64, path,
                              length, max_header_bytes);
    if (length > n_bytes - LENGTH_BYTES)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: the header has %" PRIu64 " bytes by its length, but the file ends after %" PRIu64,
                              path, length, n_bytes - LENGTH_BYTES);
    const char *text = (const char *)bytes + LENGTH_BYTES;
    if (length == 0 || text[0] != '{')
        return frit_fail_file(FRIT_E_FORMAT, "%s: the header does not begin with '{'", path);
    json_error_t error;
    *header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!*header)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the header is not valid JSON at byte %d: %s", path, error.position,
                              error.text);
    *data_offset = LENGTH_BYTES + length;
    return FRIT_OK;
}

static frit_status check_free_form(const char *path, const json_t *pairs)
{
    if (!pairs) return FRIT_OK;
    if (!json_is_object(pairs)) return frit_fail_file(FRIT_E_FORMAT, "%s: __metadata__ is not an object", path);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)pairs, name, value) if (!json_is_string(value)) return frit_fail_file(
        FRIT_E_FORMAT, "%s: '%s' in __metadata__ is not text", path, name);
    return FRIT_OK;
}

static frit_status read_header(json_t *header, const reader *r, frit_safetensors_each_fn each, void *ctx)
{
    FRIT_TRY(check_free_form(r->path, json_object_get(header, "__metadata__")));
    size_t n = json_object_size(header);
    frit_safetensors_entry *entries = calloc(n + 1, sizeof *entries);
    if (!entries) return frit_fail_memory(n * sizeof *entries, "the list of tensors");
    frit_status status = read_entries(r, header, entries, &n);
    for (size_t i = 0; i < n && status == FRIT_OK; i++) status = each(ctx, &entries[i]);
    free(entries);
    return status;
}

frit_status frit_safetensors_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, frit_arena *names,
                                  frit_safetensors_each_fn each, void *ctx)
{
    json_t *header;
    uint64_t data_offset = 0;
    FRIT_TRY(load_header(path, bytes, n_bytes, &header, &data_offset));
    reader r = {path, bytes + data_offset, n_bytes - data_offset, names};
    frit_status status = read_header(header, &r, each, ctx);
    json_decref(header);
    return status;
}

frit_status frit_safetensors_to_tensor(const frit_safetensors_entry *entry, frit_tensor *tensor)
{
    int dtype = types[find_type(entry->type)].dtype;
    if (dtype < 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' has the type %s, which is not supported",
                              entry->path, entry->name, entry->type);
    if (entry->n_bytes == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: tensor '%s' is empty: one of its dimensions is 0", entry->path,
                              entry->name);
    // Filters over frames have five dimensions; what is beyond the fourth is one dimension with it.
    const int n_dims = entry->n_dims < FRIT_MAX_DIMS ? entry->n_dims : FRIT_MAX_DIMS;
    *tensor = (frit_tensor){.name = entry->name,
                            .dtype = (frit_dtype)dtype,
                            .n_dims = n_dims > 0 ? n_dims : 1,   // a scalar becomes [1]
                            .shape = {1, 1, 1, 1},
                            .data = entry->data,
                            .n_bytes = entry->n_bytes};
    for (int i = 0; i < n_dims; i++) tensor->shape[i] = entry->shape[i];
    for (int i = n_dims; i < entry->n_dims; i++) tensor->shape[n_dims - 1] *= entry->shape[i];
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- as a checkpoint

static frit_status add_tensor(void *ctx, const frit_safetensors_entry *entry)
{
    frit_tensor tensor;
    FRIT_TRY(frit_safetensors_to_tensor(entry, &tensor));
    return frit_checkpoint_add_tensor(ctx, &tensor);
}

static frit_status add_free_form(frit_checkpoint *ckpt, json_t *pairs)
{
    const char *name;
    json_t *value;
    json_object_foreach(pairs, name, value)
    {
        frit_buf key = {0};
        frit_buf_printf(&key, "safetensors.%s", name);
        frit_status status = key.failed ? frit_fail_memory(key.len, "a metadata key")
                                        : frit_meta_add_text(&ckpt->meta, key.data, json_string_value(value));
        frit_buf_free(&key);
        FRIT_TRY(status);
    }
    return FRIT_OK;
}

frit_status frit_safetensors_parse(frit_checkpoint *ckpt, const char *path, const uint8_t *bytes, uint64_t n_bytes)
{
    json_t *header;
    uint64_t data_offset = 0;
    FRIT_TRY(load_header(path, bytes, n_bytes, &header, &data_offset));
    reader r = {path, bytes + data_offset, n_bytes - data_offset, &ckpt->arena};
    frit_status status = read_header(header, &r, add_tensor, ckpt);
    if (status == FRIT_OK) status = add_free_form(ckpt, json_object_get(header, "__metadata__"));
    json_decref(header);
    return status;
}

static bool recognises(const char *path)
{
    if (frit_path_get_kind(path) != FRIT_PATH_FILE) return false;
    size_t n = strlen(path), n_suffix = strlen(".safetensors");
    if (n > n_suffix && strcmp(path + n - n_suffix, ".safetensors") == 0) return true;
    // A file without the usual name is recognised by a plausible header length and the header's brace.
    uint8_t first[LENGTH_BYTES + 1] = {0};
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t n_read = fread(first, 1, sizeof first, file);
    fclose(file);
    return n_read == sizeof first && first[8] == '{' && (first[4] | first[5] | first[6] | first[7]) == 0;
}

static frit_status open_file(frit_checkpoint *ckpt, const char *path, const frit_checkpoint_options *options)
{
    frit_file *file;
    FRIT_TRY(frit_file_open(&file, path, options->no_mmap));
    FRIT_TRY(frit_checkpoint_add_file(ckpt, file));
    ckpt->format = "safetensors";
    return frit_safetensors_parse(ckpt, ckpt->path, frit_file_data(file), frit_file_size(file));
}

const frit_checkpoint_source frit_source_safetensors = {"safetensors file", recognises, open_file};
