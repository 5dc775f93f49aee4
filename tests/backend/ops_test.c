// SPDX-License-Identifier: MIT
// Compares every op on every instruction set of this processor with the reference: random shapes with tails, misaligned
// matrices, several sequences in one step, page boundaries, windows, one to three threads. Memory is NaN before each
// run.
#include "backend/compare.h"
#include "backend/weights.h"
#include "support/isas.h"

#include <math.h>

// Opens a world with the rows of one or several sequences.
static void open_any(world *w, uint64_t seed)
{
    static int shapes[][4][2] = {{{0, 1}}, {{0, 7}}, {{5, 1}, {40, 1}, {0, 1}}, {{0, 9}, {31, 2}, {64, 1}, {3, 25}}};
    static const int n_seqs[] = {1, 1, 3, 4};
    world_open(w, n_seqs[seed % 4], shapes[seed % 4], seed);
}

static int64_t any_width(world *w)
{
    static const int64_t widths[] = {1, 3, 8, 15, 16, 33, 64, 100, 257};
    return widths[random_between(&w->rng, 0, (int64_t)FRIT_COUNT(widths) - 1)];
}

// ------------------------------------------------------------------------------- recurrent ops

static void convolutions_agree_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        world w;
        open_any(&w, seed);
        const int64_t n = seed % 3 == 2 ? 300 : any_width(&w), n_taps = 1 + (int64_t)seed % 5;
        world_states(&w, (int)(n * (n_taps - 1)) + 7);
        frit_node *taps = world_vector(&w, n * n_taps), *b = seed & 1 ? world_vector(&w, n) : NULL;
        w.graph.output = frit_conv(&w.graph, world_rows(&w, n), taps, b, (frit_state){.offset = 7});
        compare(&w, false, 1e-12, "conv");
        world_close(&w);
    }
}

static frit_node *negative(world *w, frit_node *x)
{
    return frit_scale(&w->graph, frit_activate(&w->graph, x, FRIT_ACT_SOFTPLUS), -1);
}

static void scans_agree_with_the_reference(void **state)
{
    (void)state;
    static const int sizes[][4] = {{6, 5, 3, 16}, {8, 1, 1, 8}, {4, 64, 2, 128}, {2, 16, 2, 33}};   // H, P, G, N
    for (uint64_t seed = 0; seed < 16; seed++) {
        world w;
        const int *s = sizes[seed % 4], n_head = s[0];
        open_any(&w, seed / 4);
        world_states(&w, n_head * s[1] * s[3]);
        frit_node *step = frit_activate(&w.graph, world_rows(&w, n_head), FRIT_ACT_SOFTPLUS);
        const int64_t n_a = seed & 8 ? n_head : (int64_t)n_head * s[3];
        frit_tensor *a = world_tensor(&w, FRIT_DTYPE_F32, 0, n_a, 0);
        random_normal(&w.rng, world_bytes(a), (size_t)n_a, 1);
        for (int64_t i = 0; i < n_a; i++) ((float *)world_bytes(a))[i] = -fabsf(((float *)world_bytes(a))[i]);
        w.graph.output = frit_scan(&w.graph, world_heads(&w, n_head, s[1]), step, frit_weight_node(&w.graph, a),
                                   world_heads(&w, s[2], s[3]), world_heads(&w, s[2], s[3]), (frit_state){0});
        compare(&w, false, 1e-11, "scan");
        world_close(&w);
    }
}

