// SPDX-License-Identifier: MIT
// Phases: which nodes are joined, and which stay separate.
#include "graph/example.h"

static void a_layer_has_the_expected_phases(void **state)
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
    char *golden = read_file(project_path("tests/graph/layer_phases.txt"), &n);
    if (strcmp(golden, text.data) != 0) fputs(text.data, stderr);   // fail_msg truncates long texts
    assert_true(strcmp(golden, text.data) == 0);
    free(golden);
    frit_buf_free(&text);
    example_end(&e);
}

// The names of a fusion's ops: "linear add".
static const char *fusion_text(const frit_plan *plan, const frit_node *node, char text[128])
{
    const frit_fusion *fusion = &plan->phases.fusions[plan->phases.fusion_of[node->id]];
    size_t at = 0;
    for (int i = 0; i < fusion->n_nodes; i++)
        at += (size_t)snprintf(text + at, 128 - at, "%s%s", i > 0 ? " " : "", frit_op_get(fusion->nodes[i]->op)->name);
    return text;
}

static frit_plan *plan_of(example *e, frit_can_join_fn can_join)
{
    frit_plan *plan;
    assert_ok(frit_plan_new(&plan, &e->g, &(frit_plan_options){.can_join = can_join}));
    return plan;
}

// The fusion that computes the graph's output.
static void expect_fusion(example *e, const char *expected)
{
    char text[128];
    assert_string_equal(fusion_text(plan_of(e, NULL), e->g.output, text), expected);
    example_end(e);
}

static frit_node *product(example *e, frit_node *x, bool bias)
{
    return frit_matmul(&e->g, example_weight(e, "w", 16, 16), x, bias ? example_weight(e, "b", 16, 0) : NULL);
}

static void elementwise_ops_join_their_product(void **state)
{
    (void)state;
    example e;
    for (int bias = 0; bias < 2; bias++) {
        example_start(&e);
        e.g.output = frit_activate(&e.g, product(&e, example_rows(&e, 16), bias), FRIT_ACT_GELU);
        expect_fusion(&e, "linear act");
        example_start(&e);
        frit_node *y = frit_activate(&e.g, product(&e, example_rows(&e, 16), bias), FRIT_ACT_GELU);
        e.g.output = frit_add(&e.g, example_rows(&e, 16), frit_scale(&e.g, y, 0.5f));
        expect_fusion(&e, "linear act scale add");
        example_start(&e);
        e.g.output = frit_softcap(&e.g, product(&e, example_rows(&e, 16), bias), 30);
        expect_fusion(&e, "linear softcap");
        example_start(&e);
        y = frit_mul(&e.g, product(&e, example_rows(&e, 16), bias), example_weight(&e, "row", 16, 0));
        e.g.output = frit_add(&e.g, y, example_weight(&e, "row2", 16, 0));
        expect_fusion(&e, "linear mul add");
    }
}

static void a_residual_joins_on_either_side(void **state)
{
    (void)state;
    example e;
    for (int side = 0; side < 2; side++) {
        example_start(&e);
        frit_node *x = example_rows(&e, 16), *y = product(&e, x, side);
        e.g.output = side ? frit_add(&e.g, y, x) : frit_add(&e.g, x, y);
        expect_fusion(&e, "linear add");
    }
}

static void results_with_other_readers_stay_separate(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_node *y = product(&e, example_rows(&e, 16), false);
    e.g.output = frit_mul(&e.g, frit_activate(&e.g, y, FRIT_ACT_RELU), y);
    expect_fusion(&e, "mul");
}

