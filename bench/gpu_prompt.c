// SPDX-License-Identifier: MIT
// Prompts of a dense model on the GPU.
#include "gpu_prompt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QKV, O, GATE_UP, DOWN };

// ------------------------------------------------------------------------------- products and kernels

// bf16 weights may exceed the range of f16, and so may the input of down.
static frit_cuda_numbers numbers_of(const model *m)
{
    return m->types.most == FRIT_DTYPE_BF16 || m->types.most == FRIT_DTYPE_F32 ? FRIT_CUDA_BF16 : FRIT_CUDA_F16;
}

static frit_cuda_numbers gate_up_of(const model *m)
{
    return m->tuning.is_gate_up_f32 ? FRIT_CUDA_F32 : numbers_of(m);
}

static void describe_products(prompt *p)
{
    const model *m = p->m;
    const model_shape *s = &m->shape;
    const int n_q = s->n_heads * s->head_size, n_kv = s->n_kv_heads * s->head_size;
    for (int more = 0; more < 2; more++) {
        const frit_dtype most = m->types.most, mixed = more ? m->types.more : most;
        const frit_cuda_numbers in = numbers_of(m);
        p->products[QKV][more] = (frit_cuda_matmul){
            .k = s->dim, .in = in, .out = FRIT_CUDA_F32, .segments = {{most, (n_q + n_kv) / 16}, {mixed, n_kv / 16}}};
        p->products[O][more] = (frit_cuda_matmul){
            .k = n_q, .in = in, .out = FRIT_CUDA_F32, .adds = true, .segments = {{most, s->dim / 16}}};
        p->products[GATE_UP][more] =
            (frit_cuda_matmul){.k = s->dim, .in = in, .out = gate_up_of(m), .segments = {{most, s->n_ff / 8}}};
        p->products[DOWN][more] = (frit_cuda_matmul){
            .k = s->n_ff, .in = FRIT_CUDA_BF16, .out = FRIT_CUDA_F32, .adds = true, .segments = {{mixed, s->dim / 16}}};
        for (int i = 0; i < PROMPT_PRODUCTS; i++) must(frit_cuda_matmul_describe(&p->products[i][more]));
    }
}

static void describe_others(bench *b, prompt *p)
{
    const model *m = p->m;
    const model_shape *s = &m->shape;
    const frit_cuda_numbers in = numbers_of(m);
    const frit_cuda_embed embed = {.dtype = m->types.head, .width = s->dim, .rotated = s->head_size};
    const frit_cuda_norm norm = {.width = s->dim, .has_weight = true, .out = in};
    const frit_cuda_glu glu = {
        .width = s->n_ff, .act = FRIT_ACT_SILU, .is_gated = true, .in = gate_up_of(m), .out = FRIT_CUDA_BF16};
    const frit_cuda_heads_rows heads = {
        .heads = m->heads, .order = FRIT_CUDA_ORDER_ADJACENT, .rotated = s->head_size, .style = FRIT_ROPE_INTERLEAVED};
    const frit_cuda_attend attend = {.heads = m->heads, .out = in};
    must(frit_cuda_embed_kernel(&embed, &p->embed));
    must(frit_cuda_norm_kernel(&norm, &p->norm));
    must(frit_cuda_glu_kernel(&glu, &p->glu));
    must(frit_cuda_heads_kernel(&heads, &p->heads));
    must(frit_cuda_attend_rows_kernel(&attend, &b->gpu, &p->attend));
    must(frit_cuda_take_rows_kernel(s->dim, &p->take));
    frit_cuda_kernel *const all[] = {&p->embed, &p->norm, &p->heads, &p->glu};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) all[i]->grid[0] = (unsigned)p->n_rows;
    p->attend.grid[0] = (unsigned)p->n_tiles;
    p->take.grid[0] = (unsigned)m->rows;
}

static size_t list_kernels(prompt *p, frit_cuda_kernel **list)
{
    size_t n = 0;
    frit_cuda_kernel *const all[] = {&p->embed, &p->norm, &p->heads, &p->attend, &p->glu, &p->take};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) list[n++] = all[i];
    for (int i = 0; i < PROMPT_PRODUCTS; i++)
        for (int more = 0; more < 2; more++)
            for (int j = 0; j < p->products[i][more].n_kernels; j++) list[n++] = &p->products[i][more].dequantize[j];
    return n;
}