// A decaying state becomes subnormal, which makes processors a hundred times slower. These kernels flush it to zero.
static void decayed_states_are_flushed_to_zero(void **state)
{
    (void)state;
    const char *isas[MAX_ISAS];
    const size_t n_isas = usable_isas(isas);
    for (size_t i = 0; i < n_isas; i++) {
        world w;
        float result[2 * 16];
        world_open(&w, 1, (int[][2]){{9, 2}}, 1);
        world_states(&w, 2 * 8 * 16);
        for (int k = 0; k < 2 * 8 * 16; k++) w.past_states[k] = 1e-38f;
        frit_node *a = world_vector(&w, 2), *x = frit_scale(&w.graph, world_heads(&w, 2, 8), 0);
        frit_node *step = frit_activate(&w.graph, world_rows(&w, 2), FRIT_ACT_SOFTPLUS), *b = world_heads(&w, 1, 16);
        for (int k = 0; k < 2; k++) ((float *)world_bytes(a->tensor))[k] = -0.5f;
        w.graph.output = frit_scan(&w.graph, x, step, a, b, b, (frit_state){0});
        world_plan(&w, false);
        assert_int_equal(world_result_size(&w), FRIT_COUNT(result));
        world_run(&w, isas[i], 1, result);
        for (size_t k = 0; k < FRIT_COUNT(result) && strcmp(isas[i], "scalar") != 0; k++)
            if (result[k] != 0) fail_msg("%s: result %zu is %g", isas[i], k, (double)result[k]);
        volatile float small = 1e-38f;
        small *= 0.25f;
        assert_true(small > 0);
        world_close(&w);
    }
}

