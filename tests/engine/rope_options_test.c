// SPDX-License-Identifier: MIT
// RoPE options give the logits of files with the same values.
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit_tools.h"

static float rows[2][TINY_VOCAB];

static void run(const char *path, const frit_model_options *options, float *logits)
{
    enum { N = 60 };
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_token tokens[N];
    for (int i = 0; i < N; i++) tokens[i] = 5 + i % 9;
    assert_ok(frit_model_open(&model, path, options));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64, .cpu = "reference"}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, tokens, N, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    memcpy(logits, frit_session_logits(session), TINY_VOCAB * sizeof *logits);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

static const char *file_of(const char *scaling)
{
    return tiny_model(scaling ? scaling : "plain", &(tiny_options){.rope_scaling = scaling});
}

static bool are_same(const char *scaling, const char *other, frit_model_options options)
{
    run(file_of(scaling), NULL, rows[0]);
    run(file_of(other), &options, rows[1]);
    return memcmp(rows[0], rows[1], sizeof rows[0]) == 0;
}

static void options_take_the_place_of_what_the_file_says(void **state)
{
    (void)state;
    assert_false(are_same("linear", NULL, (frit_model_options){0}));
    assert_true(are_same("linear", NULL, (frit_model_options){.rope_scaling = "linear", .rope_scale = 4}));
    assert_true(are_same("linear", NULL, (frit_model_options){.rope_freq_scale = 0.25f}));
    assert_false(are_same("linear", NULL, (frit_model_options){.rope_scale = 2}));
    assert_true(are_same("yarn", NULL, (frit_model_options){.rope_scaling = "yarn", .rope_scale = 4}));
    assert_true(are_same("yarn", "linear", (frit_model_options){.rope_scaling = "yarn"}));
    assert_true(are_same(NULL, "yarn", (frit_model_options){.rope_scaling = "none"}));
}

static void every_number_changes_what_it_should(void **state)
{
    (void)state;
    // A base of 10,000, an original context of TINY_CTX, 32 and 1 turns, and whole extrapolation are the defaults.
    const frit_model_options same = {.rope_freq_base = 10000,
                                     .yarn_orig_ctx = TINY_CTX,
                                     .yarn_ext_factor = 1,
                                     .yarn_attn_factor = 1,
                                     .yarn_beta_fast = 32,
                                     .yarn_beta_slow = 1};
    const frit_model_options others[] = {
        {.rope_freq_base = 5000},   {.yarn_orig_ctx = 16}, {.yarn_ext_factor = 0.5f},
        {.yarn_attn_factor = 1.5f}, {.yarn_beta_fast = 2}, {.yarn_beta_slow = 0.01f},
    };
    assert_true(are_same("yarn", "yarn", same));
    for (size_t i = 0; i < FRIT_COUNT(others); i++)
        if (are_same("yarn", "yarn", others[i])) fail_msg("option %zu changes nothing", i);
}

static frit_session *open_session(frit_engine **engine, const frit_model_options *options)
{
    frit_model *model;
    frit_session *session;
    assert_ok(frit_model_open(&model, file_of("yarn"), options));
    assert_ok(frit_engine_new(engine, model, &(frit_engine_options){.n_ctx = 64, .cpu = "reference"}));
    assert_ok(frit_session_new(&session, *engine));
    frit_model_free(model);   // the engine keeps the model
    return session;
}

static void sessions_saved_with_another_rotation_are_refused(void **state)
{
    (void)state;
    const char *path = temp_path("session");
    const frit_token token = 5;
    frit_engine *engine, *other;
    frit_session *session = open_session(&engine, NULL);
    assert_ok(frit_session_push(session, &token, 1, NULL));
    assert_ok(frit_engine_step(engine, NULL));
    assert_ok(frit_session_save(session, path));
    assert_ok(frit_session_load(session, path));
    frit_session *stretched = open_session(&other, &(frit_model_options){.yarn_beta_fast = 2});
    assert_fails(frit_session_load(stretched, path), FRIT_E_INVALID, "its weights or metadata differ");
    frit_session_free(session);
    frit_session_free(stretched);
    frit_engine_free(engine);
    frit_engine_free(other);
}

static void options_out_of_their_limits_are_refused(void **state)
{
    (void)state;
    frit_model *model;
    const char *path = file_of(NULL);
    assert_fails(frit_model_open(&model, path, &(frit_model_options){.rope_scale = 2, .rope_freq_scale = 0.5f}),
                 FRIT_E_INVALID, "rope-scale is 2 and rope-freq-scale 0.5; expected one of both");
    assert_fails(frit_model_open(&model, path, &(frit_model_options){.rope_scale = -1}), FRIT_E_INVALID, "rope-scale");
    assert_fails(frit_model_open(&model, path, &(frit_model_options){.rope_scaling = "twice"}), FRIT_E_INVALID,
                 "rope-scaling");
    assert_fails(frit_model_open(&model, path, &(frit_model_options){.yarn_orig_ctx = -5}), FRIT_E_INVALID,
                 "yarn-orig-ctx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_the_place_of_what_the_file_says),
        cmocka_unit_test(every_number_changes_what_it_should),
        cmocka_unit_test(sessions_saved_with_another_rotation_are_refused),
        cmocka_unit_test(options_out_of_their_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
