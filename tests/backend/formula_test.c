// SPDX-License-Identifier: MIT
// Checks reference kernels against the formulas of the op table, on cases small enough to compute by hand.
#include "backend/world.h"

#include <math.h>

static void expect(world *w, const float *expected, size_t n)
{
    float result[64];
    world_plan(w, false);
    assert_int_equal(world_result_size(w), n);
    world_run(w, "reference", 2, result);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(result[i] - expected[i]) <= 1e-6f * (1 + fabsf(expected[i]))))
            fail_msg("result %zu is %.9g, expected %.9g", i, (double)result[i], (double)expected[i]);
    world_close(w);
}

static void open_rows(world *w, int n_rows)
{
    world_open(w, 1, (int[][2]){{0, n_rows}}, 1);
}

static frit_node *given_vector(world *w, const float *values, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, 0, n, 0);
    memcpy(world_bytes(t), values, (size_t)t->n_bytes);
    return frit_weight_node(&w->graph, t);
}

static frit_node *given_matrix(world *w, const float *values, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, rows, n, 2);
    memcpy(world_bytes(t), values, (size_t)t->n_bytes);
    return frit_weight_node(&w->graph, t);
}

static frit_node *given_heads(world *w, const float *values, int64_t n_heads, int64_t dim)
{
    return frit_reshape(&w->graph, world_given_rows(w, values, n_heads * dim), 2, (int64_t[]){n_heads, dim});
}

static void linear_multiplies_rows_by_rows_and_adds_the_bias(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *x = world_given_rows(&w, (float[]){1, 2, 3, 4, 5, 6}, 3);
    frit_node *m = given_matrix(&w, (float[]){1, 0, -1, 2, 1, 0}, 2, 3);
    frit_node *b = given_vector(&w, (float[]){10, 20}, 2);
    w.graph.output = frit_matmul(&w.graph, m, x, b);
    expect(&w, (float[]){10 - 2, 20 + 4, 10 - 2, 20 + 13}, 4);
}

static void rms_norm_divides_by_the_root_of_the_mean_square(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){1, 7, -5, 5}, 4);   // mean square 25
    w.graph.output = frit_rms_norm(&w.graph, x, given_vector(&w, (float[]){1, 2, 1, 10}, 4), 0);
    expect(&w, (float[]){0.2f, 2.8f, -1, 10}, 4);
}

static void norms_add_eps_inside_the_root(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    w.graph.output = frit_rms_norm(&w.graph, world_given_rows(&w, (float[]){4, -4}, 2), NULL, 9);   // sqrt(16 + 9)
    expect(&w, (float[]){0.8f, -0.8f}, 2);
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){2, 10}, 2);   // 6 - 4, 6 + 4
    w.graph.output = frit_layer_norm(&w.graph, x, NULL, NULL, 9);
    expect(&w, (float[]){-0.8f, 0.8f}, 2);
}

static void layer_norm_centres_and_scales(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){1, 3, 5, 7}, 4);   // mean 4, variance 5
    frit_node *m = given_vector(&w, (float[]){1, 1, 2, 2}, 4), *b = given_vector(&w, (float[]){0, 1, 0, 1}, 4);
    const float s = sqrtf(5);
    w.graph.output = frit_layer_norm(&w.graph, x, m, b, 0);
    expect(&w, (float[]){-3 / s, 1 - 1 / s, 2 / s, 1 + 6 / s}, 4);
}

static void one_row_is_added_and_multiplied_to_all(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *x = world_given_rows(&w, (float[]){1, 2, 3, 4}, 2), *v = given_vector(&w, (float[]){10, 20}, 2);
    w.graph.output = frit_add(&w.graph, frit_mul(&w.graph, x, v), v);
    expect(&w, (float[]){20, 60, 40, 100}, 4);
}

