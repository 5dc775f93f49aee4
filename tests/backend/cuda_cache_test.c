// SPDX-License-Identifier: MIT
// The cache on NVIDIA GPUs: types of keys and values, long texts, sessions that move to another device, and shifts.
#include "backend/gpu_engine.h"

// ------------------------------------------------------------------------------- types

// Runs the text's pieces on both devices with a cache of these types. A code may differ by one.
static double error_of_cache(frit_model *model, size_t n_vocab, const char *keys, const char *values, int32_t n_first)
{
    static const char *const devices[] = {"cpu", "cuda"};
    const size_t n = N_PIECES * n_vocab;
    float *logits[2];
    for (int i = 0; i < 2; i++) {
        const frit_engine_options options = {.n_ctx = n_first > FAR ? 2 * FAR : 160,
                                             .n_threads = 2,
                                             .cache_type_k = keys,
                                             .cache_type_v = values,
                                             .cpu = "reference",
                                             .device = devices[i]};
        frit_engine *engine;
        assert_ok(frit_engine_new(&engine, model, &options));
        logits[i] = calloc(n, sizeof(float));
        run_pieces(engine, n_first, n_vocab, logits[i]);
        if (i == 1) {
            assert_false(has_kernel(engine, "plain_attend"));
            assert_false(has_kernel(engine, "plain_kv_write"));
            assert_true(has_kernel(engine, "attend"));
            assert_true(has_kernel(engine, "attend_rows"));
        }
        frit_engine_free(engine);
    }
    const double error = nmse(logits[1], logits[0], n);
    for (int i = 0; i < 2; i++) free(logits[i]);
    return error;
}

// Caches with numbers of 8 and 16 bits; with blocks, an even or odd number in a row; with different types of keys and
// values; of several pages.
static void caches_of_other_types_give_the_logits_of_the_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *values, *shape;
        double limit;
    } cases[] = {
        {"q8_0", "q8_0", SMALL_LLAMA("64"), 1e-5}, {"q4_0", "q4_0", SMALL_LLAMA("96"), 1e-3},
        {"bf16", "fp8", SMALL_LLAMA("32"), 1e-3},  {"fp8", "bf16", SMALL_LLAMA("96"), 1e-3},
        {"f16", "q4_0", SMALL_LLAMA("128"), 1e-3},
    };
    require_gpu();
    for (size_t i = 0; i < FRIT_COUNT(cases) && (is_real() || i < 3); i++) {
        frit_model *model = random_model(cases[i].shape);
        const double error = error_of_cache(model, 320, cases[i].keys, cases[i].values, 70);
        print_message("%s, %s: %.1e\n", cases[i].keys, cases[i].values, error);
        assert_true(error <= cases[i].limit);
        frit_model_free(model);
    }
}

// attend.cu copies pages ahead in long texts, and always copies pages of types with codes.
static void long_texts_give_the_logits_of_the_cpu(void **state)
{
    (void)state;
    static const char *const types[] = {"f16", "q8_0"};
    require_gpu();
    frit_model *model = random_model(SMALL_LLAMA("32"));
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const double error = error_of_cache(model, 320, types[i], types[i], FAR + 50);
        print_message("%d positions, %s: %.1e\n", FAR + 50, types[i], error);
        assert_true(error <= 1e-5);
    }
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- sessions

static void a_session_moves_between_gpu_and_cpu(void **state)
{
    (void)state;
    require_gpu();
    size_t i = 0;
    while (i < N_GOLDENS && strcmp(golden_name(i), "llama-dense") != 0) i++;
    if (i == N_GOLDENS || !golden_is_here(i)) skip_because("the reference model llama-dense is not here");
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    static const char *const caches[] = {"f32", "f16"};   // f16 has another layout on the GPU
    kept_rows r = {.logits = calloc(g.n_tokens * g.n_vocab, sizeof(float)), .n_vocab = g.n_vocab};
    const char *path = temp_path("moved");
    for (int round = 0; round < 4; round++) {
        const char *const cache = caches[round / 2], *const devices[] = {"cuda", "cpu"};
        r.n_rows = 0;
        for (int turn = 0; turn < 2; turn++) {
            frit_engine *engine = new_engine(model, devices[(round + turn) % 2], cache, 64);
            frit_session *session, *fork;
            assert_ok(frit_session_new(&session, engine));
            if (turn) assert_ok(frit_session_load(session, path));
            assert_ok(frit_session_fork(&fork, session));
            frit_session_free(session);
            run_golden(engine, fork, &g, turn * g.n_tokens / 2, turn ? g.n_tokens : g.n_tokens / 2, 5, &r);
            if (!turn) assert_ok(frit_session_save(fork, path));
            frit_session_free(fork);
            frit_engine_free(engine);
        }
        const double error = nmse(r.logits, g.logits, g.n_tokens * g.n_vocab);
        print_message("%s, %s: %.1e\n", cache, round % 2 ? "cpu to cuda" : "cuda to cpu", error);
        assert_true(error <= (round < 2 ? 1e-6 : 1e-5));
    }
    free(r.logits);
    frit_model_free(model);
    golden_free(&g);
}

static void run_until_shifted(frit_engine *engine, float *logits, size_t n_vocab)
{
    enum { N_CTX = 96, N_NEXT = 3 };
    frit_token tokens[N_CTX + N_NEXT];
    frit_session *session;
    frit_shift_info shift;
    int32_t n_rows;
    for (int i = 0; i < N_CTX + N_NEXT; i++) tokens[i] = (i * 37 + 11) % (int)n_vocab;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){0}));
    for (int pushed = 0; pushed < 2; pushed++) {
        assert_ok(frit_session_push(session, tokens + (pushed ? N_CTX : 0), pushed ? N_NEXT : N_CTX, NULL));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
    }
    assert_ok(frit_session_get_shift(session, &shift));
    assert_int_equal(shift.n_dropped, 32);
    memcpy(logits, frit_session_logits(session), n_vocab * sizeof *logits);
    frit_session_free(session);
}

// f16 keys are stored by position on the GPU, and by dimension on the CPU.
static void a_context_shift_is_that_of_the_cpu(void **state)
{
    (void)state;
    require_gpu();
    if (!shared_has("goldens/arch/llama-dense.gguf")) skip_because("the reference model llama-dense is not here");
    static const char *const devices[] = {"cpu", "cuda"}, *const caches[] = {"f32", "f16"};
    frit_model *model;
    frit_model_info info = {0};
    assert_ok(frit_model_open(&model, shared_path("goldens/arch/llama-dense.gguf"), NULL));
    assert_ok(frit_model_get_info(model, &info));
    const size_t n = (size_t)info.n_vocab;
    for (size_t c = 0; c < FRIT_COUNT(caches); c++) {
        float *logits[2];
        for (int i = 0; i < 2; i++) {
            logits[i] = malloc(n * sizeof *logits[i]);
            frit_engine *engine = new_engine(model, devices[i], caches[c], 96);
            run_until_shifted(engine, logits[i], n);
            frit_engine_free(engine);
        }
        const double error = nmse(logits[1], logits[0], n);
        print_message("%s: %.1e\n", caches[c], error);
        assert_true(error <= (c ? 1e-5 : 1e-6));
        for (int i = 0; i < 2; i++) free(logits[i]);
    }
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches_of_other_types_give_the_logits_of_the_cpu),
        cmocka_unit_test(long_texts_give_the_logits_of_the_cpu),
        cmocka_unit_test(a_session_moves_between_gpu_and_cpu),
        cmocka_unit_test(a_context_shift_is_that_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
