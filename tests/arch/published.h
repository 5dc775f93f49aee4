// SPDX-License-Identifier: MIT
// arch/published.h: writes a model of the goldens as a folder with other names, shapes and orders of weights.
#pragma once
#include "arch/golden.h"
#include "base/buf.h"
#include "format/checkpoint.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAMES = 32, HEAD = 16, WIDTH = 64 };

typedef struct matrix {
    float *values;
    int64_t shape[4];
    int n_dims;
} matrix;

typedef struct name_pair {
    const char *published, *gguf;   // '*' is the layer
    const char *below;              // tensors whose rows follow in the published matrix: "NAME|NAME"; or NULL
    void (*change)(matrix *m);      // into the published form; NULL: none
} name_pair;

typedef struct published {
    const char *source;   // a golden
    const char *config;
    name_pair names[MAX_NAMES];
} published;

// ------------------------------------------------------------------------------- forms

static inline int64_t n_rows_of(const matrix *m)
{
    return m->shape[0];
}

static inline int64_t width_of(const matrix *m)
{
    int64_t n = 1;
    for (int i = 1; i < m->n_dims; i++) n *= m->shape[i];
    return n;
}

// Row i becomes row source(i).
static inline void order_rows(matrix *m, int64_t (*source)(int64_t i))
{
    const size_t n = (size_t)width_of(m);
    float *values = malloc((size_t)n_rows_of(m) * n * sizeof *values);
    for (int64_t i = 0; i < n_rows_of(m); i++)
        memcpy(values + (size_t)i * n, m->values + (size_t)source(i) * n, n * sizeof *values);
    free(m->values);
    m->values = values;
}

// All q, all k, all v become q, k, v of each head.
static inline int64_t row_by_head(int64_t i)
{
    const int64_t head = i / (3 * HEAD), side = i / HEAD % 3;
    return side * WIDTH + head * HEAD + i % HEAD;
}

static inline void group_by_head(matrix *m)
{
    order_rows(m, row_by_head);
}

// Rows that rotate together are neighbours in GGUF, and half a head apart in folders.
static inline int64_t row_of_halves(int64_t i)
{
    const int64_t at = i % HEAD;
    return i - at + (at < HEAD / 2 ? 2 * at : 2 * (at - HEAD / 2) + 1);
}

static inline void unpair(matrix *m)
{
    order_rows(m, row_of_halves);
}

// The matrices of experts become one.
static inline void join_experts(matrix *m)
{
    *m = (matrix){m->values, {m->shape[0] * m->shape[1], m->shape[2]}, 2};
}

static inline void transpose_experts(matrix *m)
{
    const int64_t n = m->shape[0], rows = m->shape[1], columns = m->shape[2];
    float *values = malloc((size_t)(n * rows * columns) * sizeof *values);
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < columns; k++)
                values[(e * columns + k) * rows + i] = m->values[(e * rows + i) * columns + k];
    free(m->values);
    *m = (matrix){values, {n * columns, rows}, 2};
}

// ------------------------------------------------------------------------------- writing

typedef struct writer {
    json_t *header;
    frit_buf data;
} writer;

