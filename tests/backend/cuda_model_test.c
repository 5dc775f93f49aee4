// SPDX-License-Identifier: MIT
// Whole models on NVIDIA GPUs. By default the GPU is the emulated one of tests/emulator, which runs the real host code,
// and the kernels compiled for the host. Arguments select reference models whose names contain one of them. With
// FRIT_TEST_GPU=FOLDER all models run on the machine's GPU, and compiled kernels are cached in the folder.
#include "backend/gpu_engine.h"
#include "sample/sampler.h"

// ------------------------------------------------------------------------------- logits

static frit_ticket n_steps_of(const frit_engine *engine)
{
    assert_ptr_equal(engine->devices[0]->backend, &frit_backend_cuda);
    return ((const frit_cuda_device *)engine->devices[0])->n_submitted;
}

typedef struct run_mode {
    const char *cache;      // type of keys and values
    size_t chunk;           // tokens at a time; 0: all at once
    bool has_company;       // another session runs the same text in the same steps
    bool has_decoder;       // another session runs the text token by token, in the steps of the chunks
    const char *moves[2];   // devices of the two parts of the text, by a saved session; NULL: it stays on the GPU
    bool is_short;          // also runs on the emulator, which is slow
} run_mode;

// Types with 16-bit numbers have other kernels.
static const run_mode modes[] = {{.cache = "f32", .is_short = true},
                                 {.cache = "f32", .chunk = 7},
                                 {.cache = "f32", .chunk = 1},
                                 {.cache = "f32", .chunk = 3, .has_company = true},
                                 {.cache = "f32", .chunk = 5, .moves = {"cuda", "cpu"}},
                                 {.cache = "f32", .chunk = 5, .moves = {"cpu", "cuda"}},
                                 {.cache = "f16"},
                                 {.cache = "f16", .chunk = 7},
                                 {.cache = "f16", .chunk = 3, .has_company = true},
                                 {.cache = "f16", .chunk = 20, .has_decoder = true, .is_short = true},
                                 {.cache = "f16", .chunk = 1, .is_short = true}};

static double limit_of(const run_mode *mode)
{
    return strcmp(mode->cache, "f32") == 0 ? 1e-6 : 1e-5;
}

// Replaces rows by the other ones if these have the larger error.
static void keep_worse(const golden *g, kept_rows *r, const kept_rows *other)
{
    const size_t n = g->n_tokens * g->n_vocab;
    if (!(nmse(other->logits, g->logits, n) <= nmse(r->logits, g->logits, n)))
        memcpy(r->logits, other->logits, n * sizeof(float));
}

// Runs both sessions in the same steps. Returns the rows of the session with the larger error.
static void run_with_company(frit_engine *engine, frit_session *session, const golden *g, size_t chunk, kept_rows *r)
{
    kept_rows other = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    kept_rows *const rows[] = {r, &other};
    frit_session *sessions[] = {session, NULL};
    assert_ok(frit_session_new(&sessions[1], engine));
    if (g->source) assert_ok(frit_session_encode(sessions[1], g->source, g->n_source, NULL));
    for (size_t i = 0; i < g->n_tokens; i += chunk) {
        const size_t n = g->n_tokens - i < chunk ? g->n_tokens - i : chunk;
        int32_t n_rows;
        for (int k = 0; k < 2; k++) {
            const frit_push_options options = {.output = g->output, .row = keep_row, .row_ctx = rows[k]};
            assert_ok(frit_session_push(sessions[k], g->tokens + i, n, &options));
        }
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        for (int k = 0; k < 2; k++) rows[k]->n_rows += n;
    }
    keep_worse(g, r, &other);
    frit_session_free(sessions[1]);
    free(other.logits);
}

static void push_rows(frit_session *session, const golden *g, size_t at, size_t n, kept_rows *rows)
{
    const frit_push_options options = {.output = g->output, .row = keep_row, .row_ctx = rows};
    assert_ok(frit_session_push(session, g->tokens + at, n, &options));
}

