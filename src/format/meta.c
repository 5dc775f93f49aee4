// SPDX-License-Identifier: MIT
// Metadata: pairs in file order with an index by key, exact conversions, values as text.
#include "format/meta.h"

#include "base/grow.h"
#include "base/number.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Values and array items keep the file's byte order, which is little-endian.
#ifdef __BYTE_ORDER__
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the host must be little-endian");
#endif

static const struct {
    const char *name;
    uint8_t n_bytes;
} value_types[FRIT_VALUE_TYPE_COUNT] = {
    [FRIT_VALUE_U8] = {"u8", 1},       [FRIT_VALUE_I8] = {"i8", 1},     [FRIT_VALUE_U16] = {"u16", 2},
    [FRIT_VALUE_I16] = {"i16", 2},     [FRIT_VALUE_U32] = {"u32", 4},   [FRIT_VALUE_I32] = {"i32", 4},
    [FRIT_VALUE_F32] = {"f32", 4},     [FRIT_VALUE_BOOL] = {"bool", 1}, [FRIT_VALUE_TEXT] = {"text", 0},
    [FRIT_VALUE_ARRAY] = {"array", 0}, [FRIT_VALUE_U64] = {"u64", 8},   [FRIT_VALUE_I64] = {"i64", 8},
    [FRIT_VALUE_F64] = {"f64", 8},
};

const char *frit_value_type_name(frit_value_type type)
{
    return (unsigned)type < FRIT_VALUE_TYPE_COUNT ? value_types[type].name : "unknown";
}

size_t frit_value_type_bytes(frit_value_type type)
{
    return (unsigned)type < FRIT_VALUE_TYPE_COUNT ? value_types[type].n_bytes : 0;
}

// ------------------------------------------------------------------------------------ adding and finding

void frit_meta_init(frit_meta *meta, frit_arena *arena)
{
    *meta = (frit_meta){.arena = arena};
}

void frit_meta_deinit(frit_meta *meta)
{
    frit_map_free(&meta->index);
    *meta = (frit_meta){0};
}

frit_status frit_meta_add(frit_meta *meta, frit_str key, frit_value value)
{
    if (frit_map_get(&meta->index, key, &(int64_t){0}))
        return frit_fail(FRIT_E_FORMAT, "metadata key '%.*s' occurs twice", (int)key.len, key.ptr);
    FRIT_TRY(FRIT_GROW_IN(meta->arena, meta->pairs, meta->capacity, meta->n + 1, "metadata"));
    if (!frit_map_put(&meta->index, key, (int64_t)meta->n)) return frit_fail_memory(meta->n * 32, "metadata keys");
    meta->pairs[meta->n++] = (frit_pair){key, value};
    return FRIT_OK;
}

static frit_status add_copied(frit_meta *meta, const char *key, frit_value value)
{
    const char *copy = frit_arena_text(meta->arena, key, strlen(key));
    if (!copy) return frit_fail_memory(strlen(key), "a metadata key");
    return frit_meta_add(meta, frit_str_of(copy), value);
}

frit_status frit_meta_add_text(frit_meta *meta, const char *key, const char *text)
{
    const char *copy = frit_arena_text(meta->arena, text, strlen(text));
    if (!copy) return frit_fail_memory(strlen(text), "a metadata value");
    return add_copied(meta, key, (frit_value){.type = FRIT_VALUE_TEXT, .text = frit_str_of(copy)});
}

frit_status frit_meta_add_u64(frit_meta *meta, const char *key, uint64_t value)
{
    return add_copied(meta, key, (frit_value){.type = FRIT_VALUE_U64, .u = value});
}

frit_status frit_meta_add_f64(frit_meta *meta, const char *key, double value)
{
    return add_copied(meta, key, (frit_value){.type = FRIT_VALUE_F64, .f = value});
}

frit_status frit_meta_add_bool(frit_meta *meta, const char *key, bool value)
{
    return add_copied(meta, key, (frit_value){.type = FRIT_VALUE_BOOL, .u = value});
}

frit_status frit_meta_remove(frit_meta *meta, const char *key)
{
    int64_t at;
    if (!frit_map_get(&meta->index, frit_str_of(key), &at)) return FRIT_OK;
    frit_map index = {0};
    if (!frit_map_reserve(&index, meta->n)) return frit_fail_memory(meta->n * 32, "metadata keys");
    memmove(&meta->pairs[at], &meta->pairs[at + 1], (meta->n - (size_t)at - 1) * sizeof *meta->pairs);
    meta->n--;
    for (size_t i = 0; i < meta->n; i++) frit_map_put(&index, meta->pairs[i].key, (int64_t)i);
    frit_map_free(&meta->index);
    meta->index = index;
    return FRIT_OK;
}

const frit_value *frit_meta_find(const frit_meta *meta, const char *key)
{
    int64_t at;
    return frit_map_get(&meta->index, frit_str_of(key), &at) ? &meta->pairs[at].value : NULL;
}

