// SPDX-License-Identifier: MIT
// Prepared engines: no step makes a plan, results are the same, progress can be followed and cancelled. Also how many
// sessions get logits in one step.
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

enum { N_BATCH = 128, N_SESSIONS = 70, N_PROMPT = 100 };

static frit_engine *open_engine(const char *name, const tiny_options *tiny, const frit_engine_options *options)
{
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, tiny_model(name, tiny), NULL));
    assert_ok(frit_engine_new(&engine, model, options));
    frit_model_free(model);
    return engine;
}

// Runs single tokens of n sessions together, after a prompt of one session. Returns a weighted sum of all logits.
static double run(frit_engine *engine, int n)
{
    frit_session *sessions[N_SESSIONS];
    frit_token prompt[N_PROMPT];
    double sum = 0;
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = 3 + i * 7 % (TINY_VOCAB - 3);
    for (int i = 0; i < n; i++) {
        assert_ok(frit_session_new(&sessions[i], engine));
        assert_ok(frit_session_push(sessions[i], prompt + i, i == 0 ? N_PROMPT : 1, NULL));
    }
    int32_t n_rows;
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    for (int i = 0; i < n; i++) {
        const float *logits = frit_session_logits(sessions[i]);
        for (int k = 0; k < TINY_VOCAB; k++) sum += (double)logits[k] * (i + 1);
        frit_session_free(sessions[i]);
    }
    return sum;
}

typedef struct progress_log {
    int n, most;
    double last;
    bool falls;
} progress_log;

static bool follow(void *ctx, double done)
{
    progress_log *log = ctx;
    log->falls = log->falls || done < log->last;
    log->last = done;
    return ++log->n < log->most;
}

static void steps_of_prepared_engines_make_no_plans(void **state)
{
    (void)state;
    static const int numbers[] = {1, 2, 9, 33, N_SESSIONS};
    const frit_engine_options options = {
        .n_ctx = TINY_CTX, .n_batch = N_BATCH, .n_sessions = N_SESSIONS, .n_threads = 2, .no_prefix_cache = true};
    frit_engine *plain = open_engine("plain.gguf", &(tiny_options){0}, &options);
    frit_engine *engine = open_engine("prepared.gguf", &(tiny_options){0}, &options);
    progress_log log = {.most = INT32_MAX};
    const size_t before = engine->plans.n_made;
    assert_ok(frit_engine_prepare(engine, follow, &log));
    assert_true(log.n > 2 && log.last == 1 && !log.falls);
    const size_t n_made = engine->plans.n_made;
    assert_true(n_made > before);
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++) assert_true(run(engine, numbers[i]) == run(plain, numbers[i]));
    assert_int_equal(engine->plans.n_made, n_made);
    assert_true(plain->plans.n_made <= n_made);
    assert_ok(frit_engine_prepare(engine, NULL, NULL));   // finds all prepared
    assert_int_equal(engine->plans.n_made, n_made);
    frit_engine_free(engine);
    frit_engine_free(plain);
}

static void preparing_can_be_cancelled(void **state)
{
    (void)state;
    const frit_engine_options options = {.n_ctx = TINY_CTX, .n_batch = N_BATCH, .n_threads = 1};
    frit_engine *engine = open_engine("cancelled.gguf", &(tiny_options){0}, &options);
    progress_log log = {.most = 2};
    assert_fails(frit_engine_prepare(engine, follow, &log), FRIT_E_CANCELLED, "preparing the engine was cancelled");
    assert_int_equal(log.n, 2);
    run(engine, 1);
    frit_engine_free(engine);
}

static bool has_plan(const frit_engine *engine, frit_plan_kind kind)
{
    return engine->plans.classes[0][0][0][kind][0].planned != NULL;
}

// The model that drafts has plans with hidden states only. The model that verifies has both.
static void models_that_draft_for_themselves_have_plans_with_hidden_states(void **state)
{
    (void)state;
    frit_model *model, *layer;
    frit_engine *engine, *next;
    const frit_engine_options options = {.n_ctx = TINY_CTX, .n_batch = N_BATCH, .n_threads = 1};
    assert_ok(frit_model_open(&model, tiny_model("next.gguf", &(tiny_options){.next = TINY_NEXT}), NULL));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_engine_prepare(engine, NULL, NULL));
    assert_false(has_plan(engine, FRIT_PLAN_NEXT));
    assert_ok(frit_model_open_next(&layer, model));
    assert_ok(frit_engine_new(&next, layer, &options));
    assert_ok(frit_engine_prepare(engine, NULL, NULL));
    assert_ok(frit_engine_prepare(next, NULL, NULL));
    assert_true(has_plan(engine, FRIT_PLAN_LOGITS) && has_plan(engine, FRIT_PLAN_NEXT));
    assert_true(!has_plan(next, FRIT_PLAN_LOGITS) && has_plan(next, FRIT_PLAN_NEXT));
    frit_engine_free(next);
    frit_engine_free(engine);
    frit_model_free(layer);
    frit_model_free(model);
}

// 64 MiB hold the logits of 128 rows of this vocabulary.
static void all_sessions_get_logits_in_one_step(void **state)
{
    (void)state;
    enum { N = 140 };
    const tiny_options tiny = {.n_vocab = 1 << 17, .n_pieces = -1};
    frit_engine_options options = {.n_ctx = 64, .n_batch = 256, .n_threads = 2};
    frit_session *sessions[N];
    frit_engine *engine = open_engine("few.gguf", &tiny, &options);
    assert_int_equal(engine->schedule.max_outs, 128);
    frit_engine_free(engine);
    options.n_sessions = N;
    engine = open_engine("many.gguf", &tiny, &options);
    assert_int_equal(engine->schedule.max_outs, N);
    for (int i = 0; i < N; i++) {
        const frit_token token = 5 + i;
        assert_ok(frit_session_new(&sessions[i], engine));
        assert_ok(frit_session_push(sessions[i], &token, 1, NULL));
    }
    int32_t n_rows;
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_int_equal(n_rows, N);
    for (int i = 0; i < N; i++) frit_session_free(sessions[i]);
    frit_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_prepared_engines_make_no_plans),
        cmocka_unit_test(preparing_can_be_cancelled),
        cmocka_unit_test(models_that_draft_for_themselves_have_plans_with_hidden_states),
        cmocka_unit_test(all_sessions_get_logits_in_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
