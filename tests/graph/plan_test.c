// SPDX-License-Identifier: MIT
// Checks plans by brute force: order, memory, barriers.
#include "graph/example.h"

typedef struct range {
    uint64_t from, to;
} range;

static uint64_t result_bytes(const frit_node *node)
{
    return (uint64_t)frit_node_elems(node) * sizeof(float);
}

static bool overlaps(range a, range b)
{
    return a.from < b.to && b.from < a.to;
}

static bool is_kept(const frit_plan *plan, const frit_node *node)
{
    return node == frit_node_storage(node) && plan->offsets[node->id] != UINT64_MAX;
}

static range result_range(const frit_plan *plan, const frit_node *node)
{
    const uint64_t from = plan->offsets[node->id];
    return (range){from, from + result_bytes(node)};
}

// The fusion that source s of a node of fusion k comes from; -1 for leaves and the fusion itself.
static int source_of(const frit_plan *plan, int k, const frit_node *node, int s)
{
    const int from = plan->phases.fusion_of[node->src[s]->id];
    return from == k ? -1 : from;
}

static int role_of(const frit_plan *plan, int k)
{
    const frit_fusion *fusion = &plan->phases.fusions[k];
    const frit_phase *phase = &plan->phases.list[fusion->phase];
    if (phase->n_prologue > 0 && fusion >= phase->prologue && fusion < phase->prologue + phase->n_prologue) return 0;
    return fusion >= phase->products && fusion < phase->products + phase->n_products ? 1 : 2;
}

// Every live node is in one fusion; sources come before their readers, and within a phase prologue, products, epilogue.
static void check_order(const frit_plan *plan)
{
    int n_nodes = 0, n_live = 0;
    for (int k = 0; k < plan->phases.n_fusions; k++) {
        const frit_fusion *fusion = &plan->phases.fusions[k];
        assert_int_equal(frit_phases_is_prologue(&plan->phases, k), role_of(plan, k) == 0);
        assert_true(fusion->n_nodes >= 1 && fusion->n_nodes <= FRIT_FUSION_NODES);
        assert_int_equal(fusion->level > 0, role_of(plan, k) == 2);
        for (int i = 0; i < fusion->n_nodes; i++) {
            const frit_node *node = fusion->nodes[i];
            assert_false(frit_node_is_leaf(node) || node->op == FRIT_OP_RESHAPE);
            assert_int_equal(plan->phases.fusion_of[node->id], k);
            n_nodes++;
            for (int s = 0; s < node->n_src; s++) {
                const int from = source_of(plan, k, node, s);
                if (from < 0) continue;
                const frit_fusion *source = &plan->phases.fusions[from];
                assert_true(from < k && source->phase <= fusion->phase);
                if (source->phase < fusion->phase) continue;
                assert_true(role_of(plan, from) == 0 || role_of(plan, k) == 2);
                assert_true(role_of(plan, k) != 2 || source->level < fusion->level);
            }
        }
    }
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const frit_node *node = plan->graph->nodes[i];
        n_live += plan->phases.fusion_of[i] >= 0 && node->op != FRIT_OP_RESHAPE;
    }
    assert_int_equal(n_nodes, n_live);
}

// The last phase that needs the sources of fusion k: the phase of its readers if it is a prologue.
static int last_phase(const frit_plan *plan, int k)
{
    int last = plan->phases.fusions[k].phase;
    for (int r = k + 1; role_of(plan, k) == 0 && r < plan->phases.n_fusions; r++)
        for (int i = 0; i < plan->phases.fusions[r].n_nodes; i++) {
            const frit_node *node = plan->phases.fusions[r].nodes[i];
            for (int s = 0; s < node->n_src; s++)
                if (source_of(plan, r, node, s) == k && last_phase(plan, r) > last) last = last_phase(plan, r);
        }
    return last;
}

