// SPDX-License-Identifier: MIT
// Loading adapters, and the launches that apply them.
//
// All adapters are one buffer of words: their number, those of matrices and of layers, 0, then a row for each adapter,
// then their numbers as f32. A row has five words for each matrix (rank, scale, offset of a, offset of b, columns of b)
// and one for each layer (offset of the direction, or 0).
#include "backend/webgpu/ops/adapt.h"
#include "backend/webgpu/ops/launch.h"
#include "format/rows.h"
#include "quant/dtype.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = 4, PART_WORDS = 5, THREADS = 256 };

void frit_webgpu_adapters_free(frit_webgpu_device *d)
{
    frit_webgpu_adapters *a = &d->adapters;
    for (int32_t i = 0; i < a->n; i++) free(a->list[i].words);
    free(a->list);
    *a = (frit_webgpu_adapters){0};
}

static size_t row_words(const frit_webgpu_adapters *a)
{
    return (size_t)a->n_matrices * PART_WORDS + (size_t)a->n_layers;
}

static size_t count_of(const frit_tensor *t)
{
    return t ? (size_t)(frit_tensor_n_rows(t) * frit_tensor_width(t)) : 0;
}

// Appends a tensor as f32 at word *at. Returns the word, or 0 without a tensor.
static uint32_t put_tensor(uint32_t *words, size_t *at, const frit_tensor *t)
{
    const size_t begin = *at, n = count_of(t);
    if (!t) return 0;
    frit_dtype_get(t->dtype)->decode(t->data, (float *)(void *)(words + begin), (int64_t)n);
    *at += n;
    return (uint32_t)begin;
}

// The row and the numbers of an adapter. Offsets begin at the row.
static void fill_words(const frit_webgpu_adapters *a, const frit_adapter_table *table, uint32_t *words)
{
    size_t at = row_words(a);
    for (int32_t i = 0; i < a->n_matrices; i++) {
        const frit_low_rank *from = &table->matrices[i];
        uint32_t *to = words + (size_t)i * PART_WORDS;
        to[0] = from->a ? (uint32_t)from->rank : 0;
        to[1] = frit_webgpu_float(from->scale);
        to[2] = put_tensor(words, &at, from->a);
        to[3] = put_tensor(words, &at, from->b);
        to[4] = from->b ? (uint32_t)frit_tensor_width(from->b) : 0;
    }
    for (int32_t i = 0; i < a->n_layers; i++)
        words[(size_t)a->n_matrices * PART_WORDS + (size_t)i] = put_tensor(words, &at, table->directions[i]);
}

static frit_status make_adapter(const frit_webgpu_adapters *a, const frit_adapter_table *table,
                                frit_webgpu_adapter *out)
{
    size_t n = row_words(a);
    for (int32_t i = 0; i < a->n_matrices; i++) {
        n += count_of(table->matrices[i].a) + count_of(table->matrices[i].b);
        if (table->matrices[i].gain)
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "device webgpu: adapters with magnitudes (DoRA) are not supported; expected --device cpu");
    }
    for (int32_t i = 0; i < a->n_layers; i++) n += count_of(table->directions[i]);
    out->words = calloc(n, sizeof *out->words);
    if (!out->words) return frit_fail_memory(n * sizeof *out->words, "an adapter");
    out->n_words = n;
    fill_words(a, table, out->words);
    return FRIT_OK;
}

// Words of an adapter that are offsets, which the buffer has from its beginning.
static void move_offsets(const frit_webgpu_adapters *a, uint32_t *row, uint32_t by)
{
    for (int32_t i = 0; i < a->n_matrices; i++) {
        row[i * PART_WORDS + 2] += by;
        row[i * PART_WORDS + 3] += by;
    }
    for (int32_t i = 0; i < a->n_layers; i++) {
        uint32_t *direction = &row[a->n_matrices * PART_WORDS + i];
        if (*direction) *direction += by;
    }
}

// Writes all adapters to the GPU, in the order of their numbers.
static frit_status write_all(frit_webgpu_device *d)
{
    const frit_webgpu_adapters *a = &d->adapters;
    const size_t n_row = row_words(a);
    size_t n = HEADER + (size_t)a->n * n_row, at = n;
    for (int32_t i = 0; i < a->n; i++) n += a->list[i].n_words > 0 ? a->list[i].n_words - n_row : 0;
    uint32_t *words = calloc(n, sizeof *words);
    if (!words) return frit_fail_memory(n * sizeof *words, "adapters");
    words[0] = (uint32_t)a->n, words[1] = (uint32_t)a->n_matrices, words[2] = (uint32_t)a->n_layers;
    for (int32_t i = 0; i < a->n; i++) {
        const frit_webgpu_adapter *from = &a->list[i];
        uint32_t *row = words + HEADER + (size_t)i * n_row;
        if (from->n_words == 0) continue;
        memcpy(row, from->words, n_row * sizeof *row);
        move_offsets(a, row, (uint32_t)(at - n_row));
        memcpy(words + at, from->words + n_row, (from->n_words - n_row) * sizeof *words);
        at += from->n_words - n_row;
    }
    frit_status status = frit_webgpu_reserve(d, FRIT_WEBGPU_ADAPTERS, n * sizeof *words);
    if (status == FRIT_OK)
        status = frit_gpu_write(&d->gpu, &d->shared[FRIT_WEBGPU_ADAPTERS].buffer, 0, words, n * sizeof *words);
    free(words);
    return status;
}

