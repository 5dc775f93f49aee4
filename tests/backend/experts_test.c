// SPDX-License-Identifier: MIT
// Compares mixtures of experts, and heads with matrices of their own, on every instruction set with the reference: all
// types, ties and biases in the router, experts chosen by no row or by every row, rows that share a step.
#include "backend/compare.h"
#include "backend/weights.h"
#include "support/isas.h"

#include <math.h>

// Adds a stack of matrices [n_stack, rows, n] at any even address.
static frit_node *any_stack(world *w, frit_dtype dtype, int64_t n_stack, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, dtype, n_stack * rows, n, 2 * (size_t)random_between(&w->rng, 0, 9));
    for (int64_t i = 0; i < n_stack * rows; i++)
        random_weights(&w->rng, dtype, (uint8_t *)world_bytes(t) + i * (int64_t)frit_dtype_row_bytes(dtype, n), n);
    t->n_dims = 3;
    t->shape[0] = n_stack, t->shape[1] = rows, t->shape[2] = n;
    return frit_weight_node(&w->graph, t);
}

static int64_t any_length(world *w, frit_dtype dtype)
{
    const int64_t block = frit_dtype_get(dtype)->block_elems;
    return block == 1 ? random_between(&w->rng, 1, 200) : block * random_between(&w->rng, 1, block >= 128 ? 2 : 5);
}

// A product of blocks reads activations in int8: the error is about (largest of a block / 127)^2 / 12 of its mean
// square, 3e-5 for normal numbers, four times that if a block has an outlier. AMX rounds factors to bf16.
static double product_tolerance(frit_dtype dtype)
{
    return frit_dtype_get(dtype)->block_elems == 1 ? 1e-11 : 2.5e-4;
}

// The second product of a layer reads silu(gate) * up, where the largest of 256 numbers is ten times the mean of the
// others: (10 / 127)^2 / 12 is 5e-4. With one row of a few experts, no averaging reduces it.
static double layer_tolerance(frit_dtype dtype)
{
    return frit_dtype_get(dtype)->block_elems == 1 ? 1e-11 : 1.5e-3;
}

enum { AMX_SHARE = 10 };   // factor of the tolerance for AMX

// Distributions of scores over the experts.
typedef enum spread { EVEN, TIED, ALL_TO_ONE, SPREADS } spread;

static frit_node *any_scores(world *w, int64_t n_experts, spread how)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, w->batch.n_rows, n_experts, 0);
    float *scores = world_bytes(t);
    random_normal(&w->rng, scores, (size_t)(w->batch.n_rows * n_experts), 2);
    for (int64_t i = 0; i < w->batch.n_rows * n_experts; i++) {
        if (how == TIED) scores[i] = roundf(scores[i]);
        if (how == ALL_TO_ONE && i % n_experts == n_experts / 2) scores[i] = 30;
    }
    return frit_embed(&w->graph, frit_weight_node(&w->graph, t), w->token_node);
}

typedef struct layer {
    frit_dtype dtype;
    int64_t n, n_ff, n_experts;
    frit_route route;
    spread spread;
    bool fused_matrix;   // gate and up are rows of one stack
    bool weigh;          // x is weighted instead of the sum
    bool apart;          // an op between the products and their activation prevents fusion
} layer;

static frit_node *build_layer(world *w, const layer *l)
{
    frit_graph *g = &w->graph;
    frit_node *x = world_rows(w, l->n);
    frit_node *route = frit_route_node(g, any_scores(w, l->n_experts, l->spread), NULL, l->route);
    frit_node *gate_w = any_stack(w, l->dtype, l->n_experts, l->fused_matrix ? 2 * l->n_ff : l->n_ff, l->n);
    frit_node *up_w = l->fused_matrix ? gate_w : any_stack(w, l->dtype, l->n_experts, l->n_ff, l->n);
    const int32_t n_ff = (int32_t)l->n_ff;
    const frit_experts first = {.n = n_ff, .weigh = l->weigh},
                       second = {.begin = l->fused_matrix ? n_ff : 0, .n = n_ff, .weigh = l->weigh};
    frit_node *gate = frit_experts_node(g, gate_w, x, route, first), *up = frit_experts_node(g, up_w, x, route, second);
    frit_node *h = frit_glu(g, l->apart ? frit_scale(g, gate, 0.1f) : gate, up, FRIT_ACT_SILU);
    const frit_experts down = {.n = (int32_t)l->n};
    return frit_mix(g, frit_experts_node(g, any_stack(w, l->dtype, l->n_experts, l->n, l->n_ff), h, route, down), route,
                    l->weigh);
}

static void open_runs(world *w, uint64_t seed)
{
    static int shapes[][4][2] = {{{0, 1}}, {{0, 7}}, {{5, 1}, {40, 1}, {0, 1}}, {{0, 9}, {31, 2}, {64, 1}, {3, 25}}};
    static const int n_seqs[] = {1, 1, 3, 4};
    world_open(w, n_seqs[seed % 4], shapes[seed % 4], seed);
}

