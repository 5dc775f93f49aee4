// SPDX-License-Identifier: MIT
// Rows that are computed when they are read: every recipe, alone and nested, gives in any piece the rows that are
// computed here from the whole.
#include "format/rows.h"
#include "support/support.h"

enum { N_EXPERTS = 3, HEIGHT = 8, WIDTH = 64, N_ROWS = N_EXPERTS * HEIGHT };

static float numbers[N_ROWS * WIDTH];

static int set_up(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 42);
    random_normal(&rng, numbers, FRIT_COUNT(numbers), 1);
    return 0;
}

static frit_tensor tensor_of(const float *data, int n_dims, int64_t a, int64_t b, int64_t c)
{
    return (frit_tensor){.name = "t",
                         .dtype = FRIT_DTYPE_F32,
                         .n_dims = n_dims,
                         .shape = {a, b, c, 1},
                         .data = data,
                         .n_bytes = (uint64_t)(a * b * c) * sizeof *data};
}

static frit_tensor stack_of(frit_arena *arena)
{
    frit_tensor all = {.name = "all"};
    for (int64_t e = 0; e < N_EXPERTS; e++) {
        const frit_tensor one = tensor_of(numbers + e * HEIGHT * WIDTH, 2, HEIGHT, WIDTH, 1);
        if (e == 0) assert_ok(frit_stack_new(arena, &all, &one, N_EXPERTS));
        assert_int_equal(frit_stack_is_whole(&all), false);
        assert_ok(frit_stack_set(&all, N_EXPERTS - 1 - e, &one));   // in any order
    }
    assert_true(frit_stack_is_whole(&all));
    return all;
}

// The contents of the stack: experts are in reverse order.
static const float *stacked_row(int64_t i)
{
    return numbers + ((N_EXPERTS - 1 - i / HEIGHT) * HEIGHT + i % HEIGHT) * WIDTH;
}

// Checks every piece of the tensor; `want` has all rows in the tensor's number format.
static void check_rows(const frit_tensor *tensor, const void *want)
{
    const int64_t n_rows = frit_tensor_n_rows(tensor);
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(tensor);
    assert_int_equal(tensor->n_bytes, (uint64_t)n_rows * row_bytes);
    uint8_t *scratch = malloc(frit_tensor_scratch_bytes(tensor) + 1), *rows = malloc((size_t)n_rows * row_bytes);
    for (int64_t begin = 0; begin < n_rows; begin++)
        for (int64_t n = 1; n <= n_rows - begin; n++) {
            memset(rows, 0xee, (size_t)n_rows * row_bytes);
            frit_tensor_read(tensor, begin, n, rows, scratch);
            assert_memory_equal(rows, (const uint8_t *)want + (size_t)begin * row_bytes, (size_t)n * row_bytes);
        }
    free(rows);
    free(scratch);
}

static void stacks_are_their_parts(void **state)
{
    (void)state;
    frit_arena arena = {0};
    float want[N_ROWS][WIDTH];
    const frit_tensor all = stack_of(&arena);
    assert_int_equal(all.n_dims, 3);
    for (int64_t i = 0; i < N_ROWS; i++) memcpy(want[i], stacked_row(i), sizeof want[i]);
    check_rows(&all, want);
    const frit_tensor last = frit_tensor_cut(&all, 1, 2);
    check_rows(&last, want[HEIGHT]);
    for (int64_t i = 0; i < 2 * HEIGHT; i++) assert_ptr_equal(frit_stack_row(&last, i), stacked_row(HEIGHT + i));
    assert_false(frit_tensor_is_same(&all, &last));
    const frit_tensor narrow = tensor_of(numbers, 2, HEIGHT, WIDTH / 2, 1);
    assert_fails(frit_stack_set(&all, 0, &narrow), FRIT_E_FORMAT, "has another shape or type than other experts");
    assert_fails(frit_stack_set(&all, N_EXPERTS, &last), FRIT_E_FORMAT, "of expert 3");
    frit_arena_free(&arena);
}

static int64_t backwards(const void *order, int64_t i)
{
    const int64_t group = *(const int64_t *)order;
    return i / group * group + group - 1 - i % group;
}

static int64_t every_second(const void *order, int64_t i)
{
    (void)order;
    return 2 * i + 1;
}

static void rows_change_places(void **state)
{
    (void)state;
    static const int64_t groups[] = {1, 2, 4, HEIGHT, N_ROWS};
    frit_arena arena = {0};
    for (size_t g = 0; g < FRIT_COUNT(groups); g++) {
        for (int is_made = 0; is_made < 4; is_made++) {   // rows in memory or computed; in groups or one by one
            float want[N_ROWS][WIDTH];
            frit_tensor t = is_made & 1 ? stack_of(&arena) : tensor_of(numbers, 2, N_ROWS, WIDTH, 1);
            for (int64_t i = 0; i < N_ROWS; i++) {
                const int64_t from = backwards(&groups[g], i);
                memcpy(want[i], is_made & 1 ? stacked_row(from) : numbers + from * WIDTH, sizeof want[i]);
            }
            assert_ok(frit_reorder(&arena, &t, backwards, &groups[g], N_ROWS, is_made & 2 ? groups[g] : 0));
            check_rows(&t, want);
        }
    }
    float half[N_ROWS / 2][WIDTH];
    frit_tensor t = stack_of(&arena);
    for (int64_t i = 0; i < N_ROWS / 2; i++) memcpy(half[i], stacked_row(2 * i + 1), sizeof half[i]);
    assert_ok(frit_reorder(&arena, &t, every_second, NULL, N_ROWS / 2, 0));
    assert_int_equal(t.shape[0], N_EXPERTS);
    assert_int_equal(t.shape[1], HEIGHT / 2);
    check_rows(&t, half);
    frit_arena_free(&arena);
}

