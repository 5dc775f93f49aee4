// SPDX-License-Identifier: MIT
// Compares mixtures of experts on a GPU through WebGPU with plain C on the CPU: all kinds of routes, layers whose rows
// run one by one, and layers whose rows share experts.
#include "backend/webgpu_compare.h"

static void open_rows(world *w, int n_rows, uint64_t seed)
{
    world_open(w, 2, (int[][2]){{0, n_rows - n_rows / 3}, {5, n_rows / 3}}, seed);
    if (n_rows < 3) world_close(w), world_open(w, 1, (int[][2]){{3, n_rows}}, seed);
}

// ------------------------------------------------------------------------------- routes

typedef struct route_case {
    int n;   // scores
    bool has_bias, has_ties;
    frit_route route;
} route_case;

static void routes_of_every_kind_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    static const route_case cases[] = {
        {.n = 128, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 8, .normalize = true}},
        {.n = 1000, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 10, .normalize = true}},
        {.n = 32, .has_ties = true, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 5, .scale = 2.5F}},
        {.n = 7, .has_ties = true, .route = {.gating = FRIT_GATING_SOFTMAX_SELECTED, .n_used = 4}},
        {.n = 64,
         .has_bias = true,
         .route = {.gating = FRIT_GATING_SIGMOID, .n_used = 6, .n_groups = 8, .n_groups_used = 3, .normalize = true}},
        {.n = 64, .has_bias = true, .route = {.gating = FRIT_GATING_SQRT_SOFTPLUS, .n_used = 3, .scale = 1.5F}},
        {.n = 32, .route = {.gating = FRIT_GATING_NEAR_BEST, .n_used = 2, .jitter = 0.3F}},
        {.n = 64, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 4, .divisor = 2, .by_sigmoid = true}},
        {.n = 32, .has_bias = true, .route = {.gating = FRIT_GATING_SIGMOID, .n_used = 32, .by_logit = true}},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        const route_case *c = &cases[i];
        world w;
        char what[32];
        open_rows(&w, 7, i);
        float *x = calloc((size_t)(w.batch.n_rows * c->n), sizeof *x);
        random_normal(&w.rng, x, (size_t)(w.batch.n_rows * c->n), 2);
        for (int k = 0; k < w.batch.n_rows * c->n && c->has_ties; k++) x[k] = roundf(x[k]);
        frit_node *scores = world_given_rows(&w, x, c->n);
        w.graph.output = frit_route_node(&w.graph, scores, c->has_bias ? world_vector(&w, c->n) : NULL, c->route);
        snprintf(what, sizeof what, "route %d", (int)i);
        compare(&w, 1e-12, what);   // an expert that differs is an error of 1e-4 or more
        free(x);
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- layers

// A stack of matrices [n_stack, rows, n].
static frit_node *any_stack(world *w, frit_dtype dtype, int64_t n_stack, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, dtype, n_stack * rows, n, 0);
    for (int64_t i = 0; i < n_stack * rows; i++)
        random_weights(&w->rng, dtype, (uint8_t *)world_bytes(t) + i * (int64_t)frit_dtype_row_bytes(dtype, n), n);
    t->n_dims = 3;
    t->shape[0] = n_stack, t->shape[1] = rows, t->shape[2] = n;
    return frit_weight_node(&w->graph, t);
}

typedef struct layer {
    frit_dtype dtype;
    int64_t n, n_ff, n_experts;
    int32_t n_used;
    int n_rows;
    frit_act act;
    bool is_one_matrix;   // gate and up are rows of one stack
    bool weighs_input;    // input rows are weighted, instead of the sum
    bool has_residual;    // the sum is added to a residual
    bool is_apart;        // other ops are between the products and their activation, and before the sum
} layer;