// Runs the text token by token in one session. In each of these steps another session runs `chunk` tokens of the text,
// which begins anew at its end.
static void run_with_decoder(frit_engine *engine, frit_session *session, const golden *g, size_t chunk, kept_rows *r)
{
    kept_rows other = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    frit_session *decoder;
    size_t at = 0;
    assert_ok(frit_session_new(&decoder, engine));
    if (g->source) assert_ok(frit_session_encode(decoder, g->source, g->n_source, NULL));
    for (size_t i = 0; i < g->n_tokens; i++) {
        const size_t n = g->n_tokens - at < chunk ? g->n_tokens - at : chunk;
        int32_t n_rows;
        push_rows(decoder, g, i, 1, &other);
        push_rows(session, g, at, n, r);
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        other.n_rows++;
        r->n_rows += n;
        at += n;
        if (at < g->n_tokens || i + 1 == g->n_tokens) continue;
        assert_ok(frit_session_truncate(session, 0));
        at = r->n_rows = 0;
    }
    keep_worse(g, r, &other);
    frit_session_free(decoder);
    free(other.logits);
}

typedef struct model_run {
    frit_model *model;
    const golden *g;
    int32_t n_ctx;
    const char *op_on_cpu;   // NULL: all ran on the GPU
} model_run;

static void run_on(model_run *m, const char *device, const run_mode *mode, kept_rows *r)
{
    const golden *g = m->g;
    const bool is_gpu = strcmp(device, "cuda") == 0;
    frit_engine *engine = new_engine(m->model, device, mode->cache, m->n_ctx);
    frit_session *session;
    assert_ok(frit_session_new(&session, engine));
    if (g->source) assert_ok(frit_session_encode(session, g->source, g->n_source, NULL));
    if (mode->has_company)
        run_with_company(engine, session, g, mode->chunk, r);
    else if (mode->has_decoder)
        run_with_decoder(engine, session, g, mode->chunk, r);
    else
        run_golden(engine, session, g, 0, g->n_tokens, mode->chunk ? mode->chunk : g->n_tokens, r);
    assert_true(!is_gpu || n_steps_of(engine) > 0);
    if (is_gpu && !m->op_on_cpu) m->op_on_cpu = op_on_cpu(engine);
    frit_session_free(session);
    frit_engine_free(engine);
}

// Runs the first part of the text on one device, and the rest on the other, which loads the saved session.
static void run_moving(const model_run *m, const run_mode *mode, kept_rows *r)
{
    const golden *g = m->g;
    const char *path = temp_path("moved");
    for (int half = 0; half < 2; half++) {
        frit_engine *engine = new_engine(m->model, mode->moves[half], mode->cache, m->n_ctx);
        frit_session *session;
        const size_t middle = g->n_tokens / 2;
        assert_ok(frit_session_new(&session, engine));
        if (half) assert_ok(frit_session_load(session, path));
        run_golden(engine, session, g, half ? middle : 0, half ? g->n_tokens : middle, mode->chunk, r);
        if (!half) assert_ok(frit_session_save(session, path));
        frit_session_free(session);
        frit_engine_free(engine);
    }
}

static double error_of(model_run *m, const char *device, const run_mode *mode)
{
    const golden *g = m->g;
    kept_rows r = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    if (mode->moves[0])
        run_moving(m, mode, &r);
    else
        run_on(m, device, mode, &r);
    const double error = nmse(r.logits, g->logits, g->n_tokens * g->n_vocab);
    free(r.logits);
    return error;
}

// Rounding keys to f16 costs much if scores are large and not scaled (T5). The limit is twice the error of the CPU.
static bool is_within(model_run *m, const run_mode *mode, double error)
{
    if (error <= limit_of(mode)) return true;
    return strcmp(mode->cache, "f16") == 0 && !mode->moves[0] && error <= 2 * error_of(m, "cpu", mode);
}

static bool can(const golden *g, unsigned flags, const run_mode *mode)
{
    if (!is_real() && !mode->is_short) return false;
    if (mode->moves[0] && g->source) return false;   // files of sessions have no source
    return !(flags & GOLDEN_AT_ONCE) || !mode->chunk;
}

static char **wanted;