static void columns_change_places(void **state)
{
    (void)state;
    const int64_t group = 16;
    frit_arena arena = {0};
    for (int is_made = 0; is_made < 2; is_made++) {
        float want[N_ROWS][WIDTH];
        frit_tensor t = is_made ? stack_of(&arena) : tensor_of(numbers, 2, N_ROWS, WIDTH, 1);
        for (int64_t i = 0; i < N_ROWS; i++)
            for (int64_t k = 0; k < WIDTH; k++)
                want[i][k] = (is_made ? stacked_row(i) : numbers + i * WIDTH)[backwards(&group, k)];
        assert_ok(frit_reorder_columns(&arena, &t, backwards, &group));
        check_rows(&t, want);
    }
    frit_arena_free(&arena);
}

static void numbers_change_places(void **state)
{
    (void)state;
    frit_arena arena = {0};
    frit_tensor t = tensor_of(numbers, 2, N_EXPERTS, WIDTH, 1);
    float want[N_EXPERTS * WIDTH / 2];
    for (size_t i = 0; i < FRIT_COUNT(want); i++) want[i] = numbers[2 * i + 1];
    assert_ok(frit_reorder_numbers(&arena, &t, every_second, NULL, FRIT_COUNT(want)));
    assert_int_equal(t.shape[1], WIDTH / 2);
    check_rows(&t, want);
    frit_arena_free(&arena);
}

static void matrices_are_transposed(void **state)
{
    (void)state;
    frit_arena arena = {0};
    float want[N_EXPERTS][WIDTH][HEIGHT];
    frit_tensor t = tensor_of(numbers, 3, N_EXPERTS, HEIGHT, WIDTH);
    for (int e = 0; e < N_EXPERTS; e++)
        for (int i = 0; i < HEIGHT * WIDTH; i++) want[e][i % WIDTH][i / WIDTH] = numbers[e * HEIGHT * WIDTH + i];
    assert_ok(frit_transpose(&arena, &t));
    assert_int_equal(t.shape[1], WIDTH);
    check_rows(&t, want);
    frit_tensor made = stack_of(&arena);
    assert_fails(frit_transpose(&arena, &made), FRIT_E_FORMAT, "'all' is not a matrix in a plain number format");
    frit_arena_free(&arena);
}

static void numbers_are_encoded(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_F16, FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q4_0};
    frit_arena arena = {0};
    for (size_t k = 0; k < FRIT_COUNT(types); k++) {
        uint8_t want[N_ROWS * WIDTH * 4];
        const int64_t group = 2;
        frit_tensor t = stack_of(&arena);
        assert_ok(frit_reorder(&arena, &t, backwards, &group, N_ROWS, group));
        assert_ok(frit_encode(&arena, &t, types[k]));
        assert_int_equal(t.dtype, types[k]);
        for (int64_t i = 0; i < N_ROWS; i++)
            frit_dtype_get(t.dtype)->encode(stacked_row(backwards(&group, i)),
                                            want + (uint64_t)i * frit_tensor_row_bytes(&t), WIDTH, NULL);
        check_rows(&t, want);
        float decoded[WIDTH], expected[WIDTH];
        assert_ok(frit_tensor_decode_rows(&t, 5, 1, decoded));
        frit_dtype_get(t.dtype)->decode(want + 5 * frit_tensor_row_bytes(&t), expected, WIDTH);
        assert_memory_equal(decoded, expected, sizeof decoded);
    }
    frit_tensor same = stack_of(&arena);
    const frit_recipe *recipe = same.recipe;
    assert_ok(frit_encode(&arena, &same, FRIT_DTYPE_F32));
    assert_ptr_equal(same.recipe, recipe);
    frit_arena_free(&arena);
}

static void rows_are_multiplied(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_F32, FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0};
    const int64_t group = 2;
    frit_arena arena = {0};
    for (size_t k = 0; k < 2 * FRIT_COUNT(types); k++) {   // by a factor for each row, or by one
        uint8_t want[N_ROWS * WIDTH * 4];
        frit_tensor t = stack_of(&arena);
        assert_ok(frit_multiply_rows(&arena, &t, numbers, k % 2 ? 1 : N_ROWS));
        assert_int_equal(t.dtype, FRIT_DTYPE_F32);
        assert_ok(frit_reorder(&arena, &t, backwards, &group, N_ROWS, group));
        assert_ok(frit_encode(&arena, &t, types[k / 2]));
        for (int64_t i = 0; i < N_ROWS; i++) {
            const int64_t from = backwards(&group, i);
            float row[WIDTH];
            for (int c = 0; c < WIDTH; c++) row[c] = stacked_row(from)[c] * numbers[k % 2 ? 0 : from];
            frit_dtype_get(t.dtype)->encode(row, want + (uint64_t)i * frit_tensor_row_bytes(&t), WIDTH, NULL);
        }
        check_rows(&t, want);
    }
    frit_tensor t = stack_of(&arena);
    assert_fails(frit_multiply_rows(&arena, &t, numbers, 2), FRIT_E_FORMAT, "'all' has 24 rows and 2 multipliers");
    frit_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_their_parts), cmocka_unit_test(rows_change_places),
        cmocka_unit_test(numbers_change_places),  cmocka_unit_test(matrices_are_transposed),
        cmocka_unit_test(columns_change_places),  cmocka_unit_test(numbers_are_encoded),
        cmocka_unit_test(rows_are_multiplied),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
