// SPDX-License-Identifier: MIT
// With --deterministic the numbers of a text on a GPU are the same to the bit, alone and among others, and however its
// prompt is cut into steps.
#include "backend/gpu_engine.h"

enum { VOCAB = 320, N_PROMPT = 38, N_SINGLE = 2, MOST_OTHERS = 129 };

static frit_token token_at(int i)
{
    return (i * 37 + 11) % VOCAB;
}

static frit_engine *open_engine(frit_model *model, bool deterministic, int32_t n_batch)
{
    const frit_engine_options options = {.n_ctx = 160,
                                         .n_threads = 2,
                                         .n_sessions = MOST_OTHERS + 1,
                                         .n_batch = n_batch,
                                         .device = "cuda",
                                         .gpu_layers = "all",
                                         .no_prefix_cache = true,
                                         .deterministic = deterministic};
    frit_engine *engine;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static void push_token(frit_session *session, frit_token token)
{
    assert_ok(frit_session_push(session, &token, 1, NULL));
}

// Runs a prompt and single tokens after it. The others have begun, and have a row in each step.
static void run_text(frit_engine *engine, int n_others, float *logits)
{
    static frit_session *others[MOST_OTHERS];
    frit_session *session;
    frit_token prompt[N_PROMPT];
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < n_others; i++) assert_ok(frit_session_new(&others[i], engine));
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = token_at(i);
    assert_ok(frit_session_push(session, prompt, N_PROMPT, NULL));
    for (int k = 0; k <= N_SINGLE; k++) {
        if (k > 0) push_token(session, token_at(N_PROMPT + k));
        for (int i = 0; i < n_others; i++) push_token(others[i], token_at(7 * i + k));
        while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
        memcpy(logits + (ptrdiff_t)k * VOCAB, frit_session_logits(session), VOCAB * sizeof *logits);
    }
    for (int i = 0; i < n_others; i++) frit_session_free(others[i]);
    frit_session_free(session);
}

static frit_model *model_of(const char *arch, const char *type, const char *keys, const char *optional)
{
    frit_model *model;
    frit_checkpoint *ckpt;
    const frit_random_row row = {
        .shape = {.name = arch, .arch = arch, .title = "", .n_layers = 1}, .keys = keys, .optional = optional};
    const frit_random_options options = {.type = type};
    const char *path = temp_path("random.gguf");
    assert_ok(frit_random_open(&ckpt, &row, &options));
    assert_ok(frit_random_save(ckpt, path, &options));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    return model;
}

static const struct {
    const char *arch, *type, *keys;
} models[] = {
    {"llama", "q8_0", SMALL_LLAMA("32")},
    {"llama", "f16", SMALL_LLAMA("64")},
    // A product of 8,192 columns, which blocks divide among them.
    {"llama", "q4_k",
     "context_length=2048 embedding_length=256 feed_forward_length=8192 attention.head_count=8 "
     "attention.head_count_kv=2 "
     "attention.key_length=32 attention.value_length=32 attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=32 "
     "vocab_size=320"},
    // Norms of heads, and experts.
    {"qwen3moe", "q8_0",
     "context_length=2048 embedding_length=256 feed_forward_length=512 attention.head_count=8 "
     "attention.head_count_kv=2 "
     "attention.key_length=32 attention.value_length=32 attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1e6 "
     "vocab_size=320 expert_count=8 expert_used_count=2 expert_feed_forward_length=256"},
};

static void a_text_has_the_same_numbers_alone_and_in_a_crowd(void **state)
{
    (void)state;
    require_gpu();
    static const int n_others[] = {2, 17, MOST_OTHERS};
    for (size_t m = 0; m < FRIT_COUNT(models); m++) {
        float alone[(N_SINGLE + 1) * VOCAB], got[(N_SINGLE + 1) * VOCAB];
        frit_model *model = model_of(models[m].arch, models[m].type, models[m].keys, NULL);
        frit_engine *engine = open_engine(model, true, 256);
        run_text(engine, 0, alone);
        for (size_t i = 0; i < FRIT_COUNT(n_others); i++) {
            if (m > 0 && n_others[i] == MOST_OTHERS) continue;   // takes long on an emulated GPU
            run_text(engine, n_others[i], got);
            if (memcmp(got, alone, sizeof alone) != 0)
                fail_msg("%s %s among %d others: nmse %g", models[m].arch, models[m].type, n_others[i],
                         nmse(got, alone, (N_SINGLE + 1) * VOCAB));
        }
        frit_engine_free(engine);
        engine = open_engine(model, true, 16);   // cuts the prompt, into pieces of 16, 16 and 6 tokens
        run_text(engine, 0, got);
        assert_memory_equal(got, alone, sizeof alone);
        frit_engine_free(engine);
        frit_model_free(model);
    }
}

// Deterministic kernels compute what the others do, up to rounding. Without them the numbers of rows matter.
static void other_kernels_give_close_numbers(void **state)
{
    (void)state;
    require_gpu();
    float fixed[(N_SINGLE + 1) * VOCAB], free[(N_SINGLE + 1) * VOCAB], crowd[(N_SINGLE + 1) * VOCAB];
    frit_model *model = model_of(models[2].arch, models[2].type, models[2].keys, NULL);
    frit_engine *engine = open_engine(model, true, 256);
    run_text(engine, 0, fixed);
    frit_engine_free(engine);
    engine = open_engine(model, false, 256);
    run_text(engine, 0, free);
    run_text(engine, 17, crowd);
    frit_engine_free(engine);
    assert_true(nmse(free, fixed, (N_SINGLE + 1) * VOCAB) <= 1e-4);
    assert_memory_not_equal(crowd, free, sizeof free);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_same_numbers_alone_and_in_a_crowd),
        cmocka_unit_test(other_kernels_give_close_numbers),
    };
    return cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