static void check_layer(world *w, const layer *l, bool fuse)
{
    char what[80];
    snprintf(what, sizeof what, "experts of %s, %d of %d%s%s", frit_dtype_get(l->dtype)->name, (int)l->route.n_used,
             (int)l->n_experts, l->fused_matrix ? ", gate and up in one" : "", fuse ? ", fused" : "");
    w->graph.output = build_layer(w, l);
    const double tolerance = layer_tolerance(l->dtype);
    compare_rounded(w, fuse, tolerance, AMX_SHARE * tolerance, what);
    int n_fused = 0;
    for (int k = 0; k < w->plan->phases.n_fusions; k++) {
        const frit_op op = w->plan->phases.fusions[k].nodes[0]->op;
        n_fused += op == FRIT_OP_EXPERTS_GLU || op == FRIT_OP_EXPERTS_MIX;
    }
    assert_int_equal(n_fused, !fuse ? 0 : l->apart ? 1 : 2);
}

static void experts_of_all_types_agree_with_the_reference(void **state)
{
    (void)state;
    static const int64_t n_experts[] = {1, 3, 8, 5}, n_ffs[] = {64, 32, 96, 160};
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        const int64_t block = frit_dtype_get((frit_dtype)dtype)->block_elems;
        for (uint64_t seed = (uint64_t)dtype % FRIT_TEST_STRIDE; seed < 8; seed += FRIT_TEST_STRIDE) {
            world w;
            open_runs(&w, seed / 2);
            layer l = {.dtype = (frit_dtype)dtype, .n_experts = n_experts[seed % 4], .n_ff = n_ffs[seed % 4]};
            l.n = any_length(&w, l.dtype);
            l.n_ff = block > 32 ? block : l.n_ff + (block == 1 ? (int64_t)seed % 3 : 0);
            l.route = (frit_route){.gating = FRIT_GATING_SOFTMAX, .normalize = seed % 3 == 0};
            l.route.n_used = (int32_t)random_between(&w.rng, 1, l.n_experts);
            l.spread = (spread)(seed % SPREADS);
            l.fused_matrix = seed % 2;
            l.weigh = seed % 5 == 4;
            l.apart = seed % 8 == 6;
            check_layer(&w, &l, seed % 4 != 0);
            world_close(&w);
        }
    }
}

// More rows than decode kernels multiply: some experts get many rows of a sequence, some few.
static void experts_with_prefill_kernels_agree_with_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q8_0, FRIT_DTYPE_BF16, FRIT_DTYPE_F16,
                                        FRIT_DTYPE_IQ3_S};
    for (uint64_t seed = 0; seed < 3 * FRIT_COUNT(dtypes); seed += FRIT_TEST_STRIDE) {
        world w;
        world_open(&w, 2, (int[][2]){{0, 101}, {3, 64}}, seed);
        layer l = {
            .dtype = dtypes[seed / 3], .n = 256, .n_ff = 256, .n_experts = 6, .spread = (spread)(seed % SPREADS)};
        l.route = (frit_route){.gating = FRIT_GATING_SOFTMAX_SELECTED, .n_used = 2, .scale = 1.5f};
        l.fused_matrix = seed % 2;
        check_layer(&w, &l, true);
        world_close(&w);
    }
    world w;   // one expert has more rows than are multiplied at once
    world_open(&w, 1, (int[][2]){{0, 700}}, 1);
    layer l = {.dtype = FRIT_DTYPE_Q4_0, .n = 64, .n_ff = 192, .n_experts = 2, .spread = ALL_TO_ONE};
    l.route = (frit_route){.gating = FRIT_GATING_SOFTMAX, .n_used = 1};
    check_layer(&w, &l, true);
    world_close(&w);
}

// The rows of a sequence have the same bits with other sequences in the step.
static void rows_do_not_depend_on_other_sequences_of_the_step(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_F16, FRIT_DTYPE_F32,
                                        FRIT_DTYPE_IQ2_XS};
    enum { N = 256 };
    for (uint64_t seed = 0; seed < 2 * FRIT_COUNT(dtypes); seed += FRIT_TEST_STRIDE) {
        const bool many = seed % 2;
        float *shared = NULL;
        for (int alone = 0; alone < 2; alone++) {
            world w;   // the first sequence is equal in both worlds: tables have its rows first
            const int n = many ? 90 : 6;
            world_open(&w, alone ? 1 : 3, (int[][2]){{0, n}, {7, many ? 120 : 1}, {9, many ? 64 : 5}}, 5);
            const layer l = {.dtype = dtypes[seed / 2], .n_experts = 4, .spread = EVEN};
            frit_graph *g = &w.graph;
            frit_rng_init(&w.rng, 99);   // weights first, so that both worlds have equal weights
            frit_node *gate_w = any_stack(&w, l.dtype, l.n_experts, N, N), *up_w = any_stack(&w, l.dtype, 4, N, N);
            frit_node *down_w = any_stack(&w, l.dtype, l.n_experts, N, N);
            frit_rng_init(&w.rng, 100);
            frit_node *x = world_rows(&w, N);
            frit_rng_init(&w.rng, 101);
            frit_node *route = frit_route_node(g, any_scores(&w, 4, EVEN), NULL,
                                               (frit_route){.gating = FRIT_GATING_SOFTMAX, .n_used = 2});
            const frit_experts all = {.n = N};
            frit_node *h = frit_glu(g, frit_experts_node(g, gate_w, x, route, all),
                                    frit_experts_node(g, up_w, x, route, all), FRIT_ACT_SILU);
            g->output = frit_mix(g, frit_experts_node(g, down_w, h, route, all), route, false);
            world_plan(&w, true);
            float *result = malloc(world_result_size(&w) * sizeof *result);
            world_run(&w, NULL, 2, result);
            if (alone)
                assert_memory_equal(result, shared, (size_t)n * N * sizeof *result);
            else
                shared = result;
            if (alone) free(result);
            world_close(&w);
        }
        free(shared);
    }
}

