// SPDX-License-Identifier: MIT
// format/meta.h: the metadata of a checkpoint: an ordered list of key/value pairs with GGUF's thirteen value types.
//
// GGUF files fill it from their header, Hugging Face folders from config.json, with the keys of GGUF. Code outside this
// folder does not see the difference.
//
// The getters convert between number types if the value stays exact. They return false if the key is absent, and fail
// with an error (key, found type or value, expected) if it is present but unusable.
#pragma once
#include "base/arena.h"
#include "base/map.h"

// clang-format off
typedef enum frit_value_type {   // GGUF's numbers
    FRIT_VALUE_U8, FRIT_VALUE_I8, FRIT_VALUE_U16, FRIT_VALUE_I16, FRIT_VALUE_U32, FRIT_VALUE_I32, FRIT_VALUE_F32,
    FRIT_VALUE_BOOL, FRIT_VALUE_TEXT, FRIT_VALUE_ARRAY, FRIT_VALUE_U64, FRIT_VALUE_I64, FRIT_VALUE_F64,
    FRIT_VALUE_TYPE_COUNT
} frit_value_type;
// clang-format on

typedef struct frit_value {
    frit_value_type type;
    union {
        uint64_t u;   // U8 to U64, BOOL
        int64_t i;    // I8 to I64
        double f;     // F32, F64
        frit_str text;
        struct {
            frit_value_type type;   // never ARRAY
            uint64_t n;
            const void *items;   // packed as in the file, possibly unaligned; frit_str[n] for TEXT
        } array;
    };
} frit_value;

typedef struct frit_pair {
    frit_str key;
    frit_value value;
} frit_pair;

typedef struct frit_meta {
    frit_pair *pairs;
    size_t n, capacity;
    frit_map index;
    frit_arena *arena;   // owns pairs and the setters' copies
} frit_meta;

const char *frit_value_type_name(frit_value_type type);
size_t frit_value_type_bytes(frit_value_type type);   // 0 for TEXT and ARRAY

// Reads a number or bool from its bytes in the file. Not for TEXT and ARRAY.
void frit_value_load(frit_value_type type, const void *bytes, frit_value *value);

void frit_meta_init(frit_meta *meta, frit_arena *arena);
void frit_meta_deinit(frit_meta *meta);   // the arena stays
// Adds a pair; key and contents are borrowed. FRIT_E_FORMAT for a duplicate key.
frit_status frit_meta_add(frit_meta *meta, frit_str key, frit_value value);
// For sources other than GGUF: copies key and text. FRIT_E_FORMAT for a duplicate key.
frit_status frit_meta_add_text(frit_meta *meta, const char *key, const char *text);
frit_status frit_meta_add_u64(frit_meta *meta, const char *key, uint64_t value);
frit_status frit_meta_add_f64(frit_meta *meta, const char *key, double value);
frit_status frit_meta_add_bool(frit_meta *meta, const char *key, bool value);

// Removes a pair; the others keep their order. Does nothing if the key is absent.
frit_status frit_meta_remove(frit_meta *meta, const char *key);

const frit_value *frit_meta_find(const frit_meta *meta, const char *key);   // NULL if absent
// *found (may be NULL) is set to true if the key is present; if it is absent, the result is unchanged. Integers and
// floats convert into each other if the value stays exact; 0 and 1 are accepted as bool.
frit_status frit_meta_get_i64(const frit_meta *meta, const char *key, int64_t *out, bool *found);
frit_status frit_meta_get_f64(const frit_meta *meta, const char *key, double *out, bool *found);
frit_status frit_meta_get_bool(const frit_meta *meta, const char *key, bool *out, bool *found);
frit_status frit_meta_get_text(const frit_meta *meta, const char *key, frit_str *out, bool *found);

// Item i of an array value as a number or text; the caller checks i and the family of the item type (whole numbers and
// bool; any number; text). U64 items above INT64_MAX come out as INT64_MAX.
int64_t frit_value_item_i64(const frit_value *array, uint64_t i);
double frit_value_item_f64(const frit_value *array, uint64_t i);
frit_str frit_value_item_text(const frit_value *array, uint64_t i);

// A value as text for display: arrays shortened to max_items (negative: all items). A text value keeps its line breaks
// and tabs; other control characters, and bytes that are not UTF-8, are written as \xNN.
void frit_value_print(const frit_value *value, int max_items, frit_buf *out);
// A value as JSON (meta_json.c): text, numbers, true and false, lists; null for numbers that are not finite. A list of
// more than max_items becomes {"length": n, "first": [...]}.
void frit_value_print_json(const frit_value *value, int max_items, frit_buf *out);
