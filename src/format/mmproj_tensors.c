// SPDX-License-Identifier: MIT
// mmproj files: tensors get the names and the form that the reader of folders gives them.
#include "format/mmproj_kind.h"
#include "format/processor.h"
#include "format/rows.h"

#include <stdio.h>
#include <stdlib.h>

static const mmproj_name shared_names[] = {
    {.from = "v.patch_embd", .to = "patch_embd"},
    {.from = "v.position_embd", .to = "position_embd"},
    {.from = "v.class_embd", .to = "class_embd.weight", .is_whole = true},
    {.from = "v.pre_ln", .to = "input_norm"},
    {.from = "v.post_ln", .to = "output_norm"},
    {.from = "v.blk.*.ln1", .to = "blk.*.attn_norm"},
    {.from = "v.blk.*.attn_q", .to = "blk.*.attn_q"},
    {.from = "v.blk.*.attn_k", .to = "blk.*.attn_k"},
    {.from = "v.blk.*.attn_v", .to = "blk.*.attn_v"},
    {.from = "v.blk.*.attn_qkv", .to = "blk.*.attn_qkv"},
    {.from = "v.blk.*.attn_out", .to = "blk.*.attn_output"},
    {.from = "v.blk.*.attn_post_norm", .to = "blk.*.ffn_norm"},
    {.from = "v.blk.*.ln2", .to = "blk.*.ffn_norm"},
    {.from = "v.blk.*.ffn_gate", .to = "blk.*.ffn_gate"},
    {.from = "v.blk.*.ffn_up", .to = "blk.*.ffn_up"},
    {.from = "v.blk.*.ffn_down", .to = "blk.*.ffn_down"},
};

static bool is_rest(const char *text)
{
    static const char *const rests[] = {".weight", ".bias", ".input_min", ".input_max", ".output_min", ".output_max"};
    for (size_t i = 0; i < FRIT_COUNT(rests); i++)
        if (strcmp(text, rests[i]) == 0) return true;
    return false;
}

// Matches "v.blk.12.ln1.bias" with "v.blk.*.ln1". Returns the rest, ".bias"; NULL: no match.
static const char *match(const char *name, const mmproj_name *row, const char **layer, int *n_layer)
{
    *layer = "", *n_layer = 0;
    for (const char *pattern = row->from; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*name++ != *pattern) return NULL;
            continue;
        }
        *n_layer = (int)strspn(name, "0123456789");
        *layer = name;
        name += *n_layer;
        if (*n_layer == 0 || *n_layer > 9) return NULL;
    }
    return (row->is_whole ? *name == 0 : is_rest(name)) ? name : NULL;
}

// Returns the row of a name, and writes the new name; NULL: none.
static const mmproj_name *find_name(const char *name, const mmproj_name *rows, size_t n, char text[256])
{
    for (size_t i = 0; i < n; i++) {
        const char *layer, *star = strchr(rows[i].to, '*');
        int n_layer;
        const char *rest = match(name, &rows[i], &layer, &n_layer);
        if (!rest) continue;
        if (star)
            snprintf(text, 256, "%.*s%.*s%s%s", (int)(star - rows[i].to), rows[i].to, n_layer, layer, star + 1, rest);
        else
            snprintf(text, 256, "%s%s", rows[i].to, rest);
        return &rows[i];
    }
    return NULL;
}

// "v.deepstack.LAYER.norm" becomes "blk.K.deep_norm" of the K-th layer that gives features.
static bool rename_deep(const mmproj *m, const char *name, char text[256])
{
    static const mmproj_name rows[] = {{.from = "v.deepstack.*.norm", .to = "deep_norm"},
                                       {.from = "v.deepstack.*.fc1", .to = "deep_in"},
                                       {.from = "v.deepstack.*.fc2", .to = "deep_out"}};
    const frit_value *flags = frit_meta_find(&m->ckpt->meta, "clip.vision.is_deepstack_layers");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const char *layer;
        int n_layer, k = 0;
        const char *rest = match(name, &rows[i], &layer, &n_layer);
        if (!rest || !flags || flags->type != FRIT_VALUE_ARRAY || flags->array.type != FRIT_VALUE_BOOL) continue;
        const uint64_t own = strtoull(layer, NULL, 10);
        if (own >= flags->array.n || frit_value_item_i64(flags, own) == 0) continue;
        for (uint64_t j = 0; j < own; j++) k += frit_value_item_i64(flags, j) != 0;
        snprintf(text, 256, "blk.%d.%s%s", k, rows[i].to, rest);
        return true;
    }
    return false;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

// Filters become rows.
static void flatten(frit_tensor *tensor)
{
    for (int i = 2; i < tensor->n_dims; i++) tensor->shape[1] *= tensor->shape[i], tensor->shape[i] = 1;
    if (tensor->n_dims > 2) tensor->n_dims = 2;
}

// Tables of columns and of rows become one.
static void join_tables(frit_tensor *tensor)
{
    if (tensor->n_dims != 3) return;
    tensor->shape[0] *= tensor->shape[1], tensor->shape[1] = tensor->shape[2], tensor->shape[2] = 1;
    tensor->n_dims = 2;
}

