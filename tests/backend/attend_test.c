// SPDX-License-Identifier: MIT
// Compares attention on every instruction set of this processor with the reference: shapes, sequences, kinds and types
// of the cache. With --bench [ISA [POSITIONS]] one layer is timed.
#include "backend/compare.h"

#include "base/time.h"
#include "quant/half.h"
#include "support/isas.h"

#include <float.h>

typedef struct attend_case {
    int n_head, n_head_kv, k_dim, v_dim, window;
    float softcap;
} attend_case;

static const attend_case attend_cases[] = {
    {4, 4, 64, 64, 0, 0}, {8, 2, 128, 128, 0, 0}, {7, 1, 20, 12, 0, 0},    {6, 3, 80, 80, 33, 0}, {4, 2, 16, 16, 5, 0},
    {2, 2, 8, 8, 1, 0},   {8, 4, 32, 32, 0, 20},  {20, 1, 96, 64, 64, 10}, {3, 3, 1, 1, 0, 0},
};

static int attend_runs[][4][2] = {
    {{0, 1}},                                  // only its own position
    {{31, 1}, {32, 1}, {33, 2}, {1700, 1}},    // decode around page ends, and with several chunks
    {{0, 70}},                                 // a prompt
    {{300, 12}, {0, 33}, {63, 1}, {900, 3}},   // prompts and decode, more rows than are split
    {{600, 5}, {257, 4}},                      // several chunks
};
static const int attend_n_runs[] = {1, 4, 1, 4, 2};

// Tiles of bf16 apply to keys and values that were rounded when they were written.
static double tolerance(const world *w)
{
    return w->layer.k.dtype == FRIT_DTYPE_F32 || w->layer.v.dtype == FRIT_DTYPE_F32 ? 1e-11 : 3e-5;
}

static void attention_agrees_with_the_reference(void **state)
{
    (void)state;
    for (size_t c = 0; c < FRIT_COUNT(attend_cases); c++) {
        for (size_t r = c % FRIT_TEST_STRIDE; r < FRIT_COUNT(attend_n_runs); r += FRIT_TEST_STRIDE) {
            const attend_case *a = &attend_cases[c];
            char what[96];
            world w;
            world_open(&w, attend_n_runs[r], attend_runs[r], 100 * c + r);
            world_cache(&w, (c + r) % 2 ? KV_F16 : KV_F32, a->n_head_kv, a->k_dim, a->v_dim);
            frit_node *q = world_heads(&w, a->n_head, a->k_dim), *k = world_heads(&w, a->n_head_kv, a->k_dim);
            frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, a->n_head_kv, a->v_dim), 0);
            const frit_attend attend = {
                .scale = 1 / sqrtf((float)a->k_dim), .softcap = a->softcap, .window = a->window};
            w.graph.output = frit_attend_node(&w.graph, q, written, attend, a->v_dim);
            snprintf(what, sizeof what, "attend case %zu with runs %zu", c, r);
            compare_attention(&w, false, 1e-11, tolerance(&w), what);
            world_close(&w);
        }
    }
}

// Scores around 10^3 overflow any exponential that is not taken relative to the largest.
static void attention_survives_large_scores(void **state)
{
    (void)state;
    world w;
    world_open(&w, 2, (int[][2]){{700, 2}, {0, 5}}, 7);
    world_cache(&w, KV_F16, 2, 64, 64);
    frit_node *q = frit_scale(&w.graph, world_heads(&w, 4, 64), 50), *k = world_heads(&w, 2, 64);
    frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, 2, 64), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 1}, 64);
    compare_attention(&w, false, 1e-11, 1e-6, "attend with large scores");
    world_close(&w);
}

