// SPDX-License-Identifier: MIT
// Models with random weights: every shape has the tensors of its architecture. Models run, with equal results in memory
// and from a file.
#include "support/support.h"

#include "convert/random.h"
#include <math.h>
#include <unistd.h>

// The architectures of the shapes, small enough to run in a test.
static const frit_random_row small[] = {
    {.shape = {.name = "llama", .arch = "llama", .title = "", .n_layers = 2},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=512 attention.head_count=4 "
             "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=1e-5 rope.freq_base=10000.0 vocab_size=300",
     .optional = "output"},
    {.shape = {.name = "qwen3moe", .arch = "qwen3moe", .title = "", .n_layers = 3},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=512 attention.head_count=4 "
             "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
             "attention.layer_norm_rms_epsilon=1e-6 vocab_size=300 expert_count=8 expert_used_count=2 "
             "expert_feed_forward_length=96"},
    {.shape = {.name = "deepseek2", .arch = "deepseek2", .title = "", .n_layers = 3},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=224 attention.head_count=4 "
             "attention.head_count_kv=1 attention.key_length=96 attention.value_length=64 "
             "attention.key_length_mla=64 attention.value_length_mla=32 attention.kv_lora_rank=64 "
             "rope.dimension_count=32 attention.layer_norm_rms_epsilon=1e-6 vocab_size=300 "
             "leading_dense_block_count=1 expert_count=8 expert_used_count=2 expert_shared_count=2 "
             "expert_feed_forward_length=96 expert_weights_scale=1.0 expert_weights_norm=false expert_gating_func=1",
     .optional = "output attn_k_b attn_v_b",
     .keys_cut = "attention.q_lora_rank=96",
     .optional_whole = "attn_q"},
    {.shape = {.name = "qwen3next", .arch = "qwen3next", .title = "", .n_layers = 4},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=512 attention.head_count=4 "
             "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
             "attention.layer_norm_rms_epsilon=1e-6 rope.dimension_count=16 vocab_size=300 expert_count=8 "
             "expert_used_count=2 expert_feed_forward_length=64 expert_shared_feed_forward_length=64 "
             "ssm.conv_kernel=4 ssm.inner_size=256 ssm.state_size=32 ssm.time_step_rank=8 ssm.group_count=4",
     .optional = "output attn_qkv attn_gate"},
    {.shape = {.name = "mamba2", .arch = "mamba2", .title = "", .n_layers = 3},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=0 attention.head_count=0 "
             "attention.layer_norm_rms_epsilon=1e-5 vocab_size=300 ssm.conv_kernel=4 ssm.inner_size=512 "
             "ssm.state_size=32 ssm.time_step_rank=8 ssm.group_count=2",
     .optional = "output ssm_conv1d.bias ssm_norm"},
    // No shape has this architecture: any architecture can be made.
    {.shape = {.name = "mamba", .arch = "mamba", .title = "", .n_layers = 2},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=0 attention.head_count=0 "
             "attention.layer_norm_rms_epsilon=1e-5 vocab_size=300 ssm.conv_kernel=4 ssm.inner_size=512 "
             "ssm.state_size=16 ssm.time_step_rank=16"},
    {.shape = {.name = "gemma2", .arch = "gemma2", .title = "", .n_layers = 2},
     .keys = "context_length=64 embedding_length=256 feed_forward_length=512 attention.head_count=4 "
             "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
             "attention.layer_norm_rms_epsilon=1e-6 attention.sliding_window=16 vocab_size=300"},
};

enum { N_TOKENS = 20 };

// Returns the logits after some tokens, [n_vocab], freed by the caller.
static float *run(frit_model *model, size_t *n)
{
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
    frit_token tokens[N_TOKENS];
    frit_model_get_info(model, &info);
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (i * 37 + 5) % 300;
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 32, .n_threads = 2}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, N_TOKENS, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    *n = (size_t)info.n_vocab;
    float *logits = malloc(*n * sizeof *logits);
    memcpy(logits, frit_session_logits(session), *n * sizeof *logits);
    frit_session_free(session);
    frit_engine_free(engine);
    return logits;
}

// Checks that logits are finite, not all equal, and not so far apart that softmax has a single winner.
static void assert_sane(const float *logits, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(logits[i]));
        sum += logits[i];
        squares += (double)logits[i] * logits[i];
    }
    const double mean = sum / (double)n, deviation = sqrt(squares / (double)n - mean * mean);
    if (!(deviation > 1e-3 && deviation < 30)) fail_msg("logits deviate by %g", deviation);
}

static void small_ones_of_every_type_run(void **state)
{
    (void)state;
    static const char *const types[] = {"q4_k_m", "q5_k_m", "q8_0", "f16", "iq2_xs", "mxfp4", "f32"};
    const char *path = temp_path("random.gguf");
    for (size_t i = 0; i < FRIT_COUNT(small); i++) {
        for (size_t t = 0; t < FRIT_COUNT(types); t++) {
            const frit_random_options options = {.type = types[t], .n_threads = 1};
            frit_checkpoint *ckpt;
            frit_model *model;
            size_t n;
            assert_ok(frit_random_open(&ckpt, &small[i], &options));
            assert_ok(frit_random_save(ckpt, path, &options));
            frit_checkpoint_close(ckpt);
            assert_ok(frit_model_open(&model, path, NULL));
            float *logits = run(model, &n);
            assert_int_equal(n, 300);
            assert_sane(logits, n);
            free(logits);
            frit_model_free(model);
        }
    }
}

