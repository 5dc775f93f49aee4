// SPDX-License-Identifier: MIT
// backend/world.h: an environment for running graphs: tensors, a batch of several sequences, a paged cache, devices.
//
// A test builds a graph whose activations come from tables of f32 numbers (one row for each token), makes one plan, and
// runs it on any device with any number of threads. Before every run all intermediate memory is NaN, and so are the
// cache's pages except for the positions in the past of a sequence.
//
//     world w;
//     world_open(&w, 3, (int[][2]){{17, 3}, {0, 1}, {31, 5}}, seed);   // sequences {n_past, n_rows}
//     frit_node *x = world_rows(&w, 64);                               // [T, 64], random
//     w.graph.output = frit_scale(&w.graph, x, 2);
//     world_plan(&w, false);
//     world_run(&w, "avx2", 2, result);                                // [T, 64]
//     world_close(&w);
#pragma once
#include "support/support.h"

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/task.h"
#include "engine/kv/kv.h"

enum { WORLD_MAX_SEQS = 32 };

static const frit_kv_types KV_F32 = {FRIT_DTYPE_F32, FRIT_DTYPE_F32}, KV_F16 = {FRIT_DTYPE_F16, FRIT_DTYPE_F16};

typedef struct world {
    frit_rng rng;
    frit_arena arena;
    frit_graph graph;
    frit_plan *plan;
    bool fuses;
    frit_batch batch;
    frit_seq seqs[WORLD_MAX_SEQS];
    int32_t *tokens, *positions, *out_rows, *pages;
    int32_t *tables;   // page tables of the batch: group 0 of the sequences, group 1 of their encoded sources, if any
    int first_page[WORLD_MAX_SEQS];   // in `pages`
    int n_pages;
    frit_node *token_node, *position_node, *out_node;
    frit_cache cache;
    frit_cache_layer layer;
    float *past;          // keys and values that are written to the pages before each run
    float *past_index;    // index keys of the past
    float *past_states;   // states of the past
    float *given;         // input of the step, by given_node; NULL: none
    frit_node *given_node;
} world;

static inline int world_pages_of(const int run[2])
{
    return (run[0] + run[1] + FRIT_PAGE_TOKENS - 1) / FRIT_PAGE_TOKENS;
}

// Assigns page numbers in random order.
static inline void world_deal_pages(world *w)
{
    for (int i = 0; i < w->n_pages; i++) w->pages[i] = i;
    for (int i = w->n_pages - 1; i > 0; i--) {
        const int j = (int)random_between(&w->rng, 0, i);
        const int32_t page = w->pages[i];
        w->pages[i] = w->pages[j], w->pages[j] = page;
    }
}

static inline void world_open(world *w, int n_seqs, int (*seqs)[2], uint64_t seed)
{
    *w = (world){0};
    frit_rng_init(&w->rng, seed);
    int n_rows = 0, page = 0, n_outs = 0;
    for (int i = 0; i < n_seqs; i++) n_rows += seqs[i][1], w->n_pages += world_pages_of(seqs[i]);
    w->tokens = frit_arena_new(&w->arena, int32_t, (size_t)n_rows);
    w->positions = frit_arena_new(&w->arena, int32_t, (size_t)n_rows);
    w->out_rows = frit_arena_new(&w->arena, int32_t, (size_t)n_rows);
    w->pages = frit_arena_new(&w->arena, int32_t, (size_t)w->n_pages);
    world_deal_pages(w);
    int stride = 0;
    for (int i = 0; i < n_seqs; i++) stride = world_pages_of(seqs[i]) > stride ? world_pages_of(seqs[i]) : stride;
    w->tables = frit_arena_new(&w->arena, int32_t, (size_t)(2 * n_seqs * stride));
    memset(w->tables, 0xff, (size_t)(2 * n_seqs * stride) * sizeof *w->tables);
    n_rows = 0;
    for (int i = 0; i < n_seqs; i++) {
        w->seqs[i] = (frit_seq){.first_row = n_rows,
                                .n_rows = seqs[i][1],
                                .n_past = seqs[i][0],
                                .state = i,
                                .row_class = seqs[i][1] >= 32 ? FRIT_ROWS_LONG_PREFILL : FRIT_ROWS_DECODE};
        w->first_page[i] = page;
        page += world_pages_of(seqs[i]);
        for (int r = 0; r < seqs[i][1]; r++, n_rows++)
            w->tokens[n_rows] = n_rows, w->positions[n_rows] = seqs[i][0] + r;
    }
    for (int i = 0; i < n_rows; i += 2) w->out_rows[n_outs++] = i;
    w->batch = (frit_batch){.n_rows = n_rows,
                            .n_outs = n_outs,
                            .n_seqs = n_seqs,
                            .tokens = w->tokens,
                            .positions = w->positions,
                            .out_rows = w->out_rows,
                            .seqs = w->seqs,
                            .pages = w->tables,
                            .n_groups = 2,
                            .page_stride = stride};
    frit_graph_init(&w->graph, &w->arena, n_rows + 3, n_outs + 1);   // more rows than this step has
    w->token_node = frit_input_node(&w->graph, FRIT_INPUT_TOKENS);
    w->position_node = frit_input_node(&w->graph, FRIT_INPUT_POSITIONS);
    w->out_node = frit_input_node(&w->graph, FRIT_INPUT_OUT_ROWS);
}