static void scale_and_softcap_follow_their_formulas(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){0, 1, -15}, 3);
    w.graph.output = frit_softcap(&w.graph, frit_scale(&w.graph, x, 2), 30);
    expect(&w, (float[]){0, 30 * tanhf(2 / 30.0f), -30 * tanhf(1)}, 3);
}

static void activations_have_their_known_values(void **state)
{
    (void)state;
    // f(-1), f(0), f(2); gelu by the table of the normal distribution.
    static const float expected[FRIT_ACT_COUNT][3] = {
        [FRIT_ACT_SILU] = {-0.26894142f, 0, 1.76159416f},
        [FRIT_ACT_GELU] = {-0.15865525f, 0, 1.95449974f},
        [FRIT_ACT_GELU_TANH] = {-0.15880801f, 0, 1.95459769f},
        [FRIT_ACT_GELU_QUICK] = {-0.15420423f, 0, 1.93565864f},
        [FRIT_ACT_RELU] = {0, 0, 2},
        [FRIT_ACT_RELU2] = {0, 0, 4},
        [FRIT_ACT_SIGMOID] = {0.26894142f, 0.5f, 0.88079708f},
        [FRIT_ACT_TANH] = {-0.76159416f, 0, 0.96402758f},
        [FRIT_ACT_SOFTPLUS] = {0.31326169f, 0.69314718f, 2.12692801f},
    };
    for (int act = 0; act < FRIT_ACT_COUNT; act++) {
        world w;
        open_rows(&w, 1);
        w.graph.output = frit_activate(&w.graph, world_given_rows(&w, (float[]){-1, 0, 2}, 3), (frit_act)act);
        expect(&w, expected[act], 3);
    }
}

static void xielu_is_a_parabola_above_zero_and_an_exponential_below(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    const frit_xielu xielu = {.positive = 0.8f, .negative = 1.3f, .beta = 0.5f, .eps = -1e-6f};
    w.graph.output = frit_xielu_node(&w.graph, world_given_rows(&w, (float[]){-2, -1e-7f, 3}, 3), xielu);
    expect(&w, (float[]){1.3f * (0.13533528f - 1 + 2) - 1, 1.3f * (-1e-6f + 1e-7f) - 5e-8f, 0.8f * 9 + 1.5f}, 3);
}

// Row 0 sees equal scores, row 1 scores of 0 and 1.
static void attend_relative_adds_terms_by_distance(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    const frit_relate relate = {.scale = 0.5F, .span = 2};
    frit_node *q = given_heads(&w, (float[]){1, 2}, 1, 1), *k = given_heads(&w, (float[]){1, 0}, 1, 1);
    frit_node *v = given_heads(&w, (float[]){10, 20}, 1, 1);
    frit_node *c = given_heads(&w, (float[]){0, 3, 1, 9, 9, 9, 2, 0}, 1, 4);
    frit_node *r = given_heads(&w, (float[]){9, 9, 1, -2, 9, 0, 0, 9}, 1, 4);
    w.graph.output = frit_attend_relative(&w.graph, q, k, v, c, r, relate);
    expect(&w, (float[]){15, 17.3105858F}, 2);
}

// The first two rows are one segment, the third another. Row 0 sees scores of 0 and 1, row 1 equal ones.
static void attend_uncached_sees_its_segment(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 3);
    frit_node *q = given_heads(&w, (float[]){2, 0, 5}, 1, 1), *k = given_heads(&w, (float[]){0, 1, 3}, 1, 1);
    frit_node *v = given_heads(&w, (float[]){10, 20, 7}, 1, 1), *segments = world_given_rows(&w, (float[]){4, 4, 5}, 1);
    w.graph.output = frit_attend_uncached(&w.graph, q, k, v, segments, 0.5F);
    expect(&w, (float[]){17.3105858F, 15, 7}, 3);
}