static bool is_wanted(const char *name)
{
    // Fused steps; softcaps, windows and norms after products; ALiBi, layer norms and biases; experts; norms of
    // heads.
    static const char *const names[] = {"llama-dense", "gemma2-dense", "bloom-dense", "llama-moe", "qwen3-dense"};
    for (char **word = wanted; word && *word; word++)
        if (strstr(name, *word)) return true;
    if (is_real() && !(wanted && *wanted)) return true;
    for (size_t i = 0; i < FRIT_COUNT(names) && !(wanted && *wanted); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

// Runs a model in all modes and returns the number of failures. *op_on_cpu is an op that ran on the CPU; NULL: all ran
// on the GPU.
static size_t n_wrong_of(size_t i, const char **op_on_cpu)
{
    size_t n_wrong = 0;
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    const unsigned flags = golden_get(i)->flags;
    model_run m = {.model = model, .g = &g, .n_ctx = flags & GOLDEN_LONG ? 256 : 64};
    print_message("| %-22s |", golden_name(i));
    for (size_t k = 0; k < FRIT_COUNT(modes); k++) {
        if (!can(&g, flags, &modes[k])) continue;
        const double error = error_of(&m, "cuda", &modes[k]);
        const bool is_right = is_within(&m, &modes[k], error);
        print_message(" %7.1e%s |", error, is_right ? "" : "!");
        n_wrong += !is_right;
    }
    print_message("%s%s\n", m.op_on_cpu ? " on the CPU: " : "", m.op_on_cpu ? m.op_on_cpu : "");
    frit_model_free(model);
    golden_free(&g);
    *op_on_cpu = m.op_on_cpu;
    return n_wrong;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    require_gpu();
    size_t n_run = 0, n_wrong = 0;
    const char *on_cpu;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (!is_wanted(golden_name(i)) || !golden_is_here(i)) continue;
        n_wrong += n_wrong_of(i, &on_cpu);
        n_run++;
    }
    assert_int_equal(n_wrong, 0);
    if (n_run == 0) skip_because("the reference models are not here");
}

// ------------------------------------------------------------------------------- GPUs without tensor products

static size_t index_of(const char *name)
{
    size_t i = 0;
    while (i < N_GOLDENS && strcmp(golden_name(i), name) != 0) i++;
    return i;
}

// sm_75 has products in f32 and plain attention; products of experts run on the CPU.
static void gpus_without_tensor_products_give_the_same_logits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool has_experts;
    } cases[] = {
        {"llama-dense", false}, {"qwen2-dense", false}, {"t5", false}, {"mamba2-dense", false}, {"llama-moe", true}};
    require_gpu();
    if (is_real()) skip_because("only the emulator's GPU is of any kind");
    setenv("FRIT_EMULATED_ARCH", "75", 1);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        const size_t at = index_of(cases[i].name);
        if (at == N_GOLDENS || !golden_is_here(at)) continue;
        const char *on_cpu;
        assert_int_equal(n_wrong_of(at, &on_cpu), 0);
        assert_true(on_cpu ? cases[i].has_experts : !cases[i].has_experts);
    }
    unsetenv("FRIT_EMULATED_ARCH");
}

static void experts_run_on_the_gpu_or_where_they_are_placed(void **state)
{
    (void)state;
    require_gpu();
    size_t i = 0;
    while (i < N_GOLDENS && strcmp(golden_name(i), "llama-moe") != 0) i++;
    if (i == N_GOLDENS || !golden_is_here(i)) skip_because("the reference model llama-moe is not here");
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    for (int on_cpu = 0; on_cpu <= 1; on_cpu++) {
        // Too few rows for streaming weights.
        const frit_engine_options options = {.n_ctx = 64,
                                             .n_batch = 32,
                                             .n_threads = 2,
                                             .cache_type_k = "f32",
                                             .cache_type_v = "f32",
                                             .device = "cuda",
                                             .gpu_layers = "all",
                                             .override_tensor = on_cpu ? "ffn_.*_exps=cpu" : NULL};
        kept_rows r = {.logits = calloc(g.n_tokens * g.n_vocab, sizeof(float)), .n_vocab = g.n_vocab};
        frit_engine *engine;
        frit_session *session;
        assert_ok(frit_engine_new(&engine, model, &options));
        assert_ok(frit_session_new(&session, engine));
        run_golden(engine, session, &g, 0, g.n_tokens, g.n_tokens, &r);
        assert_int_equal(has_kernel(engine, "experts"), !on_cpu);
        assert_true(nmse(r.logits, g.logits, g.n_tokens * g.n_vocab) <= 1e-6);
        frit_session_free(session);
        frit_engine_free(engine);
        free(r.logits);
    }
    frit_model_free(model);
    golden_free(&g);
}

