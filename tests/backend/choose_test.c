// SPDX-License-Identifier: MIT
// Sparse attention: choosing positions, attention to the chosen positions, and values that are part of keys. With
// --bench, prints the time of a layer of DeepSeek-V3.2's shape by the length of the past.
#include "backend/compare.h"

#include "backend/cpu/ops/best.h"
#include "base/time.h"
#include "support/isas.h"

#include <stdlib.h>

static int descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static void the_best_scores_win_and_their_ids_ascend(void **state)
{
    (void)state;
    enum { MOST = 400 };
    frit_rng rng;
    frit_rng_init(&rng, 8);
    for (int round = 0; round < 300; round++) {
        float scores[MOST], sorted[MOST], kept[MOST];
        int32_t ids[MOST], scratch[MOST];
        const int n = (int)random_between(&rng, 1, MOST), most = (int)random_between(&rng, 1, MOST);
        for (int i = 0; i < n; i++) scores[i] = sorted[i] = (float)random_between(&rng, -5, round % 2 ? 5 : 100000);
        frit_best best = {.scores = kept, .ids = ids, .most = most};
        for (int i = 0; i < n; i++) frit_best_offer(&best, scores[i], i);
        frit_best_sort(&best, scratch);
        assert_int_equal(best.n, n < most ? n : most);
        qsort(sorted, (size_t)n, sizeof *sorted, descending);
        for (int i = 0; i < best.n; i++) {
            assert_true(i == 0 || ids[i] > ids[i - 1]);
            kept[i] = scores[ids[i]];
        }
        qsort(kept, (size_t)best.n, sizeof *kept, descending);
        assert_memory_equal(kept, sorted, (size_t)best.n * sizeof *kept);
    }
}

static frit_node *build_choose(world *w, int n_head, int n)
{
    const int dim = w->layer.index.dim;
    frit_node *written = frit_index_write(&w->graph, world_heads(w, 1, dim), 0);
    frit_node *weights = frit_scale(&w->graph, world_rows(w, n_head), 0.3f);
    const frit_choose choose = {.n = n, .n_ctx = 2048};
    return frit_choose_node(&w->graph, world_heads(w, n_head, dim), weights, written, choose);
}

static void positions_are_chosen_by_weighted_scores_above_zero(void **state)
{
    (void)state;
    world w;
    world_open(&w, 1, (int[][2]){{0, 4}}, 1);
    world_latent_cache(&w, FRIT_DTYPE_F32, 4, 2, 2);
    frit_node *k = world_given_rows(&w, (float[]){1, 0, 0, 3, -2, 1, 2, 2}, 2);
    frit_node *written = frit_index_write(&w.graph, frit_reshape(&w.graph, k, 2, (int64_t[]){1, 2}), 0);
    // The last row scores 2 max(k0, 0) - max(k1, 0): 2, -3, -1, 2; the third -max(k1, 0): 0, -3, -1.
    frit_node *q = world_given_rows(&w, (float[]){1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}, 4);
    q = frit_reshape(&w.graph, q, 2, (int64_t[]){2, 2});
    frit_node *weights = world_given_rows(&w, (float[]){1, 1, 1, 1, 0, -1, 2, -1}, 2);
    const frit_choose choose = {.n = 2, .n_ctx = 4};
    w.graph.output = frit_choose_node(&w.graph, q, weights, written, choose);
    static const float expected[] = {0, -1, 0, 1, 0, 2, 0, 3};
    static const char *const cpus[] = {"reference", NULL};
    world_plan(&w, false);
    for (size_t i = 0; i < FRIT_COUNT(cpus); i++) {
        float result[8];
        world_run(&w, cpus[i], 2, result);
        assert_memory_equal(result, expected, sizeof expected);
    }
    world_close(&w);
}

static int seqs[][3][2] = {
    {{0, 5}, {700, 1}, {63, 2}},      // few rows: scores are in shared memory
    {{300, 12}, {0, 33}, {900, 3}},   // many rows: each row is an item
    {{1500, 1}, {15, 1}, {16, 1}},    // around the number of chosen positions
    {{0, 1}, {0, 70}, {40, 40}},
};
static const frit_dtype types[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_Q8_0, FRIT_DTYPE_BF16};

static void choices_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 16; seed += FRIT_TEST_STRIDE) {
        char what[64];
        world w;
        world_open(&w, 3, seqs[seed % 4], seed);
        world_latent_cache(&w, types[seed / 4], 64, 32, 64);
        w.graph.output = build_choose(&w, 1 + (int)seed % 5, 16);
        snprintf(what, sizeof what, "choose from %s, case %zu", frit_dtype_get(types[seed / 4])->name, seed);
        compare(&w, false, 0, what);
        world_close(&w);
    }
}