static void rope_angles_rotates_by_given_cosines_and_sines(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    frit_node *x = given_heads(&w, (float[]){1, 2, 3, 4, 9}, 1, 5);
    frit_node *turns = world_given_rows(&w, (float[]){0, 0.6F, 1, 0.8F}, 4);
    w.graph.output = frit_rotate_by(&w.graph, x, turns, (frit_rope){.style = FRIT_ROPE_NEOX, .dim = 4});
    expect(&w, (float[]){-3, 2 * 0.6F - 4 * 0.8F, 1, 2 * 0.8F + 4 * 0.6F, 9}, 5);
}

static void embed_mix_adds_rows_of_a_table(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *table = given_matrix(&w, (float[]){1, 2, 10, 20, 100, 200}, 3, 2);
    w.graph.output = frit_embed_mix(&w.graph, table, world_given_rows(&w, (float[]){2, 0, 0.5F, 2, 1, 1, 1, 0}, 4));
    expect(&w, (float[]){52, 104, 10, 20}, 4);
}

static void place_rows_replaces_marked_rows(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *x = world_given_rows(&w, (float[]){1, 2, 3, 4}, 2);
    w.graph.output = frit_place_rows(&w.graph, x, world_given_rows(&w, (float[]){0, 7, 8, 1, 9, 10}, 3));
    expect(&w, (float[]){1, 2, 9, 10}, 4);
}

static void take_blocks_joins_consecutive_rows(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 4);   // outputs of rows 0 and 2
    frit_node *x = world_given_rows(&w, (float[]){1, 2, 3, 4, 5, 6, 7, 8}, 2);
    w.graph.output = frit_take_blocks(&w.graph, x, w.out_node, 2);
    expect(&w, (float[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
}

static void far_distances_share_logarithmic_buckets(void **state)
{
    (void)state;
    static const int rows[][2] = {{0, 16}, {8, 24}, {-8, 8}, {9, 25}, {-9, 7}, {255, 31}, {1000, 31}, {-1000, 0}};
    const frit_relate relate = {.span = 16, .n_distances = 256};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) assert_int_equal(frit_relate_bucket(&relate, rows[i][0]), rows[i][1]);
}

static void softmax_gives_shares_of_exponentials(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    w.graph.output = frit_softmax(&w.graph, world_given_rows(&w, (float[]){100, 100, -1000}, 3));
    expect(&w, (float[]){0.5f, 0.5f, 0}, 3);
}

static void gaussian_topk_keeps_values_some_deviations_above_the_mean(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);   // mean 2, variance 16
    w.graph.output = frit_gaussian_topk(&w.graph, world_given_rows(&w, (float[]){-2, -2, 6, 6}, 4), 0.5f);
    expect(&w, (float[]){0, 0, 2, 2}, 4);
}

static void rms_match_gives_a_row_the_rms_of_another(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *x = world_given_rows(&w, (float[]){1, 1, 0, 0.1f}, 2),
              *r = world_given_rows(&w, (float[]){3, 4, 2, 0}, 2);
    w.graph.output = frit_rms_match(&w.graph, x, r, 0.5f);
    expect(&w, (float[]){sqrtf(12.5f), sqrtf(12.5f), 0, 0.2f}, 4);   // of the second, mean(x^2) is below eps
}

static void mix_streams_adds_vectors_of_a_row_with_its_own_weights(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    frit_node *x = given_heads(&w, (float[]){1, 2, 3, 4, 5, 6, 7, 8}, 2, 2);
    frit_node *c = given_heads(&w, (float[]){1, 0, 0, 1, 10, 1, 2, -1}, 2, 2);
    w.graph.output = frit_mix_streams(&w.graph, x, c);
    expect(&w, (float[]){1, 2, 3, 4, 57, 68, 3, 4}, 8);
}

static void glu_gates_the_second_source_by_the_first(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    frit_node *gate = world_given_rows(&w, (float[]){-1, 3}, 2), *up = world_given_rows(&w, (float[]){5, -7}, 2);
    w.graph.output = frit_glu(&w.graph, gate, up, FRIT_ACT_RELU);
    expect(&w, (float[]){0, -21}, 2);
}

