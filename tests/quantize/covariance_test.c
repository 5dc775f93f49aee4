// SPDX-License-Identifier: MIT
// Covariance: sums of x x^T over the input rows of matrices.
#include "quantize/covariance.h"
#include "convert/importance.h"
#include "support/support.h"

#include <math.h>

enum { WIDTH = 300, N_ROWS = 700, N_EXPERTS = 3 };

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state / 2147483648.0f;
}

static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) x[i] = noise(&seed) + (i > 3 ? 0.5f * x[i - 3] : 0);
}

static bool in_tiles, gathers;   // tiles: as on processors that have tiles of bfloat16

static frit_covariance *sum_of(const float *x, const int64_t *rows, const int32_t *each, int64_t n, int n_threads,
                               frit_covariance *against)
{
    frit_covariance *covariance;
    frit_pool *pool;
    int64_t index;
    assert_ok(frit_covariance_new(&covariance, NULL));
    if (in_tiles) {
        frit_dense_use_tiles(&covariance->dense);
        assert_non_null(covariance->dense.run_tiles);
        covariance->tiles_from = 0;
    }
    covariance->gathers = gathers;
    if (against) frit_covariance_set_against(covariance, against);
    assert_ok(frit_pool_new(&pool, n_threads));
    assert_ok(frit_covariance_enter(covariance, "a", WIDTH, each ? N_EXPERTS : 1, -1, &index));
    assert_int_equal(index, 0);
    if (against) {
        int64_t other;
        against->keeps_rows = true;
        assert_ok(frit_covariance_enter(against, "a", WIDTH, 1, -1, &other));
        assert_ok(frit_covariance_add(against, other, &(frit_input_rows){.x = x + WIDTH, .n = n}, pool));
    }
    // In two steps.
    const int64_t n_first = n / 3;
    frit_input_rows part = {.x = x, .rows = rows, .each = each, .n = n_first};
    assert_ok(frit_covariance_add(covariance, 0, &part, pool));
    if (each)
        part = (frit_input_rows){.x = x, .rows = rows + n_first, .each = each + n_first, .n = n - n_first};
    else
        part = (frit_input_rows){.x = x + n_first * WIDTH, .n = n - n_first};
    assert_ok(frit_covariance_add(covariance, 0, &part, pool));
    assert_ok(frit_covariance_finish(covariance, pool));
    frit_pool_free(pool);
    return covariance;
}

static double plain(const float *a, const float *b, int64_t n, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t r = 0; r < n; r++) sum += (double)a[r * WIDTH + i] * (double)b[r * WIDTH + j];
    return sum;
}

static void assert_near(double got, double want, double scale)
{
    if (!(fabs(got - want) <= (in_tiles ? 4e-4 : 2e-5) * scale)) fail_msg("%g, expected %g", got, want);
}

static void check_sums(void)
{
    static float x[(N_ROWS + 1) * WIDTH];
    fill(x, FRIT_COUNT(x), 1);
    frit_covariance *other;
    assert_ok(frit_covariance_new(&other, NULL));
    frit_covariance *covariance = sum_of(x, NULL, NULL, N_ROWS, 2, other);
    const frit_covariance_entry *entry = frit_covariance_find(covariance, "a");
    assert_int_equal(entry->counts[0], N_ROWS);
    for (int64_t i = 0; i < WIDTH; i++)
        for (int64_t j = 0; j < WIDTH; j++) {
            assert_near((double)entry->sums[i * WIDTH + j], plain(x, x, N_ROWS, i, j), N_ROWS);
            assert_true(entry->sums[i * WIDTH + j] == entry->sums[j * WIDTH + i]);
            const double want = plain(x, x + WIDTH, N_ROWS, i, j) - plain(x, x, N_ROWS, i, j);
            assert_near((double)entry->cross[i * WIDTH + j], want, N_ROWS);
        }
    frit_covariance_free(covariance);
    frit_covariance_free(other);
}