// True if a kernel for gates and values writes the input of the next product.
static bool has_gated_product(const frit_engine *engine)
{
    const frit_cuda_device *d = (const frit_cuda_device *)engine->devices[0];
    for (size_t i = 0; i < d->n_kernels; i++)
        for (int k = 0; k < d->kernels[i]->n_defines; k++)
            if (strcmp(d->kernels[i]->defines[k], "GATED=1") == 0) return true;
    return false;
}

// An f16 cache has fast kernels for attention, rotation and writing; the models above test the plain kernels.
static void compare_with_cpu(const char *name, const char *path, int32_t n_first)
{
    static const char *const devices[] = {"cpu", "cuda"}, *const caches[] = {"f32", "f16"};
    frit_model *model;
    frit_model_info info = {0};
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_model_get_info(model, &info));
    const size_t n = N_PIECES * (size_t)info.n_vocab;
    float *logits[2];
    for (int i = 0; i < 2; i++) {
        logits[i] = calloc(n, sizeof(float));
        frit_engine *engine = new_engine(model, devices[i], caches[i], 160);
        run_pieces(engine, n_first, (size_t)info.n_vocab, logits[i]);
        if (i == 1) {
            assert_false(has_kernel(engine, "plain_attend"));
            assert_true(has_kernel(engine, "attend"));
            assert_true(has_kernel(engine, "attend_rows"));
            assert_true(has_kernel(engine, "gemm_small"));
            // Norms and gates write the input of the next product.
            if (strcmp(name, "gpt-oss") != 0) assert_true(has_kernel(engine, "norm_rows"));
            if (strcmp(name, "llama") == 0) assert_true(has_gated_product(engine));
        }
        frit_engine_free(engine);
    }
    const double error = nmse(logits[1], logits[0], n);
    print_message("%s: %.1e\n", name, error);
    assert_true(error <= 1e-5);
    for (int i = 0; i < 2; i++) free(logits[i]);
    frit_model_free(model);
}

// Heads of 64 dimensions, which the product rotates, and weights of two types.
static void fast_kernels_give_the_logits_of_the_cpu(void **state)
{
    (void)state;
    require_gpu();
    compare_with_cpu("fable", project_path("models/fable.gguf"), 18);
}

// Windows that begin after the first page, softcaps and heads of 256 dimensions; sinks and twelve query heads of a KV
// head; products of few matrix rows, whose columns are divided among blocks; norms of heads. The first piece of one
// model has more rows than attention processes at once, and more than products with weights in tiles process.
static void fast_kernels_of_other_shapes(void **state)
{
    (void)state;
    static const struct {
        frit_random_row row;
        int32_t n_first;
    } cases[] = {
        {{.shape = {.name = "gemma2", .arch = "gemma2", .title = "", .n_layers = 2},
          .keys = "context_length=128 embedding_length=256 feed_forward_length=256 attention.head_count=4 "
                  "attention.head_count_kv=2 attention.key_length=256 attention.value_length=256 "
                  "attention.layer_norm_rms_epsilon=1e-6 attention.sliding_window=3 attn_logit_softcapping=0.05 "
                  "final_logit_softcapping=30.0 vocab_size=320"},
         130},
        {{.shape = {.name = "gpt-oss", .arch = "gpt-oss", .title = "", .n_layers = 2},
          .keys = "context_length=128 embedding_length=256 feed_forward_length=256 attention.head_count=24 "
                  "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
                  "attention.layer_norm_rms_epsilon=1e-5 attention.sliding_window=3 vocab_size=320 expert_count=4 "
                  "expert_used_count=2 expert_feed_forward_length=64"},
         34},
        {{.shape = {.name = "llama", .arch = "llama", .title = "", .n_layers = 1},
          .keys = "context_length=128 embedding_length=1024 feed_forward_length=256 attention.head_count=2 "
                  "attention.head_count_kv=1 attention.key_length=64 attention.value_length=64 "
                  "attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=64 vocab_size=320"},
         18},
        {{.shape = {.name = "qwen3moe", .arch = "qwen3moe", .title = "", .n_layers = 2},
          .keys = "context_length=128 embedding_length=256 feed_forward_length=256 attention.head_count=4 "
                  "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
                  "attention.layer_norm_rms_epsilon=1e-6 vocab_size=320 expert_count=8 expert_used_count=2 "
                  "expert_feed_forward_length=64"},
         40},
    };
    require_gpu();
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_checkpoint *ckpt;
        const frit_random_options options = {.type = "q8_0"};
        const char *path = temp_path("random.gguf");
        assert_ok(frit_random_open(&ckpt, &cases[i].row, &options));
        assert_ok(frit_random_save(ckpt, path, &options));
        frit_checkpoint_close(ckpt);
        compare_with_cpu(cases[i].row.shape.name, path, cases[i].n_first);
    }
}