// Position 2 with inv_freq pi/4 rotates by 90 degrees: (a, b) becomes (-b, a). inv_freq 0 does not rotate.
static void rope_rotates_by_known_angles_in_both_styles(void **state)
{
    (void)state;
    static const float inv_freq[2] = {0.78539816339f, 0};
    static const float interleaved[15] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, -2, 1, 3, 4, 5};
    static const float neox[15] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, -3, 2, 1, 4, 5};
    for (int style = 0; style < 2; style++) {
        world w;
        open_rows(&w, 3);
        w.positions[1] = 0;
        frit_node *x = given_heads(&w, (float[]){1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5}, 1, 5);
        const frit_rope rope = {.style = style ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED, .dim = 4, .magnitude = 1};
        w.graph.output = frit_rotate(&w.graph, x, w.position_node, given_vector(&w, inv_freq, 2), NULL, rope);
        expect(&w, style ? neox : interleaved, 15);
    }
}

static void rope_divides_frequencies_by_factors_and_multiplies_by_magnitude(void **state)
{
    (void)state;
    static const float inv_freq[1] = {1.57079632679f};
    world w;
    open_rows(&w, 2);
    frit_node *x = given_heads(&w, (float[]){0, 0, 1, 0}, 1, 2);
    frit_node *factors = given_vector(&w, (float[]){3}, 1);   // 90 / 3 degrees at position 1
    w.graph.output = frit_rotate(&w.graph, x, w.position_node, given_vector(&w, inv_freq, 1), factors,
                                 (frit_rope){.style = FRIT_ROPE_NEOX, .dim = 2, .magnitude = 10});
    expect(&w, (float[]){0, 0, 8.660254f, 5}, 4);
}

// Two positions, one head: softmax over scores (s, 0) is (sigmoid(s), sigmoid(-s)).
static void attention_is_softmax_over_the_past_and_itself(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        world w;
        open_rows(&w, 2);
        world_cache(&w, kind ? KV_F16 : KV_F32, 1, 2, 1);
        frit_node *q = given_heads(&w, (float[]){9, 9, 1, 2}, 1, 2);
        frit_node *k = given_heads(&w, (float[]){2, 0, 0, 0}, 1, 2), *v = given_heads(&w, (float[]){10, 20}, 1, 1);
        frit_node *written = frit_kv_write(&w.graph, k, v, 0);
        w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.5f}, 1);
        const float p = 1 / (1 + expf(-1));   // of position 0 for row 1: score 2 * 0.5
        expect(&w, (float[]){10, 10 * p + 20 * (1 - p)}, 2);
    }
}

static void attention_with_a_window_and_softcap(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 3);
    world_cache(&w, KV_F32, 1, 1, 1);
    frit_node *q = given_heads(&w, (float[]){1, 1, 1}, 1, 1), *k = given_heads(&w, (float[]){100, 2, 0}, 1, 1);
    frit_node *written = frit_kv_write(&w.graph, k, given_heads(&w, (float[]){1000, 10, 20}, 1, 1), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 1, .softcap = 4, .window = 2}, 1);
    const float p1 = 1 / (1 + expf(4 * tanhf(0.5f) - 4 * tanhf(25)));   // positions 0 (100, capped) and 1
    const float p2 = 1 / (1 + expf(-4 * tanhf(0.5f)));                  // positions 1 and 2
    expect(&w, (float[]){1000, 1000 * p1 + 10 * (1 - p1), 10 * p2 + 20 * (1 - p2)}, 3);
}

static void heads_of_a_group_share_keys_and_values(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    world_cache(&w, KV_F32, 2, 1, 1);
    frit_node *q = given_heads(&w, (float[]){1, 2, 3, 4}, 4, 1);
    frit_node *written =
        frit_kv_write(&w.graph, given_heads(&w, (float[]){1, 1}, 2, 1), given_heads(&w, (float[]){7, 8}, 2, 1), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 1}, 1);
    expect(&w, (float[]){7, 7, 8, 8}, 4);
}