static frit_node *build_layer(world *w, const layer *l)
{
    frit_graph *g = &w->graph;
    const int32_t n_ff = (int32_t)l->n_ff;
    frit_node *x = frit_rms_norm(g, world_rows(w, l->n), world_vector(w, l->n), 1e-6F);
    const frit_route how = {.gating = FRIT_GATING_SOFTMAX, .n_used = l->n_used, .normalize = true};
    frit_node *route = frit_route_node(g, world_rows(w, l->n_experts), NULL, how);
    frit_node *gate_w = any_stack(w, l->dtype, l->n_experts, l->is_one_matrix ? 2 * l->n_ff : l->n_ff, l->n);
    frit_node *up_w = l->is_one_matrix ? gate_w : any_stack(w, l->dtype, l->n_experts, l->n_ff, l->n);
    const frit_experts first = {.n = n_ff, .weigh = l->weighs_input},
                       second = {.begin = l->is_one_matrix ? n_ff : 0, .n = n_ff, .weigh = l->weighs_input};
    frit_node *gate = frit_experts_node(g, gate_w, x, route, first), *up = frit_experts_node(g, up_w, x, route, second);
    if (l->is_apart) {
        frit_tensor *bias = world_tensor(w, FRIT_DTYPE_F32, l->n_experts, l->n_ff, 0);
        random_normal(&w->rng, world_bytes(bias), (size_t)(l->n_experts * l->n_ff), 1);
        gate = frit_add(g, gate, frit_gather_experts(g, frit_weight_node(g, bias), route));
    }
    frit_node *h = frit_glu(g, gate, up, l->act);
    frit_node *y = frit_experts_node(g, any_stack(w, l->dtype, l->n_experts, l->n, l->n_ff), h, route,
                                     (frit_experts){.n = (int32_t)l->n});
    y = frit_mix(g, l->is_apart ? frit_scale(g, y, 0.5F) : y, route, l->weighs_input);
    return l->has_residual ? frit_add(g, frit_add(g, world_rows(w, l->n), y), world_rows(w, l->n)) : y;
}

static void check_layer(const layer *l, uint64_t seed)
{
    world w;
    char what[80];
    open_rows(&w, l->n_rows, seed);
    w.fuses = true;
    w.graph.output = build_layer(&w, l);
    snprintf(what, sizeof what, "%s, %d of %d experts, %d rows", frit_dtype_get(l->dtype)->name, (int)l->n_used,
             (int)l->n_experts, l->n_rows);
    compare(&w, 1e-7, what);   // the input of both products has 15 bits
    world_close(&w);
}

static void layers_of_experts_are_those_of_the_reference(void **state)
{
    (void)state;
    require_webgpu();
    static const layer layers[] = {
        {.dtype = FRIT_DTYPE_Q4_K, .n = 512, .n_ff = 256, .n_experts = 32, .n_used = 3, .n_rows = 1},
        {.dtype = FRIT_DTYPE_Q4_K,
         .n = 512,
         .n_ff = 256,
         .n_experts = 32,
         .n_used = 3,
         .n_rows = 5,
         .has_residual = true},
        {.dtype = FRIT_DTYPE_Q4_K, .n = 512, .n_ff = 256, .n_experts = 32, .n_used = 3, .n_rows = 37},
        {.dtype = FRIT_DTYPE_Q8_0,
         .n = 96,
         .n_ff = 160,
         .n_experts = 5,
         .n_used = 2,
         .n_rows = 40,
         .act = FRIT_ACT_GELU,
         .is_one_matrix = true,
         .has_residual = true},
        {.dtype = FRIT_DTYPE_BF16,
         .n = 64,
         .n_ff = 36,   // not a whole number of tiles
         .n_experts = 32,
         .n_used = 4,
         .n_rows = 6,
         .weighs_input = true},
        {.dtype = FRIT_DTYPE_MXFP4, .n = 64, .n_ff = 96, .n_experts = 32, .n_used = 4, .n_rows = 3, .is_apart = true},
        {.dtype = FRIT_DTYPE_Q8_0,
         .n = 64,
         .n_ff = 32,
         .n_experts = 32,
         .n_used = 8,
         .n_rows = 300,
         .weighs_input = true},
        {.dtype = FRIT_DTYPE_MXFP4, .n = 288, .n_ff = 96, .n_experts = 8, .n_used = 2, .n_rows = 30, .is_apart = true},
        {.dtype = FRIT_DTYPE_BF16, .n = 96, .n_ff = 288, .n_experts = 64, .n_used = 2, .n_rows = 17},
        {.dtype = FRIT_DTYPE_F32, .n = 64, .n_ff = 72, .n_experts = 4, .n_used = 3, .n_rows = 50},
    };
    for (size_t i = 0; i < FRIT_COUNT(layers); i++) check_layer(&layers[i], i);
}

// Heads with their own matrices, for one row, and for more rows than a kernel multiplies at once.
static void heads_are_those_of_the_reference(void **state)
{
    (void)state;
    static const int n_rows[] = {1, 3, 21};
    static const frit_dtype types[] = {FRIT_DTYPE_F16, FRIT_DTYPE_Q8_0, FRIT_DTYPE_F32};
    require_webgpu();
    for (size_t i = 0; i < FRIT_COUNT(n_rows); i++) {
        world w;
        open_rows(&w, n_rows[i], i);
        w.graph.output = frit_heads(&w.graph, any_stack(&w, types[i], 6, 48, 64), world_heads(&w, 6, 64));
        compare(&w, 1e-8, "heads");
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_every_kind_are_those_of_the_reference),
        cmocka_unit_test(layers_of_experts_are_those_of_the_reference),
        cmocka_unit_test(heads_are_those_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