static void sums_are_the_plain_product(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        in_tiles = i % 2 == 1;
        gathers = i > 1;
        check_sums();
    }
    in_tiles = gathers = false;
}

// More rows than are added at once.
static void many_rows_are_added_up_as_few_are(void **state)
{
    (void)state;
    enum { MANY = 4700 };
    float *x = malloc((size_t)MANY * WIDTH * sizeof *x);
    assert_non_null(x);
    fill(x, (size_t)MANY * WIDTH, 6);
    in_tiles = true;
    frit_covariance *few = sum_of(x, NULL, NULL, MANY, 2, NULL);
    gathers = true;
    frit_covariance *many = sum_of(x, NULL, NULL, MANY, 3, NULL);
    in_tiles = gathers = false;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        assert_near((double)many->entries[0].sums[i], (double)few->entries[0].sums[i], 0.05 * MANY);
    frit_covariance_free(few);
    frit_covariance_free(many);
    free(x);
}

static void check_threads(void)
{
    static float x[N_ROWS * WIDTH];
    fill(x, FRIT_COUNT(x), 2);
    frit_covariance *one = sum_of(x, NULL, NULL, N_ROWS, 1, NULL);
    const int counts[] = {2, 16};
    for (size_t i = 0; i < FRIT_COUNT(counts); i++) {
        frit_covariance *many = sum_of(x, NULL, NULL, N_ROWS, counts[i], NULL);
        assert_memory_equal(one->entries[0].sums, many->entries[0].sums, WIDTH * WIDTH * sizeof(float));
        frit_covariance_free(many);
    }
    frit_covariance_free(one);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        in_tiles = i % 2 == 1;
        gathers = i > 1;
        check_threads();
    }
    in_tiles = gathers = false;
}

static void experts_have_the_rows_that_reach_them(void **state)
{
    (void)state;
    static float x[N_ROWS * WIDTH];
    static int64_t rows[N_ROWS];
    static int32_t each[N_ROWS];
    uint32_t seed = 3;
    double want[N_EXPERTS] = {0};
    fill(x, FRIT_COUNT(x), 3);
    for (int i = 0; i < N_ROWS; i++) {
        rows[i] = (i * 7) % N_ROWS;
        each[i] = (int32_t)((noise(&seed) + 1) * 1.49f);
        want[each[i]] += (double)x[rows[i] * WIDTH + 5] * (double)x[rows[i] * WIDTH + 140];
    }
    gathers = true;   // experts one after another
    frit_covariance *covariance = sum_of(x, rows, each, N_ROWS, 2, NULL);
    gathers = false;
    const frit_covariance_entry *entry = &covariance->entries[0];
    int64_t n = 0;
    for (int e = 0; e < N_EXPERTS; e++) {
        assert_near((double)entry->sums[(e * WIDTH + 140) * WIDTH + 5], want[e], N_ROWS);
        n += entry->counts[e];
    }
    assert_int_equal(n, N_ROWS);
    frit_covariance_free(covariance);
}

// The error of a change is the sum of squares of the changes of results.
static void error_is_what_results_change_by(void **state)
{
    (void)state;
    static float x[N_ROWS * WIDTH], errors[70 * WIDTH];
    double want = 0;
    frit_covariance_info info;
    fill(x, FRIT_COUNT(x), 4);
    fill(errors, FRIT_COUNT(errors), 5);
    frit_covariance *covariance = sum_of(x, NULL, NULL, N_ROWS, 2, NULL);
    for (int r = 0; r < N_ROWS; r++)
        for (int i = 0; i < 70; i++) {
            double y = 0;
            for (int c = 0; c < WIDTH; c++) y += (double)errors[i * WIDTH + c] * (double)x[r * WIDTH + c];
            want += y * y;
        }
    assert_false(frit_covariance_get_info(covariance, 1, &info));
    assert_true(frit_covariance_get_info(covariance, 0, &info));
    assert_near(frit_covariance_error(covariance, &info, 0, errors, 70), want, want);
    frit_covariance_free(covariance);
}

