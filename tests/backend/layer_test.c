// SPDX-License-Identifier: MIT
// Whole layers: fusions, epilogues by heads and inputs per thread give the results of the reference for all shapes,
// types and numbers of threads; and a layer that decodes has few phases.
#include "backend/compare.h"
#include "backend/cpu/exec.h"
#include "backend/weights.h"
#include "support/isas.h"

#include <math.h>

typedef struct layer {
    frit_dtype dtypes[7];   // q k v o gate up down
    int n, n_ff, n_head, n_head_kv, dim, n_layer;
    bool head_norms, biases, layer_norm, parallel, take_rows;
    bool pre_norms, post_norms;   // before and after attention and feed-forward
    bool plain_act;               // up, activation, down
    float residual_scale;         // 1: none
    frit_rope rope;
} layer;

static frit_node *matrix(world *w, frit_dtype dtype, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, dtype, rows, n, 0);
    uint8_t *bytes = world_bytes(t);
    const frit_dtype_info *type = frit_dtype_get(dtype);
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < rows; i++) {
        random_normal(&w->rng, values, (size_t)n, 1 / sqrt((double)n));
        type->encode(values, bytes + i * (int64_t)frit_dtype_row_bytes(dtype, n), n, NULL);
    }
    free(values);
    return frit_weight_node(&w->graph, t);
}

static frit_node *norm(world *w, const layer *l, frit_node *x)
{
    if (l->layer_norm) return frit_layer_norm(&w->graph, x, world_vector(w, l->n), world_vector(w, l->n), 1e-5f);
    return frit_rms_norm(&w->graph, x, world_vector(w, l->n), 1e-5f);
}

static frit_node *add_projection(world *w, const layer *l, int i, frit_node *x, int n_head)
{
    frit_node *bias = l->biases ? world_vector(w, (int64_t)n_head * l->dim) : NULL;
    frit_node *y = frit_matmul(&w->graph, matrix(w, l->dtypes[i], (int64_t)n_head * l->dim, l->n), x, bias);
    return frit_reshape(&w->graph, y, 2, (int64_t[]){n_head, l->dim});
}

static float frequencies[64];

static frit_node *rotate_heads(world *w, const layer *l, frit_node *x)
{
    if (l->head_norms) x = frit_rms_norm(&w->graph, x, world_vector(w, l->dim), 1e-6f);
    frit_tensor *inv_freq = world_tensor(w, FRIT_DTYPE_F32, 0, l->rope.dim / 2, 0);
    memcpy(world_bytes(inv_freq), frequencies, (size_t)inv_freq->n_bytes);
    return frit_rotate(&w->graph, x, w->position_node, frit_weight_node(&w->graph, inv_freq), NULL, l->rope);
}

static frit_node *add_attention(world *w, const layer *l, frit_node *x)
{
    frit_graph *g = &w->graph;
    frit_node *q = rotate_heads(w, l, add_projection(w, l, 0, x, l->n_head)),
              *k = rotate_heads(w, l, add_projection(w, l, 1, x, l->n_head_kv));
    frit_node *written = frit_kv_write(g, k, add_projection(w, l, 2, x, l->n_head_kv), 0);
    const frit_attend attend = {.scale = 1 / sqrtf((float)l->dim)};
    frit_node *y = frit_attend_node(g, q, written, attend, l->dim);
    y = frit_reshape(g, y, 1, (int64_t[]){(int64_t)l->n_head * l->dim});
    return frit_matmul(g, matrix(w, l->dtypes[3], l->n, (int64_t)l->n_head * l->dim), y, NULL);
}

static frit_node *feed_forward(world *w, const layer *l, frit_node *x)
{
    frit_graph *g = &w->graph;
    if (l->plain_act) {
        frit_node *bias = l->biases ? world_vector(w, l->n_ff) : NULL;
        frit_node *h = frit_matmul(g, matrix(w, l->dtypes[5], l->n_ff, l->n), x, bias);
        bias = l->biases ? world_vector(w, l->n) : NULL;
        return frit_matmul(g, matrix(w, l->dtypes[6], l->n, l->n_ff), frit_activate(g, h, FRIT_ACT_GELU), bias);
    }
    frit_node *gate = frit_matmul(g, matrix(w, l->dtypes[4], l->n_ff, l->n), x, NULL);
    frit_node *up = frit_matmul(g, matrix(w, l->dtypes[5], l->n_ff, l->n), x, NULL);
    return frit_matmul(g, matrix(w, l->dtypes[6], l->n, l->n_ff), frit_glu(g, gate, up, FRIT_ACT_SILU), NULL);
}

static frit_node *norm_if(world *w, const layer *l, bool wanted, frit_node *x)
{
    return wanted ? norm(w, l, x) : x;
}