static void gate_and_up_join_whatever_their_bias_factor_and_type(void **state)
{
    (void)state;
    static const struct {
        bool bias, factor, other_rows, other_type, read_again;
        const char *fusion;
    } rows[] = {
        {.fusion = "linear linear glu"},
        {.bias = true, .fusion = "linear linear glu"},
        {.factor = true, .fusion = "linear linear glu"},
        {.other_type = true, .fusion = "linear linear glu"},
        {.other_rows = true, .fusion = "glu"},
        {.read_again = true, .fusion = "glu"},
    };
    example e;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *x = example_rows(&e, 16), *gate = product(&e, x, rows[i].bias);
        frit_node *up = product(&e, rows[i].other_rows ? example_rows(&e, 16) : x, false);
        if (rows[i].other_type) {
            frit_tensor *w = frit_arena_new(g->arena, frit_tensor, 1);
            *w = *up->src[1]->tensor;
            w->dtype = FRIT_DTYPE_F16;
            up = frit_matmul(g, frit_weight_node(g, w), x, NULL);
        }
        frit_node *y = frit_glu(g, gate, rows[i].factor ? frit_scale(g, up, 2) : up, FRIT_ACT_GELU);
        g->output = rows[i].read_again ? frit_add(g, y, frit_add(g, gate, gate)) : y;
        char text[128];
        assert_string_equal(fusion_text(plan_of(&e, NULL), y, text), rows[i].read_again ? "glu" : rows[i].fusion);
        example_end(&e);
    }
}

static void sums_and_norms_of_rows_join(void **state)
{
    (void)state;
    example e;
    char text[128];
    example_start(&e);   // a sum with readers other than its norm
    frit_graph *g = &e.g;
    frit_node *sum = frit_add(g, example_rows(&e, 16), frit_activate(g, example_rows(&e, 16), FRIT_ACT_TANH));
    frit_node *normed = frit_rms_norm(g, sum, example_weight(&e, "w", 16, 0), 1e-5f);
    g->output = frit_mul(g, normed, sum);
    frit_plan *plan = plan_of(&e, NULL);
    assert_string_equal(fusion_text(plan, normed, text), "add rms_norm");
    assert_true(plan->offsets[sum->id] != UINT64_MAX && plan->offsets[sum->id] != plan->offsets[normed->id]);
    example_end(&e);

    example_start(&e);   // a sum that only its norm reads
    sum = frit_add(&e.g, example_rows(&e, 16), example_rows(&e, 16));
    e.g.output = frit_rms_norm(&e.g, sum, example_weight(&e, "w", 16, 0), 1e-5f);
    expect_fusion(&e, "rms_norm");

    for (int variant = 0; variant < 3; variant++) {   // a residual and a norm
        example_start(&e);
        frit_node *x = frit_activate(&e.g, example_rows(&e, 16), FRIT_ACT_TANH), *r = example_rows(&e, 16);
        normed = frit_rms_norm(&e.g, x, variant ? NULL : example_weight(&e, "w", 16, 0), 1e-5f);
        sum = variant == 1 ? frit_add(&e.g, normed, r) : frit_add(&e.g, r, normed);
        e.g.output = variant == 2 ? frit_mul(&e.g, sum, normed) : sum;   // another reader of the norm prevents the join
        plan = plan_of(&e, NULL);
        assert_string_equal(fusion_text(plan, sum, text), variant == 2 ? "add" : "rms_norm add");
        example_end(&e);
    }
}

static const frit_phase *phase_of(const frit_plan *plan, const frit_node *node)
{
    return &plan->phases.list[plan->phases.fusions[plan->phases.fusion_of[node->id]].phase];
}

static void norms_that_only_products_read_are_a_prologue(void **state)
{
    (void)state;
    example e;
    for (int variant = 0; variant < 2; variant++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *x = frit_activate(g, example_rows(&e, 16), FRIT_ACT_TANH);
        frit_node *normed = frit_rms_norm(g, x, example_weight(&e, "n", 16, 0), 1e-5f);
        frit_node *a = product(&e, normed, false), *b = product(&e, normed, false);
        g->output = frit_mul(g, frit_softmax(g, a), frit_softmax(g, variant ? normed : b));
        const frit_plan *plan = plan_of(&e, NULL);
        assert_int_equal(frit_phases_is_prologue(&plan->phases, plan->phases.fusion_of[normed->id]), variant == 0);
        if (variant == 0) assert_ptr_equal(phase_of(plan, normed), phase_of(plan, b));
        example_end(&e);
    }
}

