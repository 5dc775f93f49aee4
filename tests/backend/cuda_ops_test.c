// SPDX-License-Identifier: MIT
// Compares ops on NVIDIA GPUs with plain C on the CPU: several sequences in one step, page boundaries, all cache types,
// states. Uses the GPU of tests/emulator or, with FRIT_TEST_GPU=FOLDER, the machine's. Arguments are weight types: only
// products of these types run.
#include "backend/gpu.h"
#include "backend/weights.h"
#include "backend/world_source.h"

#include <math.h>

// ------------------------------------------------------------------------------- both devices

static frit_device *gpu;

static void put(frit_memory *memory, uint64_t offset, const void *from, uint64_t n_bytes)
{
    if (n_bytes > 0) assert_ok(gpu->backend->write(gpu, (frit_address){memory, offset}, from, n_bytes));
}

typedef struct gpu_cache {
    frit_cache cache;
    frit_cache_layer layer;
    frit_memory *memory;
    uint64_t state_bytes;
} gpu_cache;

// Copies the cache that world_reset_cache made on the host.
static void copy_cache(const world *w, gpu_cache *c)
{
    const uint64_t n_pages = (uint64_t)w->n_pages, k = n_pages * w->layer.k.page_bytes,
                   v = w->layer.spec.v_in_k ? 0 : n_pages * w->layer.v.page_bytes,
                   index = n_pages * w->layer.index.page_bytes;
    c->layer = w->layer;
    c->state_bytes = 2 * (uint64_t)w->batch.n_seqs * (uint64_t)w->layer.spec.n_state * sizeof(float);
    c->layer.k.offset = 0;
    c->layer.v.offset = v > 0 ? k : 0;
    c->layer.index.offset = k + v;
    c->layer.states_offset = k + v + index;
    assert_ok(gpu->backend->alloc(gpu, k + v + index + c->state_bytes + 64, &c->memory));
    put(c->memory, 0, w->layer.k.pages, k);
    put(c->memory, k, w->layer.v.pages, v);
    put(c->memory, k + v, w->layer.index.pages, index);
    put(c->memory, k + v + index, w->layer.states, c->state_bytes);
    c->cache = (frit_cache){.layers = &c->layer, .n_layers = 1, .memory = c->memory};
}

// Compares the states after the step, and copied states, with those that the CPU computed.
static double state_error(const world *w, const gpu_cache *c)
{
    const size_t n = (size_t)(c->state_bytes / sizeof(float));
    float *states = malloc(n * sizeof *states + 1);
    assert_ok(gpu->backend->read(gpu, (frit_address){c->memory, c->layer.states_offset}, states, c->state_bytes));
    const double error = n > 0 ? nmse(states, w->layer.states, n) : 0;
    free(states);
    return error;
}

static void run_on_gpu(world *w, const gpu_cache *c, float *result)
{
    frit_exec *exec;
    for (int i = 0; i < w->graph.n_nodes; i++)
        if (w->graph.nodes[i]->op != FRIT_OP_INPUT && w->graph.nodes[i]->op != FRIT_OP_WEIGHT &&
            w->graph.nodes[i]->op != FRIT_OP_RESHAPE && !gpu->backend->runs(gpu, w->graph.nodes[i]))
            fail_msg("op %s runs on another device", frit_op_get(w->graph.nodes[i]->op)->name);
    world_plan_for(w, gpu->backend->can_join, gpu);
    assert_ok(gpu->backend->prepare(gpu, w->plan, &c->cache, &exec));
    world_step(w, gpu, exec);
    assert_ok(gpu->backend->read(gpu, gpu->backend->value(exec, w->graph.output), result,
                                 world_result_size(w) * sizeof *result));
    gpu->backend->exec_free(gpu, exec);
}

// Uses a new device, because an old one might have tensors of another world at the same addresses.
static void compare(world *w, double limit, const char *what)
{
    gpu_cache c;
    assert_ok(frit_backend_cuda.open(&gpu, &(frit_device_options){0}));
    const size_t n_states = (size_t)w->layer.spec.n_state * (size_t)w->batch.n_seqs;
    if (n_states > 0) {   // room for copied states
        w->layer.states = realloc(w->layer.states, 2 * n_states * sizeof(float));
        memset(w->layer.states, 0, 2 * n_states * sizeof(float));
    }
    world_plan(w, false);
    const size_t n = world_result_size(w);
    float *expected = malloc(n * sizeof *expected), *found = malloc(n * sizeof *found);
    world_reset_cache(w);
    copy_cache(w, &c);
    world_run(w, "reference", 1, expected);
    run_on_gpu(w, &c, found);
    const double error = nmse(found, expected, n), of_states = state_error(w, &c);
    if (!(error <= limit) || !(of_states <= limit))
        fail_msg("%s: %.1e, expected at most %.1e; states %.1e", what, error, limit, of_states);
    gpu->backend->free(gpu, c.memory);
    gpu->backend->close(gpu);
    free(expected);
    free(found);
}

// ------------------------------------------------------------------------------- states