// bf16 begins with the score of the row's own position. Larger scores come later, each above the last.
static void prefill_attention_rescales_for_rising_scores(void **state)
{
    (void)state;
    enum { N_HEAD = 4, N_KV = 2, DIM = 64, PAST = 700, ROWS = 70 };
    static const int positions[] = {100, 400, 650};
    static const float scores[] = {60, 150, 300};
    static const frit_dtype types[] = {FRIT_DTYPE_F16, FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0};
    for (size_t t = 0; t < FRIT_COUNT(types); t++) {
        world w;
        world_open(&w, 1, (int[][2]){{PAST, ROWS}}, 30 + t);
        world_cache(&w, (frit_kv_types){types[t], types[t]}, N_KV, DIM, DIM);
        float *queries = malloc(ROWS * N_HEAD * DIM * sizeof(float));
        random_normal(&w.rng, queries, ROWS * N_HEAD * DIM, 0.1f);
        for (int i = 0; i < ROWS * N_HEAD * DIM; i++) queries[i] += 1;
        for (size_t i = 0; i < FRIT_COUNT(positions); i++) {
            const size_t page = (size_t)w.pages[positions[i] / FRIT_PAGE_TOKENS];
            for (size_t head = 0; head < N_KV; head++) {
                const size_t row = (page * N_KV + head) * FRIT_PAGE_TOKENS + (size_t)positions[i] % FRIT_PAGE_TOKENS;
                for (size_t d = 0; d < DIM; d++) w.past[row * 2 * DIM + d] = scores[i] / 8;
            }
        }
        frit_node *q = frit_reshape(&w.graph, world_given_rows(&w, queries, N_HEAD * DIM), 2, (int64_t[]){N_HEAD, DIM});
        frit_node *written = frit_kv_write(&w.graph, world_heads(&w, N_KV, DIM), world_heads(&w, N_KV, DIM), 0);
        w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.125f}, DIM);
        compare_attention(&w, false, 1e-11, 3e-5, frit_dtype_get(types[t])->name);
        free(queries);
        world_close(&w);
    }
}

// If rounding moves scores by more octaves than weights have, the first row still sees itself: its result is its own
// value.
static void a_row_sees_itself_if_rounding_moves_large_scores(void **state)
{
    (void)state;
    enum { N_HEAD = 4, DIM = 128, ROWS = 96 };
    const char *isas[MAX_ISAS];
    const size_t n_isas = usable_isas(isas);
    world w;
    world_open(&w, 1, (int[][2]){{0, ROWS}}, 77);
    world_cache(&w, KV_F16, 1, DIM, DIM);
    frit_node *q = frit_scale(&w.graph, world_heads(&w, N_HEAD, DIM), 1e5f);
    frit_node *written = frit_kv_write(&w.graph, world_heads(&w, 1, DIM), world_heads(&w, 1, DIM), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 1}, DIM);
    world_plan(&w, true);
    float *wanted = calloc(world_result_size(&w), sizeof(float)), *got = calloc(world_result_size(&w), sizeof(float));
    world_run(&w, "reference", 1, wanted);
    for (size_t i = 0; i < n_isas; i++) {
        world_run(&w, isas[i], 2, got);
        for (size_t k = 0; k < world_result_size(&w); k++) assert_true(isfinite(got[k]));
        assert_true(nmse(got, wanted, N_HEAD * DIM) < 1e-5);
    }
    free(wanted);
    free(got);
    world_close(&w);
}

// Processors are a hundred times slower with subnormal numbers, so the smallest weights must be well above them.
static void weights_and_weighted_values_are_never_subnormal(void **state)
{
    (void)state;
    const char *isas[MAX_ISAS];
    const size_t n_isas = usable_isas(isas);
    for (size_t i = 0; i < n_isas; i++) {
        static const float far[] = {0, -50, -80, -87.3f, -90, -103, -1e4f};
        frit_kernels kernels;
        frit_isa_install(&kernels, frit_isa_get(i), FRIT_FOR_ANY);
        for (size_t lane = 0; lane < 37; lane++) {
            float x[37];
            for (size_t j = 0; j < FRIT_COUNT(x); j++) x[j] = 7 + far[(lane + j) % FRIT_COUNT(far)];
            kernels.exp_sum(x, 7, (int64_t)FRIT_COUNT(x));
            for (size_t j = 0; j < FRIT_COUNT(x); j++) assert_true(x[j] == 0 || x[j] * 0x1p-24f >= FLT_MIN);
        }
    }
}

enum { REACH = 40 };
static float gains[24 * (2 * REACH + 1)];   // added to scores, by head and distance

typedef struct attend_kind {
    const char *what;
    frit_attend attend;
    bool sinks;
} attend_kind;

static const attend_kind kinds[] = {
    {"nothing special", {.scale = 0.2f}, false},
    {"slopes", {.scale = 0.2f, .alibi = 8}, false},
    {"softcap", {.scale = 0.2f, .softcap = 5}, false},
    {"a window", {.scale = 0.2f, .window = 45}, false},
    {"sinks", {.scale = 0.2f}, true},
    {"sinks and a window", {.scale = 0.2f, .window = 20}, true},
    {"chunks", {.scale = 0.2f, .chunk = 24}, false},
    {"both directions", {.scale = 0.2f, .bidirectional = true}, false},
    {"both directions and slopes", {.scale = 0.2f, .bidirectional = true, .alibi = 8}, false},
    {"gains by distance", {.scale = 0.2f, .reach = REACH}, false},
    {"both directions and gains", {.scale = 0.2f, .bidirectional = true, .reach = REACH}, false},
    {"both directions and a window", {.scale = 0.2f, .bidirectional = true, .window = 45}, false},
    {"pictures", {.scale = 0.2f, .ends_at = 1}, false},
    {"pictures and a window", {.scale = 0.2f, .ends_at = 1, .window = 20}, false},
    {"temperature", {.scale = 0.2f, .temp_scale = 0.3f, .temp_offset = 1, .temp_length = 16}, false},
};