static frit_node *one_layer(world *w, const layer *l, frit_node *x)
{
    frit_graph *g = &w->graph;
    frit_node *h = norm_if(w, l, l->pre_norms, x);
    if (l->parallel)
        return frit_add(g, frit_add(g, x, add_attention(w, l, h)), feed_forward(w, l, norm_if(w, l, l->pre_norms, x)));
    h = norm_if(w, l, l->post_norms, add_attention(w, l, h));
    x = frit_add(g, x, frit_scale(g, h, l->residual_scale));
    h = norm_if(w, l, l->post_norms, feed_forward(w, l, norm_if(w, l, l->pre_norms, x)));
    return frit_add(g, x, frit_scale(g, h, l->residual_scale));
}

static void build_layer(world *w, const layer *l)
{
    frit_graph *g = &w->graph;
    frit_node *x = world_rows(w, l->n);
    for (int i = 0; i < l->n_layer; i++) x = one_layer(w, l, x);
    g->output = l->take_rows ? frit_take_rows(g, x, w->out_node) : x;
    world_cache(w, KV_F32, l->n_head_kv, l->dim, l->dim);
}

static layer any_layer(uint64_t seed, const frit_dtype *dtypes, size_t n_dtypes)
{
    static const int dims[] = {16, 32, 64, 24, 128};
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (int i = 0; i < 64; i++) frequencies[i] = powf(10000, -(float)i / 64);
    layer l = {.n = 256,
               .n_ff = 512,
               .n_layer = 1,
               .dim = dims[seed % FRIT_COUNT(dims)],
               .n_head_kv = 1 << random_between(&rng, 0, 1)};
    l.n_head = l.n_head_kv * (int)random_between(&rng, 1, 4);
    if (l.dim == 24)
        l.n_head = 32, l.n_head_kv = 8;   // so that o's rows are whole blocks
    else
        while (l.n_head * l.dim % 256 != 0) l.n_head *= 2;
    for (int i = 0; i < 7; i++) l.dtypes[i] = dtypes[random_between(&rng, 0, (int64_t)n_dtypes - 1)];
    if (random_between(&rng, 0, 1)) l.dtypes[5] = l.dtypes[4];
    l.head_norms = random_between(&rng, 0, 1);
    l.biases = random_between(&rng, 0, 1);
    l.layer_norm = random_between(&rng, 0, 3) == 0;
    l.parallel = random_between(&rng, 0, 3) == 0;
    l.take_rows = random_between(&rng, 0, 1);
    l.post_norms = random_between(&rng, 0, 2) == 0;
    l.pre_norms = !l.post_norms || random_between(&rng, 0, 1);
    l.plain_act = random_between(&rng, 0, 3) == 0;
    l.residual_scale = random_between(&rng, 0, 3) == 0 ? 0.25f : 1;
    if (l.post_norms) l.n_layer = 2;   // the second layer reads the result of the first
    l.rope = (frit_rope){.style = random_between(&rng, 0, 1) ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED,
                         .dim = l.dim / 8 * 4,
                         .magnitude = 1};
    return l;
}

static void open_rows(world *w, uint64_t seed)
{
    static int shapes[][3][2] = {
        {{0, 1}}, {{300, 1}}, {{0, 2}}, {{5, 1}, {40, 1}}, {{40, 1}, {0, 3}}, {{3, 70}}, {{31, 2}, {0, 64}, {1, 30}}};
    static const int n_seqs[] = {1, 1, 1, 2, 2, 1, 3};
    const size_t i = seed % FRIT_COUNT(n_seqs);
    world_open(w, n_seqs[i], shapes[i], seed);
}

static void layers_of_floats_agree_with_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_BF16};
    for (uint64_t seed = 0; seed < 70; seed += FRIT_TEST_STRIDE) {
        world w;
        open_rows(&w, seed);
        const layer l = any_layer(seed / 7 + 100 * (seed % 7), dtypes, FRIT_COUNT(dtypes));
        build_layer(&w, &l);
        char what[48];
        snprintf(what, sizeof what, "layer of floats %d", (int)seed);
        compare_attention(&w, true, 1e-11, 1e-4, what);
        world_close(&w);
    }
}

// Within the rounding of activations. The bits do not depend on the number of threads.
static void layers_of_quantized_types_agree_with_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0,
                                        FRIT_DTYPE_F16};
    for (uint64_t seed = 0; seed < 70; seed += FRIT_TEST_STRIDE) {
        world w;
        open_rows(&w, seed);
        const layer l = any_layer(seed / 7 + 100 * (seed % 7), dtypes, FRIT_COUNT(dtypes));
        build_layer(&w, &l);
        char what[48];
        snprintf(what, sizeof what, "quantized layer %d", (int)seed);
        compare_attention(&w, true, 5e-4, 2e-3, what);
        const size_t size = world_result_size(&w);
        float *alone = malloc(size * sizeof *alone), *shared = malloc(size * sizeof *shared);
        world_run(&w, NULL, 1, alone);
        for (int n_threads = 5; n_threads < 30; n_threads += 12) {   // more threads than heads in the end
            world_run(&w, NULL, n_threads, shared);
            assert_memory_equal(shared, alone, size * sizeof *shared);
        }
        free(alone);
        free(shared);
        world_close(&w);
    }
}

