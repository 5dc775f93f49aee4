// SPDX-License-Identifier: MIT
// Rewriting: the graphs that patterns make, and unchanged results.
#include "graph/evaluate.h"
#include "graph/example.h"

static const int32_t tokens[EXAMPLE_ROWS] = {3, 1, 19, 7, 7, 0}, out_rows[EXAMPLE_OUTS] = {1, 5};

// Rewrites the graph. Checks that `n` patterns applied, and that results differ by at most one rounding.
static void fuse_and_compare(example *e, int n)
{
    float *before = evaluate_graph(&e->g, tokens, out_rows);
    assert_int_equal(frit_fuse(&e->g), n);
    assert_ok(frit_graph_check(&e->g));
    float *after = evaluate_graph(&e->g, tokens, out_rows);
    double error = nmse(after, before, (size_t)frit_node_elems(e->g.output));
    if (error > 1e-13) fail_msg("fusion changed the result: NMSE %g", error);
    free(before);
    free(after);
}

static void a_fused_model_computes_the_same(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 3);
    fuse_and_compare(&e, 1);   // the rows are taken before the product
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.no_fuse = true}));
    assert_int_equal(count_ops(plan, FRIT_OP_TAKE_ROWS), 2);
    example_end(&e);
}

static void fusing_twice_changes_nothing_more(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 2);
    frit_fuse(&e.g);
    fuse_and_compare(&e, 0);
    example_end(&e);
}

static void a_scale_becomes_the_factor_of_its_product(void **state)
{
    (void)state;
    example e;
    for (int read_again = 0; read_again < 2; read_again++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *product = frit_matmul(g, example_weight(&e, "w", 16, 16), example_rows(&e, 16), NULL);
        frit_node *y = frit_scale(g, product, 0.5f);
        g->output = read_again ? frit_mul(g, y, product) : y;
        fuse_and_compare(&e, !read_again);
        assert_int_equal(y->op, read_again ? FRIT_OP_SCALE : FRIT_OP_LINEAR);
        assert_float_equal(y->factor, 0.5f, 0);
        example_end(&e);
    }
}

static void scales_of_scales_become_one(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    g->output = frit_scale(g, frit_scale(g, frit_scale(g, example_rows(&e, 16), 3), 0.5f), 7);
    fuse_and_compare(&e, 2);
    assert_float_equal(g->output->factor, 10.5f, 0);
    assert_int_equal(g->output->src[0]->op, FRIT_OP_EMBED);
    example_end(&e);
}

static void rows_are_not_taken_early_from_what_others_need_whole(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *outs = frit_input_node(g, FRIT_INPUT_OUT_ROWS);
    frit_node *x = frit_activate(g, example_rows(&e, 16), FRIT_ACT_TANH);
    frit_node *written = frit_kv_write(g, example_heads(&e, x, 2), example_heads(&e, x, 2), 0);
    frit_node *h = frit_attend_node(g, example_heads(&e, x, 2), written, (frit_attend){.scale = 1}, 8);
    frit_node *sum = frit_add(g, x, frit_reshape(g, h, 1, (int64_t[]){16}));
    frit_node *y = frit_add(g, sum, sum);
    g->output = frit_take_rows(g, y, outs);
    fuse_and_compare(&e, 1);
    assert_int_equal(x->rows, FRIT_SHAPE_BATCH);
    assert_int_equal(sum->rows, FRIT_SHAPE_OUTS);
    assert_ptr_equal(g->output, y);
    assert_int_equal(sum->src[0]->op, FRIT_OP_TAKE_ROWS);
    assert_ptr_equal(sum->src[0]->src[0], x);
    example_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fused_model_computes_the_same),
        cmocka_unit_test(fusing_twice_changes_nothing_more),
        cmocka_unit_test(a_scale_becomes_the_factor_of_its_product),
        cmocka_unit_test(scales_of_scales_become_one),
        cmocka_unit_test(rows_are_not_taken_early_from_what_others_need_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