// The last phase that reads the result of a node; the number of phases for the output. -1: only its fusion reads it.
static int last_reader(const frit_plan *plan, const frit_node *result)
{
    if (frit_node_storage(plan->graph->output) == result) return plan->phases.n;
    int last = -1;
    for (int k = 0; k < plan->phases.n_fusions; k++)
        for (int i = 0; i < plan->phases.fusions[k].n_nodes; i++) {
            const frit_node *node = plan->phases.fusions[k].nodes[i];
            for (int s = 0; s < node->n_src; s++)
                if (frit_node_storage(node->src[s]) == result && source_of(plan, k, node, s) >= 0 &&
                    last_phase(plan, k) > last)
                    last = last_phase(plan, k);
        }
    return last;
}

static void check_memory(const frit_plan *plan)
{
    const frit_graph *g = plan->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *a = g->nodes[i];
        const int k = plan->phases.fusion_of[i];
        if (!is_kept(plan, a)) {
            assert_true(k < 0 || frit_node_is_write(frit_node_storage(a)) ||
                        last_reader(plan, frit_node_storage(a)) < 0 || a != frit_node_storage(a));
            continue;
        }
        const int first = plan->phases.fusions[k].phase, last = last_reader(plan, a);
        const range mine = result_range(plan, a);
        assert_int_equal(mine.from % 64, 0);
        assert_true(mine.to <= plan->scratch_bytes);
        for (int b = 0; b < g->n_nodes; b++) {
            if (b == i || !is_kept(plan, g->nodes[b])) continue;
            const int other = plan->phases.fusions[plan->phases.fusion_of[b]].phase;
            if (first <= other && other <= last) assert_false(overlaps(mine, result_range(plan, g->nodes[b])));
        }
    }
}

// No needless barrier: a product reads a result of the previous phase, perhaps through a prologue.
static int latest_source(const frit_plan *plan, int k)
{
    int latest = -1;
    for (int i = 0; i < plan->phases.fusions[k].n_nodes; i++) {
        const frit_node *node = plan->phases.fusions[k].nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            const int from = source_of(plan, k, node, s);
            if (from < 0) continue;
            const int phase = role_of(plan, from) == 0 ? latest_source(plan, from) : plan->phases.fusions[from].phase;
            if (phase > latest) latest = phase;
        }
    }
    return latest;
}

static void check_barriers(const frit_plan *plan)
{
    for (int k = 0; k < plan->phases.n_fusions; k++)
        if (role_of(plan, k) == 1) assert_int_equal(latest_source(plan, k), plan->phases.fusions[k].phase - 1);
}

static void check_offsets(const frit_plan *plan)
{
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const frit_node *node = plan->graph->nodes[i], *storage = frit_node_storage(node);
        assert_true(plan->offsets[i] == plan->offsets[storage->id]);
        if (plan->phases.fusion_of[storage->id] < 0) assert_true(plan->offsets[i] == UINT64_MAX);
    }
}

static void check_plan(const frit_plan *plan)
{
    check_order(plan);
    check_memory(plan);
    check_barriers(plan);
    check_offsets(plan);
}

// The sources of fusion c do not overlap `made`.
static void check_apart(const frit_plan *plan, int c, range made)
{
    for (int i = 0; i < plan->phases.fusions[c].n_nodes; i++) {
        const frit_node *node = plan->phases.fusions[c].nodes[i];
        for (int s = 0; s < node->n_src; s++) {
            const frit_node *read = frit_node_storage(node->src[s]);
            if (source_of(plan, c, node, s) >= 0 && is_kept(plan, read))
                assert_false(overlaps(made, result_range(plan, read)));
        }
    }
}

// A prologue may run at the end of the previous phase: it overwrites no source of the phase. Returns the number of such
// prologues.
static int check_early_prologues(const frit_plan *plan)
{
    int n = 0;
    for (int k = 0; k < plan->phases.n_fusions; k++) {
        const frit_fusion *fusion = &plan->phases.fusions[k];
        const frit_node *result = fusion->nodes[fusion->n_nodes - 1];
        if (role_of(plan, k) != 0 || !is_kept(plan, result)) continue;
        for (int i = 0; i < fusion->n_nodes; i++)
            for (int s = 0; s < fusion->nodes[i]->n_src; s++) {
                const int from = source_of(plan, k, fusion->nodes[i], s);
                if (from < 0 || plan->phases.fusions[from].phase != fusion->phase - 1) continue;
                check_apart(plan, from, result_range(plan, result));
                n++;
            }
    }
    return n;
}

