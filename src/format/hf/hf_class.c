// SPDX-License-Identifier: MIT
// Applies the knowledge of transformers' configuration classes: other names of keys in config.json, values of absent
// keys, and the text model of a multimodal model. The facts are rows of hf_classes.def.
#include "format/hf/hf.h"

#include <stdio.h>

typedef enum row_kind { ALIASES_ROW, DEFAULTS_ROW, TEXT_MODEL_ROW, ONLY_TEXT_MODEL_ROW } row_kind;

#define ALIASES(type, ...)          {ALIASES_ROW, #type, #__VA_ARGS__},
#define DEFAULTS(type, ...)         {DEFAULTS_ROW, #type, #__VA_ARGS__},
#define TEXT_MODEL(type, text)      {TEXT_MODEL_ROW, #type, #text},
#define ONLY_TEXT_MODEL(type, text) {ONLY_TEXT_MODEL_ROW, #type, #text},
static const struct {
    row_kind kind;
    const char *model_type, *text;
} rows[] = {
#include "format/hf/hf_classes.def"
#include "format/hf/hf_vision_classes.def"
};

static const char *find(row_kind kind, const char *model_type)
{
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (rows[i].kind == kind && strcmp(rows[i].model_type, model_type) == 0) return rows[i].text;
    return NULL;
}

const char *frit_hf_text_type(const json_t *whole)
{
    const char *type = json_string_value(json_object_get(whole, "model_type"));
    const json_t *own = json_object_get(json_object_get(whole, "text_config"), "model_type");
    if (!type) return NULL;
    const char *only = find(ONLY_TEXT_MODEL_ROW, type);
    return only || json_is_string(own) ? only : find(TEXT_MODEL_ROW, type);
}

static json_t *load(row_kind kind, const char *model_type)
{
    const char *text = find(kind, model_type);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static bool is_given(const json_t *value)
{
    return value && !json_is_null(value);
}

// Copies a value from the first name of each pair to the second, replacing any value there. Pairs are processed in
// order, because a new name may be the old name of a later pair.
static bool rename_keys(json_t *config, json_t *pairs)
{
    const char *from;
    json_t *to;
    bool done = true;
    json_object_foreach(pairs, from, to)
    {
        json_t *value = json_object_get(config, from);
        if (json_is_null(to))
            json_object_del(config, from);
        else if (is_given(value))
            done = json_object_set(config, json_string_value(to), value) == 0 && done;
    }
    return done;
}

// Adds missing values. A null counts as absent for a group of keys, and "auto" for numbers derived from others.
static bool add_missing(json_t *config, json_t *values)
{
    const char *key;
    json_t *value;
    bool done = true;
    json_object_foreach(values, key, value)
    {
        const json_t *own = json_object_get(config, key);
        const bool is_empty = json_is_null(own) || (json_is_object(own) && json_object_size(own) == 0);
        const bool is_there = own && !(json_is_object(value) && is_empty);
        if (!is_there) done = json_object_set(config, key, value) == 0 && done;
    }
    return done;
}

static void remove_auto(json_t *config)
{
    static const char *const keys[] = {"time_step_rank", "mamba_dt_rank", "mamba_d_head"};
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        const char *text = json_string_value(json_object_get(config, keys[i]));
        if (text && strcmp(text, "auto") == 0) json_object_del(config, keys[i]);
    }
}

frit_status frit_hf_complete(json_t *config, const char *path, const char *model_type)
{
    json_t *pairs = load(ALIASES_ROW, model_type);
    json_t *values = load(DEFAULTS_ROW, model_type);
    remove_auto(config);
    const bool done = values && rename_keys(config, pairs) && add_missing(config, values);
    json_decref(pairs);
    json_decref(values);
    return done ? FRIT_OK : frit_fail_memory(1024, path);
}

const char *frit_hf_spelling(const frit_hf *hf, const json_t *object, const char *name, char text[FRIT_HF_NAME_BYTES])
{
    json_t *pairs = object == hf->config && hf->family ? load(ALIASES_ROW, hf->family->model_type) : NULL;
    const char *from;
    json_t *to;
    snprintf(text, FRIT_HF_NAME_BYTES, "%s", name);
    json_object_foreach(pairs, from, to) if (json_is_string(to) && strcmp(json_string_value(to), name) == 0 &&
                                             is_given(json_object_get(object, from)))
        snprintf(text, FRIT_HF_NAME_BYTES, "%s", from);
    json_decref(pairs);
    return text;
}