static void attention_of_chosen_positions_agrees_with_the_reference(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 16; seed += FRIT_TEST_STRIDE) {
        char what[64];
        world w;
        world_open(&w, 3, seqs[seed % 4], 50 + seed);
        world_latent_cache(&w, types[seed / 4], 96, 64, 32);
        const int n_head = seed % 3 ? 12 : 3, n = seed % 2 ? 16 : 600;   // several chunks, and fewer than a row has
        frit_node *chosen = build_choose(&w, 2, n), *q = world_heads(&w, n_head, 96);
        frit_node *written = frit_kv_write(&w.graph, world_heads(&w, 1, 96), NULL, 0);
        const frit_attend attend = {.scale = 0.1f, .softcap = seed % 5 ? 0 : 4};
        w.graph.output = frit_attend_sparse(&w.graph, q, written, chosen, attend, 64);
        snprintf(what, sizeof what, "attend to some of %s, case %zu", frit_dtype_get(types[seed / 4])->name, seed);
        compare_attention(&w, false, 1e-11, seed < 4 ? 1e-11 : 3e-5, what);
        world_close(&w);
    }
}

// All kinds of attention with values that are a part of the keys.
static void attention_with_values_in_keys_agrees_with_the_reference(void **state)
{
    (void)state;
    for (size_t seed = 0; seed < 16; seed += FRIT_TEST_STRIDE) {
        char what[64];
        world w;
        world_open(&w, 3, seqs[seed % 4], 90 + seed);
        world_latent_cache(&w, types[seed / 4], 96, 64, 32);
        const int n_head = seed % 3 ? 8 : 2;
        frit_node *q = world_heads(&w, n_head, 96);
        frit_node *written = frit_kv_write(&w.graph, world_heads(&w, 1, 96), NULL, 0);
        w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.1f}, 64);
        snprintf(what, sizeof what, "attend, values in keys of %s, case %zu", frit_dtype_get(types[seed / 4])->name,
                 seed);
        compare_attention(&w, false, 1e-11, seed < 4 ? 1e-11 : 3e-5, what);
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- benchmark

// Times a layer of DeepSeek-V3.2's shape that attends to `n` chosen positions, or to all if n is 0.
static double time_layer(int n_past, int n_rows, int n, int n_threads)
{
    enum { N_HEAD = 128, K_DIM = 576, V_DIM = 512, INDEX_HEADS = 64, INDEX_DIM = 128, ROUNDS = 4 };
    world w;
    frit_device *device;
    frit_exec *exec;
    world_open(&w, 1, (int[][2]){{n_past, n_rows}}, 1);
    world_latent_cache(&w, FRIT_DTYPE_F16, K_DIM, V_DIM, INDEX_DIM);
    frit_node *q = world_heads(&w, N_HEAD, K_DIM);
    frit_node *written = frit_kv_write(&w.graph, world_heads(&w, 1, K_DIM), NULL, 0);
    const frit_attend attend = {.scale = 0.05f};
    frit_node *index = frit_index_write(&w.graph, world_heads(&w, 1, INDEX_DIM), 0);
    const frit_choose choose = {.n = n, .n_ctx = n_past + n_rows};
    frit_node *chosen = n > 0 ? frit_choose_node(&w.graph, world_heads(&w, INDEX_HEADS, INDEX_DIM),
                                                 world_rows(&w, INDEX_HEADS), index, choose)
                              : NULL;
    w.graph.output = chosen ? frit_attend_sparse(&w.graph, q, written, chosen, attend, V_DIM)
                            : frit_attend_node(&w.graph, q, written, attend, V_DIM);
    world_plan(&w, false);
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads = n_threads}));
    assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
    world_reset_cache(&w);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t start = frit_time_ns();
        world_step(&w, device, exec);
        const uint64_t took = frit_time_ns() - start;
        best = took < best ? took : best;
    }
    frit_backend_cpu.exec_free(device, exec);
    frit_backend_cpu.close(device);
    world_close(&w);
    return 1e-6 * (double)best;
}

static int bench(void)
{
    static const int shapes[][2] = {{2048, 1}, {8192, 1}, {32768, 1}, {8192, 32}};
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++)
        for (int threads = 1; threads <= 2; threads++)
            printf("%6d positions %3d rows %d threads: all %9.3f ms, 2048 chosen %9.3f ms\n", shapes[i][0],
                   shapes[i][1], threads, time_layer(shapes[i][0], shapes[i][1], 0, threads),
                   time_layer(shapes[i][0], shapes[i][1], 2048, threads));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) return bench();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_scores_win_and_their_ids_ascend),
        cmocka_unit_test(positions_are_chosen_by_weighted_scores_above_zero),
        cmocka_unit_test(choices_agree_with_the_reference),
        cmocka_unit_test(attention_of_chosen_positions_agrees_with_the_reference),
        cmocka_unit_test(attention_with_values_in_keys_agrees_with_the_reference),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