static inline void write_matrix(writer *w, const char *name, const matrix *m)
{
    size_t n = 1;
    json_t *shape = json_array();
    for (int i = 0; i < m->n_dims; n *= (size_t)m->shape[i++]) json_array_append_new(shape, json_integer(m->shape[i]));
    const json_int_t begin = (json_int_t)w->data.len, end = begin + (json_int_t)(n * sizeof(float));
    json_object_set_new(w->header, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets", begin, end));
    frit_buf_append(&w->data, m->values, n * sizeof(float));
}

static inline bool read_matrix(const frit_checkpoint *ckpt, const char *name, matrix *m)
{
    const frit_tensor *tensor = frit_checkpoint_find(ckpt, name);
    if (!tensor) return false;
    const int64_t n = frit_tensor_n_elems(tensor), width = tensor->shape[tensor->n_dims - 1];
    *m = (matrix){.values = malloc((size_t)n * sizeof(float)), .n_dims = tensor->n_dims};
    memcpy(m->shape, tensor->shape, sizeof m->shape);
    assert_ok(frit_tensor_decode_rows(tensor, 0, n / width, m->values));
    return true;
}

static inline void append_tensor(const frit_checkpoint *ckpt, const char *name, matrix *m)
{
    matrix more = {0};
    assert_true(read_matrix(ckpt, name, &more));
    const size_t n = (size_t)(n_rows_of(m) * width_of(m)), n_more = (size_t)(n_rows_of(&more) * width_of(&more));
    m->values = realloc(m->values, (n + n_more) * sizeof *m->values);
    memcpy(m->values + n, more.values, n_more * sizeof *m->values);
    m->shape[0] += more.shape[0];
    free(more.values);
}

static inline void fill(char text[128], const char *pattern, int layer)
{
    const char *star = strchr(pattern, '*');
    if (star)
        snprintf(text, 128, "%.*s%d%s", (int)(star - pattern), pattern, layer, star + 1);
    else
        snprintf(text, 128, "%s", pattern);
}

// Appends the tensors of "NAME|NAME", and returns their number.
static inline size_t append_all(const frit_checkpoint *ckpt, const char *patterns, int layer, matrix *m)
{
    char pattern[128], name[128];
    size_t n = 0;
    for (const char *at = patterns; *at; n++) {
        const size_t length = strcspn(at, "|");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, at);
        fill(name, pattern, layer);
        append_tensor(ckpt, name, m);
        at += length + (at[length] == '|');
    }
    return n;
}

// Returns the number of tensors that were written.
static inline size_t write_pair(writer *w, const frit_checkpoint *ckpt, const name_pair *pair)
{
    char name[128], there[128];
    matrix m;
    size_t n = 0;
    for (int layer = 0; layer < (strchr(pair->gguf, '*') ? 8 : 1); layer++) {
        fill(name, pair->gguf, layer);
        if (!read_matrix(ckpt, name, &m)) continue;
        fill(there, pair->published, layer);
        n += 1 + append_all(ckpt, pair->below ? pair->below : "", layer, &m);
        if (pair->change) pair->change(&m);
        write_matrix(w, there, &m);
        free(m.values);
    }
    if (n == 0) fail_msg("no tensor '%s'", pair->gguf);
    return n;
}

static const char *in_folder(const char *folder, const char *name)
{
    static char path[800];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_files(const char *folder, writer *w, const char *config)
{
    frit_buf file = {0};
    char *text = json_dumps(w->header, JSON_COMPACT);
    const uint64_t length = strlen(text);
    frit_buf_append(&file, &length, sizeof length);
    frit_buf_append(&file, text, (size_t)length);
    frit_buf_append(&file, w->data.data, w->data.len);
    mkdir(folder, 0700);
    write_file(in_folder(folder, "model.safetensors"), file.data, file.len);
    write_file(in_folder(folder, "config.json"), config, strlen(config));
    free(text);
    frit_buf_free(&file);
    frit_buf_free(&w->data);
    json_decref(w->header);
}

static inline void remove_folder(const char *folder)
{
    remove(in_folder(folder, "model.safetensors"));
    remove(in_folder(folder, "config.json"));
    rmdir(folder);
}

// `routed_bias` is added to the experts' sum; NULL: there is none.
static inline void write_published(const char *folder, const char *source, const published *p, const float *routed_bias)
{
    frit_checkpoint *ckpt;
    writer w = {.header = json_object()};
    size_t n = 0;
    assert_ok(frit_checkpoint_open(&ckpt, source, &(frit_checkpoint_options){0}));
    for (const name_pair *pair = p->names; pair->gguf; pair++) n += write_pair(&w, ckpt, pair);
    if (frit_checkpoint_find(ckpt, "output.weight")) n++;   // which embedders leave out
    assert_int_equal(n, ckpt->n_tensors);
    for (int i = 1; routed_bias && i < 4; i += 2) {
        char name[128];
        fill(name, "encoder.layers.*.mlp.experts.bias", i);
        write_matrix(&w, name, &(matrix){(float *)(uintptr_t)routed_bias, {WIDTH}, 1});
    }
    frit_checkpoint_close(ckpt);
    write_files(folder, &w, p->config);
}
