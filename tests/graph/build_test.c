// SPDX-License-Identifier: MIT
// Constructors: shapes, rows, and error sentences.
#include "graph/example.h"

#include <math.h>

static void assert_shape(const frit_node *node, const char *expected)
{
    char text[96];
    assert_non_null(node);
    assert_string_equal(frit_node_shape_text(node, text), expected);
}

// Checks that the graph has failed with a sentence that contains `part`, and starts a new graph.
static void assert_refused(example *e, const frit_node *node, const char *part)
{
    assert_null(node);
    assert_fails(frit_graph_check(&e->g), FRIT_E_INVALID, part);
    frit_graph_init(&e->g, &e->arena, EXAMPLE_ROWS, EXAMPLE_OUTS);
}

static frit_node *rotated(example *e, frit_node *x, int32_t dim, int64_t n_frequencies, int64_t n_factors)
{
    frit_node *factors = n_factors > 0 ? example_weight(e, "factors", n_factors, 0) : NULL;
    return frit_rotate(&e->g, x, frit_input_node(&e->g, FRIT_INPUT_POSITIONS), example_frequencies(e, n_frequencies),
                       factors, (frit_rope){.dim = dim, .magnitude = 1});
}

static void every_constructor_gives_the_shape_of_its_formula(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *tokens = frit_input_node(g, FRIT_INPUT_TOKENS), *positions = frit_input_node(g, FRIT_INPUT_POSITIONS);
    frit_node *outs = frit_input_node(g, FRIT_INPUT_OUT_ROWS);
    frit_node *x = frit_embed(g, example_weight(&e, "w", 10, 16), tokens), *v16 = example_weight(&e, "v", 16, 0);
    assert_shape(tokens, "[T]");
    assert_shape(outs, "[O]");
    assert_shape(x, "[T, 16]");
    assert_int_equal(x->shape[0], EXAMPLE_ROWS);
    assert_shape(frit_matmul(g, example_weight(&e, "w", 8, 16), x, example_weight(&e, "b", 8, 0)), "[T, 8]");
    assert_shape(frit_rms_norm(g, x, v16, 0), "[T, 16]");
    assert_shape(frit_rms_norm(g, x, NULL, 1e-6f), "[T, 16]");
    assert_shape(frit_layer_norm(g, x, v16, v16, 1e-6f), "[T, 16]");
    assert_shape(frit_add(g, x, v16), "[T, 16]");
    assert_shape(frit_mul(g, x, x), "[T, 16]");
    assert_shape(frit_softcap(g, frit_scale(g, x, 2), 30), "[T, 16]");
    assert_shape(frit_glu(g, frit_activate(g, x, FRIT_ACT_TANH), x, FRIT_ACT_SILU), "[T, 16]");
    frit_node *heads = frit_reshape(g, x, 2, (int64_t[]){2, 8});
    assert_shape(heads, "[T, 2, 8]");
    frit_node *v = frit_reshape(g, x, 2, (int64_t[]){2, 8});
    frit_node *rotated =
        frit_rotate(g, heads, positions, example_frequencies(&e, 4), NULL, (frit_rope){.dim = 8, .magnitude = 1});
    assert_shape(rotated, "[T, 2, 8]");
    frit_node *written = frit_kv_write(g, rotated, v, 3);
    assert_shape(frit_attend_node(g, heads, written, (frit_attend){.layer = 3, .scale = 1}, 8), "[T, 2, 8]");
    assert_shape(frit_attend_with_gains(g, heads, written, example_weight(&e, "g", 2, 7),
                                        (frit_attend){.layer = 3, .scale = 1, .reach = 3}, 8),
                 "[T, 2, 8]");
    assert_shape(frit_take_rows(g, heads, outs), "[O, 2, 8]");
    assert_int_equal(frit_take_rows(g, x, outs)->shape[0], EXAMPLE_OUTS);
    assert_ok(frit_graph_check(g));
    example_end(&e);
}

static void constructors_that_would_change_nothing_add_no_node(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_node *x = example_rows(&e, 16);
    int n = e.g.n_nodes;
    assert_ptr_equal(frit_scale(&e.g, x, 1), x);
    assert_ptr_equal(frit_softcap(&e.g, x, 0), x);
    assert_ptr_equal(frit_reshape(&e.g, x, 1, (int64_t[]){16}), x);
    assert_int_equal(e.g.n_nodes, n);
    example_end(&e);
}

