// SPDX-License-Identifier: MIT
// Rounding with the covariance of inputs: factors, and the gain.
#include "quantize/refine_rows.h"
#include "base/rng.h"
#include "support/support.h"

#include <math.h>

enum { WIDTH = 512, N_TOKENS = 1500, N_ROWS = 70 };

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state / 2147483648.0f;
}

// Correlated columns, as inputs of products have.
static void make_inputs(float *x, uint32_t seed)
{
    for (int t = 0; t < N_TOKENS; t++) {
        float common[8];
        for (int k = 0; k < 8; k++) common[k] = noise(&seed);
        for (int c = 0; c < WIDTH; c++) {
            float sum = 0.4f * noise(&seed);
            for (int k = 0; k < 8; k++) sum += common[k] * sinf((float)((k + 1) * (c + 3)));
            x[t * WIDTH + c] = sum;
        }
    }
}

static void sum_products(const float *x, const float *y, float *out)
{
    double *sums = calloc(WIDTH * WIDTH, sizeof *sums);
    for (int t = 0; t < N_TOKENS; t++)
        for (int i = 0; i < WIDTH; i++)
            for (int j = 0; j < WIDTH; j++) sums[i * WIDTH + j] += (double)x[t * WIDTH + i] * (double)y[t * WIDTH + j];
    for (int i = 0; i < WIDTH * WIDTH; i++) out[i] = (float)sums[i];
    free(sums);
}

static float x[N_TOKENS * WIDTH], z[N_TOKENS * WIDTH], h[WIDTH * WIDTH], cross[WIDTH * WIDTH], weights[N_ROWS * WIDTH];

static void make_all(void)
{
    uint32_t seed = 9;
    make_inputs(x, 1);
    for (int i = 0; i < N_TOKENS * WIDTH; i++)
        z[i] = x[i] + 0.2f * noise(&seed) + 0.1f * x[(i * 7) % (N_TOKENS * WIDTH)];
    for (int i = 0; i < N_ROWS * WIDTH; i++) weights[i] = noise(&seed) * noise(&seed) * 0.1f;
    sum_products(x, x, h);
    for (int i = 0; i < N_TOKENS * WIDTH; i++) z[i] -= x[i];   // their differences
    sum_products(x, z, cross);
    for (int i = 0; i < N_TOKENS * WIDTH; i++) z[i] += x[i];
}

static bool in_tiles;   // as on processors that have tiles of bfloat16

static int n_dropped;

static void drop(void *ctx, const float *matrix)
{
    assert_true(matrix == ctx || matrix == cross);
    n_dropped++;
}

static void init(frit_refine_input *input)
{
    frit_dense_init(&input->dense);
    if (!in_tiles) return;
    frit_dense_use_tiles(&input->dense);
    input->tiles_from = 32;
    input->drop = drop;
    input->drop_ctx = (void *)(uintptr_t)input->held;
}

static frit_refine_input input_of(const float *held, frit_pool *pool)
{
    frit_refine_input input = {.width = WIDTH, .sums = h, .cross = in_tiles ? cross : NULL, .held = held, .rounds = 3};
    init(&input);
    n_dropped = 0;
    assert_ok(frit_refine_factor(&input, pool));
    assert_int_equal(n_dropped, in_tiles ? 1 + (held != NULL) : 0);
    assert_true(!in_tiles || (!input.held && !input.cross));
    return input;
}

static void factors_give_the_covariance(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_ok(frit_pool_new(&pool, 2));
    frit_refine_input in = input_of(NULL, pool);
    for (int i = 0; i < WIDTH; i += 7)
        for (int j = i; j < WIDTH; j += 5) {
            double sum = 0;
            for (int k = j; k < WIDTH; k++) {
                const double a = k == i ? 1 : (double)in.factor[i * WIDTH + k];
                const double b = k == j ? 1 : (double)in.factor[j * WIDTH + k];
                sum += a * b * (double)in.diagonal[k];
            }
            const double want = (double)h[i * WIDTH + j] + (i == j ? (double)in.damping : 0);
            if (!(fabs(sum - want) <= 2e-4 * (double)h[0])) fail_msg("%d, %d: %g, expected %g", i, j, sum, want);
            if (i != j) assert_true(in.factor[i * WIDTH + j] == in.factor[j * WIDTH + i]);
        }
    frit_refine_input_free(&in);
    frit_pool_free(pool);
}

// Returns |W z - A x|^2 over the tokens, with z a mixture of inputs.
static double plain_error(const float *a, const float *mixed)
{
    double sum = 0;
    for (int t = 0; t < N_TOKENS; t += 3)
        for (int r = 0; r < N_ROWS; r++) {
            double y = 0;
            for (int c = 0; c < WIDTH; c++)
                y += (double)weights[r * WIDTH + c] * (double)mixed[t * WIDTH + c] -
                     (double)a[r * WIDTH + c] * (double)x[t * WIDTH + c];
            sum += y * y;
        }
    return 3 * sum;
}