// ------------------------------------------------------------------------------- layers on the CPU

static size_t n_on(const frit_engine *engine, const char *device, size_t *n_streaming)
{
    size_t n = 0;
    const frit_shape_class *c = &engine->plans.classes[0][0][0][FRIT_PLAN_LOGITS][FRIT_N_CLASSES - 1];
    *n_streaming = 0;
    for (int k = 0; k < c->segments.n; k++) {
        n += strcmp(c->planned[k].device->backend->name, device) == 0;
        *n_streaming += c->planned[k].streams;
    }
    return n;
}

// A long prompt, twice, so that matrices are copied ahead; then a few rows.
static void run_prompts(frit_engine *engine, size_t n_vocab, float *logits)
{
    for (int i = 0; i < 2; i++) run_pieces(engine, 100, n_vocab, logits + (size_t)i * N_PIECES * n_vocab);
}

// With some layers on the CPU, the GPU still computes prompts of all layers. Nodes of these layers that read no matrix
// run on the CPU.
static void prompts_of_layers_on_the_cpu_run_on_the_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *layers, *rules;
        size_t n_streaming;
    } cases[] = {{"0", NULL, 4}, {"2", NULL, 3}, {"all", "blk.1.ffn=cpu", 2}};
    static const frit_random_row row = {
        .shape = {.name = "llama", .arch = "llama", .title = "", .n_layers = 3},
        .keys = "context_length=160 embedding_length=256 feed_forward_length=256 attention.head_count=4 "
                "attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 "
                "attention.layer_norm_rms_epsilon=1e-5 rope.dimension_count=64 vocab_size=320"};
    require_gpu();
    frit_model *model;
    frit_checkpoint *ckpt;
    frit_model_info info = {0};
    const frit_random_options made = {.type = "q4_k_m"};
    const char *path = temp_path("random.gguf");
    assert_ok(frit_random_open(&ckpt, &row, &made));
    assert_ok(frit_random_save(ckpt, path, &made));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_model_get_info(model, &info));
    const size_t n = 2 * N_PIECES * (size_t)info.n_vocab;
    float *expected = calloc(n, sizeof(float)), *got = calloc(n, sizeof(float));
    frit_engine *engine = new_engine(model, "cpu", "f32", 160);
    run_prompts(engine, (size_t)info.n_vocab, expected);
    frit_engine_free(engine);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        const frit_engine_options options = {.n_ctx = 160,
                                             .n_threads = 2,
                                             .cpu = "reference",
                                             .device = "cuda",
                                             .cache_type_k = "f16",
                                             .cache_type_v = "f16",
                                             .gpu_layers = cases[i].layers,
                                             .override_tensor = cases[i].rules};
        size_t n_streaming;
        assert_ok(frit_engine_new(&engine, model, &options));
        run_prompts(engine, (size_t)info.n_vocab, got);
        print_message("-ngl %s: %zu segments on the GPU, ", cases[i].layers, n_on(engine, "cuda", &n_streaming));
        print_message("%zu of them stream: %.1e\n", n_streaming, nmse(got, expected, n));
        assert_true(nmse(got, expected, n) <= 1e-5);
        assert_int_equal(n_streaming, cases[i].n_streaming);
        assert_int_equal(((const frit_cuda_device *)engine->devices[0])->n_streaming, n_streaming);
        frit_engine_free(engine);
    }
    free(expected);
    free(got);
    frit_model_free(model);
}

// ------------------------------------------------------------------------------- picks

enum { N_PICKED = 5 };

