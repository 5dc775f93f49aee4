// SPDX-License-Identifier: MIT
// Fusion: what the patterns make of graphs, and that results stay what they were.
#include "graph/evaluate.h"
#include "graph/example.h"

static const int32_t tokens[EXAMPLE_ROWS] = {3, 1, 19, 7, 7, 0}, out_rows[EXAMPLE_OUTS] = {1, 5};

// Fuses the graph; fails unless `n` patterns applied and the results are the same up to rounding of the last bit.
static void fuse_and_compare(example *e, int n)
{
    float *before = evaluate_graph(&e->g, tokens, out_rows);
    assert_int_equal(frit_fuse(&e->g), n);
    assert_ok(frit_graph_check(&e->g));
    float *after = evaluate_graph(&e->g, tokens, out_rows);
    double error = nmse(after, before, (size_t)frit_node_n_elems(e->g.output));
    if (error > 1e-13) fail_msg("fusion changed the result: NMSE %g", error);
    free(before);
    free(after);
}

static void the_fused_layer_reads_as_it_should(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 1);
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, NULL));
    frit_buf text = {0};
    frit_plan_print(plan, &text);
    size_t n;
    char *golden = read_file(project_path("tests/graph/fused_layer.txt"), &n);
    if (strcmp(golden, text.data) != 0) fail_msg("the plan is now:\n%s", text.data);
    free(golden);
    frit_buf_free(&text);
    example_end(&e);
}

static void a_fused_model_computes_the_same(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 3);
    fuse_and_compare(&e, 1 + 3 * 3);   // rows taken early; per layer: gate and up, two residuals
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e.g, &(frit_plan_options){.no_fuse = true}));
    assert_int_equal(count_ops(plan, FRIT_OP_LINEAR_GLU), 3);
    assert_int_equal(count_ops(plan, FRIT_OP_LINEAR_ADD), 6);
    assert_int_equal(count_ops(plan, FRIT_OP_LINEAR), 3 * 3 + 1);
    assert_int_equal(count_ops(plan, FRIT_OP_ADD) + count_ops(plan, FRIT_OP_GLU), 0);
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

static void a_sum_that_is_used_again_joins_its_norm(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *a = example_rows(&e, 16), *b = frit_activate(g, example_rows(&e, 16), FRIT_ACT_TANH);
    frit_node *sum = frit_add(g, a, b);
    frit_node *normed = frit_rms_norm(g, sum, example_weight(&e, "w", 16, 0), 1e-5f);
    frit_node *split = frit_reshape(g, sum, 2, (int64_t[]){2, 8});
    g->output = frit_mul(g, normed, frit_reshape(g, split, 1, (int64_t[]){16}));
    fuse_and_compare(&e, 3);   // the two reshapes of the sum, now an alias itself, fold into one each
    assert_int_equal(normed->op, FRIT_OP_ADD_NORM);
    assert_true(sum->second);
    example_end(&e);
}

static void a_sum_that_only_its_norm_reads_stays(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *sum = frit_add(g, example_rows(&e, 16), example_rows(&e, 16));
    g->output = frit_rms_norm(g, sum, example_weight(&e, "w", 16, 0), 1e-5f);
    fuse_and_compare(&e, 0);
    example_end(&e);
}

static void a_sum_that_is_the_output_joins_its_norm_too(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *sum = frit_add(g, example_rows(&e, 16), example_rows(&e, 16));
    frit_node *normed = frit_rms_norm(g, sum, example_weight(&e, "w", 16, 0), 1e-5f);
    frit_node *w = example_weight(&e, "w2", 16, 0);
    g->output = frit_mul(g, frit_rms_norm(g, sum, w, 1e-5f), normed);   // two norms: the first takes the sum
    fuse_and_compare(&e, 1);
    example_end(&e);
}

static void a_residual_joins_the_norm_of_the_other_side(void **state)
{
    (void)state;
    example e;
    for (int variant = 0; variant < 4; variant++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *x = frit_activate(g, example_rows(&e, 16), FRIT_ACT_TANH), *r = example_rows(&e, 16);
        frit_node *norm = frit_rms_norm(g, x, variant == 2 ? NULL : example_weight(&e, "w", 16, 0), 1e-5f);
        frit_node *sum = variant == 0 ? frit_add(g, norm, r) : frit_add(g, r, norm);
        g->output = variant == 3 ? frit_mul(g, sum, norm) : sum;   // who else reads the norm keeps it, bare norms stay
        fuse_and_compare(&e, variant < 2);
        assert_int_equal(sum->op, variant < 2 ? FRIT_OP_NORM_ADD : FRIT_OP_ADD);
        example_end(&e);
    }
}

