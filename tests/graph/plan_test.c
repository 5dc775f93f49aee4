// SPDX-License-Identifier: MIT
// Plans, judged by brute force: order, memory, barriers.
#include "graph/example.h"

typedef struct range {
    uint64_t from, to;
} range;

static uint64_t result_bytes(const frit_node *node)
{
    return (uint64_t)frit_node_n_elems(node) * sizeof(float);
}

static bool overlaps(range a, range b)
{
    return a.from < b.to && b.from < a.to;
}

static int step_of(const frit_plan *plan, const frit_node *node)
{
    node = frit_node_storage(node);
    for (int i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].node == node) return i;
    }
    return -1;
}

static bool is_second(const frit_node *node)
{
    for (; node->op == FRIT_OP_RESHAPE; node = node->src[0]) {
        if (node->second) return true;
    }
    return false;
}

static int n_results(const frit_plan_step *step)
{
    return !step->has_buffer ? 0 : step->node->op == FRIT_OP_ADD_NORM ? 2 : 1;
}

static range result_range(const frit_plan_step *step, int second)
{
    uint64_t from = second ? step->second_offset : step->offset;
    return (range){from, from + result_bytes(step->node)};
}

// The last step that reads result `second` of step i; n_steps for the output.
static int last_reader(const frit_plan *plan, int i, int second)
{
    const frit_node *output = plan->graph->output;
    if (step_of(plan, output) == i && is_second(output) == second) return plan->n_steps;
    int last = i;
    for (int k = 0; k < plan->n_steps; k++) {
        const frit_node *node = plan->steps[k].node;
        for (int s = 0; s < node->n_src; s++) {
            if (step_of(plan, node->src[s]) == i && is_second(node->src[s]) == second && k > last) last = k;
        }
    }
    return last;
}

static void check_order(const frit_plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        const frit_node *node = plan->steps[i].node;
        assert_false(frit_node_is_leaf(node) || node->op == FRIT_OP_RESHAPE);
        for (int s = 0; s < node->n_src; s++) {
            if (!frit_node_is_leaf(frit_node_storage(node->src[s])))
                assert_in_range(step_of(plan, node->src[s]) + 1, 1, i);
        }
    }
}

static void check_memory(const frit_plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        for (int a = 0; a < n_results(&plan->steps[i]); a++) {
            range mine = result_range(&plan->steps[i], a);
            assert_int_equal(mine.from % 64, 0);
            assert_true(mine.to <= plan->scratch_bytes);
            int last = last_reader(plan, i, a);
            for (int k = i; k < plan->n_steps && k <= last; k++) {
                for (int b = 0; b < n_results(&plan->steps[k]); b++) {
                    if (k == i && b == a) continue;
                    assert_false(overlaps(mine, result_range(&plan->steps[k], b)));
                }
            }
        }
    }
}

// What a step reads or writes: its results, then the results of its sources (the cache counts as one more range).
static int collect(const frit_plan *plan, const frit_plan_step *step, range *writes, range *reads, int *n_reads)
{
    const range cache = {UINT64_MAX - 1, UINT64_MAX};
    int n_writes = 0;
    *n_reads = 0;
    for (int a = 0; a < n_results(step); a++) writes[n_writes++] = result_range(step, a);
    if (!step->has_buffer) writes[n_writes++] = cache;
    for (int s = 0; s < step->node->n_src; s++) {
        const frit_node *source = step->node->src[s];
        int from = step_of(plan, source);
        if (from < 0) continue;
        const frit_plan_step *maker = &plan->steps[from];
        reads[(*n_reads)++] = maker->has_buffer ? result_range(maker, is_second(source)) : cache;
    }
    return n_writes;
}

static bool any_overlap(const range *a, int n_a, const range *b, int n_b)
{
    for (int i = 0; i < n_a; i++) {
        for (int k = 0; k < n_b; k++) {
            if (overlaps(a[i], b[k])) return true;
        }
    }
    return false;
}

// A barrier exactly where something read or overwritten was touched since the last one, but before followers: these
// read what was made since then, by steps of lower levels.
static void check_barriers(const frit_plan *plan)
{
    range *written = calloc((size_t)plan->n_steps * 2, sizeof *written),
          *read = calloc((size_t)plan->n_steps * 4, sizeof *read);
    int n_written = 0, n_read = 0;
    for (int i = 0; i < plan->n_steps; i++) {
        range writes[2], reads[FRIT_MAX_SOURCES];
        int n_reads, n_writes = collect(plan, &plan->steps[i], writes, reads, &n_reads);
        bool needed = any_overlap(reads, n_reads, written, n_written) ||
                      any_overlap(writes, n_writes, written, n_written) || any_overlap(writes, n_writes, read, n_read);
        assert_int_equal(plan->steps[i].barrier || plan->steps[i].level > 0, needed);
        assert_false(plan->steps[i].barrier && plan->steps[i].level > 0);
        if (plan->steps[i].barrier) n_written = n_read = 0;
        memcpy(written + n_written, writes, (size_t)n_writes * sizeof *writes);
        memcpy(read + n_read, reads, (size_t)n_reads * sizeof *reads);
        n_written += n_writes;
        n_read += n_reads;
    }
    free(written);
    free(read);
}

static void check_offsets(const frit_plan *plan)
{
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const frit_node *node = plan->graph->nodes[i], *storage = frit_node_storage(node);
        int k = step_of(plan, node);
        if (k < 0 || !plan->steps[k].has_buffer)
            assert_true(plan->offsets[i] == UINT64_MAX);
        else
            assert_true(plan->offsets[i] == result_range(&plan->steps[k], is_second(node)).from);
        if (node == storage && k >= 0)
            assert_true(plan->offsets[i] == UINT64_MAX || plan->offsets[i] == plan->steps[k].offset);
    }
}

static void check_plan(const frit_plan *plan)
{
    check_order(plan);
    check_memory(plan);
    check_barriers(plan);
    check_offsets(plan);
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
    switch (random_between(&e->rng, 0, 8)) {
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
    default:
        return frit_reshape(g, frit_rms_norm(g, example_heads(e, b, 2), NULL, 1e-5f), 1, &flat);
    }
}

static void plans_of_random_graphs_are_sound(void **state)
{
    (void)state;
    int n_fused = 0;
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
        n_fused += count_ops(plan, FRIT_OP_ADD_NORM);
        check_plan(plan);
        example_end(&e);
    }
    assert_in_range(n_fused, 20, 10000);   // the second result was really exercised
}

static void nodes_that_the_output_does_not_need_are_no_steps(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_node *x = example_rows(&e, 16);
    frit_scale(&e.g, frit_activate(&e.g, x, FRIT_ACT_RELU), 2);
    e.g.output = frit_scale(&e.g, x, 3);
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, NULL));
    assert_int_equal(plan->n_steps, 2);
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
            if (node->rows == FRIT_ROWS_BATCH) assert_int_equal(node->shape[0], n);
            if (node->rows == FRIT_ROWS_OUTS) assert_int_equal(node->shape[0], n > 1);
        }
    }
    frit_plan_set_rows(plan, EXAMPLE_ROWS, EXAMPLE_OUTS);
    check_plan(plan);
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
        cmocka_unit_test(nodes_that_the_output_does_not_need_are_no_steps),
        cmocka_unit_test(memory_is_used_again_when_a_result_has_been_read),
        cmocka_unit_test(set_rows_narrows_every_shape_and_widens_it_again),
        cmocka_unit_test(a_graph_without_a_computed_output_is_refused),
        cmocka_unit_test(a_result_too_large_for_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