static frit_node *attended(world *w, const attend_kind *kind, frit_node *q, frit_node *written, int64_t v_dim)
{
    const int64_t n_head = q->shape[1];
    if (kind->attend.ends_at > 0)
        return frit_attend_with_ends(&w->graph, q, written, world_ends(w), kind->attend, v_dim);
    if (kind->attend.reach == 0)
        return frit_attend_with_sinks(&w->graph, q, written, kind->sinks ? world_vector(w, n_head) : NULL, kind->attend,
                                      v_dim);
    frit_tensor *tensor = world_tensor(w, FRIT_DTYPE_F32, n_head, 2 * REACH + 1, 0);
    memcpy(world_bytes(tensor), gains, (size_t)tensor->n_bytes);
    return frit_attend_with_gains(&w->graph, q, written, frit_weight_node(&w->graph, tensor), kind->attend, v_dim);
}

static void attention_of_every_kind_agrees_with_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++) {
        for (size_t r = i % FRIT_TEST_STRIDE; r < FRIT_COUNT(attend_n_runs); r += FRIT_TEST_STRIDE) {
            world w;
            world_open(&w, attend_n_runs[r], attend_runs[r], 900 + 10 * i + r);
            world_cache(&w, KV_F32, 3, 16, 24);
            frit_node *q = world_heads(&w, 6, 16), *k = world_heads(&w, 3, 16);
            frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, 3, 24), 0);
            w.graph.output = attended(&w, &kinds[i], q, written, 24);
            compare(&w, false, 1e-11, kinds[i].what);
            world_close(&w);
        }
    }
}

// Groups of one head, so that the queries of a panel are consecutive rows.
static void gains_by_distance_agree_with_the_reference(void **state)
{
    (void)state;
    static int seqs[][2][2] = {{{0, 70}, {300, 80}}, {{40, 1}, {170, 5}}, {{130, 33}, {20, 1}}};
    for (size_t i = 0; i < 2 * FRIT_COUNT(seqs); i++) {
        const attend_kind kind = {"", {.scale = 0.3f, .bidirectional = i % 2, .reach = REACH}, false};
        world w;
        world_open(&w, 2, seqs[i / 2], 500 + i);
        world_cache(&w, i < 3 ? KV_F32 : KV_F16, 5, 32, 48);
        frit_node *q = world_heads(&w, 5, 32), *k = world_heads(&w, 5, 32);
        frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, 5, 48), 0);
        w.graph.output = attended(&w, &kind, q, written, 48);
        compare_attention(&w, false, 1e-11, 1e-11, "gains by distance");
        world_close(&w);
    }
}

// Sequences share pages of their past.
static void attention_to_a_source_agrees_with_the_reference(void **state)
{
    (void)state;
    static int seqs[][2][2] = {{{45, 1}, {300, 1}}, {{40, 70}, {170, 5}}, {{700, 33}, {33, 40}}};
    for (size_t i = 0; i < 2 * FRIT_COUNT(seqs); i++) {
        world w;
        world_open(&w, 2, seqs[i / 2], 600 + i);
        world_cache(&w, i % 2 ? KV_F32 : KV_F16, 4, 64, 64);
        for (int r = 0; r < 2; r++) {
            const int n_source = w.seqs[1 - r].n_past, stride = w.batch.page_stride;
            for (int p = 0; p < n_source; p += FRIT_PAGE_TOKENS)
                w.tables[(2 + r) * stride + p / FRIT_PAGE_TOKENS] = w.pages[w.first_page[1 - r] + p / FRIT_PAGE_TOKENS];
            w.seqs[r].n_source = n_source;
        }
        w.layer.group = 1;
        frit_node *q = world_heads(&w, i % 4 ? 8 : 4, 64);
        w.graph.output = frit_attend_node(&w.graph, q, NULL, (frit_attend){.scale = 0.125f, .cross = true}, 64);
        compare_attention(&w, false, 1e-11, 1e-11, "attention to a source");
        world_close(&w);
    }
}