static const frit_dtype types[] = {FRIT_DTYPE_Q2_K,   FRIT_DTYPE_Q3_K,   FRIT_DTYPE_Q4_K,    FRIT_DTYPE_Q5_K,
                                   FRIT_DTYPE_Q6_K,   FRIT_DTYPE_Q4_0,   FRIT_DTYPE_Q4_1,    FRIT_DTYPE_Q5_0,
                                   FRIT_DTYPE_Q5_1,   FRIT_DTYPE_IQ4_NL, FRIT_DTYPE_IQ4_XS,  FRIT_DTYPE_IQ2_XXS,
                                   FRIT_DTYPE_IQ2_XS, FRIT_DTYPE_IQ2_S,  FRIT_DTYPE_IQ3_XXS, FRIT_DTYPE_IQ3_S};

static void encode(frit_dtype type, uint8_t *blocks)
{
    static float means[WIDTH];
    for (int c = 0; c < WIDTH; c++) means[c] = h[c * WIDTH + c] / N_TOKENS;
    for (int r = 0; r < N_ROWS; r++)
        frit_dtype_get(type)->encode(weights + r * WIDTH, blocks + r * frit_dtype_row_bytes(type, WIDTH), WIDTH, means);
}

static double error_of(frit_dtype type, const uint8_t *blocks, const float *mixed)
{
    static float values[N_ROWS * WIDTH];
    frit_dtype_get(type)->decode(blocks, values, N_ROWS * WIDTH);
    return plain_error(values, mixed);
}

static void errors_of_results_fall_in_every_type(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_ok(frit_pool_new(&pool, 2));
    frit_refine_input in = input_of(h, pool);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        static uint8_t start[N_ROWS * WIDTH * 2], blocks[N_ROWS * WIDTH * 2];
        encode(types[i], start);
        frit_refine_rows rows = {.type = types[i], .weights = weights, .initial = start, .blocks = blocks, .n = N_ROWS};
        assert_ok(frit_refine_run(&in, &rows, pool));
        const double before = error_of(types[i], start, x), after = error_of(types[i], blocks, x);
        print_message("%s: %g -> %g (x %.2f), change %g\n", frit_dtype_get(types[i])->name, before, after,
                      after / before, rows.change);
        assert_true(after < 0.055 * before);
        if (!(fabs(rows.change - (after - before)) <= 0.15 * before)) fail_msg("change is wrong");
    }
    frit_refine_input_free(&in);
    frit_pool_free(pool);
}

// Returns the best step of d of the super-block at `first`.
static double missing_share(const frit_refine_input *in, const float *values, const float *row, int first)
{
    double slope = 0, curve = 0;
    for (int i = first; i < first + 256; i++) {
        double gradient = (double)in->damping * (values[i] - row[i]), sum = (double)in->damping * values[i];
        for (int j = 0; j < WIDTH; j++) gradient += (double)h[i * WIDTH + j] * ((double)values[j] - row[j]);
        for (int j = first; j < first + 256; j++) sum += (double)h[i * WIDTH + j] * values[j];
        slope += values[i] * gradient;
        curve += values[i] * sum;
    }
    return curve > 0 ? -slope / curve : 0;
}

// A number in f16 is exact to one part in 2,048.
static void factors_of_super_blocks_are_the_best(void **state)
{
    (void)state;
    frit_pool *pool;
    static uint8_t start[N_ROWS * WIDTH], blocks[N_ROWS * WIDTH];
    static float before[N_ROWS * WIDTH], after[N_ROWS * WIDTH];
    double was = 0, is = 0;
    assert_ok(frit_pool_new(&pool, 2));
    frit_refine_input in = input_of(h, pool);
    in.rounds = 8;
    encode(FRIT_DTYPE_Q3_K, start);
    frit_refine_rows rows = {.type = FRIT_DTYPE_Q3_K, .weights = weights, .initial = start, .blocks = blocks, .n = 8};
    assert_ok(frit_refine_run(&in, &rows, pool));
    frit_dtype_get(FRIT_DTYPE_Q3_K)->decode(start, before, 8 * WIDTH);
    frit_dtype_get(FRIT_DTYPE_Q3_K)->decode(blocks, after, 8 * WIDTH);
    for (int r = 0; r < 8; r++)
        for (int first = 0; first < WIDTH; first += 256) {
            was += fabs(missing_share(&in, before + r * WIDTH, weights + r * WIDTH, first)) / 16;
            is += fabs(missing_share(&in, after + r * WIDTH, weights + r * WIDTH, first)) / 16;
        }
    print_message("d misses by %g of it, then by %g\n", was, is);
    assert_true(is < 0.0005);
    frit_refine_input_free(&in);
    frit_pool_free(pool);
}