#include "backend/recurrent_worlds.h"

static void convolutions_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    compare_convolutions(1);
}

static void scans_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    compare_scans(1);
}

static void delta_rules_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    compare_delta_rules(1);
}

static void shifts_and_weighed_sums_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    compare_shifts_and_weighed_sums(1);
}

// ------------------------------------------------------------------------------- rows

static void other_ops_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    for (uint64_t seed = 0; seed < 4; seed++) {
        world w;
        source s;
        open_any(&w, &s, seed);
        frit_graph *g = &w.graph;
        const int64_t n = 33 + 40 * (int64_t)seed;
        frit_node *x = frit_gaussian_topk(g, take_heads(&s, 5, n), 0.4f);
        x = frit_rms_match(g, x, take_heads(&s, 5, n), 1e-5f);
        x = frit_mix_streams(g, x, take_heads(&s, 3, 5));
        g->output = frit_softmax(g, x);
        compare(&w, 1e-11, "rows");
        world_close(&w);
    }
}

static void rows_of_pictures_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    for (int i = 0; i < 4; i++) {
        world w;
        source s;
        open_any(&w, &s, (uint64_t)i);
        w.graph.output =
            i == 0 ? frit_place_rows(&w.graph, take(&s, 96), frit_activate(&w.graph, take(&s, 97), FRIT_ACT_RELU))
                   : random_turn(&s, i);
        compare(&w, 1e-11, frit_op_get(w.graph.output->op)->name);
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- products

static frit_node *any_matrix(world *w, frit_dtype dtype, int64_t rows, int64_t n)
{
    frit_tensor *t = world_tensor(w, dtype, rows, n, 0);
    for (int64_t i = 0; i < rows; i++)
        random_weights(&w->rng, dtype, (uint8_t *)world_bytes(t) + i * (int64_t)frit_dtype_row_bytes(dtype, n), n);
    return frit_weight_node(&w->graph, t);
}

static char **wanted;

// All shapes on a GPU, which compiles hundreds of kernels; one on the emulator.
static bool is_wanted(frit_dtype dtype)
{
    for (char **word = wanted; word && *word; word++)
        if (strcmp(frit_dtype_get(dtype)->name, *word) == 0) return true;
    return !(wanted && *wanted) && (is_real() || dtype == FRIT_DTYPE_Q4_K || dtype == FRIT_DTYPE_FP8_128);
}

// Numbers of rows for gemv, whose activations have 15 bits, and for gemm in f16. f32 weights have gemvs only.
static void products_of_all_types_are_those_of_the_reference(void **state)
{
    (void)state;
    static int runs[][2] = {{0, 3}, {7, 40}};
    size_t n_run = 0;
    require_gpu();
    for (int dtype = 0; dtype < FRIT_DTYPE_COUNT; dtype++) {
        if (!frit_dtype_get((frit_dtype)dtype)->encode || dtype == FRIT_DTYPE_FP8 || !is_wanted((frit_dtype)dtype))
            continue;
        for (int i = 0; i < (is_real() ? 6 : 2); i++, n_run++) {
            world w;
            const int64_t n = i < 4 ? 256 : 1024, n_out = i % 4 < 2 ? 64 : 75;
            world_open(&w, 1, &runs[i % 2], (uint64_t)i);
            source s = {.w = &w, .rows = world_rows(&w, WIDTH)};
            frit_node *bias = i & 2 ? world_vector(&w, n_out) : NULL;
            w.graph.output = frit_matmul(&w.graph, any_matrix(&w, (frit_dtype)dtype, n_out, n), take(&s, n), bias);
            compare(&w, i % 2 ? 1e-6 : 1e-7, frit_dtype_get((frit_dtype)dtype)->name);
            world_close(&w);
        }
    }
    assert_true(n_run > 1);
}

// The emulator's clock advances by one millisecond a launch.
static void a_profile_counts_what_a_step_launches_and_reads(void **state)
{
    (void)state;
    world w;
    gpu_cache c = {0};
    frit_profile_row row;
    uint64_t n_calls = 0;
    require_gpu();
    world_open(&w, 1, (int[][2]){{0, 3}}, 1);
    source s = {.w = &w, .rows = world_rows(&w, WIDTH)};
    frit_node *x = take(&s, 256), *matrix = any_matrix(&w, FRIT_DTYPE_Q4_K, 64, 256);
    w.graph.output = frit_softcap(&w.graph, frit_matmul(&w.graph, matrix, x, NULL), 3);
    world_plan(&w, false);
    float *result = malloc(world_result_size(&w) * sizeof *result);
    assert_ok(frit_backend_cuda.open(&gpu, &(frit_device_options){0}));
    assert_false(gpu->backend->profile_row(gpu, 0, &row));
    assert_ok(gpu->backend->profile(gpu, true));
    for (int i = 0; i < 2; i++) run_on_gpu(&w, &c, result);
    for (size_t i = 0; gpu->backend->profile_row(gpu, i, &row); i++) {
        assert_true(row.run_s > 0);
        if (!is_real()) assert_true(fabs(row.run_s - 1e-3 * (double)row.n_calls) < 1e-6);
        if (strcmp(row.op, "plain_softcap") == 0) assert_int_equal(row.n_calls, 2);
        if (strcmp(row.op, "linear") != 0) continue;
        assert_string_equal(row.type, "q4_k");
        assert_true(row.n_bytes == 2 * (double)matrix->tensor->n_bytes && row.n_ops == 2 * 2.0 * 3 * 64 * 256);
        n_calls = row.n_calls;
    }
    assert_int_equal(n_calls, 2);
    assert_ok(gpu->backend->profile(gpu, false));
    assert_false(gpu->backend->profile_row(gpu, 0, &row));
    gpu->backend->close(gpu);
    free(result);
    world_close(&w);
}

// ------------------------------------------------------------------------------- the cache

static void caches_of_all_types_are_those_of_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32,  FRIT_DTYPE_F16,  FRIT_DTYPE_BF16,
                                        FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_1,
                                        FRIT_DTYPE_Q5_0, FRIT_DTYPE_Q5_1, FRIT_DTYPE_IQ4_NL};
    enum { N = FRIT_COUNT(dtypes) };
    require_gpu();
    for (uint64_t seed = 0; seed < 2 * N + 4; seed++) {
        world w;
        source s;
        const frit_kv_types types = {seed < 2 * N ? dtypes[seed % N] : FRIT_DTYPE_FP8,
                                     seed < 2 * N ? dtypes[seed / 2] : FRIT_DTYPE_FP8};
        const int k_dim = seed & 1 ? 96 : 64, v_dim = seed & 2 ? 160 : 32;
        open_any(&w, &s, seed);
        world_cache(&w, types, 2, k_dim, v_dim);
        frit_node *written = frit_kv_write(&w.graph, take_heads(&s, 2, k_dim), take_heads(&s, 2, v_dim), 0);
        const frit_attend attend = {
            .scale = 0.125f, .window = seed % 3 == 0 ? 20 : 0, .ends_at = seed % 4 == 1 ? 1 : 0};
        frit_node *q = take_heads(&s, 6, k_dim);
        w.graph.output = attend.ends_at > 0 ? frit_attend_with_ends(&w.graph, q, written, world_ends(&w), attend, v_dim)
                                            : frit_attend_node(&w.graph, q, written, attend, v_dim);
        compare(&w, 1e-7, frit_dtype_get(types.k)->name);   // a code may differ by one
        world_close(&w);
    }
}