static void delta_rules_agree_with_the_reference(void **state)
{
    (void)state;
    static const int sizes[][4] = {{6, 5, 3, 16}, {4, 64, 2, 128}, {2, 3, 1, 7}};
    for (uint64_t seed = 0; seed < 24; seed++) {
        world w;
        const int *s = sizes[seed % 3], n_head = s[0];
        open_any(&w, seed / 6);
        world_states(&w, n_head * s[1] * s[3]);
        frit_node *g = seed & 1 ? negative(&w, world_rows(&w, n_head)) : negative(&w, world_heads(&w, n_head, s[3]));
        frit_node *beta = seed & 2 ? frit_activate(&w.graph, world_rows(&w, n_head), FRIT_ACT_SIGMOID) : NULL;
        frit_node *k = frit_rms_norm(&w.graph, world_heads(&w, s[2], s[3]), NULL, 0);
        k = frit_scale(&w.graph, k, 1 / sqrtf((float)s[3]));   // longer keys make the delta rule diverge
        w.graph.output = frit_delta(&w.graph, world_heads(&w, n_head, s[1]), k, world_heads(&w, s[2], s[3]), g, beta,
                                    (frit_state){.interleaved = seed & 4});
        compare(&w, false, 1e-11, "delta");
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- vectors

typedef struct vector_case {
    const char *name;
    frit_node *(*build)(world *w, int64_t n);
    double tolerance;
} vector_case;

static frit_node *build_rms_norm(world *w, int64_t n)
{
    return frit_rms_norm(&w->graph, world_rows(w, n), world_vector(w, n), 1e-5f);
}

static frit_node *build_rms_norm_without_weight(world *w, int64_t n)
{
    return frit_rms_norm(&w->graph, world_rows(w, n), NULL, 1e-5f);
}

static frit_node *build_head_norm(world *w, int64_t n)
{
    return frit_rms_norm(&w->graph, world_heads(w, 3, n), world_vector(w, n), 1e-6f);
}

static frit_node *build_layer_norm(world *w, int64_t n)
{
    return frit_layer_norm(&w->graph, world_rows(w, n + 1), world_vector(w, n + 1), world_vector(w, n + 1), 1e-5f);
}

static frit_node *build_plain_layer_norm(world *w, int64_t n)
{
    return frit_layer_norm(&w->graph, world_rows(w, n + 1), NULL, NULL, 1e-5f);
}

static frit_node *build_add(world *w, int64_t n)
{
    return frit_add(&w->graph, world_rows(w, n), world_rows(w, n));
}

static frit_node *build_add_row(world *w, int64_t n)
{
    return frit_add(&w->graph, world_heads(w, 2, n), world_vector(w, n));
}

static frit_node *build_mul(world *w, int64_t n)
{
    return frit_mul(&w->graph, world_rows(w, n), world_rows(w, n));
}

static frit_node *build_mul_row(world *w, int64_t n)
{
    return frit_mul(&w->graph, world_rows(w, n), world_vector(w, n));
}

static frit_node *build_scale(world *w, int64_t n)
{
    return frit_scale(&w->graph, world_rows(w, n), -0.7f);
}

static frit_node *build_xielu(world *w, int64_t n)
{
    const frit_xielu xielu = {.positive = 0.8f, .negative = 1.3f, .beta = 0.5f, .eps = -1e-6f};
    return frit_xielu_node(&w->graph, frit_scale(&w->graph, world_rows(w, n), 4), xielu);
}

static frit_node *build_softmax(world *w, int64_t n)
{
    return frit_softmax(&w->graph, frit_scale(&w->graph, world_heads(w, 3, n), 5));
}

static frit_node *build_attend_relative(world *w, int64_t n)
{
    const frit_relate relate = {.scale = 0.2F, .span = 4, .n_distances = 9};
    frit_node *q = world_heads(w, 3, n), *k = world_heads(w, 3, n), *v = world_heads(w, 3, n + 1);
    return frit_attend_relative(&w->graph, q, k, v, world_heads(w, 3, 8), world_heads(w, 3, 8), relate);
}

static frit_node *build_attend_uncached(world *w, int64_t n)
{
    frit_node *q = world_heads(w, 6, n), *k = world_heads(w, 3, n), *v = world_heads(w, 3, n + 1);
    return frit_attend_uncached(&w->graph, q, k, v, NULL, 0.3F);
}

static frit_node *build_gaussian_topk(world *w, int64_t n)
{
    return frit_gaussian_topk(&w->graph, world_rows(w, n + 2), 0.4f);
}

static frit_node *build_rms_match(world *w, int64_t n)
{
    return frit_rms_match(&w->graph, world_rows(w, n), world_rows(w, n), 1e-5f);
}

static frit_node *build_mix_streams(world *w, int64_t n)
{
    return frit_mix_streams(&w->graph, world_heads(w, 5, n), world_heads(w, 3, 5));
}

static frit_node *build_softcap(world *w, int64_t n)
{
    return frit_softcap(&w->graph, frit_scale(&w->graph, world_rows(w, n), 20), 30);
}

static frit_node *build_clamp(world *w, int64_t n)
{
    return frit_clamp(&w->graph, world_rows(w, n), -0.5f, 0.75f);
}

static frit_node *build_take_rows(world *w, int64_t n)
{
    return frit_take_rows(&w->graph, world_heads(w, 2, n), w->out_node);
}

static frit_node *build_reshape(world *w, int64_t n)
{
    frit_node *x = frit_scale(&w->graph, world_rows(w, 6 * n), 2);
    x = frit_reshape(&w->graph, x, 3, (int64_t[]){3, 2, n});
    return frit_mul(&w->graph, x, world_vector(w, n));
}

static const vector_case vector_cases[] = {
    {"rms_norm", build_rms_norm, 1e-12},
    {"rms_norm without weight", build_rms_norm_without_weight, 1e-12},
    {"rms_norm of heads", build_head_norm, 1e-12},
    {"layer_norm", build_layer_norm, 1e-11},
    {"layer_norm without weight", build_plain_layer_norm, 1e-11},
    {"add", build_add, 0},
    {"add one row", build_add_row, 0},
    {"mul", build_mul, 0},
    {"mul by one row", build_mul_row, 0},
    {"scale", build_scale, 0},
    {"softcap", build_softcap, 1e-12},
    {"clamp", build_clamp, 0},
    {"xielu", build_xielu, 1e-12},
    {"softmax", build_softmax, 1e-11},
    {"attend_relative", build_attend_relative, 1e-11},
    {"attend_uncached", build_attend_uncached, 1e-11},
    {"gaussian_topk", build_gaussian_topk, 1e-11},
    {"rms_match", build_rms_match, 1e-11},
    {"mix_streams", build_mix_streams, 1e-12},
    {"take_rows", build_take_rows, 0},
    {"reshape", build_reshape, 0},
};

static void vector_ops_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t c = 0; c < FRIT_COUNT(vector_cases); c++) {
        for (uint64_t seed = 0; seed < 12; seed += FRIT_TEST_STRIDE) {
            world w;
            open_any(&w, seed);
            w.graph.output = vector_cases[c].build(&w, any_width(&w));
            compare(&w, false, vector_cases[c].tolerance, vector_cases[c].name);
            world_close(&w);
        }
    }
}