static int phases_of(const layer *l, int n_past, int n_rows)
{
    world w;
    world_open(&w, 1, (int[][2]){{n_past, n_rows}}, 1);
    build_layer(&w, l);
    world_plan(&w, true);
    frit_device *device;
    frit_exec *exec;
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads = 2}));
    world_plan_for(&w, frit_backend_cpu.can_join, device);
    assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
    world_reset_cache(&w);
    world_step(&w, device, exec);
    const int n_phases = frit_cpu_exec_n_phases(exec);
    frit_backend_cpu.exec_free(device, exec);
    frit_backend_cpu.close(device);
    world_close(&w);
    return n_phases;
}

// Phases of one of several layers.
static int phases_of_one(layer l, int n_past, int n_rows)
{
    l.n_layer = 2;
    const int two = phases_of(&l, n_past, n_rows);
    l.n_layer = 3;
    return phases_of(&l, n_past, n_rows) - two;
}

static void a_layer_has_few_phases(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool pre_norms, post_norms, plain_act;
        float residual_scale;
    } shapes[] = {{"norms before", true, false, false, 1},
                  {"norms before and behind", true, true, false, 1},
                  {"norms behind", false, true, false, 1},
                  {"no gate", true, false, true, 1},
                  {"scaled branches", true, false, false, 0.25f}};
    static const frit_dtype dtypes[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_F32};
    for (size_t i = 0; i < FRIT_COUNT(shapes) * FRIT_COUNT(dtypes); i++) {
        const size_t shape = i / FRIT_COUNT(dtypes);
        const frit_dtype dtype = dtypes[i % FRIT_COUNT(dtypes)];
        layer l = any_layer(2, &dtype, 1);
        l.parallel = l.layer_norm = l.take_rows = false;
        l.head_norms = true;
        l.pre_norms = shapes[shape].pre_norms;
        l.post_norms = shapes[shape].post_norms;
        l.plain_act = shapes[shape].plain_act;
        l.residual_scale = shapes[shape].residual_scale;
        const int few = phases_of_one(l, 10, 1), far = phases_of_one(l, 1000, 1), many = phases_of_one(l, 10, 20);
        print_message("%s, %s: %d phases; %d behind 1000 positions; %d with 20 rows\n", shapes[shape].name,
                      frit_dtype_get(dtype)->name, few, far, many);
        assert_int_equal(few, 5);
        assert_int_equal(far, 6);
        assert_in_range(many, 3, 10);
    }
}

// Threads claim pieces by number, so a copy must not have more pieces than a product of its phase.
static void short_work_has_fewer_pieces_than_a_product(void **state)
{
    (void)state;
    world w;
    world_open(&w, 1, (int[][2]){{0, 64}}, 1);
    frit_node *x = world_rows(&w, 256);
    frit_tensor *matrix = world_tensor(&w, FRIT_DTYPE_F32, 64, 256, 0);
    frit_node *y = frit_matmul(&w.graph, frit_weight_node(&w.graph, matrix), x, NULL);
    w.graph.output = frit_concat(&w.graph, y, frit_slice(&w.graph, x, 0, 128));
    world_plan(&w, true);
    frit_device *device;
    frit_exec *exec;
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads = 2}));
    world_plan_for(&w, frit_backend_cpu.can_join, device);
    assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
    world_step(&w, device, exec);
    int product = -1, copy = -1;
    for (int i = 0; i < exec->n_actions; i++) {
        if (exec->actions[i].task.node->op == FRIT_OP_LINEAR) product = i;
        if (exec->actions[i].task.node->op == FRIT_OP_SLICE) copy = i;
    }
    assert_int_not_equal(product, -1);
    assert_int_equal(copy, product + 1);   // in one phase
    assert_in_range(exec->actions[copy].n_pieces, 1, 2);
    assert_in_range(exec->actions[product].n_pieces, 2, FRIT_MAX_PIECES);
    frit_backend_cpu.exec_free(device, exec);
    frit_backend_cpu.close(device);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_work_has_fewer_pieces_than_a_product),
        cmocka_unit_test(layers_of_floats_agree_with_the_reference),
        cmocka_unit_test(layers_of_quantized_types_agree_with_the_reference),
        cmocka_unit_test(a_layer_has_few_phases),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
