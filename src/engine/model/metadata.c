// SPDX-License-Identifier: MIT
// Public functions that read metadata by key.
#include "engine/model/model.h"

#include <math.h>

static frit_meta_type type_of(frit_value_type type)
{
    if (type == FRIT_VALUE_BOOL) return FRIT_META_BOOL;
    if (type == FRIT_VALUE_TEXT) return FRIT_META_TEXT;
    return type == FRIT_VALUE_F32 || type == FRIT_VALUE_F64 ? FRIT_META_FLOAT : FRIT_META_INT;
}

static frit_status find_value(const frit_model *model, const char *key, const frit_value **out)
{
    *out = frit_meta_find(&model->ckpt->meta, key);
    return *out ? FRIT_OK : frit_fail_file(FRIT_E_NOT_FOUND, "%s: has no metadata key '%.128s'", model->info.path, key);
}

static frit_status fail_type(const frit_model *model, const char *key, const frit_value *value, const char *expected)
{
    const bool is_array = value->type == FRIT_VALUE_ARRAY;
    return frit_fail_file(FRIT_E_INVALID, "%s: metadata key '%.128s' is %s %s; expected %s", model->info.path, key,
                          is_array ? "an array of" : "of type",
                          frit_value_type_name(is_array ? value->array.type : value->type), expected);
}

// Returns item i of an array as a single value. A value that is not an array is its own item 0.
static frit_status get_item(const frit_model *model, const char *key, uint64_t i, const frit_value **whole,
                            frit_value *item)
{
    FRIT_TRY(find_value(model, key, whole));
    const frit_value *value = *whole;
    const uint64_t n = value->type == FRIT_VALUE_ARRAY ? value->array.n : 1;
    if (i >= n)
        return frit_fail_file(FRIT_E_INVALID, "%s: item %llu of metadata key '%.128s', which has %llu",
                              model->info.path, (unsigned long long)i, key, (unsigned long long)n);
    if (value->type != FRIT_VALUE_ARRAY) {
        *item = *value;
        return FRIT_OK;
    }
    item->type = value->array.type;
    if (item->type == FRIT_VALUE_TEXT)
        item->text = frit_value_item_text(value, i);
    else
        frit_value_load(item->type, (const char *)value->array.items + i * frit_value_type_bytes(item->type), item);
    return FRIT_OK;
}

frit_status frit_model_find_meta(const frit_model *model, const char *key, frit_meta_info *info)
{
    const frit_value *value;
    FRIT_REQUIRE(info);
    *info = (frit_meta_info){0};
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(key);
    FRIT_TRY(find_value(model, key, &value));
    info->is_array = value->type == FRIT_VALUE_ARRAY;
    info->type = type_of(info->is_array ? value->array.type : value->type);
    info->n_items = info->is_array ? value->array.n : 1;
    return FRIT_OK;
}

static bool is_signed(frit_value_type type)
{
    return type == FRIT_VALUE_I8 || type == FRIT_VALUE_I16 || type == FRIT_VALUE_I32 || type == FRIT_VALUE_I64;
}

frit_status frit_model_meta_int(const frit_model *model, const char *key, uint64_t i, int64_t *value)
{
    const frit_value *whole;
    frit_value item;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(key);
    FRIT_REQUIRE(value);
    FRIT_TRY(get_item(model, key, i, &whole, &item));
    const frit_meta_type type = type_of(item.type);
    bool good = type != FRIT_META_TEXT;
    int64_t number = 0;
    if (type == FRIT_META_FLOAT) {
        good = item.f >= -0x1p63 && item.f < 0x1p63 && item.f == floor(item.f);
        if (good) number = (int64_t)item.f;
    } else if (good && is_signed(item.type)) {
        number = item.i;
    } else if (good) {
        good = item.u <= INT64_MAX;
        number = (int64_t)item.u;
    }
    if (!good) return fail_type(model, key, whole, "an integer of 64 bits");
    *value = number;
    return FRIT_OK;
}

frit_status frit_model_meta_float(const frit_model *model, const char *key, uint64_t i, double *value)
{
    const frit_value *whole;
    frit_value item;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(key);
    FRIT_REQUIRE(value);
    FRIT_TRY(get_item(model, key, i, &whole, &item));
    const frit_meta_type type = type_of(item.type);
    const double number = type == FRIT_META_FLOAT ? item.f : is_signed(item.type) ? (double)item.i : (double)item.u;
    // Integers above 2^53 may have no exact double.
    const bool is_exact = type == FRIT_META_FLOAT || fabs(number) <= 0x1p53;
    if (type == FRIT_META_TEXT || type == FRIT_META_BOOL || !is_exact)
        return fail_type(model, key, whole, "a number that a double holds");
    *value = number;
    return FRIT_OK;
}

frit_status frit_model_meta_text(const frit_model *model, const char *key, uint64_t i, const char **text,
                                 size_t *n_bytes)
{
    const frit_value *whole;
    frit_value item;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(key);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE(n_bytes);
    FRIT_TRY(get_item(model, key, i, &whole, &item));
    if (item.type != FRIT_VALUE_TEXT) return fail_type(model, key, whole, "text");
    *text = item.text.ptr ? item.text.ptr : "";
    *n_bytes = item.text.len;
    return FRIT_OK;
}