// Every type with every kind of attention, keys and values of different types, heads of several sizes.
static void attention_of_every_type_agrees_with_the_reference(void **state)
{
    (void)state;
    static const frit_dtype types[] = {FRIT_DTYPE_F32,  FRIT_DTYPE_F16,  FRIT_DTYPE_BF16, FRIT_DTYPE_Q8_0,
                                       FRIT_DTYPE_Q4_0, FRIT_DTYPE_Q4_1, FRIT_DTYPE_Q5_0, FRIT_DTYPE_IQ4_NL,
                                       FRIT_DTYPE_Q5_1, FRIT_DTYPE_FP8};
    static const int dims[] = {32, 64, 96, 128}, groups[] = {1, 3, 4, 8};
    static int seqs[][2][2] = {{{0, 1}, {300, 1}}, {{40, 2}, {170, 5}}, {{130, 70}, {20, 1}}, {{0, 5}, {300, 80}}};
    for (size_t seed = 0; seed < 5 * FRIT_COUNT(types); seed += FRIT_TEST_STRIDE) {
        const attend_kind *kind = &kinds[seed % FRIT_COUNT(kinds)];
        const frit_dtype type_k = types[seed % FRIT_COUNT(types)],
                         type_v = types[(seed + seed / FRIT_COUNT(types)) % FRIT_COUNT(types)];
        char what[96];
        world w;
        world_open(&w, 2, seqs[seed / 2 % 4], seed);
        const int k_dim = dims[random_between(&w.rng, 0, 3)], v_dim = dims[random_between(&w.rng, 0, 3)];
        const int n_kv = (int)random_between(&w.rng, 1, 3), n_head = n_kv * groups[random_between(&w.rng, 0, 3)];
        world_cache(&w, (frit_kv_types){type_k, type_v}, n_kv, k_dim, v_dim);
        frit_node *q = world_heads(&w, n_head, k_dim), *k = world_heads(&w, n_kv, k_dim);
        frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, n_kv, v_dim), 0);
        w.graph.output = attended(&w, kind, q, written, v_dim);
        snprintf(what, sizeof what, "%s, %s and %s, %d/%d heads of %d and %d", kind->what, frit_dtype_get(type_k)->name,
                 frit_dtype_get(type_v)->name, n_head, n_kv, k_dim, v_dim);
        compare_attention(&w, false, 1e-11, tolerance(&w), what);
        world_close(&w);
    }
}

// With more positions than the shared tiles hold, each block makes tiles of the last positions itself.
static void attention_far_behind_agrees_with_the_reference(void **state)
{
    (void)state;
    enum { PAST = 8500, ROWS = 130, DIM = 32 };
    world w;
    world_open(&w, 1, (int[][2]){{PAST, ROWS}}, 90);
    world_cache(&w, (frit_kv_types){FRIT_DTYPE_F16, FRIT_DTYPE_Q8_0}, 1, DIM, DIM);
    frit_node *q = world_heads(&w, 1, DIM), *k = world_heads(&w, 1, DIM);
    frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, 1, DIM), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.2f}, DIM);
    compare_attention(&w, false, 1e-11, 3e-5, "attend far behind");
    world_close(&w);
}

// If matrices, keys and values are f16 or finer, attention must not use a coarser type.
static void attention_of_f16_models_does_not_round_to_bf16(void **state)
{
    (void)state;
    enum { N_HEAD = 8, N_KV = 2, DIM = 64, ROWS = 80 };
    for (int coarse = 0; coarse < 2; coarse++) {
        world w;
        world_open(&w, 1, (int[][2]){{300, ROWS}}, 91);
        world_cache(&w, KV_F16, N_KV, DIM, DIM);
        frit_tensor *t = world_tensor(&w, coarse ? FRIT_DTYPE_BF16 : FRIT_DTYPE_F16, N_HEAD * DIM, DIM, 0);
        uint16_t *bits = world_bytes(t);
        for (int i = 0; i < N_HEAD * DIM * DIM; i++) {
            const float x = (float)random_between(&w.rng, -128, 128) / 1024;
            bits[i] = coarse ? frit_float_to_bf16(x) : frit_float_to_half(x);
        }
        frit_node *made = frit_matmul(&w.graph, frit_weight_node(&w.graph, t), world_rows(&w, DIM), NULL);
        frit_node *q = frit_reshape(&w.graph, made, 2, (int64_t[]){N_HEAD, DIM}), *k = world_heads(&w, N_KV, DIM);
        frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, N_KV, DIM), 0);
        w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.125f}, DIM);
        compare_attention(&w, false, 1e-10, coarse ? 3e-5 : 1e-10, coarse ? "a model in bf16" : "a model in f16");
        world_close(&w);
    }
}

// ------------------------------------------------------------------------------- benchmark