static void sparse_attention_is_that_of_the_reference(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_Q8_0};
    require_gpu();
    for (uint64_t seed = 0; seed < 9; seed++) {   // with one head, half of the scores are 0
        world w;
        source s;
        const int n_chosen = seed < 4 ? 16 : 40, n_heads = seed < 6 ? 4 : 1;
        open_any(&w, &s, seed < 6 ? seed : seed - 3);
        world_latent_cache(&w, dtypes[seed % 3], 96, 64, 32);
        frit_node *index = frit_index_write(&w.graph, take_heads(&s, 1, 32), 0);
        frit_node *chosen = frit_choose_node(&w.graph, take_heads(&s, n_heads, 32), positive(&w, take(&s, n_heads)),
                                             index, (frit_choose){.n = n_chosen, .n_ctx = 128});
        frit_node *written = frit_kv_write(&w.graph, take_heads(&s, 1, 96), NULL, 0);
        w.graph.output =
            frit_attend_sparse(&w.graph, take_heads(&s, 4, 96), written, chosen, (frit_attend){.scale = 0.1f}, 64);
        compare(&w, 1e-7, "sparse attention");
        world_close(&w);
    }
}

// Opening a GPU's first device takes long, so one device stays open during all tests.
static frit_device *kept;

static int begin(void **state)
{
    const int result = use_emulator(state);
    if (is_real()) frit_backend_cuda.open(&kept, &(frit_device_options){0});
    return result;
}

static int end(void **state)
{
    frit_backend_cuda.close(kept);
    return use_no_emulator(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest products[] = {cmocka_unit_test(products_of_all_types_are_those_of_the_reference)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_those_of_the_reference),
        cmocka_unit_test(scans_are_those_of_the_reference),
        cmocka_unit_test(delta_rules_are_those_of_the_reference),
        cmocka_unit_test(shifts_and_weighed_sums_are_those_of_the_reference),
        cmocka_unit_test(other_ops_are_those_of_the_reference),
        cmocka_unit_test(rows_of_pictures_are_those_of_the_reference),
        cmocka_unit_test(products_of_all_types_are_those_of_the_reference),
        cmocka_unit_test(a_profile_counts_what_a_step_launches_and_reads),
        cmocka_unit_test(caches_of_all_types_are_those_of_the_reference),
        cmocka_unit_test(sparse_attention_is_that_of_the_reference),
    };
    wanted = argc > 1 ? argv + 1 : NULL;
    return wanted ? cmocka_run_group_tests(products, begin, end) : cmocka_run_group_tests(tests, begin, end);
}