static inline void world_close(world *w)
{
    free(w->layer.k.pages);
    if (!w->layer.spec.v_in_k) free(w->layer.v.pages);
    free(w->layer.index.pages);
    free(w->layer.states);
    free(w->past);
    free(w->past_states);
    free(w->given);
    free(w->past_index);
    frit_arena_free(&w->arena);
}

// A zeroed matrix [rows, n], or a vector [n] if rows is 0, that begins `misalign` bytes after an aligned address.
static inline frit_tensor *world_tensor(world *w, frit_dtype dtype, int64_t rows, int64_t n, size_t misalign)
{
    frit_tensor *t = frit_arena_new(&w->arena, frit_tensor, 1);
    t->name = "t";
    t->dtype = dtype;
    t->n_dims = rows ? 2 : 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) t->shape[i] = 1;
    t->shape[0] = rows ? rows : n;
    if (rows) t->shape[1] = n;
    t->n_bytes = frit_dtype_row_bytes(dtype, n) * (uint64_t)(rows ? rows : 1);
    t->data = (uint8_t *)frit_arena_alloc(&w->arena, (size_t)t->n_bytes + misalign, 1) + misalign;
    return t;
}

static inline void *world_bytes(const frit_tensor *t)
{
    return (void *)(uintptr_t)t->data;
}

// Makes activations from given numbers: row t of the step is row t of `values` [n_rows, n].
static inline frit_node *world_given_rows(world *w, const float *values, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, w->batch.n_rows, n, 0);
    memcpy(world_bytes(t), values, (size_t)t->n_bytes);
    return frit_embed(&w->graph, frit_weight_node(&w->graph, t), w->token_node);
}

static inline frit_node *world_rows(world *w, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, w->batch.n_rows, n, 0);
    random_normal(&w->rng, world_bytes(t), (size_t)(w->batch.n_rows * n), 1);
    return frit_embed(&w->graph, frit_weight_node(&w->graph, t), w->token_node);
}

// An input of the step [T, 2], whose column 1 is the end of the positions that a row sees: in every second part of 7
// rows of a sequence, rows see each other.
static inline frit_node *world_ends(world *w)
{
    enum { PART = 7 };
    w->given = malloc((size_t)w->batch.n_rows * 2 * sizeof *w->given);
    for (int s = 0; s < w->batch.n_seqs; s++) {
        const frit_seq *seq = &w->seqs[s];
        for (int i = 0; i < seq->n_rows; i++) {
            const int part_end = (i / PART + 1) * PART, end = part_end < seq->n_rows ? part_end : seq->n_rows;
            float *row = w->given + 2 * (seq->first_row + i);
            row[0] = -1;
            row[1] = (float)(seq->n_past + (i / PART % 2 ? end : i + 1));
        }
    }
    return w->given_node = frit_given_node(&w->graph, 2);
}

static inline frit_node *world_heads(world *w, int64_t n_heads, int64_t dim)
{
    return frit_reshape(&w->graph, world_rows(w, n_heads * dim), 2, (int64_t[]){n_heads, dim});
}

static inline frit_node *world_vector(world *w, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, 0, n, 0);
    random_normal(&w->rng, world_bytes(t), (size_t)n, 1);
    return frit_weight_node(&w->graph, t);
}

// Makes the cache of layer 0, with random keys and values.
static inline frit_cache_side world_side(const world *w, frit_dtype dtype, int n_head_kv, int dim)
{
    frit_cache_side side = {.dtype = dtype, .dim = dim, .hadamard = 1, .row_bytes = frit_dtype_row_bytes(dtype, dim)};
    if (frit_dtype_get(dtype)->block_elems > 1) side.hadamard = dim & -dim;
    side.page_bytes = (uint64_t)n_head_kv * FRIT_PAGE_TOKENS * side.row_bytes;
    side.pages = malloc((size_t)w->n_pages * side.page_bytes);
    return side;
}