// ------------------------------------------------------------------------------------- engines

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static bool is_wanted(void *ctx, const char *name)
{
    return strstr(name, ctx) != NULL;
}

// Runs 40 tokens; returns the first step's status.
static frit_status run(const char *name, frit_importance *importance, frit_covariance *covariance)
{
    frit_token tokens[40];
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    const frit_engine_options options = {.n_ctx = 64, .n_threads = 2, .device = "cpu"};
    for (int i = 0; i < 40; i++) tokens[i] = (i * 7 + 3) % 60;
    assert_ok(frit_model_open(&model, shared_path("goldens/arch/%s.gguf", name), NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_engine_observe(engine, importance));
    assert_ok(frit_engine_observe_covariance(engine, covariance));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, 40, &push));
    const frit_status status = frit_engine_step(engine, &n_rows);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return status;
}

// The diagonal equals the sums of importance files.
static void diagonals_are_the_importance(void **state)
{
    (void)state;
    const char *const models[] = {"llama-dense", "qwen3moe-moe", "deepseek2-moe", "falcon-h1-dense"};
    shared_path("goldens/arch");   // skips the test while nothing is allocated
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        frit_importance *importance;
        frit_covariance *covariance;
        frit_covariance_info info;
        size_t n = 0, n_shared = 0;
        assert_ok(frit_importance_new(&importance));
        assert_ok(frit_covariance_new(&covariance, NULL));
        assert_ok(run(models[m], importance, covariance));
        for (; frit_covariance_get_info(covariance, n, &info); n++) {
            const frit_importance_entry *entry = frit_importance_find(importance, info.name);
            const int64_t width = info.width;
            assert_int_equal(entry->n_values, width * info.n_each);
            n_shared += info.source != n;
            for (int64_t i = 0; i < width * info.n_each; i++) {
                const int64_t each = (int64_t)entry->n_counts > 1 ? i / width : 0;
                const double want = entry->sums[i] / (double)(entry->counts[each] + (entry->counts[each] == 0));
                const int64_t count = info.counts[i / width];
                const double got = (double)info.sums[i * width + i % width] / (double)(count + (count == 0));
                if (!(fabs(got - want) <= 1e-5 * want + 1e-9))
                    fail_msg("%s %s (as %s), column %lld: %g, expected %g", models[m], info.name,
                             covariance->entries[info.source].name, (long long)i, got, want);
            }
        }
        assert_int_equal(n, importance->n);
        assert_true(n_shared > 0);
        frit_importance_free(importance);
        frit_covariance_free(covariance);
    }
}

static void matrices_are_chosen_and_memory_is_limited(void **state)
{
    (void)state;
    shared_path("goldens/arch");   // skips the test while nothing is allocated
    frit_covariance *covariance;
    frit_covariance_info info;
    char part[] = "blk.0.attn_";
    frit_covariance_options options = {.wants = is_wanted, .wants_ctx = part};
    assert_ok(frit_covariance_new(&covariance, &options));
    assert_ok(run("llama-dense", NULL, covariance));
    size_t n = 0;
    while (frit_covariance_get_info(covariance, n, &info)) n++;
    assert_int_equal(n, 4);
    assert_true(covariance->n_bytes > 0);
    options.max_bytes = covariance->n_bytes - 1;
    frit_covariance_free(covariance);
    assert_ok(frit_covariance_new(&covariance, &options));
    assert_int_equal(run("llama-dense", NULL, covariance), FRIT_E_MEMORY);
    assert_non_null(strstr(frit_error(), "at most"));
    frit_covariance_free(covariance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_plain_product),
        cmocka_unit_test(many_rows_are_added_up_as_few_are),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(experts_have_the_rows_that_reach_them),
        cmocka_unit_test(error_is_what_results_change_by),
        cmocka_unit_test(diagonals_are_the_importance),
        cmocka_unit_test(matrices_are_chosen_and_memory_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
