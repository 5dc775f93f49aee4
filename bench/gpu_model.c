// SPDX-License-Identifier: MIT
// A dense model on the GPU: its memory, kernels and graph.
#include "gpu_model.h"
#include "backend/cuda/ops/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool model_is_more(const model_shape *shape, int layer)
{
    const int n = shape->n_layers, eighth = n / 8;
    return layer < eighth || layer >= 7 * n / 8 || (layer - eighth) % 3 == 2;
}

frit_dtype model_type(const model *m, int layer, bool is_mixed)
{
    return is_mixed && model_is_more(&m->shape, layer) ? m->types.more : m->types.most;
}

// ------------------------------------------------------------------------------- memory

static uint64_t weights_alloc(bench *b, model *m, frit_dtype dtype, int n_rows, int k)
{
    const frit_tile_source source = {.n_rows = n_rows, .n_columns = k};
    const uint64_t n = frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source);
    m->n_weight_bytes += n;
    return device_alloc(b, n);
}

static void alloc_layer(bench *b, model *m, int i)
{
    const model_shape *s = &m->shape;
    model_layer *l = &m->layers[i];
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    l->is_more = model_is_more(s, i);
    l->qk = weights_alloc(b, m, m->types.most, n_q + n_kv, s->dim);
    l->v = weights_alloc(b, m, model_type(m, i, true), n_kv, s->dim);
    l->o = weights_alloc(b, m, m->types.most, s->dim, n_q);
    l->gate_up = weights_alloc(b, m, m->types.most, 2 * s->n_ff, s->dim);
    l->down = weights_alloc(b, m, model_type(m, i, true), s->dim, s->n_ff);
    l->norm1 = device_alloc(b, (uint64_t)s->dim * 4);
    l->norm2 = device_alloc(b, (uint64_t)s->dim * 4);
}

static void alloc_state(bench *b, model *m)
{
    enum { MOST_PARTS = 16 };
    const model_shape *s = &m->shape;
    const uint64_t rows = (uint64_t)m->rows, n_q = (uint64_t)(s->n_heads * s->head_size);
    m->x = device_alloc(b, rows * (uint64_t)s->dim * 4);
    m->q = device_alloc(b, rows * n_q * 2);
    m->attended = device_alloc(b, rows * n_q * 4);
    m->h = device_alloc(b, rows * (uint64_t)s->n_ff * 4);
    m->logits = device_alloc(b, rows * (uint64_t)s->n_vocab * 4);
    m->positions = device_alloc(b, rows * 4);
    m->tokens = device_alloc(b, rows * 4);
    m->rope = device_alloc(b, rows * (uint64_t)s->head_size * 4);
    m->frequency = device_alloc(b, (uint64_t)s->head_size / 2 * 8);
    m->pages = device_alloc(b, rows * (uint64_t)m->page_stride * 4);
    m->cache = device_alloc(b, rows * (uint64_t)m->page_stride * (uint64_t)m->heads.page_bytes);
    m->partial = device_alloc(b, rows * (uint64_t)(s->n_heads * m->tuning.splits * (s->head_size + 2)) * 4);
    m->arrived = device_alloc(b, rows * (uint64_t)s->n_kv_heads * 4);
    m->sums = device_alloc(b, (uint64_t)MOST_PARTS * rows * (uint64_t)s->dim * 4);
    m->counters = device_alloc(b, (uint64_t)b->gpu.n_multiprocessors * 4);
}

