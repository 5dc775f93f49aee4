// SPDX-License-Identifier: MIT
// Several GPUs. Groups give the logits of one GPU, and with exact sums the same bits on groups of 1, 2 and 4. GPUs that
// each have some of the layers give the bits of one. The GPUs are those of tests/emulator or, with
// FRIT_TEST_GPU=FOLDER, those of the machine, as many as it has.
#include "backend/gpu_engine.h"

enum { VOCAB = 320, N_TEXTS = 4, N_PROMPT = 38, N_LONG = 150, N_SINGLE = 4, N_LOGITS = (N_SINGLE + 1) * VOCAB };

static int use_gpus(void **state)
{
    setenv("FRIT_EMULATED_GPUS", "4", 1);
    return use_emulator(state);
}

static frit_model *model_of(const char *arch, const char *type, const char *keys)
{
    frit_model *model;
    frit_checkpoint *ckpt;
    const frit_random_row row = {.shape = {.name = arch, .arch = arch, .title = "", .n_layers = 2}, .keys = keys};
    const frit_random_options options = {.type = type};
    const char *path = temp_path("random.gguf");
    assert_ok(frit_random_open(&ckpt, &row, &options));
    assert_ok(frit_random_save(ckpt, path, &options));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    return model;
}

// Opens an engine on the device. False: the machine has fewer GPUs.
static bool open_engine(frit_engine **engine, frit_model *model, const char *device, const char *split,
                        bool deterministic)
{
    const frit_engine_options options = {.n_ctx = 160,
                                         .n_threads = 2,
                                         .n_sessions = N_TEXTS,
                                         .n_batch = N_LONG,
                                         .device = device,
                                         .split = split,
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
static bool run_text(frit_model *model, const char *device, const char *split, bool deterministic, float *logits)
{
    frit_engine *engine;
    frit_session *session;
    frit_token tokens[N_PROMPT + N_SINGLE];
    if (!open_engine(&engine, model, device, split, deterministic)) return false;
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
        assert_true(run_text(model, "cuda", NULL, false, alone));
        for (size_t i = 0; i < FRIT_COUNT(groups); i++) {
            if (!run_text(model, groups[i], "tensor", false, got)) continue;
            const double error = nmse(got, alone, N_LOGITS);
            print_message("%s %s on %s: %.1e\n", models[m].arch, models[m].type, groups[i], error);
            assert_true(error <= 1e-6);
        }
        frit_model_free(model);
    }
}

// Sums of so many rows are sent in half of the bytes.
static bool run_long(frit_model *model, const char *device, float *logits)
{
    frit_engine *engine;
    frit_session *session;
    frit_token tokens[N_LONG];
    if (!open_engine(&engine, model, device, "tensor", false)) return false;
    for (int i = 0; i < N_LONG; i++) tokens[i] = (i * 37 + 11) % VOCAB;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, N_LONG, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    memcpy(logits, frit_session_logits(session), VOCAB * sizeof *logits);
    frit_session_free(session);
    frit_engine_free(engine);
    return true;
}

static void large_sums_are_close(void **state)
{
    (void)state;
    require_gpu();
    float alone[VOCAB], got[VOCAB];
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    assert_true(run_long(model, "cuda", alone));
    if (run_long(model, "cuda:0-1", got)) {
        const double error = nmse(got, alone, VOCAB);
        print_message("sums of %d rows: %.1e\n", (int)N_LONG, error);
        assert_true(error <= 1e-6);
    }
    frit_model_free(model);
}

static void exact_sums_are_the_same_on_any_number_of_gpus(void **state)
{
    (void)state;
    require_gpu();
    static const char *const groups[] = {"cuda:0-1", "cuda:0-3"};
    float alone[N_LOGITS], got[N_LOGITS];
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    assert_true(run_text(model, "cuda:0", NULL, true, alone));
    for (size_t i = 0; i < FRIT_COUNT(groups); i++)
        if (run_text(model, groups[i], "tensor", true, got)) assert_memory_equal(got, alone, sizeof alone);
    frit_model_free(model);
}

static void a_group_that_cannot_be_made_is_refused(void **state)
{
    (void)state;
    if (is_real() || !has_emulator()) skip_because("the emulator has GPUs that do not reach each other");
    frit_engine *engine;
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    const frit_engine_options too_many = {.device = "cuda:3-4", .split = "tensor", .gpu_layers = "all"},
                              two = {.device = "cuda:0-1", .gpu_layers = "all", .split = "tensor"};
    assert_fails(frit_engine_new(&engine, model, &too_many), FRIT_E_INVALID, "GPU 4 does not exist; there are 4");
    setenv("FRIT_EMULATED_NO_PEERS", "1", 1);
    assert_fails(frit_engine_new(&engine, model, &two), FRIT_E_UNSUPPORTED, "cannot access the memory of GPU");
    unsetenv("FRIT_EMULATED_NO_PEERS");
    assert_ok(frit_engine_new(&engine, model, &two));
    frit_engine_free(engine);
    frit_model_free(model);
}

static void layers_on_several_gpus_give_the_bits_of_one(void **state)
{
    (void)state;
    require_gpu();
    static const char *const lists[] = {"cuda:0-1", "cuda:1,0", "cuda:0-2"};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        float alone[N_LOGITS], got[N_LOGITS];
        frit_model *model = model_of(models[m].arch, models[m].type, models[m].keys);
        assert_true(run_text(model, "cuda", NULL, false, alone));
        for (size_t i = 0; i < FRIT_COUNT(lists); i++)
            if (run_text(model, lists[i], "layer", false, got)) assert_memory_equal(got, alone, sizeof alone);
        frit_model_free(model);
    }
}