// As in Gemma: products read the norm of the sum, and a later sum reads it as a residual.
static void a_sum_joins_the_prologue_if_products_read_it_first(void **state)
{
    (void)state;
    example e;
    for (int variant = 0; variant < 2; variant++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *r = example_rows(&e, 16), *x = product(&e, r, false);
        frit_node *sum = frit_add(g, r, frit_rms_norm(g, x, example_weight(&e, "n", 16, 0), 1e-5f));
        frit_node *normed = frit_rms_norm(g, sum, example_weight(&e, "n2", 16, 0), 1e-5f);
        frit_node *y = frit_softmax(g, product(&e, normed, false));
        if (variant == 1) y = frit_mul(g, y, frit_softmax(g, sum));   // read in the stage of the product
        g->output = frit_add(g, sum, y);
        const frit_plan *plan = plan_of(&e, NULL);
        const int fusion = plan->phases.fusion_of[sum->id];
        assert_int_equal(frit_phases_is_prologue(&plan->phases, fusion), variant == 0);
        assert_true(frit_phases_is_prologue(&plan->phases, plan->phases.fusion_of[normed->id]));
        assert_int_equal(plan->phases.n, variant == 0 ? 5 : 7);
        example_end(&e);
    }
}

static void heads_are_continued_in_any_order_of_norm_and_rope(void **state)
{
    (void)state;
    const frit_rope rope = {.style = FRIT_ROPE_NEOX, .dim = EXAMPLE_HEAD, .magnitude = 1};
    example e;
    for (int norm_last = 0; norm_last < 2; norm_last++) {
        example_start(&e);
        frit_graph *g = &e.g;
        frit_node *positions = frit_input_node(g, FRIT_INPUT_POSITIONS), *x = example_rows(&e, 16);
        frit_node *k = example_heads(&e, product(&e, x, false), 2), *v = example_heads(&e, product(&e, x, false), 2);
        frit_node *q = example_heads(&e, product(&e, x, false), 2), *w = example_weight(&e, "n", EXAMPLE_HEAD, 0);
        frit_node *inv_freq = example_frequencies(&e, EXAMPLE_HEAD / 2);
        if (norm_last)
            k = frit_rms_norm(g, frit_rotate(g, k, positions, inv_freq, NULL, rope), w, 1e-5f);
        else
            k = frit_rotate(g, frit_rms_norm(g, k, w, 1e-5f), positions, inv_freq, NULL, rope);
        frit_node *written = frit_kv_write(g, k, v, 0);
        g->output = frit_reshape(g, frit_attend_node(g, q, written, (frit_attend){.scale = 1}, EXAMPLE_HEAD), 1,
                                 (int64_t[]){16});
        const frit_plan *plan = plan_of(&e, NULL);
        assert_int_equal(phase_of(plan, written)->n_epilogue, 3);
        assert_int_equal(phase_of(plan, written)->n_products, 3);
        assert_int_equal(plan->phases.fusions[plan->phases.fusion_of[written->id]].level, 3);
        example_end(&e);
    }
}

static bool joins_all_but_rope(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device;
    assert_true(join != FRIT_JOIN_ELEMENTS || other->op == FRIT_OP_LINEAR);
    return node->op != FRIT_OP_ROPE && join != FRIT_JOIN_PROLOGUE;
}

static void joins_that_a_device_lacks_stay_separate(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    example_model(&e, 2);
    const frit_plan *plan = plan_of(&e, joins_all_but_rope);
    for (int i = 0; i < plan->phases.n; i++) {
        assert_int_equal(plan->phases.list[i].n_prologue, 0);
        for (int k = 0; k < plan->phases.list[i].n_epilogue; k++)
            assert_int_not_equal(plan->phases.list[i].epilogue[k].nodes[0]->op, FRIT_OP_ROPE);
    }
    example_end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_the_expected_phases),
        cmocka_unit_test(elementwise_ops_join_their_product),
        cmocka_unit_test(a_residual_joins_on_either_side),
        cmocka_unit_test(results_with_other_readers_stay_separate),
        cmocka_unit_test(gate_and_up_join_whatever_their_bias_factor_and_type),
        cmocka_unit_test(sums_and_norms_of_rows_join),
        cmocka_unit_test(norms_that_only_products_read_are_a_prologue),
        cmocka_unit_test(a_sum_joins_the_prologue_if_products_read_it_first),
        cmocka_unit_test(heads_are_continued_in_any_order_of_norm_and_rope),
        cmocka_unit_test(joins_that_a_device_lacks_stay_separate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
