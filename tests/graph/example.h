// SPDX-License-Identifier: MIT
// graph/example.h: small graphs with random weights for tests.
#pragma once
#include "graph/node.h"
#include "graph/plan.h"
#include "support/support.h"

typedef struct example {
    frit_arena arena;
    frit_rng rng;
    frit_graph g;
} example;

enum { EXAMPLE_ROWS = 6, EXAMPLE_OUTS = 2, EXAMPLE_VOCAB = 20, EXAMPLE_EMBD = 16, EXAMPLE_FF = 24, EXAMPLE_HEAD = 8 };

static inline void example_start(example *e)
{
    *e = (example){0};
    frit_rng_init(&e->rng, 7);
    frit_graph_init(&e->g, &e->arena, EXAMPLE_ROWS, EXAMPLE_OUTS);
}

static inline void example_end(example *e)
{
    frit_arena_free(&e->arena);
}

static inline frit_node *example_tensor(example *e, const char *name, float *data, int64_t n_out, int64_t n_in)
{
    frit_tensor *tensor = frit_arena_new(&e->arena, frit_tensor, 1);
    *tensor = (frit_tensor){.name = name,
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = n_in ? 2 : 1,
                            .shape = {n_out, n_in ? n_in : 1, 1, 1},
                            .data = data,
                            .n_bytes = (uint64_t)(n_out * (n_in ? n_in : 1)) * sizeof *data};
    return frit_weight_node(&e->g, tensor);
}

// Makes a random f32 weight: a vector if n_in is 0.
static inline frit_node *example_weight(example *e, const char *name, int64_t n_out, int64_t n_in)
{
    size_t n = (size_t)(n_out * (n_in ? n_in : 1));
    float *data = frit_arena_new(&e->arena, float, n);
    random_normal(&e->rng, data, n, n_in ? 0.3f : 1.0f);
    return example_tensor(e, name, data, n_out, n_in);
}

// Frequencies of rotation, up to 4.
static inline frit_node *example_frequencies(example *e, int64_t n)
{
    static float numbers[] = {1, 0.1f, 0.01f, 0.001f};
    return example_tensor(e, "inv_freq", numbers, n, 0);
}

// Random rows of the batch: [T, n].
static inline frit_node *example_rows(example *e, int64_t n)
{
    frit_node *table = example_weight(e, "table", EXAMPLE_VOCAB, n);
    return frit_embed(&e->g, table, frit_input_node(&e->g, FRIT_INPUT_TOKENS));
}

static inline char *example_name(example *e, int layer, const char *name)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%d.%s", layer, name);
    return frit_arena_text(&e->arena, text, (size_t)n);
}

static inline frit_node *example_heads(example *e, frit_node *x, int64_t n_head)
{
    return frit_reshape(&e->g, x, 2, (int64_t[]){n_head, EXAMPLE_HEAD});
}

// Makes a layer of Llama: two query heads share a KV head.
static inline frit_node *example_layer(example *e, int layer, frit_node *x, frit_node *positions)
{
    frit_graph *g = &e->g;
    const frit_rope rope = {.style = FRIT_ROPE_NEOX, .dim = EXAMPLE_HEAD, .magnitude = 1};
    frit_node *inv_freq = example_frequencies(e, EXAMPLE_HEAD / 2);
    const int64_t n = EXAMPLE_EMBD;
    frit_node *h = frit_rms_norm(g, x, example_weight(e, example_name(e, layer, "attn_norm"), n, 0), 1e-5f);
    frit_node *q = frit_matmul(g, example_weight(e, example_name(e, layer, "q"), n, n), h, NULL);
    frit_node *k = frit_matmul(g, example_weight(e, example_name(e, layer, "k"), EXAMPLE_HEAD, n), h, NULL);
    frit_node *v = frit_matmul(g, example_weight(e, example_name(e, layer, "v"), EXAMPLE_HEAD, n), h, NULL);
    q = frit_rotate(g, example_heads(e, q, 2), positions, inv_freq, NULL, rope);
    k = frit_rotate(g, example_heads(e, k, 1), positions, inv_freq, NULL, rope);
    frit_node *written = frit_kv_write(g, k, example_heads(e, v, 1), layer);
    h = frit_attend_node(g, q, written, (frit_attend){.layer = layer, .scale = 0.25f}, EXAMPLE_HEAD);
    h = frit_reshape(g, h, 1, &n);
    h = frit_matmul(g, example_weight(e, example_name(e, layer, "o"), n, n), h, NULL);
    x = frit_add(g, x, h);
    h = frit_rms_norm(g, x, example_weight(e, example_name(e, layer, "ffn_norm"), n, 0), 1e-5f);
    frit_node *gate = frit_matmul(g, example_weight(e, example_name(e, layer, "gate"), EXAMPLE_FF, n), h, NULL);
    frit_node *up = frit_matmul(g, example_weight(e, example_name(e, layer, "up"), EXAMPLE_FF, n), h, NULL);
    h = frit_glu(g, gate, up, FRIT_ACT_SILU);
    h = frit_matmul(g, example_weight(e, example_name(e, layer, "down"), n, EXAMPLE_FF), h, NULL);
    return frit_add(g, x, h);
}

// Makes a model of n_layer layers; sets the output.
static inline void example_model(example *e, int n_layer)
{
    frit_graph *g = &e->g;
    frit_node *positions = frit_input_node(g, FRIT_INPUT_POSITIONS);
    frit_node *x = example_rows(e, EXAMPLE_EMBD);
    for (int i = 0; i < n_layer; i++) x = example_layer(e, i, x, positions);
    x = frit_take_rows(g, x, frit_input_node(g, FRIT_INPUT_OUT_ROWS));
    x = frit_rms_norm(g, x, example_weight(e, "out_norm", EXAMPLE_EMBD, 0), 1e-5f);
    g->output = frit_matmul(g, example_weight(e, "head", EXAMPLE_VOCAB, EXAMPLE_EMBD), x, NULL);
    assert_ok(frit_graph_check(g));
}

static inline int count_ops(const frit_plan *plan, frit_op op)
{
    int n = 0;
    for (int k = 0; k < plan->phases.n_fusions; k++)
        for (int i = 0; i < plan->phases.fusions[k].n_nodes; i++) n += plan->phases.fusions[k].nodes[i]->op == op;
    return n;
}