static void rows_are_taken_in_the_order_asked_for(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 3);
    frit_node *x = world_given_rows(&w, (float[]){1, 2, 3, 4, 5, 6}, 2);
    w.graph.output = frit_take_rows(&w.graph, x, w.out_node);   // rows 0 and 2
    expect(&w, (float[]){1, 2, 5, 6}, 4);
}

static void fused_products_compute_the_formulas(void **state)
{
    (void)state;
    world w;
    float result[4];
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){3, 1}, 2);
    frit_node *gate = given_matrix(&w, (float[]){1, 0, 0, -1}, 2, 2),
              *up = given_matrix(&w, (float[]){2, 0, 0, 2}, 2, 2);
    frit_node *down = given_matrix(&w, (float[]){1, 1, 1, -1}, 2, 2);
    frit_node *a = frit_matmul(&w.graph, gate, x, NULL), *b = frit_matmul(&w.graph, up, x, NULL);
    frit_node *h = frit_glu(&w.graph, a, b, FRIT_ACT_RELU);                         // (18, 0)
    w.graph.output = frit_add(&w.graph, frit_matmul(&w.graph, down, h, NULL), x);   // (18, 18) + (3, 1)
    world_plan(&w, true);
    assert_int_equal(w.plan->phases.n_fusions, 3);   // embed; linear, linear, glu; linear, add
    world_run(&w, "reference", 1, result);
    assert_float_equal(result[0], 21, 1e-6f);
    assert_float_equal(result[1], 19, 1e-6f);
    world_close(&w);
}

static void fused_add_and_norm_gives_both_results(void **state)
{
    (void)state;
    world w;
    float result[4];
    open_rows(&w, 1);
    frit_node *a = world_given_rows(&w, (float[]){1, 2}, 2), *b = world_given_rows(&w, (float[]){2, -6}, 2);
    frit_node *sum = frit_add(&w.graph, a, b);   // (3, -4): mean square 12.5
    frit_node *norm = frit_rms_norm(&w.graph, sum, given_vector(&w, (float[]){1, 2}, 2), 0);
    w.graph.output = frit_mul(&w.graph, sum, norm);
    world_plan(&w, true);
    assert_int_equal(w.plan->phases.n_fusions, 4);   // two embed; add, rms_norm; mul
    world_run(&w, "reference", 2, result);
    assert_float_equal(result[0], 3 * 3 / sqrtf(12.5f), 1e-5f);
    assert_float_equal(result[1], -4 * -8 / sqrtf(12.5f), 1e-5f);
    world_close(&w);
}

static void fused_norm_and_add_compute_the_formula(void **state)
{
    (void)state;
    world w;
    float result[4];
    open_rows(&w, 1);
    frit_node *x = world_given_rows(&w, (float[]){3, -4}, 2), *r = world_given_rows(&w, (float[]){10, 20}, 2);
    frit_node *norm = frit_rms_norm(&w.graph, x, given_vector(&w, (float[]){1, 2}, 2), 0);   // mean square 12.5
    w.graph.output = frit_add(&w.graph, norm, r);
    world_plan(&w, true);
    assert_int_equal(w.plan->phases.n_fusions, 3);   // two embed; rms_norm, add
    world_run(&w, "reference", 2, result);
    assert_float_equal(result[0], 10 + 3 / sqrtf(12.5f), 1e-5f);
    assert_float_equal(result[1], 20 - 8 / sqrtf(12.5f), 1e-5f);
    world_close(&w);
}

