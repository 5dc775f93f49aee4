// SPDX-License-Identifier: MIT
// Products of many tokens with kernels that unpack weights: pieces are cut by rows and by tokens (fast_linear.c). A
// kernel in plain C replaces AMX kernels, so that every machine runs the test. It also counts its products.
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/pack/matrix.h"
#include "backend/weights.h"
#include "support/support.h"

enum { N_IN = 64, GUARD = 12345 };

static int64_t n_multiplied, n_calls;

static float tile_number(const frit_product *p, int64_t row, int64_t column)
{
    const uint8_t *tile = p->x + (size_t)(row / FRIT_TILE_ROWS * FRIT_TILE_ROWS) * p->x_stride +
                          (size_t)(column / FRIT_TILE_COLUMNS * FRIT_TILE_BYTES + row % FRIT_TILE_ROWS * 64);
    uint16_t half;
    memcpy(&half, tile + column % FRIT_TILE_COLUMNS * 2, sizeof half);
    const uint32_t word = (uint32_t)half << 16;
    float number;
    memcpy(&number, &word, sizeof number);
    return number;
}

static void multiply(const frit_product *p)
{
    n_calls++;
    n_multiplied += p->n_w * p->n_x;
    for (int64_t j = 0; j < p->n_x; j++)
        for (int64_t i = 0; i < p->n_w; i++) {
            const float *w = (const float *)(const void *)(p->w + (size_t)i * p->w_stride);
            double sum = 0;
            for (int64_t c = 0; c < p->n; c++) sum += w[c] * tile_number(p, j, c);
            p->y[j * (int64_t)p->y_stride + i] = (float)sum;
        }
}

typedef struct setting {
    int64_t n_out, n_tokens;
    frit_kernels kernels;
    frit_tensor tensor;
    frit_node input, weight, node;
    frit_task_env env;
    frit_task task;
    uint8_t *x;
    float *w, *y;
} setting;

static void fill(float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) v[i] = (float)(i * 2654435761u % 251) - 125;   // exact in bf16
}

static void set_up(setting *s, int64_t n_out, int64_t n_tokens)
{
    *s = (setting){.n_out = n_out, .n_tokens = n_tokens};
    frit_isa_install(&s->kernels, frit_isa_get(0), FRIT_FOR_ANY);
    s->kernels.product[FRIT_DTYPE_F32] = (frit_product_kernel){multiply, FRIT_FORM_BF16_TILES, "test", NULL};
    s->w = malloc((size_t)(n_out * N_IN) * sizeof *s->w);
    s->y = malloc((size_t)(n_out * n_tokens) * sizeof *s->y);
    s->x = malloc(frit_form_bytes_of_rows(FRIT_FORM_BF16_TILES, n_tokens, N_IN));
    fill(s->w, n_out * N_IN);
    for (int64_t t = 0; t < n_tokens; t++) {
        float row[N_IN];
        fill(row, N_IN);
        row[t % N_IN] = (float)(t % 100);
        s->kernels.convert[FRIT_FORM_BF16_TILES](row, frit_form_row(FRIT_FORM_BF16_TILES, s->x, t, N_IN), N_IN);
    }
    s->tensor = (frit_tensor){.name = "w", .dtype = FRIT_DTYPE_F32, .n_dims = 2, .shape = {n_out, N_IN}, .data = s->w};
    s->input = (frit_node){.n_dims = 2, .shape = {n_tokens, N_IN, 1, 1}};
    s->weight = (frit_node){.op = FRIT_OP_WEIGHT, .tensor = &s->tensor, .n_dims = 2, .shape = {n_out, N_IN, 1, 1}};
    s->node = (frit_node){.op = FRIT_OP_LINEAR, .n_dims = 2, .shape = {n_tokens, n_out, 1, 1}, .n_src = 2};
    s->node.src[0] = &s->input;
    s->node.src[1] = &s->weight;
    s->env = (frit_task_env){.kernels = &s->kernels, .decode_kernels = &s->kernels};
    s->env.workspace_bytes = frit_linear_workspace_bytes(&s->node);
    s->env.workspaces = aligned_alloc(FRIT_CPU_ALIGN, s->env.workspace_bytes);
    s->task = (frit_task){.node = &s->node, .env = &s->env, .y = s->y, .x = {(const float *)(const void *)s->x}};
    s->task.w[1] = (const uint8_t *)s->w;
    n_multiplied = n_calls = 0;
    for (int64_t i = 0; i < n_out * n_tokens; i++) s->y[i] = GUARD;
}

static void close_setting(setting *s)
{
    free(s->w);
    free(s->x);
    free(s->y);
    free(s->env.workspaces);
}

// Runs all pieces from the last one on, `step` pieces at once, and compares the result with one call of the kernel.
static void run_pieces(setting *s, int step)
{
    const int of = frit_linear_pieces(&s->task);
    float *expected = malloc((size_t)(s->n_out * s->n_tokens) * sizeof *expected);
    for (int end = of; end > 0; end -= step)
        frit_fast_linear(&s->task, (frit_share){end > step ? end - step : 0, end, of, 0});
    assert_int_equal(n_multiplied, s->n_out * s->n_tokens);
    multiply(&(frit_product){.w = (const uint8_t *)s->w,
                             .w_stride = N_IN * sizeof(float),
                             .x = s->x,
                             .x_stride = frit_form_bytes(FRIT_FORM_BF16_TILES, N_IN),
                             .y = expected,
                             .y_stride = (size_t)s->n_out,
                             .n_w = s->n_out,
                             .n_x = s->n_tokens,
                             .n = N_IN});
    assert_memory_equal(s->y, expected, (size_t)(s->n_out * s->n_tokens) * sizeof *expected);
    free(expected);
}

static void pieces_cover_rows_and_tokens_once(void **state)
{
    (void)state;
    static const int64_t outs[] = {16, 128, 130, 400}, tokens[] = {40, 255, 256, 300, 700, 1100};
    static const int steps[] = {1, 3, 1000};
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        for (size_t j = 0; j < sizeof tokens / sizeof tokens[0]; j++)
            for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
                setting s;
                set_up(&s, outs[i], tokens[j]);
                run_pieces(&s, steps[k]);
                close_setting(&s);
            }
}

static void consecutive_parts_of_rows_are_multiplied_together(void **state)
{
    (void)state;
    setting s;
    set_up(&s, 256, 512);
    assert_int_equal(frit_linear_pieces(&s.task), 8);   // two of 128 rows, by four of 128 tokens
    frit_fast_linear(&s.task, (frit_share){2, 8, 8, 0});
    assert_int_equal(n_calls, 2);
    assert_int_equal(n_multiplied, 128 * 256 + 128 * 512);
    s.node.shape[0] = 256;
    assert_int_equal(frit_linear_pieces(&s.task), 256 / 64 * 2);   // at most as long as 32 rows and all tokens
    s.task.continued = true;                                       // followers need all tokens of a column
    assert_int_equal(frit_linear_pieces(&s.task), 256 / 32);
    s.task.continued = false;
    s.kernels.product[FRIT_DTYPE_F32].form = FRIT_FORM_F32;   // other kernels keep activations in the cache
    assert_int_equal(frit_linear_pieces(&s.task), 256 / 32);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_rows_and_tokens_once),
        cmocka_unit_test(consecutive_parts_of_rows_are_multiplied_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
