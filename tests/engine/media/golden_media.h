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

typedef struct media_dims {
    size_t n_dims;
    int64_t n[4];
} media_dims;

// Returns the array with this name, and sets its dimensions.
static inline const float *media_golden_array_of(const media_golden *g, const char *name, media_dims *dims)
{
    const json_t *array = json_object_get(json_object_get(g->root, "arrays"), name);
    const json_t *shape = json_object_get(array, "shape");
    assert_non_null(array);
    dims->n_dims = json_array_size(shape);
    assert_in_range(dims->n_dims, 1, 4);
    for (size_t i = 0; i < dims->n_dims; i++) dims->n[i] = json_integer_value(json_array_get(shape, i));
    return g->values + json_integer_value(json_object_get(array, "offset")) / (json_int_t)sizeof(float);
}

// Returns the array with this name, and sets its number of rows: all dimensions but the last.
static inline const float *media_golden_array(const media_golden *g, const char *name, int64_t *n_rows, int64_t *width)
{
    media_dims dims;
    const float *values = media_golden_array_of(g, name, &dims);
    *n_rows = 1;
    for (size_t i = 0; i + 1 < dims.n_dims; i++) *n_rows *= dims.n[i];
    *width = dims.n[dims.n_dims - 1];
    return values;
}

// Returns the features of a case, and sets their number and width. Those for the first layers of a text (deepstack)
// follow the others in each row. The caller frees them.
static inline float *media_golden_features(const media_golden *g, const json_t *one, int64_t *n_rows, int64_t *width)
{
    const json_t *deep = json_object_get(one, "deepstack");
    const size_t n_parts = 1 + json_array_size(deep);
    int64_t n;
    const char *name = json_string_value(json_object_get(one, "features"));
    assert_non_null(name);
    media_golden_array(g, name, n_rows, &n);
    *width = n * (int64_t)n_parts;
    float *all = calloc((size_t)(*n_rows * *width), sizeof *all);
    for (size_t i = 0; i < n_parts; i++) {
        if (i > 0) name = json_string_value(json_array_get(deep, i - 1));
        const float *part = media_golden_array(g, name, n_rows, &n);
        for (int64_t t = 0; t < *n_rows; t++)
            memcpy(all + t * *width + (int64_t)i * n, part + t * n, (size_t)n * sizeof *part);
    }
    return all;
}

static inline const char *media_golden_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}
