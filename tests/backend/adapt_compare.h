// SPDX-License-Identifier: MIT
// backend/adapt_compare.h: adapters and control vectors on a device, against plain C on the CPU.
#pragma once
#include "engine/engine.h"
#include "support/adapters.h"
#include "support/support.h"
#include "support/tiny_model.h"

enum { N_TOKENS = 20, N_ADAPTERS = 3 };

typedef struct side {   // an engine with adapters
    frit_engine *engine;
    float *logits[2];   // [N_TOKENS * n_vocab] of each session
} side;

static frit_model *model;
static frit_adapter *adapters[N_ADAPTERS];
static size_t n_vocab;

static inline void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    memcpy((float *)ctx + i * n, logits, n * sizeof *logits);
}

static inline side open_side(const char *device)
{
    side s = {0};
    const frit_engine_options options = {.n_ctx = 64,
                                         .n_threads = 2,
                                         .n_sessions = 2,
                                         .cache_type_k = "f32",
                                         .cache_type_v = "f32",
                                         .cpu = strcmp(device, "cpu") == 0 ? "reference" : NULL,
                                         .device = device,
                                         .gpu_layers = "all"};
    assert_ok(frit_engine_new(&s.engine, model, &options));
    for (int i = 0; i < 2; i++) s.logits[i] = calloc(N_TOKENS * n_vocab, sizeof(float));
    return s;
}

static inline void close_side(side *s)
{
    frit_engine_free(s->engine);
    for (int i = 0; i < 2; i++) free(s->logits[i]);
}

// Runs two sessions with different scales in shared steps: a prompt, then token by token.
static inline void run(side *s, const float scales[2][N_ADAPTERS])
{
    frit_session *sessions[2];
    int32_t n_rows;
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_new(&sessions[i], s->engine));
        assert_ok(frit_session_set_adapters(sessions[i], adapters, scales[i], N_ADAPTERS));
    }
    for (size_t at = 0; at < N_TOKENS; at += at < N_TOKENS - 2 ? N_TOKENS - 2 : 1) {
        for (int i = 0; i < 2; i++) {
            frit_token tokens[N_TOKENS];
            const frit_push_options options = {
                .output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = s->logits[i] + at * n_vocab};
            for (size_t k = 0; k < N_TOKENS; k++) tokens[k] = (frit_token)((k * 7 + 3 + (size_t)i) % n_vocab);
            assert_ok(frit_session_push(sessions[i], tokens + at, at == 0 ? N_TOKENS - 2 : 1, &options));
        }
        do assert_ok(frit_engine_step(s->engine, &n_rows));
        while (n_rows > 0);
    }
    for (int i = 0; i < 2; i++) frit_session_free(sessions[i]);
}

// True if an op runs on the CPU.
static inline bool needs_cpu(const frit_engine *engine)
{
    const frit_shape_class *classes = &engine->plans.classes[0][0][0][0][0];
    const size_t n = sizeof engine->plans.classes / sizeof *classes;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; classes[i].planned && k < classes[i].segments.n; k++)
            if (classes[i].segments.list[k].device > 0) return true;
    return false;
}

// Tests one adapter; two adapters in one session and none in the other; a control vector beside an adapter; and none.
// check: of the device's engine after all runs.
static inline void compare_adapters(const char *device, void (*check)(const frit_engine *engine))
{
    static const float scales[][2][N_ADAPTERS] = {{{0.75f, 0, 0}, {0, -0.5f, 0}},
                                                  {{0.5f, 0.5f, 0}, {0, 0, 0}},
                                                  {{0.25f, 0, 0.5f}, {0, 0, -0.5f}},
                                                  {{0, 0, 0}, {0, 0, 0}}};
    char paths[N_ADAPTERS][512];
    const char *path;
    frit_model_info info = {0};
    char model_path[512];
    snprintf(model_path, sizeof model_path, "%s", tiny_model("tiny.gguf", &(tiny_options){.n_layer = 2, .times = 2}));
    assert_ok(frit_model_open(&model, model_path, NULL));
    assert_ok(frit_model_get_info(model, &info));
    n_vocab = (size_t)info.n_vocab;
    path = make_adapter("a.gguf", model_path, &(adapter_options){.seed = 1, .rank = 4, .alpha = 8}, NULL);
    snprintf(paths[0], sizeof paths[0], "%s", path);
    path = make_adapter("b.gguf", model_path, &(adapter_options){.seed = 2, .rank = 9, .type = FRIT_DTYPE_F16}, NULL);
    snprintf(paths[1], sizeof paths[1], "%s", path);
    snprintf(paths[2], sizeof paths[2], "%s", make_vector("v.gguf", model_path, 5, 1, 1));
    for (int i = 0; i < N_ADAPTERS; i++) assert_ok(frit_adapter_open(&adapters[i], model, paths[i], NULL));
    side cpu = open_side("cpu"), gpu = open_side(device);
    float *plain[2] = {0};
    for (size_t c = FRIT_COUNT(scales); c-- > 0;) {
        run(&cpu, scales[c]);
        run(&gpu, scales[c]);
        for (int i = 0; i < 2; i++) {
            const size_t n = N_TOKENS * n_vocab;
            const double error = nmse(gpu.logits[i], cpu.logits[i], n);
            if (!(error <= 1e-6)) fail_msg("case %zu, session %d: %.1e", c, i, error);
            if (!plain[i]) plain[i] = memcpy(malloc(n * sizeof(float)), cpu.logits[i], n * sizeof(float));
            const bool changes = scales[c][i][0] != 0 || scales[c][i][1] != 0 || scales[c][i][2] != 0;
            assert_int_equal(nmse(cpu.logits[i], plain[i], n) > 1e-4, changes);
        }
    }
    check(gpu.engine);
    assert_false(needs_cpu(gpu.engine));
    for (int i = 0; i < 2; i++) free(plain[i]);
    close_side(&cpu);
    close_side(&gpu);
    for (int i = 0; i < N_ADAPTERS; i++) frit_adapter_free(adapters[i]);
    frit_model_free(model);
}
