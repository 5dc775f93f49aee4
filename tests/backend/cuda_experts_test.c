// SPDX-License-Identifier: MIT
// Compares mixtures of experts with the reference: all kinds of routes, and layers whose rows run one by one or in
// groups that share experts. Uses the GPU of tests/emulator or, with FRIT_TEST_GPU=FOLDER, the machine's.
#include "backend/gpu.h"
#include "backend/weights.h"
#include "backend/world.h"

#include <math.h>

// Makes all rows of y results, because a device with its own memory copies only results to the host.
static void set_output(world *w, frit_node *y)
{
    w->batch.n_outs = w->batch.n_rows;
    for (int i = 0; i < w->batch.n_rows; i++) w->out_rows[i] = i;
    w->graph.max_outs = w->batch.n_rows + 1;
    w->graph.output = frit_take_rows(&w->graph, y, frit_input_node(&w->graph, FRIT_INPUT_OUT_ROWS));
}

// Runs the graph, all ops of which must run on the GPU.
static void run_on_gpu(world *w, float *result)
{
    const frit_backend *backend = &frit_backend_cuda;
    frit_device *device;
    frit_exec *exec;
    assert_ok(backend->open(&device, &(frit_device_options){.n_threads = 1}));
    world_plan_for(w, backend->can_join, device);
    for (int k = 0; k < w->plan->phases.n_fusions; k++)
        for (int i = 0; i < w->plan->phases.fusions[k].n_nodes; i++)
            assert_true(backend->runs(device, w->plan->phases.fusions[k].nodes[i]));
    assert_ok(backend->prepare(device, w->plan, &w->cache, &exec));
    for (int i = 0; i < 3; i++)   // later steps run as a recorded graph
        memcpy(result, world_step(w, device, exec), world_result_size(w) * sizeof(float));
    backend->exec_free(device, exec);
    backend->close(device);
}

// ------------------------------------------------------------------------------- routes

typedef struct route_case {
    int n;   // scores
    bool has_bias, has_ties;
    frit_route route;
} route_case;

static void check_route(const route_case *c, int i_case)
{
    world w;
    world_open(&w, 2, (int[][2]){{0, 3}, {5, 2}}, (uint64_t)i_case);
    frit_tensor *t = world_tensor(&w, FRIT_DTYPE_F32, w.batch.n_rows, c->n, 0);
    float *x = world_bytes(t);
    random_normal(&w.rng, x, (size_t)(w.batch.n_rows * c->n), 2);
    for (int i = 0; i < w.batch.n_rows * c->n && c->has_ties; i++) x[i] = roundf(x[i]);
    frit_node *scores = frit_embed(&w.graph, frit_weight_node(&w.graph, t), w.token_node);
    frit_node *bias = c->has_bias ? world_vector(&w, c->n) : NULL;
    const int k = c->route.n_used;
    frit_node *route = frit_route_node(&w.graph, scores, bias, c->route);
    set_output(&w, frit_reshape(&w.graph, route, 1, (int64_t[]){2 * k}));
    world_plan(&w, true);
    const size_t n = world_result_size(&w);
    float *expected = malloc(n * sizeof(float)), *found = malloc(n * sizeof(float));
    world_run(&w, "reference", 1, expected);
    run_on_gpu(&w, found);
    for (size_t i = 0; i < n; i++) {
        const bool is_expert = i % (size_t)(2 * k) < (size_t)k;
        const double limit = is_expert ? 0 : 2e-6 * fabs((double)expected[i]) + 1e-12;
        if (!(fabs((double)found[i] - (double)expected[i]) <= limit))
            fail_msg("route %d: number %zu is %.9g, expected %.9g", i_case, i, (double)found[i], (double)expected[i]);
    }
    free(expected);
    free(found);
    world_close(&w);
}

static void routes_of_every_kind_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    // The number of scores is a multiple of 32, like the width of the table that they come from.
    static const route_case cases[] = {
        {.n = 128, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 8, .normalize = true}},
        {.n = 32, .has_ties = true, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 5, .scale = 2.5f}},
        {.n = 32, .has_ties = true, .route = {.gating = FRIT_GATING_SOFTMAX_SELECTED, .n_used = 4}},
        {.n = 64,
         .has_bias = true,
         .route = {.gating = FRIT_GATING_SIGMOID, .n_used = 6, .n_groups = 8, .n_groups_used = 3, .normalize = true}},
        {.n = 64, .has_bias = true, .route = {.gating = FRIT_GATING_SQRT_SOFTPLUS, .n_used = 3, .scale = 1.5f}},
        {.n = 32, .route = {.gating = FRIT_GATING_NEAR_BEST, .n_used = 2, .jitter = 0.3f}},
        {.n = 64, .route = {.gating = FRIT_GATING_SOFTMAX, .n_used = 4, .divisor = 2, .by_sigmoid = true}},
        {.n = 32, .has_bias = true, .route = {.gating = FRIT_GATING_SIGMOID, .n_used = 32, .by_logit = true}},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) check_route(&cases[i], (int)i);
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
    frit_node *x = frit_rms_norm(g, world_rows(w, l->n), world_vector(w, l->n), 1e-6f);
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
    y = frit_mix(g, l->is_apart ? frit_scale(g, y, 0.5f) : y, route, l->weighs_input);
    return l->has_residual ? frit_add(g, frit_add(g, world_rows(w, l->n), y), world_rows(w, l->n)) : y;
}