static inline void world_cache(world *w, frit_kv_types types, int n_head_kv, int k_dim, int v_dim)
{
    const size_t n = (size_t)n_head_kv * FRIT_PAGE_TOKENS * (size_t)w->n_pages * (size_t)(k_dim + v_dim);
    w->layer =
        (frit_cache_layer){.spec = {.kind = FRIT_CACHE_KV, .n_head_kv = n_head_kv, .k_dim = k_dim, .v_dim = v_dim}};
    w->layer.k = world_side(w, types.k, n_head_kv, k_dim);
    w->layer.k.transposed = frit_dtype_get(types.k)->block_elems == 1 && random_between(&w->rng, 0, 3) > 0;
    w->layer.v = world_side(w, types.v, n_head_kv, v_dim);
    w->past = malloc(n * sizeof(float));
    random_normal(&w->rng, w->past, n, 1);
    w->cache = (frit_cache){.layers = &w->layer, .n_layers = 1};
}

// Makes a cache with values in the keys, as in latent attention, and index keys of index_dim elements.
static inline void world_latent_cache(world *w, frit_dtype dtype, int k_dim, int v_dim, int index_dim)
{
    world_cache(w, (frit_kv_types){dtype, dtype}, 1, k_dim, v_dim);
    frit_cache_layer *layer = &w->layer;
    layer->spec.v_in_k = true;
    layer->k.transposed = false;
    layer->spec.index_dim = index_dim;
    if (layer->k.hadamard > 1) layer->k.hadamard = (k_dim | v_dim) & -(k_dim | v_dim);
    free(layer->v.pages);
    layer->v = layer->k;
    layer->v.dim = v_dim;
    layer->index = world_side(w, dtype, 1, index_dim);
    const size_t n = (size_t)w->n_pages * FRIT_PAGE_TOKENS * (size_t)index_dim;
    w->past_index = malloc(n * sizeof(float));
    random_normal(&w->rng, w->past_index, n, 1);
}

// Makes states of n elements in layer 0: random, or NaN if a sequence has no past.
static inline void world_states(world *w, int n)
{
    const size_t n_all = (size_t)n * (size_t)w->batch.n_seqs;
    w->layer.spec.n_state = n;
    w->layer.states = malloc(n_all * sizeof(float));
    w->past_states = malloc(n_all * sizeof(float));
    random_normal(&w->rng, w->past_states, n_all, 1);
    for (int i = 0; i < w->batch.n_seqs; i++)
        if (w->seqs[i].n_past == 0) memset(w->past_states + i * n, 0xff, (size_t)n * sizeof(float));
    w->cache = (frit_cache){.layers = &w->layer, .n_layers = 1};
}

static inline void world_put(const frit_cache_side *side, size_t page, size_t row, const float *values)
{
    const frit_encode_fn encode = frit_dtype_get(side->dtype)->encode;
    uint8_t *at = side->pages + page * side->page_bytes;
    if (!side->transposed) {
        encode(values, at + row * side->row_bytes, side->dim, NULL);
        return;
    }
    const size_t elem_bytes = side->row_bytes / (size_t)side->dim, i = row % FRIT_PAGE_TOKENS;
    at += (row - i) * side->row_bytes + i * elem_bytes;
    for (int d = 0; d < side->dim; d++) encode(values + d, at + (size_t)d * FRIT_PAGE_TOKENS * elem_bytes, 1, NULL);
}

static inline void world_put_position(world *w, int i_seq, int p)
{
    const frit_cache_layer *layer = &w->layer;
    const int k_dim = layer->k.dim, v_dim = layer->v.dim;
    const size_t page = (size_t)w->pages[w->first_page[i_seq] + p / FRIT_PAGE_TOKENS];
    for (int h = 0; h < layer->spec.n_head_kv; h++) {
        const size_t row = (size_t)(h * FRIT_PAGE_TOKENS + p % FRIT_PAGE_TOKENS);
        const size_t page_rows = (size_t)(layer->spec.n_head_kv * FRIT_PAGE_TOKENS);
        const float *values = w->past + (page * page_rows + row) * (size_t)(k_dim + v_dim);
        world_put(&layer->k, page, row, values);
        if (!layer->spec.v_in_k) world_put(&layer->v, page, row, values + k_dim);
        const float *index = w->past_index ? w->past_index + (page * page_rows + row) * (size_t)layer->index.dim : NULL;
        if (index) world_put(&layer->index, page, row, index);
    }
}