// ------------------------------------------------------------------------------- memory

static uint64_t upload_ints(bench *b, const int *values, size_t n)
{
    const uint64_t at = device_alloc(b, n * sizeof *values);
    upload(b, at, values, n * sizeof *values);
    return at;
}

static void place_rows(bench *b, prompt *p, const int *lengths, const int *tokens, int stride)
{
    const size_t n = (size_t)p->n_rows, n_seqs = (size_t)p->m->rows;
    int *own = calloc(n * 3 + n_seqs, sizeof *own);
    frit_row_tile *tiles = calloc(n, sizeof *tiles);
    if (!own || !tiles) must(frit_fail_memory(n * sizeof *tiles, "rows"));
    int row = 0;
    p->n_tiles = 0;
    for (int seq = 0; seq < p->m->rows; seq++) {
        for (int i = 0; i < lengths[seq]; i++) {
            if (i % FRIT_CUDA_ROWS_OF_TILE == 0)
                tiles[p->n_tiles++] = (frit_row_tile){.row = row + i, .position = i, .seq = seq};
            tiles[p->n_tiles - 1].n_rows++;
            own[row + i] = tokens[seq * stride + i];
            own[n + (size_t)(row + i)] = i;
            own[2 * n + (size_t)(row + i)] = seq;
        }
        row += lengths[seq];
        own[3 * n + (size_t)seq] = row - 1;
    }
    p->tokens = upload_ints(b, own, n);
    p->positions = upload_ints(b, own + n, n);
    p->seqs = upload_ints(b, own + 2 * n, n);
    p->lasts = upload_ints(b, own + 3 * n, n_seqs);
    p->tiles = upload_ints(b, (const int *)tiles, (size_t)p->n_tiles * 4);
    free(own);
    free(tiles);
}

static void alloc_buffers(bench *b, prompt *p)
{
    const model_shape *s = &p->m->shape;
    const uint64_t n = (uint64_t)p->n_rows, n_q = (uint64_t)(s->n_heads * s->head_size), dim = (uint64_t)s->dim;
    const uint64_t n_kv = (uint64_t)(s->n_kv_heads * s->head_size), n_ff = (uint64_t)s->n_ff;
    uint64_t n_scratch = 0;
    for (int i = 0; i < PROMPT_PRODUCTS; i++) {
        const uint64_t own = frit_cuda_matmul_scratch(&p->products[i][0]);
        if (own > n_scratch) n_scratch = own;
    }
    p->x = device_alloc(b, n * dim * 4);
    p->a = device_alloc(b, n * (dim > n_q ? dim : n_q) * 2);
    p->qkv = device_alloc(b, n * (n_q + 2 * n_kv) * 4);
    p->q = device_alloc(b, n * n_q * 2);
    p->gate_up = device_alloc(b, n * n_ff * 8);
    p->h = device_alloc(b, n * n_ff * 2);
    p->rope = device_alloc(b, n * (uint64_t)s->head_size * 4);
    p->scratch = device_alloc(b, n_scratch);
    p->workspace = device_alloc(b, FRIT_CUBLASLT_WORKSPACE_BYTES);
    p->last_x = device_alloc(b, (uint64_t)p->m->rows * dim * 4);
}

void prompt_open(bench *b, prompt *p, model *m, const frit_cublaslt *blas, const int *lengths, const int *tokens,
                 int stride)
{
    frit_cuda_kernel *kernels[32];
    *p = (prompt){.m = m, .blas = blas};
    for (int i = 0; i < m->rows; i++) p->n_rows += lengths[i];
    place_rows(b, p, lengths, tokens, stride);
    describe_products(p);
    describe_others(b, p);
    alloc_buffers(b, p);
    make_kernels(b, kernels, list_kernels(p, kernels));
    for (int i = 0; i < PROMPT_PRODUCTS; i++)
        must(frit_cuda_matmul_prepare(&p->products[i][0], blas, p->n_rows, 0, &p->prepared[i]));
}