static void activations_agree_over_their_whole_range(void **state)
{
    (void)state;
    for (int act = 0; act < FRIT_ACT_COUNT; act++) {
        for (uint64_t seed = 0; seed < 4; seed += FRIT_TEST_STRIDE) {
            static const float ranges[] = {1e-3f, 1, 12, 300};
            char what[64];
            world w;
            open_any(&w, 3);
            const int64_t n = 200 + (int64_t)seed;
            frit_node *x = frit_scale(&w.graph, world_rows(&w, n), ranges[seed]), *up = world_rows(&w, n);
            w.graph.output = frit_activate(&w.graph, x, (frit_act)act);
            snprintf(what, sizeof what, "activation %d at %g", act, (double)ranges[seed]);
            compare(&w, false, 1e-12, what);
            world_close(&w);
            open_any(&w, seed);
            x = frit_scale(&w.graph, world_rows(&w, n), ranges[seed]), up = world_rows(&w, n);
            w.graph.output = frit_glu(&w.graph, x, up, (frit_act)act);
            snprintf(what, sizeof what, "glu %d at %g", act, (double)ranges[seed]);
            compare(&w, false, 1e-12, what);
            world_close(&w);
        }
    }
}

static void rope_agrees_with_the_reference(void **state)
{
    (void)state;
    static const int32_t dims[][2] = {{2, 2}, {64, 64}, {64, 32}, {20, 10}, {100, 50}, {128, 128}};   // head, rotating
    for (uint64_t seed = 0; seed < 24; seed += FRIT_TEST_STRIDE) {
        const int32_t *dim = dims[seed % FRIT_COUNT(dims)];
        world w;
        open_any(&w, seed / 2);
        for (int i = 0; i < w.batch.n_rows; i++) w.positions[i] += 5000;
        const frit_rope rope = {
            .style = seed % 2 ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED, .dim = (int32_t)dim[1], .magnitude = 1.1f};
        frit_tensor *inv_freq = world_tensor(&w, FRIT_DTYPE_F32, 0, dim[1] / 2, 0);
        for (int i = 0; i < dim[1] / 2; i++)
            ((float *)world_bytes(inv_freq))[i] = powf(10000, -2.0f * (float)i / (float)dim[1]);
        frit_node *f = frit_weight_node(&w.graph, inv_freq);
        frit_node *factors = seed % 3 == 0 ? world_vector(&w, dim[1] / 2) : NULL;
        // Two ropes with one rotation share a table, the third has a table of its own.
        frit_node *a = frit_rotate(&w.graph, world_heads(&w, 3, dim[0]), w.position_node, f, factors, rope);
        frit_node *b = frit_rotate(&w.graph, world_heads(&w, 3, dim[0]), w.position_node, f, factors, rope);
        frit_rope other = rope;
        other.magnitude = 1;
        frit_node *c = frit_rotate(&w.graph, world_heads(&w, 3, dim[0]), w.position_node, f, NULL, other);
        w.graph.output = frit_add(&w.graph, frit_add(&w.graph, a, b), c);
        compare(&w, false, 1e-12, "rope");
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- matrices

static frit_node *any_matrix(world *w, frit_dtype dtype, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, dtype, rows, n, 2 * (size_t)random_between(&w->rng, 0, 9));
    for (int64_t i = 0; i < rows; i++)
        random_weights(&w->rng, dtype, (uint8_t *)world_bytes(t) + i * (int64_t)frit_dtype_row_bytes(dtype, n), n);
    return frit_weight_node(&w->graph, t);
}

static int64_t any_length(world *w, frit_dtype dtype)
{
    const int64_t block = frit_dtype_get(dtype)->block_elems;
    return block == 1 ? any_width(w) : block * random_between(&w->rng, 1, block >= 128 ? 3 : 9);
}

// Products with int8 activations differ from the reference by this rounding, other products only by sums in f32.
static double product_tolerance(frit_dtype dtype)
{
    return frit_dtype_get(dtype)->block_elems == 1 ? 1e-11 : 3e-4;
}

static void embeddings_of_all_types_are_decoded_exactly(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        world w;
        open_any(&w, 3);
        frit_node *table = any_matrix(&w, (frit_dtype)dtype, w.batch.n_rows, any_length(&w, (frit_dtype)dtype));
        w.graph.output = frit_embed(&w.graph, table, w.token_node);
        compare(&w, false, 0, frit_dtype_get((frit_dtype)dtype)->name);
        world_close(&w);
    }
}

