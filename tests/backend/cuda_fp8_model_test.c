// SPDX-License-Identifier: MIT
// Models of fp8_128 weights on NVIDIA GPUs, with inputs of products in f16 and in fp8, against the CPU.
#include "backend/gpu_engine.h"

// Norms, gates and attention write inputs of products. The CPU computes with the same weights.
static void models_give_the_logits_of_the_cpu(void **state)
{
    (void)state;
    enum { N_VOCAB = 320 };
    static const char *const devices[] = {"cpu", "cuda", "cuda"}, *const types[] = {"fp8", "fp8_weights", "fp8"};
    float *logits[3];
    require_gpu();
    frit_model_free(random_model(SMALL_LLAMA("64")));   // leaves the file
    for (int i = 0; i < 3; i++) {
        frit_model *model;
        frit_engine *engine;
        assert_ok(frit_model_open(&model, temp_path("random.gguf"), &(frit_model_options){.type = types[i]}));
        const frit_engine_options options = {
            .n_ctx = 160, .n_threads = 2, .cpu = i == 0 ? "reference" : NULL, .device = devices[i]};
        assert_ok(frit_engine_new(&engine, model, &options));
        logits[i] = calloc(N_PIECES * N_VOCAB, sizeof(float));
        run_pieces(engine, 70, N_VOCAB, logits[i]);
        if (i > 0) assert_null(op_on_cpu(engine));
        if (i > 0) assert_int_equal(has_kernel(engine, "gemm_fp8"), i == 2);
        frit_engine_free(engine);
        frit_model_free(model);
    }
    const double exact = nmse(logits[1], logits[0], N_PIECES * N_VOCAB),
                 rounded = nmse(logits[2], logits[0], N_PIECES * N_VOCAB);
    print_message("inputs in f16: %.1e, in fp8: %.1e\n", exact, rounded);
    assert_true(exact <= 1e-5 && rounded <= 2e-2 && rounded > exact);
    for (int i = 0; i < 3; i++) free(logits[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_give_the_logits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