static void fill_state(bench *b, model *m, int depth)
{
    const int half = m->shape.head_size / 2, n_pages = m->rows * m->page_stride;
    double *frequency = calloc((size_t)half, sizeof *frequency);
    int *pages = calloc((size_t)n_pages, sizeof *pages), *positions = calloc((size_t)m->rows, sizeof *positions);
    if (!frequency || !pages || !positions) must(frit_fail_memory(0, "the state of a model"));
    for (int i = 0; i < half; i++) frequency[i] = pow(500000.0, -(double)i / half);
    for (int i = 0; i < n_pages; i++) pages[i] = n_pages - 1 - i;   // any order will do
    for (int i = 0; i < m->rows; i++) positions[i] = depth;
    upload(b, m->frequency, frequency, (size_t)half * sizeof *frequency);
    upload(b, m->pages, pages, (size_t)n_pages * sizeof *pages);
    upload(b, m->positions, positions, (size_t)m->rows * sizeof *positions);
    free(frequency);
    free(pages);
    free(positions);
}

// ------------------------------------------------------------------------------- kernels

static void make_product(bench *b, const model *m, frit_cuda_kernel *kernel, frit_cuda_product product)
{
    product.rows = m->rows;
    product.groups = m->tuning.groups;
    product.open_stages = m->tuning.open_stages;
    product.warps = m->tuning.warps;
    product.stages = m->tuning.stages;
    product.copies_by_thread = m->tuning.copies_by_thread;
    must(frit_cuda_product_kernel(&product, &b->gpu, kernel));
}

static void describe_products(bench *b, model *m)
{
    const model_shape *s = &m->shape;
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    for (int more = 0; more < 2; more++) {
        const frit_dtype mixed = more ? m->types.more : m->types.most;
        make_product(b, m, &m->qkv[more],
                     (frit_cuda_product){.k = s->dim,
                                         .is_normed = true,
                                         .epilogue = FRIT_GPU_QKV,
                                         .segments = {{m->types.most, (n_q + n_kv) / 16}, {mixed, n_kv / 16}},
                                         .heads = m->heads});
        make_product(b, m, &m->down[more],
                     (frit_cuda_product){.k = s->n_ff,
                                         .epilogue = FRIT_GPU_ADD,
                                         .segments = {{mixed, s->dim / 16}},
                                         .parts = m->tuning.down_parts});
    }
    make_product(b, m, &m->o,
                 (frit_cuda_product){.k = n_q,
                                     .epilogue = FRIT_GPU_ADD,
                                     .segments = {{m->types.most, s->dim / 16}},
                                     .parts = m->tuning.o_parts});
    make_product(
        b, m, &m->gate_up,
        (frit_cuda_product){
            .k = s->dim, .is_normed = true, .epilogue = FRIT_GPU_GLU, .segments = {{m->types.most, s->n_ff / 8}}});
    make_product(b, m, &m->logits_of_x,
                 (frit_cuda_product){.k = s->dim,
                                     .is_normed = true,
                                     .epilogue = FRIT_GPU_STORE,
                                     .segments = {{m->types.head, s->n_vocab / 16}}});
}

static void describe_others(model *m)
{
    const model_shape *s = &m->shape;
    must(frit_cuda_embed_kernel(&(frit_cuda_embed){.dtype = m->types.head, .width = s->dim, .rotated = s->head_size},
                                &m->embed));
    m->embed.grid[0] = (unsigned)m->rows;
    frit_cuda_attend attend = {.heads = m->heads, .stages = m->tuning.attend_stages};
    if (attend.stages < 0) attend.stages = 0;
    must(frit_cuda_attend_kernel(&attend, m->tuning.splits, m->tuning.attend_warps, &m->attend));
    m->attend.grid[1] = (unsigned)m->rows;
}

static size_t list_kernels(model *m, frit_cuda_kernel *list[9])
{
    frit_cuda_kernel *const all[9] = {&m->embed,   &m->qkv[0],  &m->qkv[1],  &m->attend,     &m->o,
                                      &m->gate_up, &m->down[0], &m->down[1], &m->logits_of_x};
    for (int i = 0; i < 9; i++) list[i] = all[i];
    return 9;
}