static void routes_agree_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        world w;
        open_runs(&w, seed);
        const int64_t n = random_between(&w.rng, 1, 40) * 4;
        frit_route route = {.gating = (frit_gating)(1 + seed % (FRIT_GATING_COUNT - 1)),
                            .n_used = (int32_t)random_between(&w.rng, 1, n < 8 ? n : 8),
                            .normalize = seed % 3 == 0,
                            .scale = seed % 4 == 0 ? 2.5f : 0,
                            .jitter = 0.01f};
        if (seed % 7 == 6 && n >= 16) route.n_groups = 4, route.n_groups_used = 2;
        if (route.n_groups && route.n_used > n / 2) route.n_used = (int32_t)n / 2;
        const bool biased = seed % 2 && route.gating != FRIT_GATING_NEAR_BEST;
        frit_node *bias = biased ? world_vector(&w, n) : NULL;
        w.graph.output = frit_route_node(&w.graph, any_scores(&w, n, seed % 5 == 0 ? TIED : EVEN), bias, route);
        compare(&w, false, 1e-13, "route");   // other experts would give a completely different result
        world_close(&w);
    }
}

static void sums_over_experts_agree_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed += FRIT_TEST_STRIDE) {
        world w;
        open_runs(&w, seed);
        const int64_t n = random_between(&w.rng, 1, 600), n_experts = 6;
        const frit_route options = {.gating = FRIT_GATING_SIGMOID, .n_used = 3};
        frit_node *route = frit_route_node(&w.graph, any_scores(&w, n_experts, EVEN), NULL, options);
        frit_node *y = frit_gather_experts(
            &w.graph, frit_weight_node(&w.graph, world_tensor(&w, FRIT_DTYPE_F32, n_experts, n, 0)), route);
        random_normal(&w.rng, world_bytes(y->src[0]->tensor), (size_t)(n_experts * n), 1);
        w.graph.output = frit_mix(&w.graph, y, route, seed % 2);
        compare(&w, true, 1e-12, "mix");
        world_close(&w);
    }
}

static void heads_of_all_types_agree_with_the_reference(void **state)
{
    (void)state;
    static int seqs[][2] = {{0, 1}, {2, 5}, {0, 70}};
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        for (uint64_t seed = 0; seed < 6; seed += FRIT_TEST_STRIDE) {
            world w;
            world_open(&w, 1, &seqs[seed % 3], seed);
            const int64_t n = any_length(&w, (frit_dtype)dtype), n_head = random_between(&w.rng, 1, 5);
            const int64_t n_out = seed < 3 ? 32 * random_between(&w.rng, 1, 4) : random_between(&w.rng, 1, 70);
            frit_node *m = any_stack(&w, (frit_dtype)dtype, n_head, n_out, n), *x = world_heads(&w, n_head, n);
            w.graph.output = frit_heads(&w.graph, m, x);
            const double tolerance = product_tolerance((frit_dtype)dtype);
            compare_rounded(&w, true, tolerance, AMX_SHARE * tolerance, frit_dtype_get((frit_dtype)dtype)->name);
            world_close(&w);
        }
    }
}

static void experts_that_a_model_lacks_are_refused(void **state)
{
    (void)state;
    world w;
    world_open(&w, 1, (int[][2]){{0, 3}}, 1);
    const frit_route options = {.gating = FRIT_GATING_SOFTMAX, .n_used = 2};
    frit_node *route = frit_route_node(&w.graph, any_scores(&w, 5, EVEN), NULL, options);
    frit_node *stack = any_stack(&w, FRIT_DTYPE_F32, 4, 8, 8);
    assert_null(frit_experts_node(&w.graph, stack, world_rows(&w, 8), route, (frit_experts){.n = 8}));
    assert_fails(frit_graph_check(&w.graph), FRIT_E_INVALID, "a matrix for each expert that may be chosen");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_of_all_types_agree_with_the_reference),
        cmocka_unit_test(experts_with_prefill_kernels_agree_with_the_reference),
        cmocka_unit_test(rows_do_not_depend_on_other_sequences_of_the_step),
        cmocka_unit_test(routes_agree_with_the_reference),
        cmocka_unit_test(sums_over_experts_agree_with_the_reference),
        cmocka_unit_test(heads_of_all_types_agree_with_the_reference),
        cmocka_unit_test(experts_that_a_model_lacks_are_refused),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