static void prologues_may_run_with_the_phase_before(void **state)
{
    (void)state;
    int n = 0;
    for (int n_layer = 1; n_layer <= 4; n_layer++) {
        example e;
        example_start(&e);
        example_model(&e, n_layer);
        frit_plan *plan;
        assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.early_prologues = true}));
        check_plan(plan);
        n += check_early_prologues(plan);
        example_end(&e);
    }
    assert_true(n > 4);
}

static void plans_of_models_are_sound_fused_or_not(void **state)
{
    (void)state;
    for (int n_layer = 1; n_layer <= 4; n_layer++) {
        for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
            example e;
            example_start(&e);
            example_model(&e, n_layer);
            frit_plan *plan;
            assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.no_fuse = no_fuse}));
            check_plan(plan);
            example_end(&e);
        }
    }
}

// Random graphs of sums, products, norms and reshapes over a pool of earlier nodes.
static frit_node *random_node(example *e, frit_node **pool, int n)
{
    frit_graph *g = &e->g;
    frit_node *a = pool[random_between(&e->rng, 0, n - 1)],
              *b = pool[random_between(&e->rng, n > 5 ? n - 5 : 0, n - 1)];
    const int64_t flat = 16;
    switch (random_between(&e->rng, 0, 10)) {
    case 0:
        return frit_add(g, a, b);
    case 1:
        return frit_mul(g, a, b);
    case 2: {
        frit_node *sum = frit_add(g, a, b);
        return frit_mul(g, frit_rms_norm(g, sum, example_weight(e, "w", 16, 0), 1e-5f), sum);
    }
    case 3:
        return frit_reshape(g, frit_activate(g, example_heads(e, b, 2), FRIT_ACT_RELU), 1, &flat);
    case 4:
        return frit_scale(g, frit_scale(g, b, 2), 3);
    case 5:
        return frit_matmul(g, example_weight(e, "w", 16, 16), b, NULL);
    case 6:
        return frit_add(g, a, frit_matmul(g, example_weight(e, "w", 16, 16), b, NULL));
    case 7:
        return frit_glu(g, frit_matmul(g, example_weight(e, "w", 16, 16), b, NULL),
                        frit_matmul(g, example_weight(e, "w", 16, 16), b, NULL), FRIT_ACT_SILU);
    case 8: {
        frit_node *normed = frit_rms_norm(g, a, example_weight(e, "w", 16, 0), 1e-5f);
        return frit_add(g, frit_matmul(g, example_weight(e, "w", 16, 16), normed, NULL),
                        frit_matmul(g, example_weight(e, "w", 16, 16), normed, NULL));
    }
    case 9: {   // a residual and a norm, read by a product and later again
        frit_node *sum = frit_add(g, a, frit_rms_norm(g, b, example_weight(e, "w", 16, 0), 1e-5f));
        frit_node *normed = frit_rms_norm(g, sum, example_weight(e, "w", 16, 0), 1e-5f);
        return frit_add(g, sum, frit_matmul(g, example_weight(e, "w", 16, 16), normed, NULL));
    }
    default:
        return frit_reshape(g, frit_rms_norm(g, example_heads(e, b, 2), NULL, 1e-5f), 1, &flat);
    }
}