static frit_attend_args attend_args(const model *m, int layer)
{
    const uint64_t part = (uint64_t)(m->shape.n_kv_heads * 32 * m->shape.head_size * 2);
    const uint64_t keys = m->cache + (uint64_t)layer * 2 * part;
    return (frit_attend_args){.q = m->q,
                              .positions = m->positions,
                              .pages = m->pages,
                              .page_stride = m->page_stride,
                              .keys = keys,
                              .values = keys + part,
                              .partial = m->partial,
                              .arrived = m->arrived,
                              .out = m->attended};
}

// ------------------------------------------------------------------------------- the model

void model_open(bench *b, model *m, int depth)
{
    enum { FAR_FROM = 2048 };   // positions
    const model_shape *s = &m->shape;
    // One block runs on a multiprocessor at a time, or two with small heads.
    const int n_blocks = b->gpu.n_multiprocessors * (s->head_size > 64 ? 1 : 2);
    if (!m->tuning.splits) m->tuning.splits = n_blocks / (s->n_kv_heads * m->rows);
    if (!m->tuning.splits) m->tuning.splits = 1;
    m->page_stride = (m->n_positions + 31) / 32;
    m->heads = (frit_cuda_heads){.n_heads = s->n_heads,
                                 .n_kv_heads = s->n_kv_heads,
                                 .head_size = s->head_size,
                                 .page_bytes = (int64_t)s->n_layers * 2 * s->n_kv_heads * 32 * s->head_size * 2};
    if (!m->tuning.attend_stages && depth >= FAR_FROM)
        m->tuning.attend_stages = frit_cuda_attend_stages(&m->heads, &b->gpu);
    for (int i = 0; i < s->n_layers; i++) alloc_layer(b, m, i);
    const uint64_t n_bytes_before = m->n_weight_bytes;
    m->head = weights_alloc(b, m, m->types.head, s->n_vocab, s->dim);
    const uint64_t n_head_bytes = m->n_weight_bytes - n_bytes_before;
    m->norm_out = device_alloc(b, (uint64_t)s->dim * 4);
    m->table = weights_alloc(b, m, m->types.head, s->n_vocab, s->dim);
    m->n_weight_bytes -= n_head_bytes;   // a step reads a row of it
    alloc_state(b, m);
    fill_state(b, m, depth);
    describe_products(b, m);
    describe_others(m);
    frit_cuda_kernel *kernels[9];
    make_kernels(b, kernels, list_kernels(m, kernels));
}

void model_close(bench *b, model *m)
{
    frit_cuda_kernel *kernels[9];
    frit_cuda_kernels_free(&b->gpu, kernels, list_kernels(m, kernels));
    for (int i = 0; i < m->shape.n_layers; i++) {
        const model_layer *l = &m->layers[i];
        const uint64_t own[] = {l->qk, l->v, l->o, l->gate_up, l->down, l->norm1, l->norm2};
        for (size_t j = 0; j < FRIT_COUNT(own); j++) device_free(b, own[j]);
    }
    const uint64_t all[] = {m->table, m->head,    m->norm_out,  m->x,    m->q,         m->attended,
                            m->h,     m->logits,  m->tokens,    m->rope, m->frequency, m->pages,
                            m->cache, m->partial, m->positions, m->sums, m->arrived,   m->counters};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) device_free(b, all[i]);
}

static void fill_matrix(bench *b, frit_dtype dtype, uint64_t at, int n_rows, int k, unsigned seed)
{
    const frit_tile_source source = {.n_rows = n_rows, .n_columns = k};
    fill_tiles(b, dtype, at, frit_tile_bytes(frit_tile_format_of(dtype), &source) * (uint64_t)frit_tile_count(&source),
               0.02f, seed);
}