// A tensor in memory with the name and other numbers.
static frit_tensor made_of(const frit_tensor *old, const float *values, int64_t rows, int64_t width)
{
    return (frit_tensor){.name = old->name,
                         .dtype = FRIT_DTYPE_F32,
                         .n_dims = 2,
                         .shape = {rows, width, 1, 1},
                         .data = values,
                         .n_bytes = (uint64_t)(rows * width) * sizeof *values};
}

// Filters [out, color, y, x] become rows of y, x, color.
static frit_status put_colors_last(const mmproj *m, frit_tensor *tensor)
{
    const int64_t *shape = tensor->shape, n_color = shape[1], area = shape[2] * shape[3], n = shape[0] * n_color * area;
    if (tensor->n_dims != 4) return FRIT_OK;   // add_shapes refuses it
    float *values = frit_arena_new(&m->ckpt->arena, float, (size_t)n), *parts = calloc((size_t)n, sizeof *parts);
    frit_status status = values && parts ? FRIT_OK : frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    if (status == FRIT_OK) status = frit_tensor_decode_rows(tensor, 0, n / shape[3], parts);
    for (int64_t i = 0; i < n && status == FRIT_OK; i++) {
        const int64_t out = i / (n_color * area), color = i / area % n_color, at = i % area;
        values[(out * area + at) * n_color + color] = parts[i];
    }
    free(parts);
    FRIT_TRY(status);
    *tensor = made_of(tensor, values, shape[0], n_color * area);
    return FRIT_OK;
}

// Joins the filters of two frames, [out, color, y, x] each: row o has for each color both frames.
static frit_status join_frames(const mmproj *m, frit_tensor *first, const frit_tensor *second)
{
    const int64_t *shape = first->shape, n_out = shape[0], n_color = shape[1], area = shape[2] * shape[3];
    if (first->n_dims != 4 || memcmp(shape, second->shape, sizeof first->shape) != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensors '%s' and '%s' have different shapes, expected equal filters",
                              m->ckpt->path, first->name, second->name);
    const size_t n = (size_t)frit_tensor_n_elems(first);
    float *values = frit_arena_new(&m->ckpt->arena, float, 2 * n), *parts = calloc(2 * n, sizeof *parts);
    frit_status status = values && parts ? FRIT_OK : frit_fail_memory(2 * n * sizeof *values, first->name);
    if (status == FRIT_OK) status = frit_tensor_decode_rows(first, 0, (int64_t)n / shape[3], parts);
    if (status == FRIT_OK) status = frit_tensor_decode_rows(second, 0, (int64_t)n / shape[3], parts + n);
    for (int64_t i = 0; i < 2 * n_out * n_color && status == FRIT_OK; i++)
        memcpy(values + i * area, parts + (i % 2) * (int64_t)n + i / 2 * area, (size_t)area * sizeof *values);
    free(parts);
    FRIT_TRY(status);
    *first = made_of(first, values, n_out, 2 * n_color * area);
    return FRIT_OK;
}

// Gives the matrix of patches, and the tables of positions, the form of a folder's.
static frit_status reform(const mmproj *m, frit_tensor *tensor, const frit_tensor *second_frame)
{
    frit_processor p;
    if (strcmp(tensor->name, "v.position_embd.weight") == 0) join_tables(tensor);
    if (strcmp(tensor->name, "v.patch_embd.weight") != 0) return FRIT_OK;
    FRIT_TRY(frit_processor_of_type(&p, m->kind->processor));
    if (second_frame) return join_frames(m, tensor, second_frame);
    if (p.colors_last) FRIT_TRY(put_colors_last(m, tensor));
    flatten(tensor);
    return FRIT_OK;
}

static frit_status add_tensor(const mmproj *m, frit_tensor tensor, const frit_tensor *second_frame)
{
    frit_arena *arena = &m->ckpt->arena;
    char text[256];
    FRIT_TRY(reform(m, &tensor, second_frame));
    const mmproj_name *row = find_name(tensor.name, m->kind->names, m->kind->n_names, text);
    if (!row) row = find_name(tensor.name, shared_names, FRIT_COUNT(shared_names), text);
    if (row && row->is_transposed) FRIT_TRY(frit_transpose(arena, &tensor));
    // The encoder's weight list refuses other names.
    if (row || rename_deep(m, tensor.name, text)) tensor.name = frit_arena_text(arena, text, strlen(text));
    if (!tensor.name) return frit_fail_memory(strlen(text), "a tensor name");
    return frit_checkpoint_add_tensor(m->ckpt, &tensor);
}

frit_status frit_mmproj_rename(const mmproj *m)
{
    frit_checkpoint *ckpt = m->ckpt;
    const size_t n = ckpt->n_tensors;
    const frit_tensor *second = frit_checkpoint_find(ckpt, "v.patch_embd.weight.1");
    frit_tensor *old = calloc(n + 1, sizeof *old), copy = {0};
    if (!old) return frit_fail_memory(n * sizeof *old, "the tensors of an encoder");
    if (n > 0) memcpy(old, ckpt->tensors, n * sizeof *old);
    if (second) copy = *second;
    ckpt->n_tensors = 0;
    frit_map_free(&ckpt->tensor_index);
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n && status == FRIT_OK; i++) {
        const bool is_sound = starts_with(old[i].name, "a.") || starts_with(old[i].name, "mm.a.");
        if (is_sound || strcmp(old[i].name, "v.patch_embd.weight.1") == 0) continue;
        status = add_tensor(m, old[i], second ? &copy : NULL);
    }
    free(old);
    return status;
}