// Rows aim at the results of the model's own inputs z.
static void errors_of_inputs_are_taken_back(void **state)
{
    (void)state;
    frit_pool *pool;
    assert_ok(frit_pool_new(&pool, 2));
    frit_refine_input in = input_of(h, pool);
    static uint8_t start[N_ROWS * WIDTH], blocks[N_ROWS * WIDTH], plain[N_ROWS * WIDTH];
    encode(FRIT_DTYPE_Q4_K, start);
    frit_refine_rows rows = {
        .type = FRIT_DTYPE_Q4_K, .weights = weights, .initial = start, .blocks = plain, .n = N_ROWS};
    assert_ok(frit_refine_run(&in, &rows, pool));
    in.cross = in.held_cross = cross;
    in.alpha = 1;
    rows.blocks = blocks;
    assert_ok(frit_refine_run(&in, &rows, pool));
    const double without = error_of(FRIT_DTYPE_Q4_K, plain, z), with = error_of(FRIT_DTYPE_Q4_K, blocks, z);
    print_message("without %g, with %g\n", without, with);
    assert_true(with < 0.9 * without);
    assert_true(rows.change < 0);
    frit_refine_input_free(&in);
    frit_pool_free(pool);
}

static void threads_change_no_byte(void **state)
{
    (void)state;
    static uint8_t start[N_ROWS * WIDTH], blocks[3][N_ROWS * WIDTH];
    const int counts[] = {1, 2, 16};
    encode(FRIT_DTYPE_Q3_K, start);
    for (int i = 0; i < 3; i++) {
        frit_pool *pool;
        assert_ok(frit_pool_new(&pool, counts[i]));
        frit_refine_input in = input_of(NULL, pool);
        frit_refine_rows rows = {
            .type = FRIT_DTYPE_Q3_K, .weights = weights, .initial = start, .blocks = blocks[i], .n = N_ROWS};
        assert_ok(frit_refine_run(&in, &rows, pool));
        assert_memory_equal(blocks[0], blocks[i], frit_dtype_row_bytes(FRIT_DTYPE_Q3_K, WIDTH) * N_ROWS);
        frit_refine_input_free(&in);
        frit_pool_free(pool);
    }
}

// Errors fall, and the number of threads does not change results.
static void shapes_drawn_at_random_are_refined(void **state)
{
    (void)state;
    frit_pool *pools[2];
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (int i = 0; i < 2; i++) assert_ok(frit_pool_new(&pools[i], i + 1));
    for (int i = 0; i < 3 * (int)FRIT_COUNT(types); i++) {
        static uint8_t start[N_ROWS * WIDTH], blocks[2][N_ROWS * WIDTH];
        static float sums[WIDTH * WIDTH], part[N_ROWS * WIDTH];
        const frit_dtype type = types[i % (int)FRIT_COUNT(types)];
        const int block = frit_dtype_get(type)->block_elems;
        const int width = block * (1 + (int)(frit_rng_next(&rng) % (uint64_t)(WIDTH / block)));
        const int n = 1 + (int)(frit_rng_next(&rng) % N_ROWS), first = (int)(frit_rng_next(&rng) % 64);
        for (int r = 0; r < width; r++) memcpy(sums + r * width, h + r * WIDTH, (size_t)width * sizeof *sums);
        for (int k = 0; k < n * width; k++) part[k] = weights[(k + first) % (N_ROWS * WIDTH)];
        const size_t n_bytes = (size_t)n * frit_dtype_row_bytes(type, width);
        frit_dtype_get(type)->encode(part, start, (int64_t)n * width, NULL);
        for (int k = 0; k < 2; k++) {
            frit_refine_input in = {.width = width, .sums = sums, .held = sums, .rounds = 3};
            init(&in);
            assert_ok(frit_refine_factor(&in, pools[k]));
            frit_refine_rows rows = {.type = type, .weights = part, .initial = start, .blocks = blocks[k], .n = n};
            assert_ok(frit_refine_run(&in, &rows, pools[k]));
            if (!(rows.change < 0)) fail_msg("%s, %d x %d: %g", frit_dtype_get(type)->name, n, width, rows.change);
            frit_refine_input_free(&in);
        }
        assert_memory_equal(blocks[0], blocks[1], n_bytes);
    }
    for (int i = 0; i < 2; i++) frit_pool_free(pools[i]);
}

static void inputs_that_are_zero_are_refused(void **state)
{
    (void)state;
    frit_pool *pool;
    static const float zeros[WIDTH * WIDTH];
    frit_refine_input in = {.width = WIDTH, .sums = zeros};
    assert_ok(frit_pool_new(&pool, 2));
    assert_int_equal(frit_refine_factor(&in, pool), FRIT_E_INVALID);
    frit_refine_input_free(&in);
    frit_pool_free(pool);
}

static int use_tiles(void **state)
{
    (void)state;
    in_tiles = true;
    return 0;
}

static int use_none(void **state)
{
    (void)state;
    in_tiles = false;
    return 0;
}

#define IN_TILES(test) cmocka_unit_test_setup_teardown(test, use_tiles, use_none)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_give_the_covariance),
        cmocka_unit_test(errors_of_results_fall_in_every_type),
        cmocka_unit_test(errors_of_inputs_are_taken_back),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(inputs_that_are_zero_are_refused),
        cmocka_unit_test(factors_of_super_blocks_are_the_best),
        cmocka_unit_test(shapes_drawn_at_random_are_refined),
        IN_TILES(errors_of_results_fall_in_every_type),
        IN_TILES(errors_of_inputs_are_taken_back),
        IN_TILES(threads_change_no_byte),
        IN_TILES(shapes_drawn_at_random_are_refined),
    };
    make_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