// Generates tokens in consecutive steps. Each step is submitted before the token of the previous step is known. Each
// session has its own sampler; position and seed determine the draws.
static void generate_in_flight(frit_engine *engine, frit_sampler *sampler, frit_token first, frit_token *out)
{
    frit_session *session;
    frit_picked picked;
    uint64_t step, before = 0;
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, &first, 1, NULL));
    for (int i = 0; i <= N_PICKED; i++) {
        if (i < N_PICKED) assert_ok(frit_session_pick(session, sampler, NULL));
        if (i < N_PICKED) assert_ok(frit_engine_submit(engine, &step, NULL));
        if (i > 0) assert_ok(frit_engine_wait(engine, before));
        if (i > 0) assert_ok(frit_session_picked(session, &picked));
        if (i > 0) assert_ok(frit_sampler_accept(sampler, picked.token));
        if (i > 0) *out++ = picked.token;
        if (i + 1 < N_PICKED) assert_ok(frit_session_push_picked(session));
        before = step;
    }
    frit_session_free(session);
}

// Tokens that the host samples from the logits of each step.
static void generate_by_logits(frit_engine *engine, frit_sampler *sampler, frit_token token, frit_token *out)
{
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < N_PICKED; i++) {
        assert_ok(frit_session_push(session, &token, 1, NULL));
        assert_ok(frit_engine_step(engine, &n_rows));
        assert_ok(frit_sampler_set_position(sampler, (uint64_t)i + 1));
        assert_ok(frit_sampler_run_chain(sampler, frit_session_logits(session), &token));
        assert_ok(frit_sampler_accept(sampler, token));
        out[i] = token;
    }
    frit_session_free(session);
}

static size_t bytes_of_logits(const frit_engine *engine)
{
    const frit_cuda_device *d = (const frit_cuda_device *)engine->devices[0];
    return d->flights[0].output.n_bytes + d->flights[1].output.n_bytes;
}

static void tokens_are_picked_on_the_gpu_and_read_there_by_the_next_step(void **state)
{
    (void)state;
    require_gpu();
    size_t g = 0;
    while (g < N_GOLDENS && strcmp(golden_name(g), "llama-dense") != 0) g++;
    if (g == N_GOLDENS || !golden_is_here(g)) skip_because("the reference model llama-dense is not here");
    golden text = golden_load(g);
    frit_model *model;
    const frit_sampler_options options[] = {
        {.temp = 0},
        {.temp = 0.9f, .top_k = 40, .top_p = 0.95f, .seed = 3},
        {.repeat_penalty = 1.5f, .frequency_penalty = 1, .presence_penalty = 1, .repeat_last_n = 2}};
    assert_ok(frit_model_open(&model, text.path, NULL));
    frit_engine *engine = new_engine(model, "cuda", "f16", 64);
    for (size_t i = 0; i < FRIT_COUNT(options); i++) {
        frit_token tokens[2][N_PICKED];
        frit_sampler *sampler;
        assert_ok(frit_sampler_new(&sampler, model, &options[i]));
        generate_in_flight(engine, sampler, text.tokens[0], tokens[0]);
        if (i == 0) assert_int_equal(bytes_of_logits(engine), 0);   // no logits were copied to the host
        assert_ok(frit_sampler_reset(sampler));
        generate_by_logits(engine, sampler, text.tokens[0], tokens[1]);
        assert_true(bytes_of_logits(engine) > 0);
        assert_memory_equal(tokens[0], tokens[1], sizeof tokens[0]);
        frit_sampler_free(sampler);
    }
    frit_engine_free(engine);
    frit_model_free(model);
    golden_free(&text);
}

int main(int argc, char **argv)
{
    wanted = argc > 0 ? argv + 1 : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_reference),
        cmocka_unit_test(gpus_without_tensor_products_give_the_same_logits),
        cmocka_unit_test(experts_run_on_the_gpu_or_where_they_are_placed),
        cmocka_unit_test(fast_kernels_give_the_logits_of_the_cpu),
        cmocka_unit_test(prompts_of_layers_on_the_cpu_run_on_the_gpu),
        cmocka_unit_test(tokens_are_picked_on_the_gpu_and_read_there_by_the_next_step),
        cmocka_unit_test(fast_kernels_of_other_shapes),
    };
    const struct CMUnitTest models[] = {cmocka_unit_test(logits_are_those_of_the_reference)};
    return argc > 1 ? cmocka_run_group_tests(models, use_emulator, use_no_emulator)
                    : cmocka_run_group_tests(tests, use_emulator, use_no_emulator);
}