static void the_best_experts_are_mixed_by_their_weights(void **state)
{
    (void)state;
    const frit_route options = {.gating = FRIT_GATING_SOFTMAX, .n_used = 2, .normalize = true};
    const float scores[] = {0, logf(2), logf(3)}, experts[] = {1, 0, 0, 1, 1, 1}, x[] = {10, 20};
    for (int step = 0; step < 3; step++) {
        world w;
        open_rows(&w, 1);
        frit_tensor *stack = world_tensor(&w, FRIT_DTYPE_F32, 3, 2, 2);
        memcpy(world_bytes(stack), experts, sizeof experts);
        stack->n_dims = 3;   // [3, 1, 2]
        stack->shape[1] = 1;
        stack->shape[2] = 2;
        frit_node *route = frit_route_node(&w.graph, world_given_rows(&w, scores, 3), NULL, options);
        frit_node *y = frit_experts_node(&w.graph, frit_weight_node(&w.graph, stack), world_given_rows(&w, x, 2), route,
                                         (frit_experts){.n = 1});
        w.graph.output = step == 0 ? route : step == 1 ? y : frit_mix(&w.graph, y, route, false);
        if (step == 0) expect(&w, (float[]){2, 1, 0.6f, 0.4f}, 4);
        if (step == 1) expect(&w, (float[]){30, 20}, 2);
        if (step == 2) expect(&w, (float[]){26}, 1);
    }
}

static void a_bias_chooses_experts_but_does_not_weigh_them(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 1);
    // Groups of two: the second has the best pair with the bias; then its best expert, by sigmoid(0) = 1/2.
    const frit_route options = {
        .gating = FRIT_GATING_SIGMOID, .n_used = 1, .n_groups = 2, .n_groups_used = 1, .scale = 3};
    frit_node *scores = world_given_rows(&w, (float[]){1, 1, 0, 0}, 4);
    frit_node *bias = given_vector(&w, (float[]){0, 0, 2, 1}, 4);
    w.graph.output = frit_route_node(&w.graph, scores, bias, options);
    expect(&w, (float[]){2, 1.5f}, 2);
}

static void small_ops_on_rows_follow_their_formulas(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, 4, 5, 6}, one[] = {7, 8};
    world w;
    open_rows(&w, 1);
    w.graph.output = frit_clamp(&w.graph, world_given_rows(&w, x, 6), 2, 5);
    expect(&w, (float[]){2, 2, 3, 4, 5, 5}, 6);
    open_rows(&w, 1);
    w.graph.output = frit_slice(&w.graph, given_heads(&w, x, 2, 3), 1, 2);
    expect(&w, (float[]){2, 3, 5, 6}, 4);
    open_rows(&w, 1);
    w.graph.output = frit_concat(&w.graph, given_heads(&w, x, 2, 3), given_heads(&w, one, 1, 2));
    expect(&w, (float[]){1, 2, 3, 7, 8, 4, 5, 6, 7, 8}, 10);
    open_rows(&w, 1);
    w.graph.output = frit_scale_rows(&w.graph, given_heads(&w, x, 2, 3), given_heads(&w, one, 2, 1));
    expect(&w, (float[]){7, 14, 21, 32, 40, 48}, 6);
}

static void a_convolution_looks_back_over_the_rows_of_its_sequence(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 3);
    world_states(&w, 4);
    frit_node *x = world_given_rows(&w, (float[]){1, 10, 2, 20, 3, 30}, 2);
    frit_node *taps = given_vector(&w, (float[]){100, 10, 1, 0, 0, 2}, 6), *b = given_vector(&w, (float[]){0, 5}, 2);
    w.graph.output = frit_conv(&w.graph, x, taps, b, (frit_state){0});
    expect(&w, (float[]){1, 25, 12, 45, 123, 65}, 6);
}

static void a_convolution_goes_on_where_its_session_was(void **state)
{
    (void)state;
    world w;
    world_open(&w, 2, (int[][2]){{7, 1}, {0, 1}}, 1);
    world_states(&w, 2);
    w.past_states[0] = 3, w.past_states[1] = 4;
    frit_node *x = world_given_rows(&w, (float[]){5, 5}, 1);
    w.graph.output = frit_conv(&w.graph, x, given_vector(&w, (float[]){100, 10, 1}, 3), NULL, (frit_state){0});
    expect(&w, (float[]){345, 5}, 2);
}

