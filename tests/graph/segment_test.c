// SPDX-License-Identifier: MIT
// Segments: a cut graph computes the same results for every placement.
#include "graph/evaluate.h"
#include "graph/example.h"
#include "graph/segment.h"

enum { N_LAYERS = 3, TRIALS = 200 };

static const int32_t tokens[EXAMPLE_ROWS] = {3, 1, 4, 1, 5, 9}, out_rows[EXAMPLE_OUTS] = {2, 5};

// ------------------------------------------------------------------------------- placements

typedef struct where {
    frit_placement placement;
    int8_t cache_devices[N_LAYERS];
    int first_layer;    // first layer of device 1
    unsigned refused;   // bit i: device 0 does not run ops of op % 32 == i
    uint64_t seed;
} where;

static int by_layer(const void *ctx, const frit_node *node)
{
    const where *w = ctx;
    return node->depth >= w->first_layer ? 1 : 0;
}

static int at_random(const void *ctx, const frit_node *node)
{
    const where *w = ctx;
    frit_rng rng;
    frit_rng_init(&rng, w->seed + (uint64_t)node->id);
    return (int)(frit_rng_next(&rng) % (uint64_t)w->placement.n_devices);
}

static bool runs(const void *ctx, int device, const frit_node *node)
{
    const where *w = ctx;
    return device == w->placement.n_devices - 1 || !(w->refused >> node->op % 32 & 1);
}

static void place(where *w, const frit_graph *g)
{
    if (w->placement.n_devices == 0) w->placement.n_devices = 2;
    w->placement.ctx = w;
    w->placement.runs = runs;
    if (!w->placement.wanted) w->placement.wanted = by_layer;
    for (int i = 0; i < N_LAYERS; i++) w->cache_devices[i] = -1;
    assert_ok(frit_segments_place_cache(&w->placement, g, w->cache_devices, N_LAYERS));
    w->placement.cache_devices = w->cache_devices;
}

// ------------------------------------------------------------------------------- running segments

static float *evaluate_segments(const frit_segments *s)
{
    evaluate_cache cache = {0};
    float *result = NULL;
    evaluation *all = calloc((size_t)s->n, sizeof *all);
    for (int i = 0; i < s->n; i++) {
        const frit_segment *segment = &s->list[i];
        const frit_graph *g = &segment->graph;
        evaluation *e = &all[i];
        *e = (evaluation){.tokens = tokens,
                          .out_rows = out_rows,
                          .values = calloc((size_t)g->n_nodes + 1, sizeof *e->values),
                          .cache = &cache};
        for (int k = 0; k < segment->n_inputs; k++) {
            const frit_crossing *c = &segment->inputs[k];
            assert_true(c->from < i);
            e->values[c->input->id] = evaluate_copy(c->input, all[c->from].values[c->result->id]);
        }
        for (int k = 0; k < g->n_nodes; k++)
            if (g->nodes[k]->op == FRIT_OP_KV_WRITE) evaluate_node(e, g->nodes[k]);
        for (int k = 0; k < g->n_results; k++) evaluate_node(e, g->results[k]);
        if (!g->output) continue;
        assert_int_equal(i, s->output);
        const double *y = evaluate_node(e, g->output);
        const int64_t n = frit_node_elems(g->output);
        result = calloc((size_t)n, sizeof *result);
        for (int64_t k = 0; k < n; k++) result[k] = (float)y[k];
    }
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < s->list[i].graph.n_nodes; k++) free(all[i].values[k]);
        free(all[i].values);
    }
    free(all);
    evaluate_cache_free(&cache);
    return result;
}

// Checks that each node is on a device that runs it, and that all graphs have plans.
static void expect_sound(const where *w, const frit_segments *s)
{
    for (int i = 0; i < s->n; i++) {
        frit_segment *segment = &s->list[i];
        if (i > 0) assert_int_not_equal(segment->device, s->list[i - 1].device);
        for (int k = 0; k < segment->graph.n_nodes; k++) {
            const frit_node *node = segment->graph.nodes[k];
            if (frit_node_is_leaf(node) || node->op == FRIT_OP_RESHAPE) continue;
            const int32_t layer = frit_node_cache_layer(node);
            assert_true(runs(w, segment->device, node));
            if (layer >= 0) assert_int_equal(segment->device, w->cache_devices[layer]);
            for (int n = 0; n < node->n_src; n++)
                assert_ptr_equal(segment->graph.nodes[node->src[n]->id], node->src[n]);
        }
        frit_plan *plan;
        assert_ok(frit_plan_new(&plan, &segment->graph, &(frit_plan_options){.is_fused = true}));
        for (int k = 0; k < segment->n_inputs; k++)
            assert_true(plan->offsets[segment->inputs[k].input->id] < plan->input_bytes);
    }
}

// The graph of the example, fused, cut as `w` says. Returns the number of segments.
static int expect_same(where *w)
{
    example e;
    frit_segments s;
    example_start(&e);
    example_model(&e, N_LAYERS);
    for (int i = 0; i < e.g.n_nodes; i++) e.g.nodes[i]->depth = i * N_LAYERS / e.g.n_nodes;
    float *expected = evaluate_graph(&e.g, tokens, out_rows);
    frit_fuse(&e.g);
    place(w, &e.g);
    assert_ok(frit_segments_make(&s, &e.g, &w->placement));
    float *found = evaluate_segments(&s);
    for (int i = 0; i < EXAMPLE_OUTS * EXAMPLE_VOCAB; i++) assert_float_equal(found[i], expected[i], 1e-5f);
    expect_sound(w, &s);
    free(expected);
    free(found);
    example_end(&e);
    return s.n;
}

static void a_graph_on_one_device_is_one_segment(void **state)
{
    (void)state;
    assert_int_equal(expect_same(&(where){.first_layer = N_LAYERS + 1}), 1);
    assert_int_equal(expect_same(&(where){.first_layer = -1}), 1);
}

static void layers_are_cut_once(void **state)
{
    (void)state;
    for (int i = 1; i < N_LAYERS; i++) assert_int_equal(expect_same(&(where){.first_layer = i}), 2);
}

static void what_a_device_does_not_run_goes_to_the_last(void **state)
{
    (void)state;
    const frit_op ops[] = {FRIT_OP_GLU,    FRIT_OP_RMS_NORM, FRIT_OP_ROPE,
                           FRIT_OP_LINEAR, FRIT_OP_ATTEND,   FRIT_OP_KV_WRITE};
    for (size_t i = 0; i < FRIT_COUNT(ops); i++)
        assert_true(expect_same(&(where){.first_layer = N_LAYERS + 1, .refused = 1u << ops[i] % 32}) > N_LAYERS);
    // All ops of attention go to the device that one op needs, even if another device could run the others.
    where w = {.first_layer = N_LAYERS + 1, .refused = 1u << FRIT_OP_KV_WRITE % 32};
    expect_same(&w);
    for (int i = 0; i < N_LAYERS; i++) assert_int_equal(w.cache_devices[i], 1);
}

static void random_placements_compute_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        where w = {.placement = {.n_devices = 2 + (int)(seed % 3), .wanted = at_random}, .seed = seed * 1000};
        if (seed % 4 == 0) w.refused = (unsigned)(seed * 2654435761u);
        expect_same(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_on_one_device_is_one_segment),
        cmocka_unit_test(layers_are_cut_once),
        cmocka_unit_test(what_a_device_does_not_run_goes_to_the_last),
        cmocka_unit_test(random_placements_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