static void plans_of_random_graphs_are_sound(void **state)
{
    (void)state;
    int n_joined = 0, n_prologues = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        example e;
        example_start(&e);
        frit_rng_init(&e.rng, seed);
        frit_node *pool[42];
        int n = 0;
        pool[n++] = example_rows(&e, 16);
        while (n < 40) {
            frit_node *node = random_node(&e, pool, n);
            pool[n++] = node;
        }
        frit_node *last = frit_add(&e.g, pool[n - 1], pool[random_between(&e.rng, 0, n - 1)]);
        e.g.output = seed % 2 ? frit_take_rows(&e.g, last, frit_input_node(&e.g, FRIT_INPUT_OUT_ROWS)) : last;
        frit_plan *plan;
        assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.no_fuse = seed % 3 == 0}));
        for (int k = 0; k < plan->phases.n_fusions; k++) n_joined += plan->phases.fusions[k].n_nodes > 1;
        for (int k = 0; k < plan->phases.n; k++) n_prologues += plan->phases.list[k].n_prologue;
        check_plan(plan);
        example_end(&e);
    }
    assert_true(n_joined > 200 && n_prologues > 20);   // both cases occurred
}

static void dead_nodes_are_not_in_plans(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_node *x = example_rows(&e, 16);
    frit_scale(&e.g, frit_activate(&e.g, x, FRIT_ACT_RELU), 2);
    e.g.output = frit_scale(&e.g, x, 3);
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, NULL));
    assert_int_equal(plan->phases.n_fusions, 2);
    example_end(&e);
}

static void memory_is_used_again_when_a_result_has_been_read(void **state)
{
    (void)state;
    uint64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        example e;
        example_start(&e);
        example_model(&e, i ? 8 : 2);
        frit_plan *plan;
        assert_ok(frit_plan_new(&plan, &e.g, NULL));
        bytes[i] = plan->scratch_bytes;
        example_end(&e);
    }
    assert_true(bytes[0] > 0 && bytes[1] == bytes[0]);
}

static void set_rows_narrows_every_shape_and_widens_it_again(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 1);
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, NULL));
    for (int n = EXAMPLE_ROWS; n >= 1; n--) {
        frit_plan_set_rows(plan, n, n > 1);
        for (int i = 0; i < e.g.n_nodes; i++) {
            const frit_node *node = e.g.nodes[i];
            if (node->rows == FRIT_SHAPE_BATCH) assert_int_equal(node->shape[0], n);
            if (node->rows == FRIT_SHAPE_OUTS) assert_int_equal(node->shape[0], n > 1);
        }
    }
    frit_plan_set_rows(plan, EXAMPLE_ROWS, EXAMPLE_OUTS);
    check_plan(plan);
    example_end(&e);
}

static void a_graph_may_write_to_the_cache_alone(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_node *x = example_heads(&e, example_rows(&e, 16), 2);
    frit_kv_write(&e.g, x, x, 0);
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.is_fused = true}));
    assert_int_equal(plan->phases.n_fusions, 2);   // the rows and the write
    example_end(&e);
}

static void a_graph_without_a_computed_output_is_refused(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_plan *plan;
    assert_fails(frit_plan_new(&plan, &e.g, NULL), FRIT_E_INVALID, "has no output");
    e.g.output = example_weight(&e, "w", 4, 4);
    assert_fails(frit_plan_new(&plan, &e.g, NULL), FRIT_E_INVALID, "not computed by any op");
    example_end(&e);
}

static void a_result_too_large_for_memory_is_refused(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph_init(&e.g, &e.arena, INT64_MAX / 2, 1);
    frit_node *x = example_rows(&e, 16);
    e.g.output = frit_scale(&e.g, x, 2);
    frit_plan *plan;
    assert_fails(frit_plan_new(&plan, &e.g, NULL), FRIT_E_LIMIT, "too large");
    example_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_models_are_sound_fused_or_not),
        cmocka_unit_test(plans_of_random_graphs_are_sound),
        cmocka_unit_test(prologues_may_run_with_the_phase_before),
        cmocka_unit_test(dead_nodes_are_not_in_plans),
        cmocka_unit_test(memory_is_used_again_when_a_result_has_been_read),
        cmocka_unit_test(set_rows_narrows_every_shape_and_widens_it_again),
        cmocka_unit_test(a_graph_may_write_to_the_cache_alone),
        cmocka_unit_test(a_graph_without_a_computed_output_is_refused),
        cmocka_unit_test(a_result_too_large_for_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