// One head of one value, two elements of state: half of the old state plus the new term.
static void a_scan_decays_and_adds(void **state)
{
    (void)state;
    world w;
    open_rows(&w, 2);
    world_states(&w, 2);
    frit_node *x = given_heads(&w, (float[]){1, 3}, 1, 1), *dt = world_given_rows(&w, (float[]){1, 2}, 1);
    frit_node *a = given_vector(&w, (float[]){-0.69314718f, 0}, 2);   // decays of 1/2 and 1 for each unit of time
    frit_node *b = given_heads(&w, (float[]){1, 10, 1, 10}, 1, 2), *c = given_heads(&w, (float[]){1, 0, 1, 1}, 1, 2);
    w.graph.output = frit_scan(&w.graph, x, dt, a, b, c, (frit_state){0});
    expect(&w, (float[]){1, 0.25f + 6 + 10 + 60}, 2);
}

// The value of an existing key is replaced, not added to.
static void a_delta_rule_writes_what_is_new(void **state)
{
    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        world w;
        open_rows(&w, 2);
        world_states(&w, 2);
        frit_node *v = given_heads(&w, (float[]){8, 6}, 1, 1), *k = given_heads(&w, (float[]){1, 0, 1, 0}, 1, 2);
        frit_node *g = given_vector(&w, (float[]){-0.69314718f}, 1),
                  *beta = world_given_rows(&w, (float[]){1, 0.5f}, 1);
        w.graph.output = frit_delta(&w.graph, v, k, k, g, rule ? beta : NULL, (frit_state){0});
        expect(&w, (float[]){8, rule ? 4 + 1 : 4 + 6}, 2);
    }
}

static void a_shift_gives_the_row_before(void **state)
{
    (void)state;
    world w;
    world_open(&w, 2, (int[][2]){{7, 2}, {0, 2}}, 1);
    world_states(&w, 2);
    w.past_states[0] = 3, w.past_states[1] = 4;
    w.graph.output =
        frit_shift(&w.graph, world_given_rows(&w, (float[]){5, 6, 7, 8, 9, 10, 11, 12}, 2), (frit_state){0});
    expect(&w, (float[]){3, 4, 5, 6, 0, 0, 9, 10}, 8);
}

// Weights are 2, 4 and 2 for the first row and half as large for later rows; each row halves older terms.
static void wkv_is_a_mean_by_weight_and_age(void **state)
{
    (void)state;
    const float one = 0.69314718f;               // the logarithm of 2
    for (int shift = -1; shift < 2; shift++) {   // exponents beyond the range of float
        const float far = 300 * (float)shift;
        world w;
        open_rows(&w, 3);
        world_states(&w, 3);
        frit_node *k = world_given_rows(&w, (float[]){far, far + one, far}, 1);
        frit_node *v = world_given_rows(&w, (float[]){3, 6, 9}, 1);
        frit_node *decay = given_vector(&w, &(float){-one}, 1), *first = given_vector(&w, &one, 1);
        w.graph.output = frit_wkv(&w.graph, k, v, decay, first, (frit_state){0});
        const float third = (0.5f * 1 * 3 + 2 * 6 + 2 * 9) / (0.5f * 1 + 2 + 2);
        expect(&w, (float[]){3, (1 * 3 + 4 * 6) / 5.0f, third}, 3);
    }
}