static void products_with_bias_or_other_readers_do_not_join_the_activation(void **state)
{
    (void)state;
    example e;
    for (int variant = 0; variant < 4; variant++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *x = example_rows(&e, 16), *other = variant == 2 ? example_rows(&e, 16) : x;
        frit_node *bias = variant == 0 ? example_weight(&e, "b", 16, 0) : NULL;
        frit_node *gate = frit_matmul(g, example_weight(&e, "w0", 16, 16), x, bias);
        frit_node *up = frit_matmul(g, example_weight(&e, "w1", 16, 16), other, NULL);
        frit_node *y = frit_glu(g, gate, up, FRIT_ACT_GELU);
        g->output = variant == 1 ? frit_mul(g, y, gate) : y;
        fuse_and_compare(&e, variant == 3);
        assert_int_equal(y->op, variant == 3 ? FRIT_OP_LINEAR_GLU : FRIT_OP_GLU);
        example_end(&e);
    }
}

static void scales_and_activations_join_their_product(void **state)
{
    (void)state;
    example e;
    for (int variant = 0; variant < 8; variant++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *bias = variant & 1 ? example_weight(&e, "b", 16, 0) : NULL;
        frit_node *product = frit_matmul(g, example_weight(&e, "w", 16, 16), example_rows(&e, 16), bias), *y;
        const bool scaled = variant & 2, read_again = variant & 4;
        y = scaled ? frit_add(g, example_rows(&e, 16), frit_scale(g, product, 0.5f))
                   : frit_activate(g, product, FRIT_ACT_GELU);
        g->output = read_again ? frit_mul(g, y, product) : y;
        fuse_and_compare(&e, read_again ? 0 : scaled ? 2 : 1);
        if (!read_again) assert_int_equal(y->op, scaled ? FRIT_OP_LINEAR_ADD : FRIT_OP_LINEAR_ACT);
        if (!read_again && scaled) assert_float_equal(y->factor, 0.5f, 0);
        example_end(&e);
    }
}

static void a_residual_joins_the_product_on_either_side_with_its_bias(void **state)
{
    (void)state;
    example e;
    for (int side = 0; side < 2; side++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *x = example_rows(&e, 16);
        frit_node *y = frit_matmul(g, example_weight(&e, "w", 16, 16), x, example_weight(&e, "b", 16, 0));
        g->output = side ? frit_add(g, y, x) : frit_add(g, x, y);
        fuse_and_compare(&e, 1);
        assert_int_equal(g->output->op, FRIT_OP_LINEAR_ADD);
        assert_int_equal(g->output->n_src, 4);
        example_end(&e);
    }
}

static void adding_one_row_is_no_residual(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *y = frit_matmul(g, example_weight(&e, "w", 16, 16), example_rows(&e, 16), NULL);
    g->output = frit_add(g, y, example_weight(&e, "row", 16, 0));
    fuse_and_compare(&e, 0);
    example_end(&e);
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
    assert_int_equal(x->rows, FRIT_ROWS_BATCH);
    assert_int_equal(sum->rows, FRIT_ROWS_OUTS);
    assert_ptr_equal(g->output, y);
    assert_int_equal(sum->src[0]->op, FRIT_OP_TAKE_ROWS);
    assert_ptr_equal(sum->src[0]->src[0], x);
    example_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fused_layer_reads_as_it_should),
        cmocka_unit_test(a_fused_model_computes_the_same),
        cmocka_unit_test(fusing_twice_changes_nothing_more),
        cmocka_unit_test(a_sum_that_is_used_again_joins_its_norm),
        cmocka_unit_test(a_sum_that_only_its_norm_reads_stays),
        cmocka_unit_test(a_sum_that_is_the_output_joins_its_norm_too),
        cmocka_unit_test(scales_and_activations_join_their_product),
        cmocka_unit_test(a_residual_joins_the_norm_of_the_other_side),
        cmocka_unit_test(products_with_bias_or_other_readers_do_not_join_the_activation),
        cmocka_unit_test(a_residual_joins_the_product_on_either_side_with_its_bias),
        cmocka_unit_test(adding_one_row_is_no_residual),
        cmocka_unit_test(scales_of_scales_become_one),
        cmocka_unit_test(rows_are_not_taken_early_from_what_others_need_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
