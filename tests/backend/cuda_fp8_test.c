// SPDX-License-Identifier: MIT
// Products of fp8_128 weights with inputs in fp8 on NVIDIA GPUs (kernels/gemm_fp8.cu), against plain C.
#include "backend/gpu.h"
#include "backend/weights.h"
#include "backend/world.h"

#include <math.h>

enum { MOST_ROWS = 200 };

// Random rows. on_grid: each 128 columns of a row are numbers of e4m3 times a power of two, the largest 448 times it,
// so that inputs in fp8 lose nothing.
static frit_node *make_rows(world *w, int64_t n, bool on_grid)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_F32, w->batch.n_rows, n, 0);
    float *x = world_bytes(t);
    const int64_t n_all = w->batch.n_rows * n;
    random_normal(&w->rng, x, (size_t)n_all, 1);
    for (int64_t i = 0; i < n_all && on_grid; i += 128) {
        uint8_t codes[128];
        for (int k = 0; k < 128; k++)
            codes[k] = (uint8_t)(random_between(&w->rng, 0, 1) << 7 | random_between(&w->rng, 0, 0x7e));
        codes[random_between(&w->rng, 0, 127)] = 0x7e;
        frit_dtype_get(FRIT_DTYPE_FP8)->decode(codes, x + i, 128);
        const float unit = ldexpf(1, random_between(&w->rng, -12, -6));
        for (int k = 0; k < 128; k++) x[i + k] *= unit;
    }
    return frit_embed(&w->graph, frit_weight_node(&w->graph, t), w->token_node);
}

static frit_node *make_matrix(world *w, int64_t n_rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, FRIT_DTYPE_FP8_128, n_rows, n, 0);
    const int64_t row_bytes = (int64_t)frit_dtype_row_bytes(FRIT_DTYPE_FP8_128, n);
    for (int64_t i = 0; i < n_rows; i++)
        random_weights(&w->rng, FRIT_DTYPE_FP8_128, (uint8_t *)world_bytes(t) + i * row_bytes, n);
    return frit_weight_node(&w->graph, t);
}

static frit_device *gpu;

// The error of the GPU's result.
static double error_of(world *w, bool has_fp8_inputs)
{
    frit_memory *memory;
    frit_exec *exec;
    assert_ok(frit_backend_cuda.open(&gpu, &(frit_device_options){.fp8_inputs = has_fp8_inputs}));
    assert_ok(gpu->backend->alloc(gpu, 64, &memory));
    world_plan(w, false);
    const size_t n = world_result_size(w);
    float *expected = malloc(n * sizeof *expected), *found = malloc(n * sizeof *found);
    world_run(w, "reference", 1, expected);
    const frit_cache cache = {.memory = memory};
    world_plan_for(w, gpu->backend->can_join, gpu);
    assert_ok(gpu->backend->prepare(gpu, w->plan, &cache, &exec));
    world_step(w, gpu, exec);
    assert_ok(gpu->backend->read(gpu, gpu->backend->value(exec, w->graph.output), found, n * sizeof *found));
    const double error = nmse(found, expected, n);
    gpu->backend->exec_free(gpu, exec);
    gpu->backend->free(gpu, memory);
    gpu->backend->close(gpu);
    free(expected);
    free(found);
    return error;
}

static const struct {
    int n_rows;
    int64_t n, n_out;
    bool has_bias;
} shapes[] = {{40, 256, 64, false}, {70, 384, 75, true}, {17, 1024, 48, false}, {MOST_ROWS, 128, 272, false}};

// Inputs that fp8 holds exactly give the exact product; rounded inputs an error of a few thousandths.
static void inputs_in_fp8_lose_what_fp8_loses(void **state)
{
    (void)state;
    require_gpu();
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++)
        for (int on_grid = 0; on_grid <= 1; on_grid++) {
            world w;
            int run[][2] = {{0, shapes[i].n_rows}};
            world_open(&w, 1, run, i);
            frit_node *x = make_rows(&w, shapes[i].n, on_grid);
            frit_node *bias = shapes[i].has_bias ? world_vector(&w, shapes[i].n_out) : NULL;
            w.graph.output = frit_matmul(&w.graph, make_matrix(&w, shapes[i].n_out, shapes[i].n), x, bias);
            const double error = error_of(&w, true);
            const double limit = !on_grid ? 2e-3 : is_real() ? 1e-6 : 1e-9;   // tensor cores drop bits of sums
            if (!(error <= limit) || !(on_grid || error > 1e-5))
                fail_msg("%d rows, %d columns, %s: %.1e", shapes[i].n_rows, (int)shapes[i].n,
                         on_grid ? "on the grid" : "rounded", error);
            world_close(&w);
        }
}

static void without_them_inputs_keep_their_bits(void **state)
{
    (void)state;
    world w;
    int run[][2] = {{0, 40}};
    require_gpu();
    world_open(&w, 1, run, 3);
    w.graph.output = frit_matmul(&w.graph, make_matrix(&w, 64, 512), make_rows(&w, 512, false), NULL);
    const double error = error_of(&w, false);
    if (!(error <= 1e-6)) fail_msg("%.1e", error);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_in_fp8_lose_what_fp8_loses),
        cmocka_unit_test(without_them_inputs_keep_their_bits),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