// Returns the fastest of several runs of a layer of Llama-1B's shape: n_rows rows after n_past positions.
static void time_layer(const char *cpu, frit_dtype dtype, int n_past, int n_rows, int n_threads)
{
    enum { N_HEAD = 32, N_KV = 8, DIM = 64, ROUNDS = 10 };
    world w;
    frit_device *device;
    frit_exec *exec;
    world_open(&w, 1, (int[][2]){{n_past, n_rows}}, 1);
    world_cache(&w, (frit_kv_types){dtype, dtype}, N_KV, DIM, DIM);
    w.layer.k.transposed = frit_dtype_get(dtype)->block_elems == 1;   // as in engines
    frit_node *q = world_heads(&w, N_HEAD, DIM), *k = world_heads(&w, N_KV, DIM);
    frit_node *written = frit_kv_write(&w.graph, k, world_heads(&w, N_KV, DIM), 0);
    w.graph.output = frit_attend_node(&w.graph, q, written, (frit_attend){.scale = 0.125f}, DIM);
    world_plan(&w, false);
    assert_ok(frit_backend_cpu.open(&device, &(frit_device_options){.n_threads = n_threads, .cpu = cpu}));
    assert_ok(frit_backend_cpu.prepare(device, w.plan, &w.cache, &exec));
    world_reset_cache(&w);
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t start = frit_time_ns();
        world_step(&w, device, exec);
        const uint64_t took = frit_time_ns() - start;
        best = took < best ? took : best;
    }
    const double n_bytes = (double)(n_past + n_rows) * N_KV * (double)(w.layer.k.row_bytes + w.layer.v.row_bytes);
    const double n_ops = 4.0 * N_HEAD * DIM * n_rows * (n_past + n_rows / 2.0);
    printf("%-10s %-6s %6d positions %3d rows %d threads %9.3f ms %6.1f GB/s %6.0f Gop/s\n", cpu,
           frit_dtype_get(dtype)->name, n_past, n_rows, n_threads, 1e-6 * (double)best, n_bytes / (double)best,
           n_ops / (double)best);
    frit_backend_cpu.exec_free(device, exec);
    frit_backend_cpu.close(device);
    world_close(&w);
}

// isa, n_past: NULL for all.
static int bench(const char *isa, const char *n_past)
{
    static const struct {
        frit_dtype dtype;
        int n_past, n_rows;
    } rows[] = {
        {FRIT_DTYPE_F16, 8192, 1},    {FRIT_DTYPE_Q8_0, 8192, 1},   {FRIT_DTYPE_Q4_0, 8192, 1},
        {FRIT_DTYPE_F16, 8192, 8},    {FRIT_DTYPE_F16, 0, 512},     {FRIT_DTYPE_F16, 4096, 256},
        {FRIT_DTYPE_BF16, 4096, 256}, {FRIT_DTYPE_Q8_0, 4096, 256}, {FRIT_DTYPE_Q4_0, 4096, 256},
        {FRIT_DTYPE_F16, 8100, 512},
    };
    const char *isas[MAX_ISAS];
    const size_t n_isas = usable_isas(isas);
    for (size_t r = 0; r < FRIT_COUNT(rows); r++)
        for (size_t i = 0; i < n_isas; i++)
            for (int threads = 1;
                 threads <= 2 && (!isa || strcmp(isa, isas[i]) == 0) && (!n_past || atoi(n_past) == rows[r].n_past);
                 threads++)
                time_layer(isas[i], rows[r].dtype, rows[r].n_past, rows[r].n_rows, threads);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) return bench(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    for (size_t i = 0; i < FRIT_COUNT(gains); i++) gains[i] = 0.5f * sinf((float)(i * i % 997));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_agrees_with_the_reference),
        cmocka_unit_test(attention_survives_large_scores),
        cmocka_unit_test(prefill_attention_rescales_for_rising_scores),
        cmocka_unit_test(a_row_sees_itself_if_rounding_moves_large_scores),
        cmocka_unit_test(weights_and_weighted_values_are_never_subnormal),
        cmocka_unit_test(attention_of_every_kind_agrees_with_the_reference),
        cmocka_unit_test(attention_of_every_type_agrees_with_the_reference),
        cmocka_unit_test(gains_by_distance_agree_with_the_reference),
        cmocka_unit_test(attention_to_a_source_agrees_with_the_reference),
        cmocka_unit_test(attention_far_behind_agrees_with_the_reference),
        cmocka_unit_test(attention_of_f16_models_does_not_round_to_bf16),
    };
    return cmocka_run_group_tests(tests, report_isas, NULL);
}