// A head of one value and two keys. Decays are 1/2 and 1: the state is [3, 0], then [1.5, 12] plus what is erased.
static void rwkv_decays_erases_and_adds(void **state)
{
    (void)state;
    const float half = -0.69314718f;
    for (int kind = 0; kind < 3; kind++) {   // plain, with a bonus, with erasing
        world w;
        open_rows(&w, 2);
        world_states(&w, 2);
        frit_rwkv x = {.v = given_heads(&w, (float[]){3, 6}, 1, 1), .k = given_heads(&w, (float[]){1, 0, 0, 2}, 1, 2)};
        x.r = given_heads(&w, (float[]){1, 1, 1, 2}, 1, 2);
        x.w = given_heads(&w, (float[]){half, 0, half, 0}, 1, 2);
        if (kind == 1) x.u = given_vector(&w, (float[]){5, 7}, 2);
        if (kind == 2) x.a = given_heads(&w, (float[]){0, 0, 1, 0}, 1, 2);
        if (kind == 2) x.b = given_heads(&w, (float[]){0, 0, 0, -1}, 1, 2);
        w.graph.output = frit_rwkv_node(&w.graph, x, (frit_state){0});
        const float second[] = {1.5f + 24, 3 + 2 * 7 * 2 * 6, 1.5f + 2 * (12 - 3)};
        expect(&w, (float[]){kind == 1 ? 15 : 3, second[kind]}, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_multiplies_rows_by_rows_and_adds_the_bias),
        cmocka_unit_test(rms_norm_divides_by_the_root_of_the_mean_square),
        cmocka_unit_test(norms_add_eps_inside_the_root),
        cmocka_unit_test(layer_norm_centres_and_scales),
        cmocka_unit_test(one_row_is_added_and_multiplied_to_all),
        cmocka_unit_test(scale_and_softcap_follow_their_formulas),
        cmocka_unit_test(activations_have_their_known_values),
        cmocka_unit_test(softmax_gives_shares_of_exponentials),
        cmocka_unit_test(gaussian_topk_keeps_values_some_deviations_above_the_mean),
        cmocka_unit_test(rms_match_gives_a_row_the_rms_of_another),
        cmocka_unit_test(mix_streams_adds_vectors_of_a_row_with_its_own_weights),
        cmocka_unit_test(xielu_is_a_parabola_above_zero_and_an_exponential_below),
        cmocka_unit_test(attend_relative_adds_terms_by_distance),
        cmocka_unit_test(attend_uncached_sees_its_segment),
        cmocka_unit_test(rope_angles_rotates_by_given_cosines_and_sines),
        cmocka_unit_test(embed_mix_adds_rows_of_a_table),
        cmocka_unit_test(place_rows_replaces_marked_rows),
        cmocka_unit_test(take_blocks_joins_consecutive_rows),
        cmocka_unit_test(far_distances_share_logarithmic_buckets),
        cmocka_unit_test(glu_gates_the_second_source_by_the_first),
        cmocka_unit_test(rope_rotates_by_known_angles_in_both_styles),
        cmocka_unit_test(rope_divides_frequencies_by_factors_and_multiplies_by_magnitude),
        cmocka_unit_test(attention_is_softmax_over_the_past_and_itself),
        cmocka_unit_test(attention_with_a_window_and_softcap),
        cmocka_unit_test(heads_of_a_group_share_keys_and_values),
        cmocka_unit_test(rows_are_taken_in_the_order_asked_for),
        cmocka_unit_test(fused_products_compute_the_formulas),
        cmocka_unit_test(fused_add_and_norm_gives_both_results),
        cmocka_unit_test(fused_norm_and_add_compute_the_formula),
        cmocka_unit_test(the_best_experts_are_mixed_by_their_weights),
        cmocka_unit_test(a_bias_chooses_experts_but_does_not_weigh_them),
        cmocka_unit_test(small_ops_on_rows_follow_their_formulas),
        cmocka_unit_test(a_convolution_looks_back_over_the_rows_of_its_sequence),
        cmocka_unit_test(a_convolution_goes_on_where_its_session_was),
        cmocka_unit_test(a_scan_decays_and_adds),
        cmocka_unit_test(a_delta_rule_writes_what_is_new),
        cmocka_unit_test(a_shift_gives_the_row_before),
        cmocka_unit_test(wkv_is_a_mean_by_weight_and_age),
        cmocka_unit_test(rwkv_decays_erases_and_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
