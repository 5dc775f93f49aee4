// SPDX-License-Identifier: MIT
// Tokens that steps on a GPU through WebGPU pick, on the GPU or on the host, are those that a sampler chooses from the
// logits: with steps ahead of the tokens that are read, with and without penalties, and with different picks in a step.
#include "backend/webgpu_device.h"

#include "backend/gpu_engine.h"
#include "sample/sampler.h"

enum { N_TOKENS = 20, N_SAMPLERS = 4 };

// The likeliest; after penalties; random of a few; random of all.
static const frit_sampler_options samplers[N_SAMPLERS] = {
    {.temp = 0},
    {.temp = 0, .repeat_penalty = 1.5F, .frequency_penalty = 0.5F},
    {.temp = 0.8F, .top_k = 20, .top_p = 0.9F, .seed = 7},
    {.temp = 1.5F, .min_p = 0.01F, .seed = 8},
};

typedef struct text {
    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    frit_token tokens[N_TOKENS];
} text;

static void open_text(text *t, frit_engine *engine, int sampler)
{
    const frit_token first = 5;
    *t = (text){.engine = engine};
    assert_ok(frit_session_new(&t->session, engine));
    assert_ok(frit_sampler_new(&t->sampler, engine->model, &samplers[sampler]));
    assert_ok(frit_session_push(t->session, &first, 1, NULL));
}

static void close_text(text *t)
{
    frit_session_free(t->session);
    frit_sampler_free(t->sampler);
}

// Token by token, from logits.
static void run_by_logits(text *t)
{
    for (int i = 0; i < N_TOKENS; i++) {
        int32_t n_rows;
        do assert_ok(frit_engine_step(t->engine, &n_rows));
        while (n_rows > 0);
        assert_ok(frit_sampler_set_position(t->sampler, frit_session_length(t->session)));
        assert_ok(frit_sampler_sample(t->sampler, frit_session_logits(t->session), &t->tokens[i]));
        assert_ok(frit_sampler_accept(t->sampler, t->tokens[i]));
        assert_ok(frit_session_push(t->session, &t->tokens[i], 1, NULL));
    }
}

// All texts in the same steps, each step submitted before the tokens of the step before are read.
static void run_ahead(text *texts, int n)
{
    uint64_t before = 0, step = 0;
    frit_picked picked;
    for (int i = 0; i <= N_TOKENS; i++) {
        for (int k = 0; k < n && i < N_TOKENS; k++)
            assert_ok(frit_session_pick(texts[k].session, texts[k].sampler, NULL));
        if (i < N_TOKENS) assert_ok(frit_engine_submit(texts[0].engine, &step, NULL));
        if (i > 0) assert_ok(frit_engine_wait(texts[0].engine, before));
        for (int k = 0; k < n && i > 0; k++) {
            assert_ok(frit_session_picked(texts[k].session, &picked));
            assert_ok(frit_sampler_accept(texts[k].sampler, picked.token));
            texts[k].tokens[i - 1] = picked.token;
        }
        for (int k = 0; k < n && i + 1 < N_TOKENS; k++) assert_ok(frit_session_push_picked(texts[k].session));
        before = step;
    }
}

static frit_model *open_model(void)
{
    frit_model *model;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        if (strcmp(golden_name(i), "llama-dense") != 0 || !golden_is_here(i)) continue;
        golden g = golden_load(i);
        assert_ok(frit_model_open(&model, g.path, NULL));
        golden_free(&g);
        return model;
    }
    skip_because("the reference models are not here");
    return NULL;
}

static void compare(text *t, int n, const frit_token *wanted)
{
    assert_memory_equal(t[0].tokens, wanted, sizeof t[0].tokens);
    for (int i = 0; i < n; i++) close_text(&t[i]);
}

static void tokens_are_those_of_the_sampler(void **state)
{
    (void)state;
    require_webgpu();
    frit_model *model = open_model();
    frit_engine *engine = new_engine(model, "webgpu", "f16", 64);
    for (int s = 0; s < N_SAMPLERS; s++) {
        text t[2];
        frit_token wanted[N_TOKENS];
        open_text(&t[0], engine, s);
        run_by_logits(&t[0]);
        memcpy(wanted, t[0].tokens, sizeof wanted);
        compare(t, 1, wanted);
        open_text(&t[0], engine, s);
        for (int i = 0; i < N_TOKENS; i++) assert_ok(frit_session_next(t[0].session, t[0].sampler, &t[0].tokens[i]));
        compare(t, 1, wanted);
        if (samplers[s].temp > 0) continue;   // random numbers depend on when tokens are accepted
        for (int n = 1; n <= 2; n++) {        // alone, and beside picks that run on the host
            open_text(&t[0], engine, s);
            if (n > 1) open_text(&t[1], engine, 2);
            run_ahead(t, n);
            compare(t, n, wanted);
        }
    }
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_are_those_of_the_sampler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