void model_fill(bench *b, model *m)
{
    const model_shape *s = &m->shape;
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    unsigned seed = 1;
    for (int i = 0; i < s->n_layers; i++, seed += 8) {
        const model_layer *l = &m->layers[i];
        fill_matrix(b, m->types.most, l->qk, n_q + n_kv, s->dim, seed);
        fill_matrix(b, model_type(m, i, true), l->v, n_kv, s->dim, seed + 1);
        fill_matrix(b, m->types.most, l->o, s->dim, n_q, seed + 2);
        fill_matrix(b, m->types.most, l->gate_up, 2 * s->n_ff, s->dim, seed + 3);
        fill_matrix(b, model_type(m, i, true), l->down, s->dim, s->n_ff, seed + 4);
        fill_floats(b, l->norm1, (uint64_t)s->dim * 4, 1, seed + 5);
        fill_floats(b, l->norm2, (uint64_t)s->dim * 4, 1, seed + 6);
    }
    fill_matrix(b, m->types.head, m->head, s->n_vocab, s->dim, seed);
    fill_floats(b, m->norm_out, (uint64_t)s->dim * 4, 1, seed + 1);
    fill_matrix(b, m->types.head, m->table, s->n_vocab, s->dim, seed + 2);
    fill_16_bits(b, m->cache, (uint64_t)m->rows * (uint64_t)m->page_stride * (uint64_t)m->heads.page_bytes, 1, true,
                 seed + 3);
}

static void launch(bench *b, const model *m, int phase, const frit_cuda_kernel *kernel, const void *args)
{
    if (m->tuning.without & phase) return;
    must(frit_cuda_kernel_launch(&b->gpu, kernel, b->stream, args,
                                 m->tuning.is_serial ? FRIT_CUDA_IN_ORDER : FRIT_CUDA_OVERLAPPING));
}

static void record_layer(bench *b, const model *m, int i)
{
    const model_shape *s = &m->shape;
    const model_layer *l = &m->layers[i];
    const frit_attend_args attend = attend_args(m, i);
    const float scale = 1.4426950408889634f / sqrtf((float)s->head_size);
    launch(b, m, MODEL_QKV, &m->qkv[l->is_more],
           &(frit_product_args){.weights = {l->qk, l->v},
                                .x = m->x,
                                .norm = l->norm1,
                                .out = m->q,
                                .rope = m->rope,
                                .positions = m->positions,
                                .pages = m->pages,
                                .page_stride = m->page_stride,
                                .n_rows = m->rows,
                                .keys = attend.keys,
                                .values = attend.values,
                                .epsilon = 1e-5f,
                                .query_scale = scale});
    launch(b, m, MODEL_ATTEND, &m->attend, &attend);
    launch(b, m, MODEL_O, &m->o,
           &(frit_product_args){.weights = {l->o},
                                .x = m->attended,
                                .out = m->x,
                                .partial = m->sums,
                                .arrived = m->counters,
                                .n_rows = m->rows});
    launch(b, m, MODEL_GATE_UP, &m->gate_up,
           &(frit_product_args){
               .weights = {l->gate_up}, .x = m->x, .norm = l->norm2, .out = m->h, .epsilon = 1e-5f, .n_rows = m->rows});
    launch(b, m, MODEL_DOWN, &m->down[l->is_more],
           &(frit_product_args){.weights = {l->down},
                                .x = m->h,
                                .out = m->x,
                                .partial = m->sums,
                                .arrived = m->counters,
                                .n_rows = m->rows});
}

void model_record(bench *b, void *ctx)
{
    const model *m = ctx;
    for (int step = 0; step < m->n_steps; step++) {
        launch(b, m, 0, &m->embed,
               &(frit_embed_rows_args){.table = m->table,
                                       .tokens = m->tokens,
                                       .positions = m->positions,
                                       .frequency = m->frequency,
                                       .x = m->x,
                                       .rope = m->rope,
                                       .scale = 1,
                                       .magnitude = 1});
        for (int i = 0; i < m->shape.n_layers; i++) record_layer(b, m, i);
        launch(b, m, MODEL_HEAD, &m->logits_of_x,
               &(frit_product_args){.weights = {m->head},
                                    .x = m->x,
                                    .norm = m->norm_out,
                                    .out = m->logits,
                                    .epsilon = 1e-5f,
                                    .n_rows = m->rows});
    }
}