static void products_of_all_types_agree_with_the_reference(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        for (uint64_t seed = 0; seed < 6; seed += FRIT_TEST_STRIDE) {
            world w;
            open_any(&w, seed);
            const int64_t n = any_length(&w, (frit_dtype)dtype), n_out = random_between(&w.rng, 1, 70);
            frit_node *m = any_matrix(&w, (frit_dtype)dtype, n_out, n), *x = world_rows(&w, n);
            frit_node *bias = seed % 2 ? world_vector(&w, n_out) : NULL;
            w.graph.output = frit_matmul(&w.graph, m, x, bias);
            compare(&w, false, product_tolerance((frit_dtype)dtype), frit_dtype_get((frit_dtype)dtype)->name);
            world_close(&w);
        }
    }
}

// Number of fusions of a device that supports all joins.
static int n_fusions_of(world *w)
{
    world_plan(w, true);
    return w->plan->phases.n_fusions;
}

static void fused_products_agree_with_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32,  FRIT_DTYPE_BF16, FRIT_DTYPE_Q4_0,
                                        FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_IQ3_S};
    for (uint64_t seed = 0; seed < 3 * FRIT_COUNT(dtypes); seed += FRIT_TEST_STRIDE) {
        const frit_dtype dtype = dtypes[seed % FRIT_COUNT(dtypes)];
        world w;
        open_any(&w, seed);
        const int64_t n = any_length(&w, dtype), n_ff = frit_dtype_get(dtype)->block_elems == 1 ? 75 : 256;
        frit_node *x = world_rows(&w, n);
        frit_node *gate = frit_matmul(&w.graph, any_matrix(&w, dtype, n_ff, n), x, NULL);
        frit_node *up = frit_matmul(&w.graph, any_matrix(&w, dtype, n_ff, n), x, NULL);
        w.graph.output = frit_glu(&w.graph, gate, up, FRIT_ACT_SILU);
        compare_rounded(&w, true, product_tolerance(dtype), 10 * product_tolerance(dtype), "linear_glu");
        assert_int_equal(n_fusions_of(&w), 2);
        world_close(&w);

        open_any(&w, seed + 1);
        frit_node *h = world_rows(&w, n_ff), *r = world_rows(&w, n);
        frit_node *bias = seed % 2 ? world_vector(&w, n) : NULL;
        frit_node *down = frit_matmul(&w.graph, any_matrix(&w, dtype, n, n_ff), h, bias);
        w.graph.output = frit_add(&w.graph, down, r);
        compare(&w, true, product_tolerance(dtype), "linear_add");
        assert_int_equal(n_fusions_of(&w), 3);
        world_close(&w);
    }
}

static frit_node *any_product(world *w, int64_t n_out, frit_node *x, bool bias, float factor)
{
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32,  FRIT_DTYPE_BF16, FRIT_DTYPE_F16,
                                        FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K};
    const frit_dtype dtype = dtypes[random_between(&w->rng, 0, (int64_t)FRIT_COUNT(dtypes) - 1)];
    frit_node *b = bias ? world_vector(w, n_out) : NULL;
    return frit_scale(&w->graph, frit_matmul(&w->graph, any_matrix(w, dtype, n_out, 256), x, b), factor);
}