static frit_status reserve(frit_webgpu_adapters *a, int32_t n)
{
    if (n <= a->n) return FRIT_OK;
    frit_webgpu_adapter *list = realloc(a->list, (size_t)n * sizeof *list);
    if (!list) return frit_fail_memory((size_t)n * sizeof *list, "the list of adapters");
    memset(list + a->n, 0, (size_t)(n - a->n) * sizeof *list);
    a->list = list;
    a->n = n;
    return FRIT_OK;
}

frit_status frit_webgpu_set_adapter(frit_device *base, int32_t index, const frit_adapter_table *table)
{
    frit_webgpu_device *d = (frit_webgpu_device *)base;
    frit_webgpu_adapters *a = &d->adapters;
    frit_webgpu_adapter made = {0};
    if (!table && index >= a->n) return FRIT_OK;   // there never was such an adapter
    if (table && a->n_matrices == 0) a->n_matrices = table->n_matrices, a->n_layers = table->n_layers;
    if (table) FRIT_TRY(make_adapter(a, table, &made));
    const frit_status status = reserve(a, index + 1);
    if (status != FRIT_OK) {
        free(made.words);
        return status;
    }
    free(a->list[index].words);
    a->list[index] = made;
    return write_all(d);
}

// ------------------------------------------------------------------------------- launches

bool frit_webgpu_adapt_fits(const frit_node *node)
{
    const int own = node->op == FRIT_OP_ADAPT_UP ? 2 : 1;   // another source is a route of experts
    return node->n_src == own && node->n_dims == 2 && node->src[0]->n_dims <= 2;
}

typedef struct term {
    const char *define;
    const frit_node *node, *x, *h, *y;
    int32_t index;
    int64_t width;
} term;

static frit_status add_launch(frit_exec *exec, const term *t, frit_webgpu_launch **out)
{
    const frit_node *node = t->node;
    const bool is_lookup = t->x && frit_node_is_ids(t->x);
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "adapt.wgsl", out));
    frit_webgpu_launch *l = *out;
    frit_webgpu_bind_shared(l, 'r', FRIT_WEBGPU_ADAPTERS);
    frit_webgpu_define(&l->wanted, t->define, 1);
    if (is_lookup) frit_webgpu_define(&l->wanted, "IS_LOOKUP", 1);
    if (!is_lookup) l->params[PARAM_ADAPT_X] = frit_webgpu_offset(exec, t->x);
    if (t->h) l->params[PARAM_ADAPT_H] = frit_webgpu_offset(exec, t->h);
    l->params[PARAM_ADAPT_Y] = frit_webgpu_offset(exec, t->y);
    l->params[PARAM_ADAPT_WIDTH] = (uint32_t)t->width;
    l->params[PARAM_ADAPT_INDEX] = (uint32_t)t->index;
    l->params[PARAM_ADAPT_N_H] = node->op == FRIT_OP_STEER ? 0 : (uint32_t)node->adapted[0].n_h;
    l->params[PARAM_ADAPT_FIRST_ROW] = node->op == FRIT_OP_STEER ? 0 : (uint32_t)node->adapted[0].first_row;
    l->n[0] = t->width;
    l->n[1] = THREADS;
    l->grid = frit_webgpu_grid_numbers;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_adapt(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0], *x = node->src[0];
    const bool is_down = node->op == FRIT_OP_ADAPT_DOWN, is_up = node->op == FRIT_OP_ADAPT_UP;
    const term t = {.define = is_down ? "OP_DOWN"
                              : is_up ? "OP_UP"
                                      : "OP_STEER",
                    .node = node,
                    .x = x,
                    .h = is_up ? node->src[1] : NULL,
                    .y = node,
                    .index = is_down || is_up ? node->adapted[0].matrix : node->layer,
                    .width = frit_node_width(is_down ? x : node)};
    frit_webgpu_launch *l;
    FRIT_TRY(add_launch(exec, &t, &l));
    if (!is_down) return FRIT_OK;
    l->n[0] = node->adapted[0].n_h;
    l->n[1] = 1;
    l->grid = frit_webgpu_grid_rows;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_adapted(frit_exec *exec, const frit_node *linear)
{
    const int i = frit_node_adapts(linear, 0);
    frit_webgpu_launch *l;
    if (i < 0) return FRIT_OK;
    return add_launch(exec,
                      &(term){.define = "OP_UP",
                              .node = linear,
                              .x = linear,
                              .h = linear->src[i],
                              .y = linear,
                              .index = linear->adapted[0].matrix,
                              .width = frit_node_width(linear)},
                      &l);
}