// --------------------------------------------------------------------------------------------- conversion

typedef enum number_kind { NOT_A_NUMBER, UNSIGNED, SIGNED, FLOATING } number_kind;

static number_kind kind_of(frit_value_type type)
{
    switch (type) {
    case FRIT_VALUE_U8:
    case FRIT_VALUE_U16:
    case FRIT_VALUE_U32:
    case FRIT_VALUE_U64:
        return UNSIGNED;
    case FRIT_VALUE_I8:
    case FRIT_VALUE_I16:
    case FRIT_VALUE_I32:
    case FRIT_VALUE_I64:
        return SIGNED;
    case FRIT_VALUE_F32:
    case FRIT_VALUE_F64:
        return FLOATING;
    default:
        return NOT_A_NUMBER;
    }
}

// Describes the value, for errors: "text", "an array of u32", "the u64 18446744073709551615".
static const char *describe(const frit_value *value, char text[64])
{
    const char *name = frit_value_type_name(value->type);
    switch (kind_of(value->type)) {
    case UNSIGNED:
        snprintf(text, 64, "the %s %" PRIu64, name, value->u);
        break;
    case SIGNED:
        snprintf(text, 64, "the %s %" PRId64, name, value->i);
        break;
    case FLOATING:
        frit_format(text, 64, "the %s %.9g", name, value->f);
        break;
    default:
        if (value->type == FRIT_VALUE_ARRAY)
            snprintf(text, 64, "an array of %s", frit_value_type_name(value->array.type));
        else
            snprintf(text, 64, "%s", name);
    }
    return text;
}

static frit_status unusable(const char *key, const frit_value *value, const char *expected)
{
    char text[64];
    return frit_fail(FRIT_E_FORMAT, "metadata key '%s' is %s, expected %s", key, describe(value, text), expected);
}

// Finds the key and reports whether it is present.
static const frit_value *look_up(const frit_meta *meta, const char *key, bool *found)
{
    const frit_value *value = frit_meta_find(meta, key);
    if (found) *found = value != NULL;
    return value;
}

static bool to_i64(const frit_value *value, int64_t *out)
{
    switch (kind_of(value->type)) {
    case UNSIGNED:
        if (value->u > INT64_MAX) return false;
        *out = (int64_t)value->u;
        return true;
    case SIGNED:
        *out = value->i;
        return true;
    case FLOATING:   // the comparisons are also false for NaN
        if (!(value->f >= -0x1p63 && value->f < 0x1p63) || value->f != trunc(value->f)) return false;
        *out = (int64_t)value->f;
        return true;
    default:
        return false;
    }
}

static bool to_f64(const frit_value *value, double *out)
{
    switch (kind_of(value->type)) {
    case UNSIGNED:
        *out = (double)value->u;
        return *out < 0x1p64 && (uint64_t)*out == value->u;
    case SIGNED:
        *out = (double)value->i;
        return *out < 0x1p63 && (int64_t)*out == value->i;
    case FLOATING:
        *out = value->f;
        return true;
    default:
        return false;
    }
}

frit_status frit_meta_get_i64(const frit_meta *meta, const char *key, int64_t *out, bool *found)
{
    const frit_value *value = look_up(meta, key, found);
    if (!value) return FRIT_OK;
    int64_t number;
    if (!to_i64(value, &number)) return unusable(key, value, "a whole number below 2^63");
    *out = number;
    return FRIT_OK;
}

frit_status frit_meta_get_f64(const frit_meta *meta, const char *key, double *out, bool *found)
{
    const frit_value *value = look_up(meta, key, found);
    if (!value) return FRIT_OK;
    double number;
    if (!to_f64(value, &number)) return unusable(key, value, "a number that fits into f64");
    *out = number;
    return FRIT_OK;
}

frit_status frit_meta_get_bool(const frit_meta *meta, const char *key, bool *out, bool *found)
{
    const frit_value *value = look_up(meta, key, found);
    if (!value) return FRIT_OK;
    int64_t number;
    if (value->type == FRIT_VALUE_BOOL)
        *out = value->u != 0;
    else if (kind_of(value->type) != FLOATING && to_i64(value, &number) && (number == 0 || number == 1))
        *out = number == 1;
    else
        return unusable(key, value, "a bool");
    return FRIT_OK;
}

