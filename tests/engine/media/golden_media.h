// SPDX-License-Identifier: MIT
// engine/media/golden_media.h: reads golden.json and golden.f32 of a folder in goldens/media.
#pragma once
#include "support/support.h"

#include <jansson.h>

typedef struct media_golden {
    const char *folder;
    json_t *root;
    float *values;
} media_golden;

static inline media_golden media_golden_open(const char *name)
{
    media_golden g = {.folder = shared_path("goldens/media/%s", name)};
    size_t n;
    char *text = read_file(shared_path("goldens/media/%s/golden.json", name), &n);
    g.root = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(g.root);
    g.values = (float *)(void *)read_file(shared_path("goldens/media/%s/golden.f32", name), &n);
    return g;
}

static inline void media_golden_close(media_golden *g)
{
    json_decref(g->root);
    free(g->values);
}

// Returns the array with this name, and sets its number of rows: all dimensions but the last.
static inline const float *media_golden_array(const media_golden *g, const char *name, int64_t *n_rows, int64_t *width)
{
    const json_t *array = json_object_get(json_object_get(g->root, "arrays"), name);
    const json_t *shape = json_object_get(array, "shape");
    assert_non_null(array);
    *n_rows = 1;
    for (size_t i = 0; i + 1 < json_array_size(shape); i++) *n_rows *= json_integer_value(json_array_get(shape, i));
    *width = json_integer_value(json_array_get(shape, json_array_size(shape) - 1));
    return g->values + json_integer_value(json_object_get(array, "offset")) / (json_int_t)sizeof(float);
}

static inline const char *media_golden_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}