// Tensors that the file of a whole model lacks are in the file of a cut one.
static void layers_can_be_left_out(void **state)
{
    (void)state;
    frit_checkpoint *whole, *part;
    assert_ok(frit_random_open(&whole, &small[2], &(frit_random_options){0}));
    assert_ok(frit_random_open(&part, &small[2], &(frit_random_options){.n_layers = 2}));
    assert_non_null(frit_checkpoint_find(whole, "blk.2.attn_q.weight"));
    assert_null(frit_checkpoint_find(whole, "blk.2.attn_q_a.weight"));
    assert_non_null(frit_checkpoint_find(part, "blk.1.attn_q_a.weight"));
    assert_null(frit_checkpoint_find(part, "blk.1.attn_q.weight"));
    assert_null(frit_checkpoint_find(part, "blk.2.attn_norm.weight"));
    frit_checkpoint_close(whole);
    frit_checkpoint_close(part);
}

// Compares with known sizes: Qwen3-30B-A3B has 30.5 billion numbers, and so on.
static void every_shape_has_the_size_of_its_model(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions;
    } sizes[] = {{"llama-1b", 1.24},         {"llama-3b", 3.21},           {"llama-8b", 8.03},
                 {"llama-70b", 70.55},       {"qwen3-0.6b", 0.596},        {"qwen3-30b-a3b", 30.53},
                 {"deepseek-v2-lite", 15.7}, {"qwen3-next-80b-a3b", 79.7}, {"mamba2-2.7b", 2.70}};
    size_t n = 0;
    for (; frit_random_shape_get(n); n++) {
        const frit_random_shape *shape = frit_random_shape_get(n);
        assert_true(n < FRIT_COUNT(sizes));
        assert_string_equal(shape->name, sizes[n].name);
        for (int whole = 0; whole < 2; whole++) {
            frit_model *model;
            frit_model_info info;
            const frit_random_options options = {.shape = shape->name, .n_layers = whole ? 0 : shape->n_layers / 2};
            assert_ok(frit_model_open_random(&model, &options, NULL));
            frit_model_get_info(model, &info);
            const double billions = (double)info.n_params * 1e-9;
            if (whole && fabs(billions / sizes[n].billions - 1) > 0.01)
                fail_msg("%s has %g billion numbers", shape->name, billions);
            if (whole) assert_string_equal(info.file_type, "q4_k_m");
            frit_model_free(model);
        }
    }
    assert_int_equal(n, FRIT_COUNT(sizes));
}

static bool stop(void *ctx, double done)
{
    (void)ctx;
    return done < 0.3;
}

static void the_file_is_what_runs_without_one(void **state)
{
    (void)state;
    const char *path = temp_path("one-layer.gguf");
    frit_random_options options = {.shape = "mamba2-2.7b", .n_layers = 1, .type = "q4_0"};
    frit_model *here, *there;
    size_t n, n_there;
    options.progress = stop;
    assert_fails(frit_random_write(path, &options), FRIT_E_CANCELLED, "writing was cancelled");
    assert_int_equal(access(path, F_OK), -1);
    options.progress = NULL;
    assert_ok(frit_random_write(path, &options));
    assert_ok(frit_model_open_random(&here, &options, NULL));
    assert_ok(frit_model_open(&there, path, NULL));
    float *a = run(here, &n), *b = run(there, &n_there);
    assert_int_equal(n, n_there);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_sane(a, n);
    free(a);
    free(b);
    frit_model_free(here);
    frit_model_free(there);
    remove(path);
}

static void what_is_no_shape_is_refused(void **state)
{
    (void)state;
    frit_model *model;
    const char *path = temp_path("none.gguf");
    assert_fails(frit_model_open_random(&model, &(frit_random_options){.shape = "qwen3"}, NULL), FRIT_E_INVALID,
                 "unknown shape 'qwen3'; the nearest are qwen3-0.6b");
    assert_null(model);
    assert_fails(frit_model_open_random(&model, &(frit_random_options){0}, NULL), FRIT_E_INVALID, "unknown shape ''");
    assert_fails(frit_random_write(path, &(frit_random_options){0}), FRIT_E_INVALID, "unknown shape ''");
    assert_fails(frit_random_write(path, &(frit_random_options){.shape = "llama-1b", .n_layers = 17}), FRIT_E_INVALID,
                 "llama-1b has 16 layers, 17 are requested");
    assert_fails(frit_random_write(path, &(frit_random_options){.shape = "llama-1b", .n_layers = -1}), FRIT_E_INVALID,
                 "-1 are requested");
    assert_fails(frit_random_write(path, &(frit_random_options){.shape = "llama-1b", .type = "i32"}), FRIT_E_INVALID,
                 "nvfp4, q4_k_m, q5_k_m or fp8");
    assert_int_equal(access(path, F_OK), -1);
    assert_fails(frit_random_write("/no/such/folder/a.gguf", &(frit_random_options){.shape = "llama-1b"}),
                 FRIT_E_NOT_FOUND, "/no/such/folder/a.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_of_every_type_run),          cmocka_unit_test(layers_can_be_left_out),
        cmocka_unit_test(every_shape_has_the_size_of_its_model), cmocka_unit_test(the_file_is_what_runs_without_one),
        cmocka_unit_test(what_is_no_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