// Tokens that several sessions generate together, without drafts.
static bool generate(frit_model *model, const char *device, frit_token texts[N_TEXTS][N_SINGLE], int32_t *n_stages)
{
    frit_engine *engine;
    frit_session *sessions[N_TEXTS];
    frit_sampler *sampler;
    int n[N_TEXTS] = {0}, n_left = N_TEXTS;
    frit_token prompt[N_PROMPT];
    if (!open_engine(&engine, model, device, "layer", false)) return false;
    *n_stages = engine->schedule.n_stages;
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (i * 37 + 11) % VOCAB;
    assert_ok(frit_sampler_create(&sampler, VOCAB, &(frit_sampler_options){.temp = 0}));
    for (int i = 0; i < N_TEXTS; i++) {
        assert_ok(frit_session_new(&sessions[i], engine));
        assert_ok(frit_session_push(sessions[i], prompt, (size_t)(N_PROMPT - 3 * i), NULL));
        assert_ok(frit_session_pick(sessions[i], sampler, NULL));
    }
    while (n_left > 0) {
        assert_ok(frit_engine_advance(engine, NULL));
        for (int i = 0; i < N_TEXTS; i++) {
            frit_picked picked;
            if (n[i] == N_SINGLE || !frit_session_has_picked(sessions[i])) continue;
            assert_ok(frit_session_picked(sessions[i], &picked));
            texts[i][n[i]++] = picked.token;
            n_left -= n[i] == N_SINGLE;
            if (n[i] == N_SINGLE) continue;
            assert_ok(frit_session_push(sessions[i], &picked.token, 1, NULL));
            assert_ok(frit_session_pick(sessions[i], sampler, NULL));
        }
    }
    for (int i = 0; i < N_TEXTS; i++) frit_session_free(sessions[i]);
    frit_sampler_free(sampler);
    frit_engine_free(engine);
    return true;
}

static void texts_divided_among_steps_are_the_same(void **state)
{
    (void)state;
    require_gpu();
    frit_token alone[N_TEXTS][N_SINGLE], got[N_TEXTS][N_SINGLE];
    int32_t n_stages;
    frit_model *model = model_of(models[0].arch, models[0].type, models[0].keys);
    assert_true(generate(model, "cuda", alone, &n_stages));
    assert_int_equal(n_stages, 1);
    if (generate(model, "cuda:0-1", got, &n_stages)) {
        assert_int_equal(n_stages, 2);
        assert_memory_equal(got, alone, sizeof alone);
    }
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_give_the_logits_of_one_gpu),
        cmocka_unit_test(large_sums_are_close),
        cmocka_unit_test(exact_sums_are_the_same_on_any_number_of_gpus),
        cmocka_unit_test(a_group_that_cannot_be_made_is_refused),
        cmocka_unit_test(layers_on_several_gpus_give_the_bits_of_one),
        cmocka_unit_test(texts_divided_among_steps_are_the_same),
    };
    return cmocka_run_group_tests(tests, use_gpus, use_no_emulator);
}