static void check_error(world *w, double limit, const char *what)
{
    world_plan(w, true);
    const size_t n = world_result_size(w);
    float *expected = malloc(n * sizeof(float)), *found = malloc(n * sizeof(float));
    world_run(w, "reference", 2, expected);
    run_on_gpu(w, found);
    const double error = nmse(found, expected, n);
    print_message("%s: %.1e\n", what, error);
    if (!(error <= limit)) fail_msg("%s: nmse %g, at most %g", what, error, limit);
    free(expected);
    free(found);
}

// gemv keeps 15 bits of activations, and more with 16-bit weights. Gemms have weights and rows in f16.
static void check_layer(const layer *l, int i_layer)
{
    world w;
    char what[80];
    world_open(&w, 1, (int[][2]){{0, l->n_rows}}, (uint64_t)(i_layer + 100));
    set_output(&w, build_layer(&w, l));
    snprintf(what, sizeof what, "%s, %d of %d experts, %d rows", frit_dtype_get(l->dtype)->name, (int)l->n_used,
             (int)l->n_experts, l->n_rows);
    check_error(&w, l->n_rows < 17 ? 1e-7 : 5e-7, what);
    world_close(&w);
}

// Rows share experts if there are at least n_experts / (2 n_used).
static void layers_of_experts_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
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
         .n_experts = 32,
         .n_used = 2,
         .n_rows = 40,
         .act = FRIT_ACT_GELU,
         .is_one_matrix = true,
         .has_residual = true},
        {.dtype = FRIT_DTYPE_BF16,
         .n = 64,
         .n_ff = 32,
         .n_experts = 32,
         .n_used = 4,
         .n_rows = 6,
         .weighs_input = true},
        {.dtype = FRIT_DTYPE_MXFP4, .n = 64, .n_ff = 96, .n_experts = 32, .n_used = 4, .n_rows = 3, .is_apart = true},
        // From 17 rows on, products are in f16; more than 64 rows of an expert are several groups.
        {.dtype = FRIT_DTYPE_Q8_0,
         .n = 64,
         .n_ff = 32,
         .n_experts = 32,
         .n_used = 8,
         .n_rows = 300,
         .weighs_input = true},
        {.dtype = FRIT_DTYPE_MXFP4, .n = 288, .n_ff = 96, .n_experts = 32, .n_used = 2, .n_rows = 30, .is_apart = true},
        {.dtype = FRIT_DTYPE_BF16, .n = 96, .n_ff = 288, .n_experts = 64, .n_used = 2, .n_rows = 17},
        {.dtype = FRIT_DTYPE_F32, .n = 64, .n_ff = 64, .n_experts = 32, .n_used = 3, .n_rows = 50},
        {.dtype = FRIT_DTYPE_FP8_128, .n = 128, .n_ff = 128, .n_experts = 32, .n_used = 2, .n_rows = 5},
        {.dtype = FRIT_DTYPE_FP8_128, .n = 128, .n_ff = 128, .n_experts = 32, .n_used = 2, .n_rows = 30},
    };
    for (size_t i = 0; i < FRIT_COUNT(layers); i++) check_layer(&layers[i], (int)i);
}

// Heads with their own matrices, for one row, and for more rows than a kernel multiplies at once.
static void heads_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    static const int n_rows[] = {1, 11};
    for (size_t i = 0; i < FRIT_COUNT(n_rows); i++) {
        world w;
        world_open(&w, 1, (int[][2]){{0, n_rows[i]}}, (uint64_t)i);
        frit_node *x = world_heads(&w, 6, 64), *y = frit_heads(&w.graph, any_stack(&w, FRIT_DTYPE_F16, 6, 48, 64), x);
        set_output(&w, frit_reshape(&w.graph, y, 1, (int64_t[]){(int64_t)6 * 48}));
        check_error(&w, 1e-9, "heads");
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
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