frit_status frit_meta_get_text(const frit_meta *meta, const char *key, frit_str *out, bool *found)
{
    const frit_value *value = look_up(meta, key, found);
    if (!value) return FRIT_OK;
    if (value->type != FRIT_VALUE_TEXT) return unusable(key, value, "text");
    *out = value->text;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------- array items

// Item i as a frit_value, whatever its type.
static frit_value item_at(const frit_value *array, uint64_t i)
{
    assert(array->type == FRIT_VALUE_ARRAY && i < array->array.n);
    frit_value item = {.type = array->array.type};
    if (item.type == FRIT_VALUE_TEXT) {
        item.text = ((const frit_str *)array->array.items)[i];
        return item;
    }
    frit_value_load(item.type, (const char *)array->array.items + i * frit_value_type_bytes(item.type), &item);
    return item;
}

void frit_value_load(frit_value_type type, const void *bytes, frit_value *value)
{
    value->type = type;
    value->u = 0;
    memcpy(&value->u, bytes, frit_value_type_bytes(type));
    switch (type) {
    case FRIT_VALUE_I8:
        value->i = (int8_t)value->u;
        break;
    case FRIT_VALUE_I16:
        value->i = (int16_t)value->u;
        break;
    case FRIT_VALUE_I32:
        value->i = (int32_t)value->u;
        break;
    case FRIT_VALUE_F32: {
        float f;
        memcpy(&f, bytes, sizeof f);
        value->f = f;
        break;
    }
    default:   // unsigned numbers and bool are complete; i64 and f64 keep their bits
        break;
    }
}

int64_t frit_value_item_i64(const frit_value *array, uint64_t i)
{
    frit_value item = item_at(array, i);
    assert(kind_of(item.type) == UNSIGNED || kind_of(item.type) == SIGNED || item.type == FRIT_VALUE_BOOL);
    return kind_of(item.type) == SIGNED ? item.i : item.u > INT64_MAX ? INT64_MAX : (int64_t)item.u;
}

double frit_value_item_f64(const frit_value *array, uint64_t i)
{
    frit_value item = item_at(array, i);
    assert(kind_of(item.type) != NOT_A_NUMBER);
    if (kind_of(item.type) == FLOATING) return item.f;
    return kind_of(item.type) == SIGNED ? (double)item.i : (double)item.u;
}

frit_str frit_value_item_text(const frit_value *array, uint64_t i)
{
    assert(array->array.type == FRIT_VALUE_TEXT);
    return item_at(array, i).text;
}

// --------------------------------------------------------------------------------------------- as text

// Writes the fewest digits that read back as the same number.
static void print_float(double value, bool single, frit_buf *out)
{
    char text[40];
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        const int n = frit_format(text, sizeof text, "%.*g", digits, value);
        double back = 0;
        frit_parse_double(text, (size_t)n, &back);
        if (single ? (float)back == (float)value : back == value) break;
        if (!isfinite(value)) break;
    }
    frit_buf_text(out, text);
}

// Writes valid UTF-8 unchanged and other bytes as \xNN. In quotes, line breaks and quotes are escaped too.
static void print_text(frit_str text, bool quoted, frit_buf *out)
{
    if (quoted) frit_buf_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        unsigned char c = (unsigned char)text.ptr[i];
        uint32_t code_point;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &code_point);
        bool control = c < 32 || c == 127 || (n > 1 && code_point < 0xa0);
        if (quoted && (c == '"' || c == '\\'))
            frit_buf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            frit_buf_text(out, !quoted ? (c == '\n' ? "\n" : "\t") : c == '\n' ? "\\n" : "\\t");
        else if (n > 0 && !control)
            frit_buf_append(out, text.ptr + i, (size_t)n);
        else
            for (int k = 0; k < (n > 0 ? n : 1); k++)
                frit_buf_printf(out, "\\x%02x", (unsigned char)text.ptr[i + (size_t)k]);
        i += n > 0 ? (size_t)n : 1;
    }
    if (quoted) frit_buf_char(out, '"');
}

static void print_scalar(const frit_value *value, bool quoted, frit_buf *out)
{
    switch (kind_of(value->type)) {
    case UNSIGNED:
        frit_buf_printf(out, "%" PRIu64, value->u);
        return;
    case SIGNED:
        frit_buf_printf(out, "%" PRId64, value->i);
        return;
    case FLOATING:
        print_float(value->f, value->type == FRIT_VALUE_F32, out);
        return;
    default:
        if (value->type == FRIT_VALUE_BOOL)
            frit_buf_text(out, value->u ? "true" : "false");
        else
            print_text(value->text, quoted, out);
    }
}

void frit_value_print(const frit_value *value, int max_items, frit_buf *out)
{
    if (value->type != FRIT_VALUE_ARRAY) {
        print_scalar(value, false, out);
        return;
    }
    uint64_t n = value->array.n, shown = max_items >= 0 && (uint64_t)max_items < n ? (uint64_t)max_items : n;
    frit_buf_char(out, '[');
    for (uint64_t i = 0; i < shown && !out->failed; i++) {
        frit_value item = item_at(value, i);
        if (i > 0) frit_buf_text(out, ", ");
        print_scalar(&item, true, out);
    }
    if (shown < n) frit_buf_printf(out, "%s... (%" PRIu64 " in all)", shown > 0 ? ", " : "", n);
    frit_buf_char(out, ']');
}
