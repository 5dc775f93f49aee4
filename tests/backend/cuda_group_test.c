// SPDX-License-Identifier: MIT
// Groups of GPUs: the logits of one GPU, and with exact sums the same bits on groups of 1, 2 and 4. On the GPUs of
// tests/emulator or, with FRIT_TEST_GPU=FOLDER, on the machine's, as many as it has.
#include "backend/gpu_engine.h"

enum { VOCAB = 320, N_PROMPT = 38, N_SINGLE = 4, N_LOGITS = (N_SINGLE + 1) * VOCAB };

static int use_gpus(void **state)
{
    setenv("FRIT_EMULATED_GPUS", "4", 1);
    return use_emulator(state);
}

static frit_model *model_of(const char *arch, const char *type, const char *keys)
{
    frit_model *model;
    frit_checkpoint *ckpt;
    const frit_random_row row = {.shape = {.name = arch, .arch = arch, .title = "", .n_layers = 1}, .keys = keys};
    const frit_random_options options = {.type = type};
    const char *path = temp_path("random.gguf");
    assert_ok(frit_random_open(&ckpt, &row, &options));
    assert_ok(frit_random_save(ckpt, path, &options));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    return model;
}

// Opens an engine on the device. False: the machine has fewer GPUs.
static bool open_engine(frit_engine **engine, frit_model *model, const char *device, bool deterministic)
{
    const frit_engine_options options = {.n_ctx = 160,
                                         .n_threads = 2,
                                         .n_sessions = 2,
                                         .n_batch = 64,
                                         .device = device,
                                         .gpu_layers = "all",
                                         .cache_type_k = "f32",
                                         .cache_type_v = "f32",
                                         .deterministic = deterministic};
    const frit_status status = frit_engine_new(engine, model, &options);
    if (status == FRIT_E_INVALID && is_real()) return false;
    assert_ok(status);
    return true;
}

// A prompt, and single tokens after it. False: the machine has fewer GPUs.
static bool run_text(frit_model *model, const char *device, bool deterministic, float *logits)
{
    frit_engine *engine;
    frit_session *session;
    frit_token tokens[N_PROMPT + N_SINGLE];
    if (!open_engine(&engine, model, device, deterministic)) return false;
    for (int i = 0; i < N_PROMPT + N_SINGLE; i++) tokens[i] = (i * 37 + 11) % VOCAB;
    assert_ok(frit_session_new(&session, engine));
    for (int k = 0; k <= N_SINGLE; k++) {
        assert_ok(frit_session_push(session, tokens + (k ? N_PROMPT + k - 1 : 0), k ? 1 : N_PROMPT, NULL));
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
        memcpy(logits + (ptrdiff_t)k * VOCAB, frit_session_logits(session), VOCAB * sizeof *logits);
    }
    frit_session_free(session);
    frit_engine_free(engine);
    return true;
}

#define SHAPE                                                                                   \
    "context_length=2048 embedding_length=512 feed_forward_length=1024 attention.head_count=8 " \
    "attention.head_count_kv=4 attention.key_length=64 attention.value_length=64 rope.freq_base=1e6 vocab_size=320 "

static const struct {
    const char *arch, *type, *keys;
} models[] = {
    {"llama", "q8_0", SHAPE "attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=64"},
    {"llama", "bf16", SHAPE "attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=64"},
    {"qwen3moe", "q8_0",
     SHAPE "attention.layer_norm_rms_epsilon=1e-6 expert_count=8 expert_used_count=2 expert_feed_forward_length=256"},
};

static void groups_give_the_logits_of_one_gpu(void **state)
{
    (void)state;
    require_gpu();
    static const char *const groups[] = {"cuda:0-1", "cuda:0-3"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        float alone[N_LOGITS], got[N_LOGITS];
        frit_model *model = model_of(models[m].arch, models[m].type, models[m].keys);
        assert_true(run_text(model, "cuda", false, alone));
        for (size_t i = 0; i < FRIT_COUNT(groups); i++) {
            if (!run_text(model, groups[i], false, got)) continue;
            const double error = nmse(got, alone, N_LOGITS);
            print_message("%s %s on %s: %.1e\n", models[m].arch, models[m].type, groups[i], error);
            assert_true(error <= 1e-6);
        }
        frit_model_free(model);
    }
}

static void exact_sums_are_the_same_on_any_number_of_gpus(void **state)
{
    (void)state;
    require_gpu();
    static const char *const groups[] = {"cuda:0-1", "cuda:0-3"};
    float alone[N_LOGITS], got[N_LOGITS];
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    assert_true(run_text(model, "cuda:0", true, alone));
    for (size_t i = 0; i < FRIT_COUNT(groups); i++)
        if (run_text(model, groups[i], true, got)) assert_memory_equal(got, alone, sizeof alone);
    frit_model_free(model);
}

static void a_group_that_cannot_be_made_is_refused(void **state)
{
    (void)state;
    if (is_real() || !has_emulator()) skip_because("the emulator has GPUs that do not reach each other");
    frit_engine *engine;
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    const frit_engine_options too_many = {.device = "cuda:3-4", .gpu_layers = "all"},
                              two = {.device = "cuda:0-1", .gpu_layers = "all"};
    assert_fails(frit_engine_new(&engine, model, &too_many), FRIT_E_INVALID, "GPU 4 does not exist; there are 4");
    setenv("FRIT_EMULATED_NO_PEERS", "1", 1);
    assert_fails(frit_engine_new(&engine, model, &two), FRIT_E_UNSUPPORTED, "cannot access the memory of GPU");
    unsetenv("FRIT_EMULATED_NO_PEERS");
    assert_ok(frit_engine_new(&engine, model, &two));
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_give_the_logits_of_one_gpu),
        cmocka_unit_test(exact_sums_are_the_same_on_any_number_of_gpus),
        cmocka_unit_test(a_group_that_cannot_be_made_is_refused),
    };
    return cmocka_run_group_tests(tests, use_gpus, use_no_emulator);
}