// Parts of a product in any order; gate and up of any types, with biases and factors; and results that a product reads
// next in another form.
static void fusions_of_any_parts_agree_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed += FRIT_TEST_STRIDE) {
        world w;
        open_any(&w, seed);
        frit_graph *g = &w.graph;
        frit_node *x = world_rows(&w, 256), *r = world_rows(&w, 256), *row = world_vector(&w, 256);
        frit_node *y = any_product(&w, 256, x, seed & 1, seed & 2 ? 0.5f : 1);
        int n_parts = 0;
        if (seed & 4) {
            y = frit_glu(g, y, any_product(&w, 256, x, seed & 8, seed & 16 ? 3 : 1), FRIT_ACT_GELU);
            n_parts = 2;
        }
        for (int i = (int)random_between(&w.rng, 1, 3); i > 0; i--, n_parts++) switch (random_between(&w.rng, 0, 7)) {
            case 0:
                y = frit_activate(g, y, FRIT_ACT_SILU);
                break;
            case 1:
                y = frit_add(g, r, y);
                break;
            case 2:
                y = frit_mul(g, y, row);
                break;
            case 3:
                y = frit_add(g, y, row);
                break;
            case 4:
                y = frit_softcap(g, y, 20);
                break;
            case 5:
                y = frit_mul(g, r, y);
                break;
            case 6:
                y = frit_clamp(g, y, -0.4f, 0.7f);
                break;
            default:
                y = frit_xielu_node(g, y,
                                    (frit_xielu){.positive = 0.8f, .negative = 0.3f, .beta = 0.5f, .eps = -1e-6f});
            }
        const frit_node *result = y;
        g->output = seed % 3 ? y : any_product(&w, 64, y, false, 1);
        world_plan(&w, true);
        const frit_fusion *fusion = &w.plan->phases.fusions[w.plan->phases.fusion_of[result->id]];
        assert_int_equal(fusion->n_nodes, 1 + n_parts);
        compare(&w, true, 2e-2, "fusion");
        world_close(&w);
    }
}

static void norms_of_any_kind_join_a_residual(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        world w;
        open_any(&w, seed);
        const int64_t n = any_width(&w);
        frit_node *x = world_rows(&w, n), *r = world_rows(&w, n), *weight = seed & 1 ? world_vector(&w, n) : NULL;
        frit_node *norm = seed & 2 ? frit_layer_norm(&w.graph, x, weight, weight ? world_vector(&w, n) : NULL, 1e-6f)
                                   : frit_rms_norm(&w.graph, x, weight, 1e-6f);
        w.graph.output = seed & 4 ? frit_add(&w.graph, norm, r) : frit_add(&w.graph, r, norm);
        compare(&w, true, 1e-11, "norm and residual");
        assert_int_equal(n_fusions_of(&w), 3);
        world_close(&w);
    }
}

// The bits depend neither on the thread of a piece nor on the number of pieces in a call.
static void results_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32, FRIT_DTYPE_BF16, FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_K,
                                        FRIT_DTYPE_IQ3_S};
    static const int n_threads[] = {2, 3, 5, 16};
    for (uint64_t seed = 0; seed < 2 * FRIT_COUNT(dtypes); seed += FRIT_TEST_STRIDE) {
        const frit_dtype dtype = dtypes[seed / 2];
        const int n_ff = 768, n = 512;
        world w;
        world_open(&w, 2, seed % 2 ? (int[][2]){{0, 1}, {3, 2}} : (int[][2]){{0, 90}, {5, 1}}, seed);
        frit_node *x = frit_rms_norm(&w.graph, world_rows(&w, n), world_vector(&w, n), 1e-5f);
        frit_node *gate = frit_matmul(&w.graph, any_matrix(&w, dtype, n_ff, n), x, NULL);
        frit_node *up = frit_matmul(&w.graph, any_matrix(&w, dtype, n_ff, n), x, NULL);
        frit_node *h = frit_glu(&w.graph, gate, up, FRIT_ACT_SILU);
        w.graph.output = frit_add(&w.graph, frit_matmul(&w.graph, any_matrix(&w, dtype, n, n_ff), h, NULL), x);
        world_plan(&w, true);
        const size_t size = world_result_size(&w);
        float *alone = malloc(size * sizeof *alone), *shared = malloc(size * sizeof *shared);
        world_run(&w, NULL, 1, alone);
        for (size_t i = 0; i < FRIT_COUNT(n_threads); i++) {
            world_run(&w, NULL, n_threads[i], shared);
            assert_memory_equal(shared, alone, size * sizeof *shared);
        }
        free(alone);
        free(shared);
        world_close(&w);
    }
}