static void shapes_that_do_not_fit_are_refused_with_what_was_found(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
#define X example_rows(&e, 16)
    assert_refused(&e, frit_matmul(g, example_weight(&e, "w", 8, 15), X, NULL),
                   "op linear (x w [b]): found [T, 16] and [8, 15], expected a matrix with as many columns as x has");
    assert_refused(&e, frit_matmul(g, example_weight(&e, "w", 8, 16), X, example_weight(&e, "b", 7, 0)),
                   "found [8, 16] and [7]");
    assert_refused(&e, frit_add(g, X, example_rows(&e, 8)), "op add (x0 x1): found [T, 16] and [T, 8]");
    assert_refused(&e, frit_glu(g, X, example_weight(&e, "v", 16, 0), FRIT_ACT_SILU), "op glu");
    assert_refused(&e, frit_rms_norm(g, X, example_weight(&e, "v", 15, 0), 1e-5f), "op rms_norm");
    assert_refused(&e, frit_rms_norm(g, X, NULL, NAN), "eps is");
    assert_refused(&e, frit_reshape(g, X, 2, (int64_t[]){3, 5}), "[T, 16] was asked to become [T, 3, 5]");
    assert_refused(&e, frit_reshape(g, X, 2, (int64_t[]){INT64_MAX, INT64_MAX}), "op reshape");
    assert_refused(&e, frit_reshape(g, X, 9, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 16}), "op reshape");
    assert_refused(&e, frit_embed(g, example_weight(&e, "v", 16, 0), frit_input_node(g, FRIT_INPUT_TOKENS)),
                   "op embed");
    assert_refused(&e, frit_embed(g, example_weight(&e, "w", 16, 4), X), "token ids");
    assert_refused(&e, rotated(&e, example_heads(&e, X, 2), 7, 3, 0), "7 elements of a head of 8 rotate");
    assert_refused(&e, rotated(&e, X, 8, 4, 0), "[rows, heads, head size]");
    assert_refused(&e, rotated(&e, example_heads(&e, X, 2), 8, 3, 0), "one frequency for each rotating pair");
    assert_refused(&e, rotated(&e, example_heads(&e, X, 2), 8, 4, 3), "one factor for each rotating pair");
    assert_refused(&e, frit_kv_write(g, example_heads(&e, X, 2), example_heads(&e, example_rows(&e, 8), 1), 0),
                   "op kv_write");
    frit_node *written = frit_kv_write(g, example_heads(&e, X, 2), example_heads(&e, X, 2), 1);
    assert_refused(&e, frit_attend_node(g, example_heads(&e, X, 2), written, (frit_attend){.layer = 0}, 8),
                   "layer 0 reads what was written for layer 1");
#undef X
    example_end(&e);
}

static void the_first_failure_is_kept_and_later_constructors_do_nothing(void **state)
{
    (void)state;
    example e;
    example_start(&e);
    frit_graph *g = &e.g;
    frit_node *x = example_rows(&e, 16);
    frit_node *bad = frit_matmul(g, NULL, x, NULL);
    int n = g->n_nodes;
    frit_node *later =
        frit_glu(g, frit_rms_norm(g, bad, NULL, 0), frit_reshape(g, bad, 1, (int64_t[]){4}), FRIT_ACT_SILU);
    assert_null(later);
    assert_null(frit_scale(g, x, 3));
    assert_int_equal(g->n_nodes, n);
    (void)frit_fail(FRIT_E_IO, "something else");
    assert_fails(frit_graph_check(g), FRIT_E_INVALID, "op linear (x w [b]): found 1 sources, expected 2 to 3");
    frit_plan *plan;
    assert_fails(frit_plan_new(&plan, g, NULL), FRIT_E_INVALID, "op linear");
    assert_null(plan);
    example_end(&e);
}

static void the_op_table_names_as_many_sources_as_it_allows(void **state)
{
    (void)state;
    for (int op = 0; op < FRIT_OP_COUNT; op++) {
        const frit_op_row *row = frit_op_get((frit_op)op);
        int n = 0, n_optional = 0;
        for (const char *p = row->sources; *p; p++) {
            n += p == row->sources || p[-1] == ' ';
            n_optional += *p == '[';
        }
        assert_int_equal(n, row->max_sources);
        assert_int_equal(n - n_optional, row->min_sources);
        assert_true(row->max_sources <= FRIT_MAX_SOURCES);
        assert_true(strlen(row->formula) > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_constructor_gives_the_shape_of_its_formula),
        cmocka_unit_test(constructors_that_would_change_nothing_add_no_node),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused_with_what_was_found),
        cmocka_unit_test(the_first_failure_is_kept_and_later_constructors_do_nothing),
        cmocka_unit_test(the_op_table_names_as_many_sources_as_it_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