// The first position that a row of this step reads.
static inline int world_first_seen(const world *w, const frit_seq *seq)
{
    for (int i = 0; i < w->graph.n_nodes; i++)
        if (w->graph.nodes[i]->op == FRIT_OP_ATTEND)
            return (int)frit_attend_range(&w->graph.nodes[i]->attend, seq, seq->n_past, 0).begin;
    return 0;
}

// Fills a page table, without pages for positions before the first one that is read.
static inline void world_fill_table(world *w, int i_seq)
{
    const frit_seq *seq = &w->seqs[i_seq];
    int32_t *table = w->tables + i_seq * w->batch.page_stride;
    const int n_pages = world_pages_of((int[]){seq->n_past, seq->n_rows});
    const int first = world_first_seen(w, seq) / FRIT_PAGE_TOKENS;
    for (int i = 0; i < n_pages; i++) table[i] = i < first ? -1 : w->pages[w->first_page[i_seq] + i];
}

// Sets the cache to NaN except in the past of the sequences that rows of this step read.
static inline void world_reset_cache(world *w)
{
    if (w->past_states)
        memcpy(w->layer.states, w->past_states,
               (size_t)w->layer.spec.n_state * (size_t)w->batch.n_seqs * sizeof(float));
    if (!w->layer.k.pages) return;
    memset(w->layer.k.pages, 0xff, (size_t)w->n_pages * w->layer.k.page_bytes);
    memset(w->layer.v.pages, 0xff, (size_t)w->n_pages * w->layer.v.page_bytes);
    if (w->layer.index.pages) memset(w->layer.index.pages, 0xff, (size_t)w->n_pages * w->layer.index.page_bytes);
    for (int i = 0; i < w->batch.n_seqs; i++) {
        world_fill_table(w, i);
        for (int p = world_first_seen(w, &w->seqs[i]); p < w->seqs[i].n_past; p++) world_put_position(w, i, p);
    }
}

static inline void world_plan_for(world *w, frit_can_join_fn can_join, const void *device)
{
    assert_ok(frit_graph_check(&w->graph));
    if (w->plan) frit_plan_set_rows(w->plan, w->graph.max_rows, w->graph.max_outs);
    const frit_plan_options options = {.no_fuse = !w->fuses, .can_join = can_join, .device = device};
    assert_ok(frit_plan_new(&w->plan, &w->graph, &options));
}

// Makes the plan of a device that supports all joins; world_run makes the plan of its device.
static inline void world_plan(world *w, bool fuse)
{
    w->fuses = fuse;
    world_plan_for(w, NULL, NULL);
}

// Number of elements in the result of this step.
static inline size_t world_result_size(const world *w)
{
    const frit_node *out = w->graph.output;
    size_t n = (size_t)(out->rows == FRIT_SHAPE_OUTS ? w->batch.n_outs : w->batch.n_rows);
    for (int i = 1; i < out->n_dims; i++) n *= (size_t)out->shape[i];
    return n;
}

// Runs the batch, waits, and copies the rows of the output.
static inline const float *world_step(const world *w, frit_device *device, frit_exec *exec)
{
    frit_ticket ticket;
    frit_step_output output = {.wants_rows = true};
    if (w->given)
        assert_ok(device->backend->write(device, device->backend->value(exec, w->given_node), w->given,
                                         (uint64_t)w->batch.n_rows * 2 * sizeof *w->given));
    assert_ok(device->backend->submit(device, exec, &w->batch, &output, &ticket));
    assert_ok(device->backend->wait(device, ticket));
    assert_true(device->backend->poll(device, ticket));
    return output.rows;
}

static inline void world_run(world *w, const char *cpu, int n_threads, float *result)
{
    const frit_backend *backend = &frit_backend_cpu;
    frit_device *device;
    frit_exec *exec;
    const float *output;
    assert_ok(backend->open(&device, &(frit_device_options){.n_threads = n_threads, .cpu = cpu}));
    world_plan_for(w, backend->can_join, device);
    assert_ok(backend->prepare(device, w->plan, &w->cache, &exec));
    for (int i = 0; i < 2; i++) {   // the second run must not need memory of the first
        frit_cpu_exec_fill(exec, 0xff);
        world_reset_cache(w);
        output = world_step(w, device, exec);
    }
    memcpy(result, output, world_result_size(w) * sizeof(float));
    backend->exec_free(device, exec);
    backend->close(device);
}