static void fused_add_and_norm_agrees_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        world w;
        open_any(&w, seed);
        const int64_t n = any_width(&w);
        frit_node *sum = frit_add(&w.graph, world_rows(&w, n), world_rows(&w, n));
        frit_node *norm = frit_rms_norm(&w.graph, sum, world_vector(&w, n), 1e-6f);
        w.graph.output = frit_mul(&w.graph, norm, sum);
        compare(&w, true, 1e-12, "add_norm");
        assert_int_equal(n_fusions_of(&w), 4);
        world_close(&w);
    }
}

static void fused_norm_and_add_agrees_with_the_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        world w;
        open_any(&w, seed);
        const int64_t n = any_width(&w);
        frit_node *norm = frit_rms_norm(&w.graph, world_rows(&w, n), world_vector(&w, n), 1e-6f);
        w.graph.output = frit_add(&w.graph, world_rows(&w, n), norm);
        compare(&w, true, 1e-12, "norm_add");
        assert_int_equal(n_fusions_of(&w), 3);
        world_close(&w);
    }
}

// Several products of equal and of different rows in different forms: the slots of converted rows must not mix.
static void converted_activations_are_shared_but_never_stale(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0,
                                        FRIT_DTYPE_F16};
    for (uint64_t seed = 0; seed < 12; seed += FRIT_TEST_STRIDE) {
        world w;
        open_any(&w, seed);
        frit_node *x = world_rows(&w, 256), *y = world_rows(&w, 512), *sum = NULL;
        for (int i = 0; i < 12; i++) {
            const frit_dtype dtype = dtypes[random_between(&w.rng, 0, (int64_t)FRIT_COUNT(dtypes) - 1)];
            const bool wide = random_between(&w.rng, 0, 1);
            frit_node *in = wide ? y : x;
            if (random_between(&w.rng, 0, 3) == 0) in = frit_scale(&w.graph, in, 0.5f);
            frit_node *out = frit_matmul(&w.graph, any_matrix(&w, dtype, 96, wide ? 512 : 256), in, NULL);
            sum = sum ? frit_add(&w.graph, sum, out) : out;
        }
        w.graph.output = sum;
        compare_rounded(&w, seed % 2, 1e-4, 1e-3, "many products");
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_agree_with_the_reference),
        cmocka_unit_test(scans_agree_with_the_reference),
        cmocka_unit_test(decayed_states_are_flushed_to_zero),
        cmocka_unit_test(delta_rules_agree_with_the_reference),
        cmocka_unit_test(vector_ops_agree_with_the_reference),
        cmocka_unit_test(activations_agree_over_their_whole_range),
        cmocka_unit_test(rope_agrees_with_the_reference),
        cmocka_unit_test(embeddings_of_all_types_are_decoded_exactly),
        cmocka_unit_test(products_of_all_types_agree_with_the_reference),
        cmocka_unit_test(fused_products_agree_with_the_reference),
        cmocka_unit_test(fusions_of_any_parts_agree_with_the_reference),
        cmocka_unit_test(norms_of_any_kind_join_a_residual),
        cmocka_unit_test(results_do_not_depend_on_the_threads),
        cmocka_unit_test(fused_add_and_norm_agrees_with_the_reference),
        cmocka_unit_test(fused_norm_and_add_agrees_with_the_reference),
        cmocka_unit_test(converted_activations_are_shared_but_never_stale),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
