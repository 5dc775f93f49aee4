// SPDX-License-Identifier: MIT
// Pictures in sessions: logits and greedy texts after reference features, beside those of transformers.
#include "engine/media/golden_session.h"

static const known models[] = {
    {"qwen2_vl", 1e-10}, {"qwen2_5_vl", 1e-10}, {"qwen3_vl", 1e-10},     {"qwen3_5", 1e-9},
    {"gemma3", 1e-10},   {"gemma4", 1e-10},     {"gemma4_small", 1e-10},
};

static void texts_with_pictures_equal_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++)
        for (size_t k = 0; k < 3; k++) compare_case(&models[i], k, (frit_engine_options){.cpu = "reference"});
}

static void fast_kernels_give_the_same_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++)
        for (size_t k = 0; k < 3; k++) compare_case(&models[i], k, (frit_engine_options){0});
}

static void pictures_are_cut_by_any_batch_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++)
        for (int32_t n = 1; n < 16; n += 3) compare_case(&models[i], 2, (frit_engine_options){.n_batch = n});
}

static void share_steps(const known *model)
{
    fixture f = open_fixture(model->name, 1, (frit_engine_options){.n_sessions = 4});
    frit_session *sessions[2], *fork;
    expected_rows rows[2][8];
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_new(&sessions[i], f.engine));
        push_case(&f, sessions[i], rows[i]);
    }
    run_all(f.engine);
    expect_accuracy(&f, model, 1);
    assert_ok(frit_session_fork(&fork, sessions[0]));
    frit_session_free(sessions[0]);
    expect_continuation(&f, fork);
    expect_continuation(&f, sessions[1]);
    frit_session_free(fork);
    frit_session_free(sessions[1]);
    close_fixture(&f);
}

static void sessions_with_pictures_share_steps_and_forks_go_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) share_steps(&models[i]);
}

// The second session finds the picture in the prefix cache and computes the last tokens only.
static void use_prefix_cache(const known *model)
{
    fixture f = open_fixture(model->name, 2, (frit_engine_options){.n_sessions = 3});
    frit_session *session;
    expected_rows rows[8];
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_new(&session, f.engine));
        push_case(&f, session, rows);
        run_all(f.engine);
        frit_session_free(session);
    }
    expect_accuracy(&f, model, 2);
    close_fixture(&f);
}

static void the_prefix_cache_knows_pictures(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) use_prefix_cache(&models[i]);
}

// A picture with more rows than a step makes steps larger, where its rows see each other.
static void steps_grow_for_a_picture_whose_rows_see_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t n_batch;   // after a push with the option 4
    } rows[] = {{"gemma3", 9}, {"gemma4", 6}, {"gemma4_small", 4}, {"qwen3_vl", 4}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        fixture f = open_fixture(rows[i].name, 1, (frit_engine_options){.n_batch = 4});
        frit_session *session;
        expected_rows expected[8];
        assert_ok(frit_session_new(&session, f.engine));
        push_case(&f, session, expected);
        assert_in_range(f.engine->n_batch, rows[i].n_batch, rows[i].n_batch == 4 ? 4 : 16);
        frit_session_free(session);
        close_fixture(&f);
    }
}

// A step has room for the picture alone, and another session wants a row of each.
static void a_picture_runs_whole_beside_a_session_that_generates(void **state)
{
    (void)state;
    static const known gemma3 = {"gemma3", 1e-10};
    fixture f = open_fixture(gemma3.name, 2, (frit_engine_options){.n_sessions = 2, .n_batch = 9});
    frit_session *talks, *reads;
    frit_sampler *sampler;
    frit_token token = 80;
    expected_rows rows[8];
    assert_ok(frit_session_new(&talks, f.engine));
    assert_ok(frit_sampler_new(&sampler, f.model, NULL));
    assert_ok(frit_session_push(talks, &token, 1, NULL));
    for (int i = 0; i < 3; i++) assert_ok(frit_session_next(talks, sampler, &token));
    assert_ok(frit_session_new(&reads, f.engine));
    push_case(&f, reads, rows);
    for (int i = 0; i < 40 && reads->n_done < reads->n_tokens; i++)
        assert_ok(frit_session_next(talks, sampler, &token));
    assert_int_equal(reads->n_done, reads->n_tokens);
    run_all(f.engine);
    expect_accuracy(&f, &gemma3, 2);
    expect_continuation(&f, reads);
    assert_int_equal(f.engine->n_batch, 9);
    frit_session_free(reads);
    frit_session_free(talks);
    frit_sampler_free(sampler);
    close_fixture(&f);
}

static void expect_refusal(frit_status status, frit_status expected, const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(frit_error(), words)) fail_msg("'%s' lacks '%s'", frit_error(), words);
}

static void a_session_with_pictures_refuses_what_it_cannot_do(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", 1, (frit_engine_options){0});
    frit_session *session;
    expected_rows rows[8];
    size_t n_bytes;
    assert_ok(frit_session_new(&session, f.engine));
    push_case(&f, session, rows);
    expect_refusal(frit_session_truncate(session, 8), FRIT_E_INVALID, "within a picture");
    run_all(f.engine);
    expect_refusal(frit_session_save_memory(session, NULL, 0, &n_bytes), FRIT_E_UNSUPPORTED, "with pictures");
    expect_refusal(frit_session_set_shift(session, &(frit_shift_options){0}), FRIT_E_UNSUPPORTED, "pictures");
    assert_ok(frit_session_truncate(session, 6));   // the picture begins there
    assert_int_equal(session->soft.n, 0);
    frit_session_free(session);
    close_fixture(&f);
}

static void models_of_text_refuse_pictures(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_soft_run *run;
    const float features[64] = {0};
    const uint8_t digest[32] = {0};
    assert_ok(frit_model_open(&model, shared_path("goldens/hf/starcoder2"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_soft_run_new(&run, engine, features, 1, 1, 64, digest, true));
    expect_refusal(frit_session_push(session, run->ids, (size_t)run->n_tokens, NULL), FRIT_E_UNSUPPORTED,
                   "read no pictures");
    frit_soft_run_unref(run);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_with_pictures_equal_those_of_transformers),
        cmocka_unit_test(fast_kernels_give_the_same_texts),
        cmocka_unit_test(pictures_are_cut_by_any_batch_size),
        cmocka_unit_test(sessions_with_pictures_share_steps_and_forks_go_on),
        cmocka_unit_test(the_prefix_cache_knows_pictures),
        cmocka_unit_test(steps_grow_for_a_picture_whose_rows_see_each_other),
        cmocka_unit_test(a_picture_runs_whole_beside_a_session_that_generates),
        cmocka_unit_test(a_session_with_pictures_refuses_what_it_cannot_do),
        cmocka_unit_test(models_of_text_refuse_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