void prompt_close(bench *b, prompt *p)
{
    frit_cuda_kernel *kernels[32];
    const uint64_t all[] = {p->x,    p->a,      p->qkv,       p->q,    p->gate_up, p->h,     p->scratch, p->workspace,
                            p->rope, p->tokens, p->positions, p->seqs, p->tiles,   p->lasts, p->last_x};
    frit_cuda_kernels_free(&b->gpu, kernels, list_kernels(p, kernels));
    for (size_t i = 0; i < FRIT_COUNT(all); i++) device_free(b, all[i]);
    for (int i = 0; i < PROMPT_PRODUCTS; i++) frit_cublaslt_product_free(&p->prepared[i]);
}

// ------------------------------------------------------------------------------- a step

static void launch(bench *b, const prompt *p, int phase, const frit_cuda_kernel *kernel, const void *args)
{
    if (p->m->tuning.without & phase) return;
    must(frit_cuda_kernel_launch(&b->gpu, kernel, b->stream, args, FRIT_CUDA_OVERLAPPING));
}

static void multiply(bench *b, const prompt *p, int product, bool is_more, uint64_t first, uint64_t second, uint64_t x,
                     uint64_t y)
{
    const frit_cuda_matmul_args args = {
        .weights = {first, second}, .x = x, .y = y, .scratch = p->scratch, .workspace = p->workspace};
    if (p->m->tuning.without & MODEL_QKV) return;   // all products
    must(frit_cuda_matmul_run(&p->products[product][is_more], &b->gpu, &p->prepared[product], &args, b->stream));
}

static void norm(bench *b, const prompt *p, uint64_t weight)
{
    const frit_norm_args args = {.x = p->x, .y = p->a, .weight = weight, .epsilon = 1e-5f};
    launch(b, p, MODEL_O, &p->norm, &args);
}

static void record_layer(bench *b, const prompt *p, int i)
{
    const model *m = p->m;
    const model_shape *s = &m->shape;
    const model_layer *l = &m->layers[i];
    const uint64_t part = (uint64_t)(s->n_kv_heads * 32 * s->head_size * 2), keys = m->cache + (uint64_t)i * 2 * part;
    norm(b, p, l->norm1);
    multiply(b, p, QKV, l->is_more, l->qk, l->v, p->a, p->qkv);
    launch(b, p, MODEL_O, &p->heads,
           &(frit_heads_args){.x = p->qkv,
                              .rope = p->rope,
                              .positions = p->positions,
                              .seqs = p->seqs,
                              .pages = m->pages,
                              .page_stride = m->page_stride,
                              .queries = p->q,
                              .keys = keys,
                              .values = keys + part,
                              .query_scale = 1.4426950408889634f / sqrtf((float)s->head_size)});
    launch(b, p, MODEL_ATTEND, &p->attend,
           &(frit_attend_rows_args){.q = p->q,
                                    .tiles = p->tiles,
                                    .pages = m->pages,
                                    .page_stride = m->page_stride,
                                    .keys = keys,
                                    .values = keys + part,
                                    .out = p->a});
    multiply(b, p, O, l->is_more, l->o, 0, p->a, p->x);
    norm(b, p, l->norm2);
    multiply(b, p, GATE_UP, l->is_more, l->gate_up, 0, p->a, p->gate_up);
    launch(b, p, MODEL_GATE_UP, &p->glu, &(frit_glu_args){.x = p->gate_up, .y = p->h});
    multiply(b, p, DOWN, l->is_more, l->down, 0, p->h, p->x);
}

void prompt_record(bench *b, void *ctx)
{
    const prompt *p = ctx;
    const model *m = p->m;
    launch(b, p, 0, &p->embed,
           &(frit_embed_rows_args){.table = m->table,
                                   .tokens = p->tokens,
                                   .positions = p->positions,
                                   .frequency = m->frequency,
                                   .x = p->x,
                                   .rope = p->rope,
                                   .scale = 1,
                                   .magnitude = 1});
    for (int i = 0; i < m->shape.n_layers; i++) record_layer(b, p, i);
    launch(b, p, 0, &p->take, &(frit_take_rows_args){.from = p->x, .rows = p->lasts, .x = p->last_x});
    launch(b, p, 0, &m->logits_of_x,
           &(frit_product_args){.weights = {m->head},
                                .x = p->last_x,
                                .norm = m->norm_out,
                                .out = m->logits,
                                .epsilon = 1e-5f,
                                .n_rows = m->rows});
}
